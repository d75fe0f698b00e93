import { it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { TestClock } from "effect/testing"
import { expect, it as test } from "vitest"
import { allEager, isSettled, runEager, suspendEager } from "../../src/base/eager.ts"

const now = suspendEager((clock) => Effect.succeed(clock.currentTimeMillisUnsafe()))

it.effect("a step that waits for nothing is done when it has begun", () =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    yield* TestClock.adjust("3 seconds")
    const begun = runEager(now, clock)
    expect(isSettled(begun)).toBe(true)
    expect(Effect.mapEager(begun, (millis) => millis / 1000)).toEqual(Exit.succeed(3))
  }),
)

it.effect("a step that waits goes on when it is run", () =>
  Effect.gen(function* () {
    const waited = yield* Deferred.make<string>()
    const step = suspendEager(() => Deferred.await(waited))
    const begun = runEager(step, yield* Clock.Clock)
    expect(isSettled(begun)).toBe(false)
    yield* Deferred.succeed(waited, "later")
    expect(yield* begun).toBe("later")
  }),
)

it.effect("a step does nothing before it runs, and runs again by the clock of its fiber", () =>
  Effect.gen(function* () {
    let runs = 0
    const step = suspendEager((clock) => Effect.succeed([++runs, clock.currentTimeMillisUnsafe()]))
    expect(runs).toBe(0)
    expect(yield* step).toEqual([1, 0])
    yield* TestClock.adjust("1 second")
    expect(yield* step).toEqual([2, 1000])
  }),
)

it.effect("what a step throws is a defect, whoever begins it", () =>
  Effect.gen(function* () {
    const fault = new Error("thrown")
    const step = suspendEager((): Effect.Effect<never> => {
      throw fault
    })
    const defect = Exit.failCause(Cause.die(fault))
    expect(runEager(step, yield* Clock.Clock)).toEqual(defect)
    expect(yield* Effect.exit(step)).toEqual(defect)
  }),
)

it.effect("other effects do not begin", () =>
  Effect.gen(function* () {
    const effect = Effect.sync(() => expect.unreachable())
    expect(runEager(effect, yield* Clock.Clock)).toBe(effect)
  }),
)

test("exits are combined at once, in their order, up to the first failure", () => {
  const [one, two] = [Effect.succeed(1), Effect.succeed("two")]
  expect(allEager({ one, two })).toEqual(Exit.succeed({ one: 1, two: "two" }))
  const failed = allEager({ one, first: Effect.fail("first"), second: Effect.fail("second") })
  expect(failed).toEqual(Exit.fail("first"))
})

it.effect("effects that wait are combined when they run, and none after a failure", () =>
  Effect.gen(function* () {
    const seen: Array<string> = []
    const see = (name: string) => Effect.sync(() => seen.push(name))
    const combined = allEager({ one: see("one"), two: Effect.fail("no"), three: see("three") })
    expect(seen).toEqual([])
    expect(yield* Effect.exit(combined)).toEqual(Exit.fail("no"))
    expect(seen).toEqual(["one"])
  }),
)
