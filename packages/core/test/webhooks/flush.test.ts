import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { Memberships } from "../../src/memberships/memberships.ts"
import { type Services, createTenure, flushDeliveries, tenureLayer } from "../../src/tenure.ts"
import { Webhooks } from "../../src/webhooks/webhooks.ts"
import {
  type Receivers,
  type World,
  addWebhook,
  makeScene,
  otherUrl,
  projectId,
  publish,
  publishMany,
  settled,
  status,
  unavailable,
  url,
} from "./dispatching.ts"

/** Declares a test in a process that delivers by itself, or only when it is told to. */
const test = (
  name: string,
  receivers: Receivers,
  body: (world: World) => Effect.fn.Return<void, unknown, Services>,
  dispatch = false,
) => {
  const { stores, transport, world } = makeScene(receivers)
  const services = tenureLayer({ expiry: false, webhooks: { dispatch }, transport })
  it.effect(name, () =>
    Effect.gen(function* () {
      yield* (yield* Memberships).createProject(projectId)
      return yield* Effect.gen(() => body(world))
    }).pipe(Effect.provide(Layer.provideMerge(services, stores))),
  )
}

describe("a process that does not deliver by itself", () => {
  const gate = Latch.makeUnsafe()
  test(
    "sends what comes while it sends",
    { [url]: () => Effect.andThen(gate.await, status(200)) },
    function* ({ sent }) {
      yield* addWebhook()
      yield* publish
      const flushed = yield* Effect.forkChild(flushDeliveries())
      yield* settled
      yield* addWebhook(otherUrl)
      yield* publish
      yield* gate.open
      expect(yield* Fiber.join(flushed)).toBe(0)
      expect(sent).toHaveLength(3)
    },
  )

  test(
    "returns how many wait to be retried, and does not wait for them",
    { [url]: (n) => status(n < 3 ? 500 : 200) },
    function* ({ sent }) {
      yield* addWebhook()
      yield* publish
      expect(yield* flushDeliveries()).toBe(1)
      expect(yield* flushDeliveries()).toBe(1)
      expect(sent).toHaveLength(1)
      yield* TestClock.adjust("1 hour")
      expect(yield* flushDeliveries()).toBe(1)
      yield* TestClock.adjust("1 hour")
      expect(yield* flushDeliveries()).toBe(0)
      expect(sent).toHaveLength(3)
    },
  )

  test(
    "sends each delivery once, however many calls there are at the same time",
    {},
    function* ({ sent }) {
      yield* addWebhook()
      yield* publishMany(20)
      const calls = Array.from({ length: 5 }, () => flushDeliveries())
      yield* Effect.all(calls, { concurrency: "unbounded" })
      expect(yield* flushDeliveries()).toBe(0)
      expect(new Set(sent.map(({ headers }) => headers["webhook-id"])).size).toBe(20)
      expect(sent).toHaveLength(20)
    },
  )

  test(
    "aborts attempts for a webhook that is deleted meanwhile",
    { [url]: () => Effect.never },
    function* ({ aborted, sent }) {
      const { id } = yield* addWebhook()
      yield* publishMany(9)
      const flushed = yield* Effect.forkChild(flushDeliveries())
      yield* settled
      const before = sent.length
      yield* (yield* Webhooks).delete({ projectId, webhookId: id })
      expect(yield* Fiber.join(flushed)).toBe(0)
      expect([sent.length, aborted.length]).toEqual([before, before])
    },
  )

  test(
    "goes on for as long as it has time if the store does not answer",
    {},
    function* ({ disruptions, sent }) {
      yield* addWebhook()
      yield* publish
      disruptions.claim = unavailable
      const flushed = yield* Effect.forkChild(flushDeliveries())
      yield* settled
      disruptions.claim = Effect.void
      yield* TestClock.adjust("5 seconds")
      expect(yield* Fiber.join(flushed)).toBe(0)
      expect(sent).toHaveLength(1)
    },
  )
})

describe("a process that delivers by itself", () => {
  const inTime = Latch.makeUnsafe()
  test(
    "waits for the attempts that are in flight, and for no longer than its time",
    { [url]: () => Effect.andThen(inTime.await, status(200)) },
    function* ({ aborted, sent }) {
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
      yield* inTime.open
      expect(yield* Fiber.join(again)).toBe(0)
      expect(sent).toHaveLength(1)
    },
    true,
  )

  const claimed = Latch.makeUnsafe()
  test(
    "sends what a claim kept back for attempts that ended meanwhile",
    { [url]: () => Effect.andThen(claimed.await, status(200)) },
    function* ({ disruptions, sent }) {
      yield* addWebhook()
      yield* publishMany(200)
      yield* settled
      disruptions.claimed = Effect.andThen(claimed.open, settled)
      expect(yield* flushDeliveries()).toBe(0)
      expect(sent).toHaveLength(200)
    },
    true,
  )

  test(
    "sends what was published just before",
    {},
    function* ({ sent }) {
      yield* addWebhook()
      yield* publish
      expect(yield* flushDeliveries()).toBe(0)
      expect(sent).toHaveLength(1)
      expect(yield* flushDeliveries()).toBe(0)
    },
    true,
  )
})

it("the time for it is a duration", async () => {
  const tenure = await createTenure({ stores: memory() })
  for (const timeout of [-1, "soon", Number.NaN, null]) {
    // @ts-expect-error: plain JavaScript does not notice.
    await expect(tenure.flush({ timeout })).rejects.toMatchObject({
      _tag: "InvalidInput",
      field: "timeout",
    })
  }
  expect(await tenure.flush()).toBe(0)
  await tenure.close()
  await expect(tenure.flush()).rejects.toMatchObject({ _tag: "StoreUnavailable" })
})
