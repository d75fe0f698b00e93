import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { ProjectId } from "../../src/base/values.ts"
import { FeedCursor } from "../../src/events/feed-store.ts"
import { type EventBatch, Subscription } from "../../src/events/feed.ts"

const projectId = ProjectId("p1")

const batch = (cursor: string): EventBatch => ({ events: [], cursor: FeedCursor(cursor) })

/** A watch that counts how often it calls whom waits. */
const watching = () => {
  const all = new Set<Subscription>()
  const watch = new Subscription(projectId, all)
  const calls = { count: 0 }
  const wait = (): void => watch.whenReady(() => void calls.count++)
  return { all, calls, wait, watch }
}

it.effect("begins once, and tells those who wait for that", () =>
  Effect.gen(function* () {
    const { watch } = watching()
    const fiber = yield* Effect.forkChild(watch.begun, { startImmediately: true })
    expect([watch.hasBegun, fiber.pollUnsafe()]).toEqual([false, undefined])
    watch.begin()
    yield* Fiber.join(fiber)
    yield* watch.begun
    expect(watch.hasBegun).toBe(true)
  }),
)

it("hands out batches in order, and calls once whom waits for one", () => {
  const { calls, wait, watch } = watching()
  wait()
  watch.offer(batch("a"))
  watch.offer(batch("b"))
  expect(calls.count).toBe(1)
  expect([watch.take(), watch.take(), watch.take()]).toEqual([batch("a"), batch("b"), undefined])
  wait()
  expect(calls.count).toBe(1)
})

it("calls at once whom would wait in vain", () => {
  const { calls, wait, watch } = watching()
  watch.offer(batch("a"))
  wait()
  expect(calls.count).toBe(1)
  watch.stop()
  wait()
  expect(calls.count).toBe(2)
})

it("ends without its batches when more than sixteen wait", () => {
  const { all, calls, wait, watch } = watching()
  for (let count = 0; count < 16; count++) watch.offer(batch(`a${count}`))
  expect(watch.hasEnded).toBe(false)
  watch.offer(batch("b"))
  expect([watch.hasEnded, watch.take(), all.size]).toEqual([true, undefined, 0])
  wait()
  expect(calls.count).toBe(1)
  watch.offer(batch("c"))
  expect(watch.take()).toBeUndefined()
})

it.effect("tells those who wait that it has ended, also before it has begun", () =>
  Effect.gen(function* () {
    const { calls, wait, watch } = watching()
    const fiber = yield* Effect.forkChild(watch.begun, { startImmediately: true })
    wait()
    watch.end()
    yield* Fiber.join(fiber)
    expect(calls.count).toBe(1)
  }),
)

it.effect("that is stopped calls nobody", () =>
  Effect.sync(() => {
    const { calls, wait, watch } = watching()
    wait()
    watch.stop()
    watch.end()
    expect(calls.count).toBe(1)
  }),
)
