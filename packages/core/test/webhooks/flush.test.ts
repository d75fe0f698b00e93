import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import {
  type Services,
  type WebhookOptions,
  createTenure,
  flushDeliveries,
  tenureLayer,
} from "../../src/tenure.ts"
import { Events } from "../../src/webhooks/published-events.ts"
import { Webhooks } from "../../src/webhooks/webhooks.ts"
import {
  type Receiver,
  addWebhook,
  noDisruptions,
  otherUrl,
  projectId,
  publish,
  publishMany,
  scripted,
  settled,
  status,
  storesWith,
  url,
} from "./dispatching.ts"
import { watchedCrypto } from "./watched-crypto.ts"

/** Runs a test in a process that delivers only when it is told to. */
const flushing = <A, E>(
  receivers: Readonly<Record<string, Receiver>>,
  test: (transport: Omit<ReturnType<typeof scripted>, "layer">) => Effect.Effect<A, E, Services>,
  webhooks: WebhookOptions = {},
  stores = memory(),
) => {
  const transport = scripted(receivers)
  const services = tenureLayer({
    expiry: false,
    webhooks: { dispatch: false, ...webhooks },
    transport: transport.layer,
  }).pipe(Layer.provide(stores), Layer.provideMerge(watchedCrypto))
  return Effect.gen(function* () {
    yield* TestClock.setTime(1_795_000_000_000)
    yield* (yield* Memberships).createProject(projectId)
    return yield* test(transport)
  }).pipe(Effect.provide(services))
}

const unavailable = Effect.fail(new StoreUnavailable({ cause: "down" }))

describe("a process that does not deliver by itself", () => {
  it.effect("sends when it is told to, and not before", () =>
    flushing({}, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook()
        yield* publishMany(30)
        yield* settled
        yield* TestClock.adjust("1 hour")
        expect(sent).toHaveLength(0)
        expect(yield* flushDeliveries()).toBe(0)
        expect(sent).toHaveLength(30)
        yield* publish
        yield* TestClock.adjust("1 hour")
        expect(sent).toHaveLength(30)
      }),
    ),
  )

  it.effect("sends what comes while it sends", () => {
    const gate = Latch.makeUnsafe()
    return flushing({ [url]: () => Effect.andThen(gate.await, status(200)) }, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook()
        yield* publish
        const flushed = yield* Effect.forkChild(flushDeliveries())
        yield* settled
        yield* addWebhook(otherUrl)
        yield* publish
        yield* gate.open
        expect(yield* Fiber.join(flushed)).toBe(0)
        expect(sent).toHaveLength(3)
      }),
    )
  })

  it.effect("returns how many wait to be retried, and does not wait for them", () =>
    flushing({ [url]: (n) => status(n < 3 ? 500 : 200) }, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook()
        yield* publish
        expect(yield* flushDeliveries()).toBe(1)
        expect(sent).toHaveLength(1)
        expect(yield* flushDeliveries()).toBe(1)
        expect(sent).toHaveLength(1)
        yield* TestClock.adjust("1 hour")
        expect(yield* flushDeliveries()).toBe(1)
        yield* TestClock.adjust("1 hour")
        expect(yield* flushDeliveries()).toBe(0)
        expect(sent).toHaveLength(3)
      }),
    ),
  )

  it.effect("aborts what takes longer than its time, and sends it again at once", () =>
    flushing({ [url]: (n) => (n === 1 ? Effect.never : status(200)) }, ({ aborted, sent }) =>
      Effect.gen(function* () {
        yield* addWebhook()
        yield* addWebhook(otherUrl)
        yield* publish
        const flushed = yield* Effect.forkChild(flushDeliveries({ timeout: 3000 }))
        yield* settled
        yield* TestClock.adjust(2999)
        expect(aborted).toEqual([])
        yield* TestClock.adjust(1)
        expect(yield* Fiber.join(flushed)).toBe(1)
        expect(aborted).toEqual([url])
        expect(yield* flushDeliveries({ timeout: "3 seconds" })).toBe(0)
        expect(sent.map((request) => request.url).toSorted()).toEqual([url, url, otherUrl])
      }),
    ),
  )

  it.effect("sends each delivery once, however many calls there are at the same time", () =>
    flushing({}, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook()
        yield* publishMany(20)
        const calls = Array.from({ length: 5 }, () => flushDeliveries())
        yield* Effect.all(calls, { concurrency: "unbounded" })
        expect(yield* flushDeliveries()).toBe(0)
        expect(new Set(sent.map(({ headers }) => headers["webhook-id"])).size).toBe(20)
        expect(sent).toHaveLength(20)
      }),
    ),
  )

  it.effect("aborts attempts for a webhook that is deleted meanwhile", () =>
    flushing({ [url]: () => Effect.never }, ({ aborted, sent }) =>
      Effect.gen(function* () {
        const { id } = yield* addWebhook()
        yield* publishMany(9)
        const flushed = yield* Effect.forkChild(flushDeliveries())
        yield* settled
        const before = sent.length
        yield* (yield* Webhooks).delete({ projectId, webhookId: id })
        expect(yield* Fiber.join(flushed)).toBe(0)
        expect([sent.length, aborted.length]).toEqual([before, before])
      }),
    ),
  )

  it.effect("goes on for as long as it has time if the store does not answer", () => {
    const disruptions = noDisruptions()
    return flushing(
      {},
      ({ sent }) =>
        Effect.gen(function* () {
          yield* addWebhook()
          yield* publish
          disruptions.claim = unavailable
          const flushed = yield* Effect.forkChild(flushDeliveries())
          yield* settled
          disruptions.claim = Effect.void
          yield* TestClock.adjust("5 seconds")
          expect(yield* Fiber.join(flushed)).toBe(0)
          expect(sent).toHaveLength(1)
        }),
      {},
      storesWith(disruptions),
    )
  })
})

