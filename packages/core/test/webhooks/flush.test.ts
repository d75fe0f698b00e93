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
  addWebhookTo,
  makeScene,
  otherUrl,
  projectId,
  publish,
  publishMany,
  settled,
  status,
  unavailable,
} from "./dispatching.ts"

/** Returns a function to declare tests in a process with or without a dispatcher. */
const testsOf =
  (dispatch: boolean) =>
  (name: string, body: (world: World) => Effect.fn.Return<void, unknown, Services | Receivers>) => {
    const { stores, transport, world } = makeScene()
    const services = tenureLayer({ expiry: false, webhooks: { dispatch }, transport })
    const run = Effect.gen(function* () {
      yield* (yield* Memberships).createProject(projectId)
      return yield* Effect.gen(() => body(world))
    })
    it.effect(name, () => Effect.provide(run, Layer.provideMerge(services, stores)))
  }

describe("a process that does not deliver by itself", () => {
  const test = testsOf(false)

  test("sends what comes while it sends", function* ({ sent }) {
    const gate = Latch.makeUnsafe()
    yield* addWebhook(() => Effect.andThen(gate.await, status(200)))
    yield* publish
    const flushed = yield* Effect.forkChild(flushDeliveries())
    yield* settled
    yield* addWebhookTo(otherUrl)
    yield* publish
    yield* gate.open
    expect(yield* Fiber.join(flushed)).toBe(0)
    expect(sent).toHaveLength(3)
  })

  test("returns how many wait to be retried, without waiting", function* ({ sent }) {
    yield* addWebhook((n) => status(n < 3 ? 500 : 200))
    yield* publish
    expect(yield* flushDeliveries()).toBe(1)
    expect(yield* flushDeliveries()).toBe(1)
    expect(sent).toHaveLength(1)
    yield* TestClock.adjust("1 hour")
    expect(yield* flushDeliveries()).toBe(1)
    yield* TestClock.adjust("1 hour")
    expect(yield* flushDeliveries()).toBe(0)
    expect(sent).toHaveLength(3)
  })

  test("sends each delivery once, however many calls there are", function* ({ sent }) {
    yield* addWebhook()
    yield* publishMany(20)
    const calls = Array.from({ length: 5 }, () => flushDeliveries())
    yield* Effect.all(calls, { concurrency: "unbounded" })
    expect(yield* flushDeliveries()).toBe(0)
    expect(new Set(sent.map(({ headers }) => headers["webhook-id"])).size).toBe(20)
    expect(sent).toHaveLength(20)
  })

  test("aborts attempts for a webhook that is deleted", function* ({ aborted, sent }) {
    const { id } = yield* addWebhook(() => Effect.never)
    yield* publishMany(9)
    const flushed = yield* Effect.forkChild(flushDeliveries())
    yield* settled
    const before = sent.length
    yield* (yield* Webhooks).delete({ projectId, webhookId: id })
    expect(yield* Fiber.join(flushed)).toBe(0)
    expect([sent.length, aborted.length]).toEqual([before, before])
  })

  test("goes on in its time if the store does not answer", function* ({ disruptions, sent }) {
    yield* addWebhook()
    yield* publish
    disruptions.claim = unavailable
    const flushed = yield* Effect.forkChild(flushDeliveries())
    yield* settled
    disruptions.claim = Effect.void
    yield* TestClock.adjust("5 seconds")
    expect(yield* Fiber.join(flushed)).toBe(0)
    expect(sent).toHaveLength(1)
  })
})

describe("a process that delivers by itself", () => {
  const test = testsOf(true)

  test("waits for attempts in flight, but no longer than its time", function* ({ aborted, sent }) {
    const gate = Latch.makeUnsafe()
    yield* addWebhook(() => Effect.andThen(gate.await, status(200)))
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
  })

  test("sends what was kept back for attempts that have ended", function* ({ disruptions, sent }) {
    const gate = Latch.makeUnsafe()
    yield* addWebhook(() => Effect.andThen(gate.await, status(200)))
    yield* publishMany(200)
    yield* settled
    disruptions.claimed = Effect.andThen(gate.open, settled)
    expect(yield* flushDeliveries()).toBe(0)
    expect(sent).toHaveLength(200)
  })

  test("sends what was published just before", function* ({ sent }) {
    yield* addWebhook()
    yield* publish
    expect(yield* flushDeliveries()).toBe(0)
    expect(sent).toHaveLength(1)
    expect(yield* flushDeliveries()).toBe(0)
  })
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
