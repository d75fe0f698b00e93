/** How far a test moves the clock. */

import { Setting, latestInstant } from "@tenure/core/internal"
import { DurationText, EndDate, addDuration } from "@tenure/core/store"
import * as Result from "effect/Result"

const century = 36_525 * 86_400_000

/**
 * How far a test moves the clock: text such as `"31 days"`, milliseconds, a `Duration`, or an ISO 8601 duration such as
 * `"P1M"`, which is added as `extend` adds it.
 */
export type ClockStep = Setting.Length | `P${string}`

/** Moves a time, in milliseconds since the epoch. */
type Move = (time: number) => number

const length = Setting.duration({ least: 0, most: century })

const move =
  (duration: DurationText): Move =>
  (time) =>
    addDuration(EndDate(time), duration) ?? latestInstant

/** A step of at most a hundred years. */
export const clockStep = Setting.custom<ClockStep, Move>(
  `${length.expected}, or a duration of ISO 8601 such as "P1M"`,
  (given) => {
    if (typeof given === "string" && DurationText.is(given)) {
      const step = move(DurationText(given))
      return step(0) <= century ? step : undefined
    }
    const millis = length.read(given, "")
    return Result.isSuccess(millis) ? (time) => time + Math.ceil(millis.success) : undefined
  },
)
