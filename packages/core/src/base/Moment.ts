/**
 * The time by two clocks. Durations are measured with the monotonic clock, which nobody can set; what
 * others read, such as the time of an event, is taken from the wall clock.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HostClock from "./HostClock.ts"
import * as Step from "./Step.ts"
import { Millis } from "./Units.ts"

/** The time by both clocks. */
export interface Moment {
  /** Whole milliseconds since a start that is unknown, by the monotonic clock. */
  readonly tick: Millis
  /** Milliseconds since the epoch, by the wall clock. */
  readonly unix: Millis
}

/** Reads the monotonic clock: milliseconds, to the microsecond. */
export const precise = (clock: Clock.Clock): number =>
  HostClock.isHostClock(clock)
    ? clock.monotonicMillisUnsafe()
    : // A number has no room for as many nanoseconds as a clock may have counted.
      Number(clock.monotonicTimeNanosUnsafe() / 1000n) / 1000

/** Reads the monotonic clock: whole milliseconds. */
export const tick = (clock: Clock.Clock): Millis => Millis(Math.floor(precise(clock)))

/** Reads the wall clock. The monotonic one was read already, by `precise`. */
export const at = (millis: number, clock: Clock.Clock): Moment => ({
  tick: Millis(Math.floor(millis)),
  unix: Millis(clock.currentTimeMillisUnsafe()),
})

/** Reads both clocks. */
export const read = (clock: Clock.Clock): Moment => at(precise(clock), clock)

/** The time by both clocks, now. */
export const now: Effect.Effect<Moment> = Effect.withFiberSucceed((fiber) =>
  read(fiber.getRef(Clock.Clock)),
)

/** Milliseconds since the epoch by the wall clock, now, in fewer steps than `Clock.currentTimeMillis`. */
export const unix: Effect.Effect<Millis> = Effect.withFiberSucceed((fiber) =>
  Millis(fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()),
)

/** Makes a step that begins with the time by both clocks. */
export const nowWith = <A, E, R>(
  begin: (now: Moment) => Effect.Effect<A, E, R>,
): Effect.Effect<A, E, R> => Step.make((clock) => begin(read(clock)))
