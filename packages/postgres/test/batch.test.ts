/** Batches: which calls share a statement. */

import { describe, expect, it } from "@effect/vitest"
import { ErrorReporter } from "@tenure/core/internal"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { type BatcherOptions, makeBatcher } from "../src/connection/batch.ts"

type Options = Partial<BatcherOptions<number, number, string>>

/**
 * Gathers numbers into batches, which are recorded and wait at a gate. The values are ten times the numbers. 4 and 13
 * fail, and 7 does in a batch, or always if there is another way to run it alone.
 */
const gathering = Effect.fnUntraced(function* (options: Options) {
  const gate = yield* Latch.make()
  const batches: Array<ReadonlyArray<number>> = []
  const gathered = yield* makeBatcher<number, number, string>({
    run: (items) =>
      Effect.gen(function* () {
        batches.push(items)
        if (items.includes(7) && (items.length > 1 || options.runAlone !== undefined))
          return yield* Effect.fail("locked")
        yield* gate.await
        if (items.includes(13)) return yield* Effect.die("invalid")
        if (items.includes(4)) return yield* Effect.fail("unavailable")
        return items.map((item) => item * 10)
      }),
    isItemError: (error) => error === "locked",
    maxBatch: 100,
    maxInFlight: 1,
    crowded: "crowded",
    ...options,
  })
  const start = (...items: ReadonlyArray<number>) =>
    Effect.forEach(items, (item) =>
      Effect.forkChild(Effect.exit(gathered(item)), { startImmediately: true }),
    )
  const join = (fibers: Effect.Success<ReturnType<typeof start>>) =>
    Effect.forEach(fibers, Fiber.join)
  return {
    gate,
    batches,
    start,
    join,
    /** Gathers items while the gate is open. Returns how they end. */
    all: (...items: ReadonlyArray<number>) =>
      Effect.andThen(gate.open, Effect.flatMap(start(...items), join)),
    /** Waits until started items are in the queue, and the next batch has left it. */
    settled: Effect.promise(() => new Promise((resolve) => setImmediate(resolve))),
  }
})

const test = (
  name: string,
  steps: () => Generator<Effect.Effect<unknown, unknown, Scope.Scope>, void, never>,
) => it.live(name, () => Effect.gen(steps))

const valuesOf = (...items: ReadonlyArray<number>) => items.map((item) => Exit.succeed(item * 10))

const keyed = { keysOf: (item: number) => [String(item % 100)] }

/** Has what runs alone wait until a latch is open. 7 always runs alone. */
const aloneAfter = (locked: Latch.Latch): Options => ({
  findRetryable: (items) => Effect.succeed(items.map((item) => item !== 7)),
  runAlone: (items) => Effect.as(locked.await, items),
})

