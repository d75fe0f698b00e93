/** A dispatcher with receivers that follow a script, on the test clock. */

import * as AddressPolicy from "@tenure/core/AddressPolicy"
import { type Options, Dispatcher } from "@tenure/core/Dispatcher"
import { Events } from "@tenure/core/Events"
import type { InvalidInput } from "@tenure/core/InvalidInput"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { Outbox } from "@tenure/core/Outbox"
import { ProjectId } from "@tenure/core/Project"
import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import type { Stores } from "@tenure/core/Tenure"
import type { WebhookId } from "@tenure/core/Webhook"
import { type Options as WebhookOptions, Webhooks } from "@tenure/core/Webhooks"
import {
  type Answer,
  type Outgoing,
  type TransportError,
  WebhookTransport,
} from "@tenure/core/WebhookTransport"
import { memory } from "@tenure/memory"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"

export const projectId = ProjectId("p1")
export const hour = 3_600_000

interface Sent extends Outgoing {
  readonly at: number
}

/** What a receiver does with the n-th request it gets, from 1. */
export type Receiver = (n: number) => Effect.Effect<Answer, TransportError>

export const status = (code: number, retryAfter?: string): Effect.Effect<Answer> =>
  Effect.succeed({ status: code, retryAfter, body: `answer ${code}` })

/** A transport to receivers by URL, which notes what is sent and what is aborted. */
export const scripted = (receivers: Readonly<Record<string, Receiver>>) => {
  const sent: Array<Sent> = []
  const aborted: Array<string> = []
  const layer = Layer.succeed(WebhookTransport, {
    send: (request) =>
      Effect.flatMap(Clock.currentTimeMillis, (at) => {
        sent.push({ ...request, at })
        const n = sent.filter(({ url }) => url === request.url).length
        const receiver = receivers[request.url] ?? (() => status(200))
        return receiver(n).pipe(
          Effect.onInterrupt(() => Effect.sync(() => aborted.push(request.url))),
        )
      }),
  })
  return { sent, aborted, layer }
}

type Fault = Effect.Effect<void, StoreUnavailable>

/** What happens before the outbox does its work, to be changed in the middle of a test. */
export interface Faults {
  claim: Fault
  /** Happens after a claim. */
  claimed: Fault
  settle: Fault
  changes: Fault
}

export const noFaults = (): Faults => ({
  claim: Effect.void,
  claimed: Effect.void,
  settle: Effect.void,
  changes: Effect.void,
})

/** Memory stores with an outbox in which things happen. */
export const storesWith = (faults: Faults) =>
  Layer.provideMerge(
    Layer.effect(
      Outbox,
      Effect.map(Outbox, (outbox) => {
        const after = <A, E>(name: keyof Faults, work: Effect.Effect<A, E>) =>
          Effect.andThen(
            Effect.suspend(() => faults[name]),
            work,
          )
        return {
          ...outbox,
          claim: (options) =>
            Effect.tap(after("claim", outbox.claim(options)), () => faults.claimed),
          settle: (claim, settlement) => after("settle", outbox.settle(claim, settlement)),
          changes: after("changes", outbox.changes),
        }
      }),
    ),
    memory(),
  )

/** Runs a test with a project, a dispatcher and scripted receivers. */
export const dispatching = <A, E>(
  receivers: Readonly<Record<string, Receiver>>,
  test: (
    transport: Omit<ReturnType<typeof scripted>, "layer">,
  ) => Effect.Effect<A, E, Webhooks | Events | Outbox>,
  options: Options = {},
  stores: Layer.Layer<Stores, InvalidInput> = memory(),
  webhooks: WebhookOptions = {},
) => {
  const transport = scripted(receivers)
  const services = Layer.mergeAll(Webhooks.layer(webhooks), Events.layer).pipe(
    Layer.provide(Dispatcher.layer(options)),
    Layer.provide(transport.layer),
    Layer.provide(AddressPolicy.AddressPolicy.layer()),
    Layer.provideMerge(stores),
  )
  return Effect.gen(function* () {
    yield* TestClock.setTime(1_795_000_000_000)
    yield* (yield* MembershipStore).createProject(projectId)
    return yield* test(transport)
  }).pipe(Effect.provide(services))
}

export const url = "https://receiver.example/a"
export const otherUrl = "https://receiver.example/b"

export const addWebhook = (to = url) =>
  Effect.flatMap(Webhooks, (webhooks) => webhooks.create({ projectId, url: to }))

export const publish = Effect.flatMap(Events, (events) =>
  events.publish({ projectId, type: "payment.completed", data: { amount: 5 } }),
)

/** Lets fibers run until they wait for time to pass, or for nothing. */
export const settled = Effect.forEach(Array.from({ length: 50 }), () => Effect.yieldNow, {
  discard: true,
})

/** Lets time pass, after all that is due has been done. */
export const pass = (duration: Duration.Input) =>
  Effect.andThen(settled, Effect.andThen(TestClock.adjust(duration), settled))

export const deliveriesOf = ({ id }: { readonly id: WebhookId }) =>
  Effect.flatMap(Outbox, (outbox) =>
    outbox.deliveries({ projectId, webhookId: id }, { limit: 100 }),
  )
