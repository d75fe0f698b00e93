/** ISO 8601 durations, and end dates moved later by one. */

import type { Branded } from "effect/Brand"
import { makeLruCache } from "../base/lru-cache.ts"
import { Millis, lengthOfMonth, utcMillis } from "../base/time.ts"
import { brandedWhere } from "../base/values.ts"
import { EndDate } from "./end-date.ts"

/**
 * A positive duration as ISO 8601 and RFC 9557 write it: whole years, months, weeks, days, hours, minutes and seconds,
 * for example `P1M`, `P2W` or `PT36H`.
 */
export type DurationText = Branded<string, "@tenure/core/DurationText">

/** The pattern for durations. Each number has at most nine digits. */
const durationPattern =
  /^P(?=.*[1-9])(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?$/u

/** Brands text as a duration. Throws a `TypeError` if it is invalid. */
export const DurationText = brandedWhere<string, DurationText>(
  "duration",
  "a positive duration of ISO 8601 in whole numbers, such as P1M, P2W or PT36H",
  (text) => durationPattern.test(text),
)

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** A duration in months and days, whose lengths a calendar knows, and in exact milliseconds. */
export interface DurationParts {
  readonly months: number
  readonly days: number
  readonly millis: number
}

const splitDuration = (duration: DurationText): DurationParts => {
  const [years = 0, months = 0, weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = (
    durationPattern.exec(duration) ?? []
  )
    .slice(1)
    .map((digits) => Number(digits ?? 0))
  return {
    months: 12 * years + months,
    days: 7 * weeks + days,
    millis: hours * hour + minutes * minute + seconds * second,
  }
}

const splitDurations = makeLruCache<DurationText, DurationParts>(200)

/** Splits a duration into months, days and milliseconds. */
export const durationParts = (duration: DurationText): DurationParts => {
  const known = splitDurations.get(duration)
  if (known !== undefined) return known
  const parts = splitDuration(duration)
  splitDurations.set(duration, parts)
  return parts
}

/** More months than there are until the year 9999. */
const maxMonths = 12 * 10_000

/**
 * Adds months to an instant, in UTC. A day missing from the month becomes its last day.
 *
 * @param dayOfMonth - the day to choose in the resulting month, by default that of the instant
 */
export const addMonths = (instant: number, months: number, dayOfMonth?: number): number => {
  if (months === 0) return instant
  const date = new Date(instant)
  const total = 12 * date.getUTCFullYear() + date.getUTCMonth() + Math.min(months, maxMonths)
  const year = Math.floor(total / 12)
  const month = total % 12
  const timeOfDay = ((instant % day) + day) % day
  const chosen = Math.min(dayOfMonth ?? date.getUTCDate(), lengthOfMonth(year, month + 1))
  return utcMillis(year, month, chosen) + timeOfDay
}

/**
 * Adds a duration to an end date, in UTC: first its years and months, then the rest, as `Temporal` does with the
 * overflow `"constrain"`. Returns `undefined` if the result is after the year 9999.
 *
 * @example
 * ```ts
 * import { DurationText, EndDate, addDuration } from "tenure/store"
 *
 * addDuration(EndDate(Date.UTC(2027, 0, 31)), DurationText("P1M")) // 28 February 2027
 * ```
 */
export const addDuration = (endDate: EndDate, duration: DurationText): EndDate | undefined => {
  const { days, millis, months } = durationParts(duration)
  const sum = addMonths(endDate, months) + days * day + millis
  return EndDate.is(sum) ? EndDate(sum) : undefined
}

/** The longest duration for extending all memberships in a project: ten years. */
const longest = 3653 * day

/** A valid duration for all memberships, for error messages. */
export const fixedDurationFormat =
  "a positive duration in weeks, days, hours, minutes and seconds of at most ten years, such as P3D"

/**
 * Converts a duration to milliseconds. Returns `undefined` if it has years or months, because their
 * lengths differ from member to member, or is longer than ten years.
 */
export const fixedMillis = (duration: DurationText): Millis | undefined => {
  const { days, millis, months } = durationParts(duration)
  const fixed = days * day + millis
  return months === 0 && fixed <= longest ? Millis(fixed) : undefined
}

/** Converts a given duration to milliseconds, as `fixedMillis` does; returns `undefined` for anything else. */
export const parseFixedMillis = (given: unknown): Millis | undefined =>
  typeof given === "string" && DurationText.is(given) ? fixedMillis(given) : undefined

/** Formats whole seconds, in milliseconds, as a duration in days, hours, minutes and seconds. */
export const formatDuration = (millis: Millis): string => {
  const part = (unit: number, of: number, letter: string): string => {
    const count = Math.floor((of === 0 ? millis : millis % of) / unit)
    return count === 0 ? "" : `${count}${letter}`
  }
  const time = part(hour, day, "H") + part(minute, hour, "M") + part(second, minute, "S")
  return `P${part(day, 0, "D")}${time === "" ? "" : `T${time}`}`
}