describe("items", () => {
  test("that are interrupted before their turn are left out", function* () {
    const world = yield* gathering({})
    const first = yield* world.start(1)
    yield* world.settled
    yield* Effect.forEach(yield* world.start(2), Fiber.interrupt)
    yield* world.gate.open
    expect(yield* world.join(first)).toEqual(valuesOf(1))
    yield* world.settled
    expect(world.batches).toEqual([[1]])
  })

  for (const [name, options, items, batches] of [
    [
      "without keys share a batch even if they are alike",
      { maxBatch: 3 },
      [1, 1, 2, 1],
      [[1, 1, 2], [1]],
    ],
    [
      "with the same key never share a batch, and keep their order",
      keyed,
      [1, 2, 101, 201, 3],
      [[1, 2, 3], [101], [201]],
    ],
    [
      "run alone after an error that one of them may have caused",
      {},
      [1, 7, 2],
      [[1, 7, 2], [1], [7], [2]],
    ],
  ] as const)
    test(name, function* () {
      const world = yield* gathering(options)
      expect(yield* world.all(...items)).toEqual(valuesOf(...items))
      expect(world.batches).toEqual(batches)
    })

  test("run alone after a defect, so that only the invalid one fails", function* () {
    const { all, batches } = yield* gathering({})
    const [one, invalid, two] = [...valuesOf(1), Exit.die("invalid"), ...valuesOf(2)]
    expect(yield* all(1, 13, 2)).toEqual([one, invalid, two])
    expect(batches).toEqual([[1, 13, 2], [1], [13], [2]])
  })

  test("run alone beside each other, so that one that waits for a lock holds up no other", function* () {
    const locked = yield* Latch.make()
    const { all, batches, join, start } = yield* gathering({
      runAlone: (items) => Effect.as(items.includes(7) ? locked.await : Effect.void, items),
    })
    const waiting = yield* start(7)
    expect(yield* all(8)).toEqual([Exit.succeed(8)])
    expect(batches).toEqual([[7, 8]])
    expect(waiting[0]?.pollUnsafe()).toBeUndefined()
    yield* locked.open
    expect(yield* join(waiting)).toEqual([Exit.succeed(7)])
  })

  test("fail together after any other error, and do not run again", function* () {
    const { all, batches } = yield* gathering({})
    expect(yield* all(1, 4)).toEqual([Exit.fail("unavailable"), Exit.fail("unavailable")])
    expect(batches).toEqual([[1, 4]])
  })

  test("that come when 10,000 wait fail at once", function* () {
    const world = yield* gathering({ maxBatch: 1 })
    const first = yield* world.start(1)
    yield* world.settled
    const waiting = yield* world.start(...Array.from({ length: 10_000 }, () => 2))
    expect(yield* world.join(yield* world.start(3))).toEqual([Exit.fail("crowded")])
    yield* Effect.forEach(waiting, Fiber.interrupt, { concurrency: "unbounded" })
    yield* world.gate.open
    expect(yield* world.join(first)).toEqual(valuesOf(1))
  })

  test("that arrive while a batch is in flight share the next", function* () {
    const world = yield* gathering({})
    const first = yield* world.start(1)
    yield* world.settled
    const rest = yield* world.start(2, 3, 5)
    yield* world.settled
    expect(world.batches).toEqual([[1]])
    yield* world.gate.open
    expect(yield* world.join([...first, ...rest])).toEqual(valuesOf(1, 2, 3, 5))
    expect(world.batches).toEqual([[1], [2, 3, 5]])
  })

  test("exceed neither the size of a batch nor the number of batches in flight", function* () {
    const { batches, gate, join, settled, start } = yield* gathering({
      maxBatch: 2,
      maxInFlight: 2,
    })
    const fibers = yield* start(1, 2, 3, 5, 6)
    yield* settled
    expect(batches).toEqual([
      [1, 2],
      [3, 5],
    ])
    yield* gate.open
    yield* join(fibers)
    expect(batches[2]).toEqual([6])
  })

  test("wait for a batch in flight until they are enough for one beside it", function* () {
    const { batches, settled, start } = yield* gathering({ maxInFlight: 2, leastBeside: 3 })
    for (const item of [1, 2, 3]) yield* Effect.andThen(start(item), settled)
    expect(batches).toEqual([[1]])
    yield* Effect.andThen(start(5), settled)
    expect(batches).toEqual([[1], [2, 3, 5]])
  })

  /** Waits for others until item 3 arrives. */
  const gatheringFor = (millis: number) =>
    gathering({ leastBeside: 3, gathering: { millis, isUrgent: (item) => item === 3 } })

  for (const [others, batch] of [
    [[2, 3], "one that is urgent"],
    [[2, 5, 6], "as many as begin beside another"],
  ] as const) {
    test(`wait after a batch for ${batch}`, function* () {
      const world = yield* gatheringFor(60_000)
      yield* world.all(1)
      const waiting = yield* world.start(...others.slice(0, -1))
      yield* world.settled
      expect(world.batches).toEqual([[1]])
      const last = yield* world.start(...others.slice(-1))
      expect(yield* world.join([...waiting, ...last])).toEqual(valuesOf(...others))
      expect(world.batches).toEqual([[1], others])
    })
  }

  test("wait after a batch no longer than they have to", function* () {
    const world = yield* gatheringFor(5)
    yield* world.all(1)
    expect(yield* world.all(2)).toEqual(valuesOf(2))
  })

  test("with the same key wait for the one before, while others go on", function* () {
    const { batches, gate, join, settled, start } = yield* gathering({ ...keyed, maxInFlight: 2 })
    const first = yield* start(1)
    yield* settled
    const rest = yield* start(101, 201, 2)
    yield* settled
    expect(batches).toEqual([[1], [2]])
    yield* gate.open
    yield* join([...first, ...rest])
    expect(batches).toEqual([[1], [2], [101], [201]])
  })

  test("with the same key also wait for one that runs alone", function* () {
    const locked = yield* Latch.make()
    const { all, batches, join, start } = yield* gathering({
      ...keyed,
      ...aloneAfter(locked),
      maxInFlight: 2,
    })
    const waiting = yield* start(7, 107)
    expect(yield* all(8)).toEqual(valuesOf(8))
    expect(batches).toEqual([[7, 8], [8]])
    yield* locked.open
    expect(yield* join(waiting)).toEqual([Exit.succeed(7), ...valuesOf(107)])
    expect(batches).toEqual([[7, 8], [8], [107]])
  })

  test("that have other keys at the end than at the start are reported, and leave none busy", function* () {
    const defects: Array<unknown> = []
    const keys = new Map<number, Array<string>>()
    const { all, gate, join, settled, start } = yield* Effect.provideService(
      gathering({
        keysOf: (item) => {
          const own = [String(item % 100)]
          keys.set(item, own)
          return own
        },
      }),
      ErrorReporter,
      {
        failure: () => Effect.void,
        defect: (_, cause) => Effect.sync(() => void defects.push(Cause.squash(cause))),
      },
    )
    const first = yield* start(1, 2)
    yield* settled
    keys.get(1)?.unshift("another")
    yield* gate.open
    expect(yield* join(first)).toEqual(valuesOf(1, 2))
    yield* settled
    const message = "an item of a batch released a key that it did not occupy"
    expect(defects).toEqual([new Error(message)])
    expect(yield* all(101, 102)).toEqual(valuesOf(101, 102))
  })

  test("that wait for a locked one keep no others back, however many they are", function* () {
    const { batches, gate, join, settled, start } = yield* gathering({
      keysOf: (item) => [item < 2 ? "0" : String(item)],
      maxInFlight: 2,
    })
    const first = yield* start(0)
    yield* settled
    const others = yield* start(...Array.from({ length: 2000 }, (_, n) => -n))
    const other = yield* start(2)
    yield* settled
    expect(batches).toEqual([[0], [2]])
    yield* gate.open
    expect(yield* join([...first, ...other])).toEqual(valuesOf(0, 2))
    expect((yield* join(others)).slice(1, 3)).toEqual(valuesOf(-1, -2))
  })

  const alone: Array<ReadonlyArray<number>> = []
  test("of a stack share a batch in order, and also run alone in order", function* () {
    const { all, batches } = yield* gathering({
      // The second key is the same for 1001 and for 1, which do not share it as a stack.
      keysOf: (item) => [String(item % 100), `another of ${item % 1000}`],
      stackOf: (item) => String(item % 100),
      runAlone: (items) =>
        Effect.suspend(() => {
          alone.push(items)
          return items.length > 1 && items.includes(107)
            ? Effect.die("invalid")
            : Effect.succeed(items)
        }),
    })
    expect(yield* all(1, 101, 2, 201, 1001)).toEqual(valuesOf(1, 101, 2, 201, 1001))
    expect(batches).toEqual([[1, 101, 2, 201], [1001]])
    expect(yield* all(7, 8, 207, 108)).toEqual([7, 8, 207, 108].map(Exit.succeed))
    expect(alone.splice(0)).toEqual([
      [7, 207],
      [8, 108],
    ])
    expect(yield* all(7, 107)).toEqual([7, 107].map(Exit.succeed))
    expect(alone).toEqual([[7, 107], [7], [107]])
  })

  test("share another batch if they are sound, while the others run alone and hold up none", function* () {
    const locked = yield* Latch.make()
    const { all, batches, join, start } = yield* gathering({ ...keyed, ...aloneAfter(locked) })
    const waiting = yield* start(7)
    expect(yield* all(1, 2)).toEqual(valuesOf(1, 2))
    expect(yield* all(3)).toEqual(valuesOf(3))
    expect(waiting[0]?.pollUnsafe()).toBeUndefined()
    yield* locked.open
    expect(yield* join(waiting)).toEqual([Exit.succeed(7)])
    expect(batches).toEqual([[7, 1, 2], [1, 2], [3]])
  })
})
