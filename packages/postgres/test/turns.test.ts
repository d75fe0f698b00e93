import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { makeFairSemaphore } from "../src/connection/pool.ts"

/** Places, and work that stays in one until it is told to leave. */
const placesFor = (places: number) => {
  const turns = makeFairSemaphore(places)
  const inside: Array<string> = []
  const start = (owner: string) =>
    Effect.gen(function* () {
      const leaving = yield* Deferred.make<void>()
      const work = Effect.andThen(
        Effect.sync(() => inside.push(owner)),
        Deferred.await(leaving),
      )
      const fiber = yield* Effect.forkChild(turns.take(owner, work), { startImmediately: true })
      return {
        fiber,
        leave: Effect.andThen(Deferred.succeed(leaving, undefined), Fiber.await(fiber)),
      }
    })
  return { inside, start }
}

describe("places", () => {
  it.effect("are held by one owner up to half, and by others beside it", () =>
    Effect.gen(function* () {
      const { inside, start } = placesFor(4)
      yield* Effect.forEach(["a", "a", "a", "a", "b", "b", "b"], start)
      expect(inside).toEqual(["a", "a", "b", "b"])
    }),
  )

  it.effect("go in turns to the owners that wait", () =>
    Effect.gen(function* () {
      const { inside, start } = placesFor(1)
      let holder = yield* start("a")
      const waiting = yield* Effect.forEach(["b", "b", "c", "d", "c"], start)
      for (const next of [0, 2, 3, 1, 4]) {
        yield* holder.leave
        holder = waiting[next] ?? holder
      }
      expect(inside).toEqual(["a", "b", "c", "d", "b", "c"])
    }),
  )

  it.effect("are free again when their work is interrupted, inside or while it waits", () =>
    Effect.gen(function* () {
      const { inside, start } = placesFor(1)
      const first = yield* start("a")
      const second = yield* start("b")
      const third = yield* start("c")
      yield* Fiber.interrupt(second.fiber)
      yield* Fiber.interrupt(first.fiber)
      expect(inside).toEqual(["a", "c"])
      expect(Exit.isSuccess(yield* third.leave)).toBe(true)
      yield* start("a")
      expect(inside).toEqual(["a", "c", "a"])
    }),
  )
})
