import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import { type BatcherOptions, makeBatcher } from "../src/connection/batch.ts"

/** Gathered work that waits for a gate and records its batches. The items 4, 7 and 13 fail. */
const gated = Effect.fnUntraced(function* (
  options: Partial<
    Pick<BatcherOptions<number, number, string>, "leastBeside" | "maxBatch" | "maxInFlight">
  >,
) {
  const gate = yield* Latch.make()
  const batches: Array<ReadonlyArray<number>> = []
  const gathered = yield* makeBatcher<number, number, string>({
    run: (items) =>
      Effect.gen(function* () {
        batches.push(items)
        yield* gate.await
        if (items.includes(13)) return yield* Effect.die("invalid")
        if (items.includes(7) && items.length > 1) return yield* Effect.fail("locked")
        if (items.includes(4)) return yield* Effect.fail("unavailable")
        return items.map((item) => item * 10)
      }),
    keysOf: (item) => [String(item % 100)],
    isOwn: (error) => error === "locked",
    maxBatch: 100,
    maxInFlight: 1,
    ...options,
    crowded: "crowded",
  })
  const start = (item: number) =>
    Effect.forkChild(Effect.exit(gathered(item)), { startImmediately: true })
  /** Waits until started items are in the queue, and the next batch has left it. */
  const settled = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  return { gate, batches, start, settled }
})

describe("an item", () => {
  it.live("runs immediately if no batch is in flight", () =>
    Effect.gen(function* () {
      const { batches, gate, settled, start } = yield* gated({})
      const one = yield* start(1)
      yield* settled
      expect(batches).toEqual([[1]])
      yield* gate.open
      expect(yield* Fiber.join(one)).toEqual(Exit.succeed(10))
    }),
  )

  it.live("that is interrupted before its turn is left out", () =>
    Effect.gen(function* () {
      const { batches, gate, settled, start } = yield* gated({})
      const first = yield* start(1)
      yield* settled
      const second = yield* start(2)
      yield* Fiber.interrupt(second)
      yield* gate.open
      yield* Fiber.join(first)
      yield* settled
      expect(batches).toEqual([[1]])
    }),
  )
})