describe("a process that delivers by itself", () => {
  it.effect("waits for the attempts that are in flight, and for no longer than its time", () => {
    const gate = Latch.makeUnsafe()
    return flushing(
      { [url]: () => Effect.andThen(gate.await, status(200)) },
      ({ aborted, sent }) =>
        Effect.gen(function* () {
          yield* addWebhook()
          yield* publish
          yield* settled
          const flushed = yield* Effect.forkChild(flushDeliveries({ timeout: "1 second" }))
          yield* settled
          yield* TestClock.adjust("1 second")
          expect(yield* Fiber.join(flushed)).toBe(1)
          expect(aborted).toEqual([])
          const again = yield* Effect.forkChild(flushDeliveries())
          yield* settled
          expect(again.pollUnsafe()).toBeUndefined()
          yield* gate.open
          expect(yield* Fiber.join(again)).toBe(0)
          expect(sent).toHaveLength(1)
        }),
      { dispatch: true },
    )
  })

  it.effect("sends what a claim kept back for attempts that ended meanwhile", () => {
    const gate = Latch.makeUnsafe()
    const disruptions = noDisruptions()
    return flushing(
      { [url]: () => Effect.andThen(gate.await, status(200)) },
      ({ sent }) =>
        Effect.gen(function* () {
          yield* addWebhook()
          yield* publishMany(200)
          yield* settled
          disruptions.claimed = Effect.andThen(gate.open, settled)
          expect(yield* flushDeliveries()).toBe(0)
          expect(sent).toHaveLength(200)
        }),
      { dispatch: true },
      storesWith(disruptions),
    )
  })

  it.effect("sends what was published just before", () =>
    flushing(
      {},
      ({ sent }) =>
        Effect.gen(function* () {
          yield* addWebhook()
          yield* (yield* Events).publish({ projectId, type: "payment.completed", data: {} })
          expect(yield* flushDeliveries()).toBe(0)
          expect(sent).toHaveLength(1)
          expect(yield* flushDeliveries()).toBe(0)
        }),
      { dispatch: true },
    ),
  )
})

describe("the time for it", () => {
  it.each([-1, "soon", Number.NaN, null])("is not %s", async (timeout) => {
    const tenure = await createTenure({ stores: memory() })
    // @ts-expect-error: plain JavaScript does not notice.
    await expect(tenure.flush({ timeout })).rejects.toMatchObject({
      _tag: "InvalidInput",
      field: "timeout",
    })
    expect(await tenure.flush()).toBe(0)
    await tenure.close()
    await expect(tenure.flush()).rejects.toMatchObject({ _tag: "StoreUnavailable" })
  })
})
