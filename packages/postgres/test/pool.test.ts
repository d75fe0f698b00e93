/** Connections: how long they may take, whose turn it is, and what they prepare. */

import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import { MaxOpsBeforeYield } from "effect/Scheduler"
import { inject } from "vitest"
import { failOnLockTimeouts } from "../src/connection/connection.ts"
import { makeConnections } from "../src/connection/connections.ts"
import { makeFairSemaphore } from "../src/connection/fair-semaphore.ts"
import {
  answerTimeoutMillis,
  capRoundTrip,
  maxTimeoutMillis,
  openTimeoutMillis,
  overdueAfterMillis,
  unknownRoundTrip,
  updateRoundTrip,
} from "../src/connection/round-trip.ts"

describe("the time that a connection may take", () => {
  const far = updateRoundTrip(unknownRoundTrip, { roundTrip: 400, opening: 2000 })

  it.each([
    ["short with a database that is near", { roundTrip: 1, opening: 10 }, [500, 250, 1000]],
    ["longer with one that is far away", { roundTrip: 400, opening: 2000 }, [1200, 1200, 6000]],
  ])("is %s", (_, known, millis) => {
    const timing = updateRoundTrip(unknownRoundTrip, known)
    expect([
      overdueAfterMillis(timing),
      answerTimeoutMillis(timing),
      openTimeoutMillis(timing),
    ]).toEqual(millis)
  })

  it("has an end, and is as long before anything is known", () => {
    expect(answerTimeoutMillis(unknownRoundTrip)).toBe(maxTimeoutMillis)
    expect(openTimeoutMillis(unknownRoundTrip)).toBe(maxTimeoutMillis)
    expect(openTimeoutMillis(updateRoundTrip(far, { opening: 60_000 }))).toBe(maxTimeoutMillis)
  })

  it("grows at once, and shrinks by and by, or as soon as any statement takes less", () => {
    const slow = updateRoundTrip(updateRoundTrip(unknownRoundTrip, { opening: 100 }), {
      opening: 1000,
    })
    expect(slow.opening).toBe(1000)
    expect(updateRoundTrip(slow, { opening: 100 }).opening).toBe(550)
    expect(capRoundTrip(far, 500)).toEqual(far)
    expect(capRoundTrip(far, 3).roundTrip).toBe(3)
  })
})

describe("places", () => {
  /** Places, and work that stays in one until it is told to leave. */
  const placesFor = (places: number) => {
    const semaphore = makeFairSemaphore(places)
    const inside: Array<string> = []
    const start = (owner: string) =>
      Effect.gen(function* () {
        const leaving = yield* Deferred.make<void>()
        const work = Effect.andThen(
          Effect.sync(() => inside.push(owner)),
          Deferred.await(leaving),
        )
        const fiber = yield* Effect.forkChild(semaphore.take(owner, work), {
          startImmediately: true,
        })
        return {
          fiber,
          leave: Effect.andThen(Deferred.succeed(leaving, undefined), Fiber.await(fiber)),
        }
      })
    return { inside, start }
  }

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

  it.effect("are no more than there are, wherever fibers yield", () =>
    Effect.gen(function* () {
      for (let budget = 3; budget < 20; budget++) {
        const semaphore = makeFairSemaphore(4)
        let most = 0
        const work = Effect.flatMap(Effect.yieldNow, () =>
          Effect.sync(() => {
            most = Math.max(most, semaphore.taken())
          }),
        )
        yield* Effect.forEach(
          Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? "a" : "b")),
          (owner) => semaphore.take(owner, Effect.andThen(work, Effect.yieldNow)),
          { concurrency: "unbounded" },
        ).pipe(Effect.provideService(MaxOpsBeforeYield, budget))
        expect([budget, most, semaphore.taken()]).toEqual([budget, 4, 0])
      }
    }),
  )
})

it.live("a connection plans a statement once, and keeps no other", () =>
  Effect.gen(function* () {
    const url = Redacted.make(inject("databaseUrl"))
    const connections = makeConnections({ url, prepare: false }, false)
    yield* Effect.addFinalizer(() => Effect.sync(connections.close))
    const asked = "SELECT statement, from_sql FROM pg_prepared_statements"
    const { run } = yield* connections.open(failOnLockTimeouts, 10_000)
    yield* run(asked, [])
    expect(yield* run(asked, [])).toEqual([{ statement: asked, from_sql: false }])
  }),
)