describe("items", () => {
  it.live("without keys share a batch even if they are alike", () =>
    Effect.gen(function* () {
      const batches: Array<ReadonlyArray<number>> = []
      const gathered = yield* makeBatcher<number, number, string>({
        run: (items) =>
          Effect.sync(() => {
            batches.push(items)
            return items
          }),
        isOwn: () => false,
        maxBatch: 3,
        maxInFlight: 1,
        crowded: "crowded",
      })
      const all = Effect.all([1, 1, 2, 1].map(gathered), { concurrency: "unbounded" })
      expect(yield* all).toEqual([1, 1, 2, 1])
      expect(batches).toEqual([[1, 1, 2], [1]])
    }),
  )

  it.live("that come when 10,000 wait fail at once", () =>
    Effect.gen(function* () {
      const { gate, settled, start } = yield* gated({ maxBatch: 1 })
      const first = yield* start(1)
      yield* settled
      const waiting = yield* Effect.forEach(
        Array.from({ length: 10_000 }, () => 2),
        start,
      )
      expect(yield* Fiber.join(yield* start(3))).toEqual(Exit.fail("crowded"))
      yield* Effect.forEach(waiting, Fiber.interrupt, { concurrency: "unbounded" })
      yield* gate.open
      expect(yield* Fiber.join(first)).toEqual(Exit.succeed(10))
    }),
  )

  it.live("that arrive while a batch is in flight share the next, each with its own result", () =>
    Effect.gen(function* () {
      const { batches, gate, settled, start } = yield* gated({})
      const first = yield* start(1)
      yield* settled
      const rest = yield* Effect.forEach([2, 3, 5], start)
      yield* settled
      expect(batches).toEqual([[1]])
      yield* gate.open
      const exits = yield* Effect.forEach([first, ...rest], Fiber.join)
      expect(batches).toEqual([[1], [2, 3, 5]])
      expect(exits).toEqual([10, 20, 30, 50].map(Exit.succeed))
    }),
  )

  it.live("exceed neither the size of a batch nor the number of batches in flight", () =>
    Effect.gen(function* () {
      const { batches, gate, settled, start } = yield* gated({ maxBatch: 2, maxInFlight: 2 })
      const fibers = yield* Effect.forEach([1, 2, 3, 5, 6], start)
      yield* settled
      expect(batches).toEqual([
        [1, 2],
        [3, 5],
      ])
      yield* gate.open
      yield* Effect.forEach(fibers, Fiber.join)
      expect(batches[2]).toEqual([6])
    }),
  )

  it.live("wait for a batch in flight until they are enough for one beside it", () =>
    Effect.gen(function* () {
      const { batches, gate, settled, start } = yield* gated({ maxInFlight: 2, leastBeside: 3 })
      const fibers = yield* Effect.forEach([1, 2, 3], (item) => Effect.tap(start(item), settled))
      expect(batches).toEqual([[1]])
      fibers.push(yield* start(5))
      yield* settled
      expect(batches).toEqual([[1], [2, 3, 5]])
      yield* gate.open
      yield* Effect.forEach(fibers, Fiber.join)
    }),
  )

  it.live("with the same key never share a batch, and keep their order", () =>
    Effect.gen(function* () {
      const { batches, gate, start } = yield* gated({})
      yield* gate.open
      const fibers = yield* Effect.forEach([1, 2, 101, 201, 3], start)
      yield* Effect.forEach(fibers, Fiber.join)
      expect(batches).toEqual([[1, 2, 3], [101], [201]])
    }),
  )

  it.live("with the same key wait for the one before, while others go on", () =>
    Effect.gen(function* () {
      const { batches, gate, settled, start } = yield* gated({ maxInFlight: 2 })
      const first = yield* start(1)
      yield* settled
      const fibers = yield* Effect.forEach([101, 201, 2], start)
      yield* settled
      expect(batches).toEqual([[1], [2]])
      yield* gate.open
      yield* Effect.forEach([first, ...fibers], Fiber.join)
      expect(batches).toEqual([[1], [2], [101], [201]])
    }),
  )

  it.live("with the same key also wait for one that runs alone", () =>
    Effect.gen(function* () {
      const locked = yield* Latch.make()
      const begun: Array<number> = []
      const gathered = yield* makeBatcher<number, number, string>({
        run: (items) =>
          Effect.suspend(() => {
            begun.push(...items)
            return items.includes(7) ? Effect.fail("locked") : Effect.succeed(items)
          }),
        findSound: (items) => Effect.succeed(items.map((item) => item !== 7)),
        runAlone: (items) => Effect.as(locked.await, items),
        keysOf: (item) => [String(item % 100)],
        isOwn: (error) => error === "locked",
        maxBatch: 100,
        maxInFlight: 2,
        crowded: "crowded",
      })
      const first = yield* Effect.forkChild(gathered(7), { startImmediately: true })
      const second = yield* Effect.forkChild(gathered(107), { startImmediately: true })
      expect(yield* gathered(8)).toBe(8)
      expect(begun).toEqual([7, 8, 8])
      yield* locked.open
      expect(yield* Effect.forEach([first, second], Fiber.join)).toEqual([7, 107])
      expect(begun).toEqual([7, 8, 8, 107])
    }),
  )

  it.live("that wait for a locked one keep no others back, however many they are", () =>
    Effect.gen(function* () {
      const locked = yield* Latch.make()
      const gathered = yield* makeBatcher<number, number, string>({
        run: (items) =>
          items.includes(0) ? Effect.as(locked.await, items) : Effect.succeed(items),
        keysOf: (item) => [item < 0 ? "0" : String(item)],
        isOwn: () => false,
        maxBatch: 100,
        maxInFlight: 2,
        crowded: "crowded",
      })
      const start = (item: number) => Effect.forkChild(gathered(item), { startImmediately: true })
      const first = yield* start(0)
      const others = yield* Effect.forEach(
        Array.from({ length: 2000 }, (_, n) => -1 - n),
        start,
      )
      expect(yield* gathered(1)).toBe(1)
      yield* locked.open
      expect(yield* Fiber.join(first)).toBe(0)
      expect((yield* Effect.forEach(others, Fiber.join)).slice(0, 2)).toEqual([-1, -2])
    }),
  )

  it.live("of a stack share a batch in order, and also run alone in order", () =>
    Effect.gen(function* () {
      const batches: Array<ReadonlyArray<number>> = []
      const alone: Array<ReadonlyArray<number>> = []
      const gathered = yield* makeBatcher<number, number, string>({
        run: (items) =>
          Effect.suspend(() => {
            batches.push(items)
            return items.includes(7) ? Effect.fail("locked") : Effect.succeed(items)
          }),
        runAlone: (items) =>
          Effect.suspend(() => {
            alone.push(items)
            return items.length > 1 && items.includes(107)
              ? Effect.die("invalid")
              : Effect.succeed(items)
          }),
        keysOf: (item) => [String(item % 100), `another of ${item % 1000}`],
        stackOf: (item) => String(item % 100),
        isOwn: (error) => error === "locked",
        maxBatch: 100,
        maxInFlight: 2,
        crowded: "crowded",
      })
      const all = (items: ReadonlyArray<number>) =>
        Effect.all(items.map(gathered), { concurrency: "unbounded" })
      // The second key of 1001 is that of 1, which they do not share as a stack.
      expect(yield* all([1, 101, 2, 201, 1001])).toEqual([1, 101, 2, 201, 1001])
      expect(batches).toEqual([[1, 101, 2, 201], [1001]])
      expect(yield* all([7, 8, 207, 108])).toEqual([7, 8, 207, 108])
      expect(alone).toEqual([
        [7, 207],
        [8, 108],
      ])
      alone.length = 0
      expect(yield* all([7, 107])).toEqual([7, 107])
      expect(alone).toEqual([[7, 107], [7], [107]])
    }),
  )

  it.live("run alone after a defect, so that only the invalid one fails", () =>
    Effect.gen(function* () {
      const { batches, gate, start } = yield* gated({})
      yield* gate.open
      const fibers = yield* Effect.forEach([1, 13, 2], start)
      const exits = yield* Effect.forEach(fibers, Fiber.join)
      expect(exits).toEqual([Exit.succeed(10), Exit.die("invalid"), Exit.succeed(20)])
      expect(batches).toEqual([[1, 13, 2], [1], [13], [2]])
    }),
  )

  it.live("run alone after an error that one of them may have caused", () =>
    Effect.gen(function* () {
      const { batches, gate, start } = yield* gated({})
      yield* gate.open
      const fibers = yield* Effect.forEach([1, 7, 2], start)
      const exits = yield* Effect.forEach(fibers, Fiber.join)
      expect(exits).toEqual([10, 70, 20].map(Exit.succeed))
      expect(batches).toEqual([[1, 7, 2], [1], [7], [2]])
    }),
  )

  it.live(
    "share another batch if they are sound, while the others run alone and hold up none",
    () =>
      Effect.gen(function* () {
        const batches: Array<ReadonlyArray<number>> = []
        const locked = yield* Latch.make()
        const gathered = yield* makeBatcher<number, number, string>({
          run: (items) =>
            Effect.suspend(() => {
              batches.push(items)
              return items.includes(7) ? Effect.fail("locked") : Effect.succeed(items)
            }),
          findSound: (items) => Effect.succeed(items.map((item) => item !== 7)),
          runAlone: (items) => Effect.as(locked.await, items),
          keysOf: (item) => [String(item)],
          isOwn: (error) => error === "locked",
          maxBatch: 100,
          maxInFlight: 1,
          crowded: "crowded",
        })
        const waiting = yield* Effect.forkChild(gathered(7), { startImmediately: true })
        expect(yield* Effect.all([1, 2].map(gathered), { concurrency: "unbounded" })).toEqual([
          1, 2,
        ])
        expect(yield* gathered(3)).toBe(3)
        expect(waiting.pollUnsafe()).toBeUndefined()
        yield* locked.open
        expect(yield* Fiber.join(waiting)).toBe(7)
        expect(batches).toEqual([[7, 1, 2], [1, 2], [3]])
      }),
  )

  it.live("fail together after any other error, and do not run again", () =>
    Effect.gen(function* () {
      const { batches, gate, start } = yield* gated({})
      yield* gate.open
      const fibers = yield* Effect.forEach([1, 4], start)
      const exits = yield* Effect.forEach(fibers, Fiber.join)
      expect(exits).toEqual([Exit.fail("unavailable"), Exit.fail("unavailable")])
      expect(batches).toEqual([[1, 4]])
    }),
  )
})
