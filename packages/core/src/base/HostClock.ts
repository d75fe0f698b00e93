/** The clock of hosts without Effect, whose tests may replace the timers of the runtime. */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

const monotonicNanos = (): bigint => BigInt(Math.round(performance.now() * 1_000_000))

/** A clock whose monotonic time can be read without making big integers, as each request does often. */
export interface HostClock extends Clock.Clock {
  /** Returns the monotonic time in milliseconds, with fractions. */
  readonly monotonicMillisUnsafe: () => number
}

/** Tells whether a clock is one of a host without Effect. */
export const isHostClock = (clock: Clock.Clock): clock is HostClock =>
  "monotonicMillisUnsafe" in clock

/**
 * Makes a clock that asks the global `performance` for the monotonic time at each call. Effect's clock
 * keeps the function that it finds when it is loaded, which the fake timers of a test do not turn.
 */
const make = (clock: Clock.Clock): HostClock => ({
  currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
  currentTimeMillis: clock.currentTimeMillis,
  currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
  currentTimeNanos: clock.currentTimeNanos,
  monotonicMillisUnsafe: () => performance.now(),
  monotonicTimeNanosUnsafe: monotonicNanos,
  monotonicTimeNanos: Effect.sync(monotonicNanos),
  sleep: (duration) => clock.sleep(duration),
})

/** The clock of the running effect, with such a monotonic time. */
export const current: Effect.Effect<HostClock> = Clock.clockWith((clock) =>
  Effect.succeed(make(clock)),
)
