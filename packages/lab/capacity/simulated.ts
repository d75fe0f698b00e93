/** Runs effects on a simulated clock, much faster than they would run, and in the same way each time. */

import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { MixedScheduler, Scheduler } from "effect/Scheduler"
import { makeClock, makeTimers } from "../timers.ts"

// An earlier time would be refused where times are checked.
const startMillis = 1_800_000_000_000

/** A clock that stands still until `advance` is called, which returns whether anybody waits for it. */
const makeStandingClock = () => {
  const timers = makeTimers()
  let millis = startMillis
  const sleep = (duration: Duration.Duration): Effect.Effect<void> =>
    Effect.callback((resume) => {
      let isOver = false
      const run = () => {
        if (!isOver) resume(Effect.void)
      }
      timers.add({ at: millis + Duration.toMillis(duration), run })
      return Effect.sync(() => (isOver = true))
    })
  const clock = makeClock(sleep, () => millis)
  const advance = (): boolean => {
    const next = timers.take()
    if (next === undefined) return false
    millis = next.at
    next.run()
    return true
  }
  return { clock, advance }
}

/** Runs an effect that waits for nothing but the clock. */
export const run = <A, E>(effect: Effect.Effect<A, E>): A => {
  const tasks: Array<() => void> = []
  const scheduler = new MixedScheduler("async", (task) => {
    tasks.push(task)
    return () => {
      const at = tasks.indexOf(task)
      if (at >= 0) tasks.splice(at, 1)
    }
  })
  const { advance, clock } = makeStandingClock()
  const fiber = Effect.runFork(
    effect.pipe(
      Effect.provideService(Clock.Clock, clock),
      Effect.provideService(Scheduler, scheduler),
    ),
    { scheduler },
  )
  do {
    for (const task of tasks.splice(0)) task()
  } while (fiber.pollUnsafe() === undefined && (tasks.length > 0 || advance()))
  const exit = fiber.pollUnsafe()
  if (exit === undefined)
    throw new Error("what is simulated waits for something else than the clock")
  return Effect.runSync(exit)
}
