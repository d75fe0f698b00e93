/** A dispatcher with scripted receivers and disruptible stores, on the test clock. */

import { it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as WebCrypto from "effect/crypto/WebCrypto"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { hostOrigin } from "../../src/base/change-context.ts"
import { type InvalidInput, StoreUnavailable } from "../../src/base/errors.ts"
import * as Setting from "../../src/base/setting.ts"
import { ProjectId } from "../../src/base/values.ts"
import type { EventId } from "../../src/events/event.ts"
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
import { webhooksOptions } from "../../src/webhooks/webhook-registry.ts"
import type { WebhookId } from "../../src/webhooks/webhook.ts"
import { Webhooks } from "../../src/webhooks/webhooks.ts"

type Stores = Layer.Layer<StorePorts, InvalidInput>

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
 * A receiver's response to its n-th request, counted from 1.
 *
 * @param onResponse - called when the status arrives
 */
export type Receiver = (
  n: number,
  onResponse: (received: () => TransportResponse) => void,
) => Effect.Effect<TransportResponse, TransportError>

export const status = (code: number, retryAfter?: string): Effect.Effect<TransportResponse> =>
  Effect.succeed({ status: code, retryAfter, body: `answer ${code}` })

export const unavailable = Effect.fail(new StoreUnavailable({ cause: "down" }))

type Disruption = Effect.Effect<void, StoreUnavailable>

/** Disruptions before outbox operations. */
interface Disruptions {
  claim: Disruption
  /** Happens after a claim instead. */
  claimed: Disruption
  settle: Disruption
  changes: Disruption
}

const makeWorld = () => {
  const disruptions: Disruptions = {
    claim: Effect.void,
    claimed: Effect.void,
    settle: Effect.void,
    changes: Effect.void,
  }
  return {
    sent: Array<Sent>(),
    /** The aborted requests' URLs. */
    aborted: Array<string>(),
    /** How often the outbox was asked. */
    calls: { claim: 0, settle: 0 },
    /** The events in claim order. */
    claimed: Array<EventId>(),
    /** Tests change them as they run. */
    disruptions,
  }
}

/** The state a test sees and changes. */
export type World = ReturnType<typeof makeWorld>

/** The webhooks' receivers by URL; all others respond with 200. */
export class Receivers extends Context.Service<Receivers, Map<string, Receiver>>()(
  "@tenure/core/test/Receivers",
) {}

const scriptedTransport = ({ aborted, sent }: World, receivers: Receivers["Service"]) =>
  Layer.succeed(WebhookTransport, {
    sendsHttpToNames: true,
    send: (request, onResponse = () => {}) =>
      Effect.flatMap(Clock.currentTimeMillis, (at) => {
        sent.push({ ...request, at })
        const n = sent.filter(({ url }) => url === request.url).length
        const receiver = receivers.get(request.url) ?? (() => status(200))
        return receiver(n, onResponse).pipe(
          Effect.onInterrupt(() => Effect.sync(() => aborted.push(request.url))),
        )
      }),
  })

const disruptedOutbox = ({ calls, claimed, disruptions }: World) =>
  Layer.effect(
    Outbox,
    Effect.map(Outbox, (outbox) => ({
      ...outbox,
      claim: (options) =>
        Effect.suspend(() => {
          calls.claim++
          return disruptions.claim
        }).pipe(
          Effect.andThen(outbox.claim(options)),
          Effect.tap(({ claims }) => {
            claimed.push(...claims.map(({ event }) => event.id))
            return disruptions.claimed
          }),
        ),
      settle: (claim, settlement) =>
        Effect.suspend(() => {
          calls.settle++
          return disruptions.settle
        }).pipe(Effect.andThen(outbox.settle(claim, settlement))),
      nextChange: Effect.suspend(() => disruptions.changes).pipe(Effect.andThen(outbox.nextChange)),
    })),
  )

// WebCrypto's operations run on their own threads, and no number of event loop turns waits for these.
const running = new Set<Promise<unknown>>()

const watch = (operation: Promise<unknown>): void => {
  running.add(operation)
  const end = () => void running.delete(operation)
  operation.then(end, end)
}

const watched = <A extends object>(target: A): A =>
  new Proxy(target, {
    get: (_, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member === "object" && member !== null) return watched(member)
      if (typeof member !== "function") return member
      return (...args: ReadonlyArray<unknown>): unknown => {
        const result: unknown = Reflect.apply(member, target, args)
        if (result instanceof Promise) watch(result)
        return result
      }
    },
  })

