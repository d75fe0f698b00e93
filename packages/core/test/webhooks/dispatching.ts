/** A dispatcher with scripted receivers, on the test clock. */

import { memory } from "@tenure/memory"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { hostOrigin } from "../../src/base/change-context.ts"
import type { InvalidInput, StoreUnavailable } from "../../src/base/errors.ts"
import * as Setting from "../../src/base/setting.ts"
import { ProjectId } from "../../src/base/values.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import type { StorePorts } from "../../src/tenure.ts"
import {
  Dispatcher,
  type DispatcherOptions,
  dispatcherOptions,
} from "../../src/webhooks/dispatcher.ts"
import { Outbox } from "../../src/webhooks/outbox.ts"
import { Events } from "../../src/webhooks/published-events.ts"
import type { WebhookStore } from "../../src/webhooks/store.ts"
import {
  AddressPolicy,
  type TransportError,
  type TransportRequest,
  type TransportResponse,
  WebhookTransport,
} from "../../src/webhooks/transport.ts"
import {
  type WebhooksOptions as WebhookOptions,
  webhooksOptions as webhookOptions,
} from "../../src/webhooks/webhook-registry.ts"
import type { WebhookId } from "../../src/webhooks/webhook.ts"
import { Webhooks } from "../../src/webhooks/webhooks.ts"
import { allEnded, isBusy, watchedCrypto } from "./watched-crypto.ts"

export const projectId = ProjectId("p1")
export const hour = 3_600_000

/** The delays between attempts, in milliseconds, whatever the default schedule is. */
const retrySchedule = [
  5000,
  300_000,
  1_800_000,
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * hour),
]

interface Sent extends TransportRequest {
  readonly at: number
}

/**
 * The response of a receiver to its n-th request, counted from 1.
 *
 * @param onResponse - tells that the status has arrived
 */
export type Receiver = (
  n: number,
  onResponse: (received: () => TransportResponse) => void,
) => Effect.Effect<TransportResponse, TransportError>

export const status = (code: number, retryAfter?: string): Effect.Effect<TransportResponse> =>
  Effect.succeed({ status: code, retryAfter, body: `answer ${code}` })

/** A transport to receivers by URL, which records the requests that are sent and aborted. */
export const scripted = (receivers: Readonly<Record<string, Receiver>>) => {
  const sent: Array<Sent> = []
  const aborted: Array<string> = []
  const layer = Layer.succeed(WebhookTransport, {
    sendsHttpToNames: true,
    send: (request, onResponse = () => {}) =>
      Effect.flatMap(Clock.currentTimeMillis, (at) => {
        sent.push({ ...request, at })
        const n = sent.filter(({ url }) => url === request.url).length
        const receiver = receivers[request.url] ?? (() => status(200))
        return receiver(n, onResponse).pipe(
          Effect.onInterrupt(() => Effect.sync(() => aborted.push(request.url))),
        )
      }),
  })
  return { sent, aborted, layer }
}

type Disruption = Effect.Effect<void, StoreUnavailable>

/** What happens before the operations of an outbox. Tests change it as they run. */
export interface Disruptions {
  claim: Disruption
  /** Happens after a claim instead. */
  claimed: Disruption
  settle: Disruption
  changes: Disruption
}

export const noDisruptions = (): Disruptions => ({
  claim: Effect.void,
  claimed: Effect.void,
  settle: Effect.void,
  changes: Effect.void,
})

/** Memory stores with an outbox that can be disrupted. */
export const storesWith = (disruptions: Disruptions) =>
  Layer.provideMerge(
    Layer.effect(
      Outbox,
      Effect.map(Outbox, (outbox) => {
        const after = <A, E>(name: keyof Disruptions, work: Effect.Effect<A, E>) =>
          Effect.andThen(
            Effect.suspend(() => disruptions[name]),
            work,
          )
        return {
          ...outbox,
          claim: (options) =>
            Effect.tap(after("claim", outbox.claim(options)), () => disruptions.claimed),
          settle: (claim, settlement) => after("settle", outbox.settle(claim, settlement)),
          nextChange: after("changes", outbox.nextChange),
        }
      }),
    ),
    memory(),
  )

/** The services of a test, whose dispatcher sends by a transport. */
const servicesOn = (
  transport: Layer.Layer<WebhookTransport>,
  options: DispatcherOptions,
  webhooks: WebhookOptions,
) =>
  Layer.mergeAll(Webhooks.layer(Setting.parse(webhookOptions, webhooks)), Events.layer()).pipe(
    Layer.provide(
      Dispatcher.layer(Setting.parse(dispatcherOptions, { retrySchedule, ...options })),
    ),
    Layer.provide(transport),
    Layer.provide(AddressPolicy.layer()),
  )

/** Runs a step with a project and a dispatcher that stops when the step ends. The stores stay. */
export const untilStopped = <A, E>(
  transport: Layer.Layer<WebhookTransport>,
  step: Effect.Effect<A, E, Webhooks | Events | Outbox>,
) =>
  Effect.gen(function* () {
    yield* (yield* MembershipStore).createProject(projectId, { origin: hostOrigin, at: 0 })
    return yield* Effect.provide(step, servicesOn(transport, {}, {}))
  })

/** Runs a test with a project, a dispatcher and scripted receivers. */
export const dispatching = <A, E>(
  receivers: Readonly<Record<string, Receiver>>,
  test: (
    transport: Omit<ReturnType<typeof scripted>, "layer">,
  ) => Effect.Effect<A, E, Webhooks | Events | Outbox | WebhookStore | MembershipStore>,
  options: DispatcherOptions = {},
  stores: Layer.Layer<StorePorts, InvalidInput> = memory(),
  webhooks: WebhookOptions = {},
) => {
  const transport = scripted(receivers)
  const services = servicesOn(transport.layer, options, webhooks).pipe(
    Layer.provideMerge(stores),
    Layer.provideMerge(watchedCrypto),
  )
  return Effect.gen(function* () {
    yield* TestClock.setTime(1_795_000_000_000)
    yield* (yield* MembershipStore).createProject(projectId, { origin: hostOrigin, at: 0 })
    return yield* test(transport)
  }).pipe(Effect.provide(services))
}

export const url = "https://receiver.example/a"
export const otherUrl = "https://receiver.example/b"

export const addWebhook = (to = url, project = projectId) =>
  Effect.flatMap(Webhooks, (webhooks) => webhooks.create({ projectId: project, url: to }))

/** Publishes an event of a project. */
export const publishTo = (project: ProjectId) =>
  Effect.flatMap(Events, (events) =>
    events.publish({ projectId: project, type: "payment.completed", data: { amount: 5 } }),
  )

export const publish = publishTo(projectId)

export const publishMany = (count: number) => Effect.replicateEffect(publish, count)

const turns = Effect.forEach(Array.from({ length: 50 }), () => Effect.yieldNow, { discard: true })

/** Lets fibers run until all of them wait, and none of them for WebCrypto. */
export const settled = Effect.andThen(
  turns,
  Effect.whileLoop({
    while: isBusy,
    body: () => Effect.andThen(allEnded, turns),
    step: () => {},
  }),
)

/** Lets time pass, and fibers run before and after. */
export const pass = (duration: Duration.Input) =>
  Effect.andThen(settled, Effect.andThen(TestClock.adjust(duration), settled))

export const deliveriesOf = ({ id }: { readonly id: WebhookId }) =>
  Effect.flatMap(Outbox, (outbox) =>
    outbox.deliveries({ projectId, webhookId: id }, { limit: 100 }),
  )