const watchedCrypto = WebCrypto.layer(watched(globalThis.crypto))

/** A world, its transport, and its stores. */
export const makeScene = (base: Stores = memory()) => {
  const world = makeWorld()
  const receivers = new Map<string, Receiver>()
  return {
    world,
    transport: scriptedTransport(world, receivers),
    // Stores encrypt, too, so their WebCrypto operations are waited for as well.
    stores: Layer.merge(
      Layer.provideMerge(disruptedOutbox(world), base),
      Layer.succeed(Receivers, receivers),
    ).pipe(Layer.provideMerge(watchedCrypto)),
  }
}

interface Options extends DispatcherOptions {
  readonly stores?: Stores
}

const withProject = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* TestClock.setTime(1_795_000_000_000)
    yield* (yield* MembershipStore).createProject(projectId, { origin: hostOrigin, at: 0 })
  }),
)

/** Returns a scene's stores with a project, and a dispatcher's services on them. */
export const arrange = ({ stores, ...options }: Options = {}) => {
  const scene = makeScene(stores)
  const dispatcher = Setting.parse(dispatcherOptions, { retrySchedule, ...options })
  return {
    world: scene.world,
    stores: Layer.provideMerge(withProject, scene.stores),
    services: Layer.mergeAll(Webhooks.layer(Setting.parse(webhooksOptions)), Events.layer()).pipe(
      Layer.provide(Dispatcher.layer(dispatcher)),
      Layer.provide(scene.transport),
      Layer.provide(AddressPolicy.layer()),
    ),
  }
}

type Body = (
  world: World,
) => Effect.fn.Return<
  void,
  unknown,
  Webhooks | Events | Outbox | WebhookStore | MembershipStore | Receivers
>

/** Runs a test with a project and a dispatcher. */
export const dispatching = (body: Body, options?: Options) => {
  const { services, stores, world } = arrange(options)
  return Effect.provide(
    Effect.gen(() => body(world)),
    Layer.provideMerge(services, stores),
  )
}

/** Declares a test with a project and a dispatcher. */
export const test = (name: string, ...given: Parameters<typeof dispatching>): void =>
  it.effect(name, () => dispatching(...given))

export const url = "https://receiver.example/a"
export const otherUrl = "https://receiver.example/b"

/** Adds a webhook with a URL, and its receiver unless this responds with 200. */
export const addWebhookTo = Effect.fnUntraced(function* (
  to: string,
  receiver?: Receiver,
  project = projectId,
) {
  if (receiver !== undefined) (yield* Receivers).set(to, receiver)
  return yield* (yield* Webhooks).create({ projectId: project, url: to })
})

export const addWebhook = (receiver?: Receiver) => addWebhookTo(url, receiver)

/** Publishes an event in a project. */
export const publishTo = (project: ProjectId) =>
  Effect.flatMap(Events, (events) =>
    events.publish({ projectId: project, type: "payment.completed", data: { amount: 5 } }),
  )

export const publish = publishTo(projectId)

export const publishMany = (count: number) => Effect.replicateEffect(publish, count)

const turns = Effect.forEach(Array.from({ length: 50 }), () => Effect.yieldNow, { discard: true })

/** Lets fibers run until all wait, and none for WebCrypto. */
export const settled = Effect.andThen(
  turns,
  Effect.whileLoop({
    while: () => running.size > 0,
    body: () =>
      Effect.andThen(
        Effect.promise(() => Promise.allSettled(running)),
        turns,
      ),
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

/** Returns the states among a webhook's deliveries. */
export const statesOf = (webhook: { readonly id: WebhookId }) =>
  Effect.map(deliveriesOf(webhook), (all) => [...new Set(all.map(({ state }) => state))])
