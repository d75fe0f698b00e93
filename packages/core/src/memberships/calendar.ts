/** Calendar rules: time zones, end dates as whole days, and durations by the calendar of a time zone. */

import type { Branded } from "effect/Brand"
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { InvalidInput } from "../base/errors.ts"
import { type LruCache, makeLruCache } from "../base/lru-cache.ts"
import * as Setting from "../base/setting.ts"
import { TaggedError } from "../base/tagged-error.ts"
import { latestInstant, lengthOfMonth, parseInstant } from "../base/time.ts"
import { branded, brandedWhere } from "../base/values.ts"
import { type DurationText, addMonths, durationParts } from "./duration.ts"
import { EndDate } from "./end-date.ts"

const minuteMillis = 60_000
const dayMillis = 86_400_000

/** The name of an IANA time zone in its usual spelling, such as `Europe/Berlin` or `UTC`. */
export type TimeZone = Branded<string, "@tenure/core/TimeZone">

/** The form of IANA names with an area. Abbreviations of Java, such as `BST` for Dhaka, have none. */
const zonePattern =
  /^(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Mexico|Pacific|US)(?:\/[A-Z][A-Z0-9_+-]{1,29}){1,2}$/i

/** IANA names without an area. `GMT+0` and `GMT-0` are left out because they read as offsets. */
const plainNames = new Map(
  `CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT Greenwich HST Hongkong Iceland Iran Israel Jamaica
  Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey UCT
  UTC Universal W-SU WET Zulu`
    .split(/\s+/)
    .map((name) => [name.toLowerCase(), name]),
)

/** Words of IANA names other than one capital followed by small letters. */
const unusualWords = new Map(
  `ACT BajaNorte BajaSur ComodRivadavia DeNoronha DumontDUrville EasterIsland GMT IN LHI McMurdo NSW UCT US UTC
  au es of`
    .split(/\s+/)
    .map((word) => [word.toLowerCase(), word]),
)

const capitalized = (word: string): string =>
  unusualWords.get(word) ?? `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`

const maxZoneLength = 40

/** Spells a time zone as IANA does. `Intl` corrects only names that are not aliases. */
const spelledZone = (text: string): string | undefined => {
  // Before a change of case, which turns some other characters into ASCII letters.
  if (!/^[\w+/-]+$/.test(text)) return undefined
  const lower = text.toLowerCase()
  return (
    plainNames.get(lower) ??
    (zonePattern.test(lower) ? lower.replaceAll(/[a-z]+/g, capitalized) : undefined)
  )
}

const brandZone = branded<string, TimeZone>()

/** The time zone of projects that choose none. */
export const utc = brandZone("UTC")

/** Names of UTC. Versions of `Intl` differ in which of them they resolve to it. */
const utcPattern = /^(?:Etc\/)?(?:GMT|Greenwich|UCT|UTC|Universal|Zulu)$|^Etc\/GMT[+-]?0$/

const findZone = (text: string): TimeZone | undefined => {
  const spelled = spelledZone(text)
  if (spelled === undefined) return undefined
  if (utcPattern.test(spelled)) return utc
  return Option.isSome(DateTime.zoneMakeNamed(spelled)) ? brandZone(spelled) : undefined
}

/** Time zones by their text, and `null` for others, because asking `Intl` for an unknown one takes 60 µs. */
const parsedZones = makeLruCache<string, TimeZone | null>(2000)

/**
 * Parses the name of an IANA time zone in any case. Names of UTC, such as `Etc/UTC` and `GMT`, become `UTC`. Returns
 * `undefined` for offsets, and for names that this runtime does not know.
 */
export const parseTimeZone = (text: string): TimeZone | undefined => {
  if (text.length > maxZoneLength) return undefined
  const known = parsedZones.get(text)
  if (known !== undefined) return known ?? undefined
  const found = findZone(text)
  parsedZones.set(text, found ?? null)
  return found
}

/** Brands text as a time zone. Throws a `TypeError` if it is invalid, or not in its usual spelling. */
export const TimeZone = brandedWhere<string, TimeZone>(
  "time zone",
  "the name of an IANA time zone, such as Europe/Berlin or UTC, and not an offset",
  (text) => parseTimeZone(text) === text,
)

/** A time zone that a host or a client passes. */
export const timeZoneSetting: Setting.Setting<string, TimeZone> = Setting.inJson(
  Setting.custom(TimeZone.expected, (given) =>
    typeof given === "string" ? parseTimeZone(given) : undefined,
  ),
  { type: "string" },
)

/** A day of the calendar in the form `YYYY-MM-DD`, in the years 0001 to 9999, and before the last day of these. */
export type Day = Branded<string, "@tenure/core/Day">

/** Returns the beginning of a day in UTC. */
const parseDay = (text: string): number | undefined => parseInstant(`${text}T00:00:00.000Z`)

/** Brands text as a day. Throws a `TypeError` if it is invalid. */
export const Day = brandedWhere<string, Day>(
  "day",
  "an existing day such as 2027-01-31, without a time, from 0001-01-01 to 9999-12-30",
  (text) => parseDay(text) !== undefined && !text.startsWith("0000") && text !== "9999-12-31",
)

// Local time is written as an instant: that at which clocks in UTC show it.

const zoneOf = (zone: TimeZone): DateTime.TimeZone.Named => DateTime.zoneMakeNamedUnsafe(zone)

const findOffset = (instant: number, zone: TimeZone): number =>
  DateTime.zonedOffset(DateTime.makeZonedUnsafe(instant, { timeZone: zoneOf(zone) }))

/**
 * Offsets by time zone and by day in UTC, and `NaN` for days on which clocks change. Asking `Intl` takes a hundred times as
 * long as this cache.
 */
const offsets = makeLruCache<TimeZone, LruCache<number, number>>(32)

const offsetsOf = (zone: TimeZone): LruCache<number, number> => {
  const known = offsets.get(zone)
  if (known !== undefined) return known
  const ofZone = makeLruCache<number, number>(8000)
  offsets.set(zone, ofZone)
  return ofZone
}

const offsetAt = (instant: number, zone: TimeZone): number => {
  if (zone === utc) return 0
  const ofZone = offsetsOf(zone)
  const day = Math.floor(instant / dayMillis)
  const known = ofZone.get(day)
  if (known !== undefined) return Number.isNaN(known) ? findOffset(instant, zone) : known
  const first = findOffset(day * dayMillis, zone)
  const isConstant = first === findOffset((day + 1) * dayMillis, zone)
  ofZone.set(day, isConstant ? first : NaN)
  return isConstant ? first : findOffset(instant, zone)
}

const toLocal = (instant: number, zone: TimeZone): number => instant + offsetAt(instant, zone)

/** Returns when a local time is, by the disambiguation `"compatible"` of `Temporal`. */
const fromLocal = (local: number, zone: TimeZone): number => {
  const offset = offsetAt(local - dayMillis, zone)
  if (offset === offsetAt(local + dayMillis, zone)) return local - offset
  return DateTime.makeZonedUnsafe(local, { timeZone: zoneOf(zone), adjustForTimeZone: true })
    .epochMilliseconds
}

/** Since 1973, all offsets are whole minutes. */
const wholeMinutes = Date.UTC(1973, 0, 1)

const midnightOf = (local: number): number => Math.floor(local / dayMillis) * dayMillis

const toDay = (local: number): Day | undefined => {
  const text = new Date(local).toISOString().slice(0, 10)
  return Day.is(text) ? text : undefined
}

/** Finds the first instant of a day. Clocks may skip midnight, or the whole day. */
const startOfDay = (midnight: number, zone: TimeZone): number => {
  const start = fromLocal(midnight, zone)
  const skipped = toLocal(start, zone) - midnight
  let before = start - skipped
  let after = start
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (toLocal(middle, zone) < midnight) before = middle
    else after = middle
  }
  return after
}

/** Returns the midnight that begins the day whose end an instant is. */
const lastMidnight = (instant: number, zone: TimeZone): number | undefined => {
  // Saves most look-ups.
  if (instant > wholeMinutes && instant % minuteMillis !== 0) return undefined
  const midnight = midnightOf(toLocal(instant, zone))
  const last = midnightOf(toLocal(instant - 1, zone))
  return last < midnight && startOfDay(midnight, zone) === instant ? last : undefined
}

/**
 * Returns the day whose end an instant is in a time zone, or `undefined` if the instant does not begin a day there.
 */
export const dayEndedAt = (instant: number, zone: TimeZone): Day | undefined => {
  // An older runtime may not know a stored time zone.
  const last = parseTimeZone(zone) && lastMidnight(instant, zone)
  return last === undefined ? undefined : toDay(last)
}

const endOfLocalDay = (midnight: number, zone: TimeZone): EndDate | undefined => {
  const next = midnight + dayMillis
  if (next > latestInstant) return undefined
  const end = startOfDay(next, zone)
  return EndDate.is(end) ? end : undefined
}

/** Returns a stored time zone, or fails if this runtime is older and does not know it. */
export const knownZone = (stored: TimeZone): Result.Result<TimeZone, InvalidInput> =>
  parseTimeZone(stored) === undefined
    ? Result.fail(
        new InvalidInput({
          field: "timeZone",
          problem: `must be given, because this server does not know the project's time zone ${stored}`,
        }),
      )
    : Result.succeed(stored)

/** Counts need no exact zone. */
const knownOrUtc = (stored: TimeZone): TimeZone => Result.getOrElse(knownZone(stored), () => utc)

/** Returns how many days after 1970-01-01 an instant is in a time zone, in UTC if that is unknown. */
export const dayNumberAt = (instant: number, zone: TimeZone): number =>
  Math.floor(toLocal(instant, knownOrUtc(zone)) / dayMillis)

/** Returns the first instant of a day in a time zone, in milliseconds since the epoch; in UTC if that is unknown. */
export const startOfDayNumber = (day: number, zone: TimeZone): number =>
  startOfDay(day * dayMillis, knownOrUtc(zone))

/** Returns the first instant after a day in a time zone. */
export const endOfDay = (day: Day, zone: TimeZone): EndDate =>
  EndDate(startOfDay(Date.parse(day) + dayMillis, zone))

/** Returns the end of the day on which an instant is in a time zone. */
export const endOfToday = (now: number, zone: TimeZone): EndDate | undefined =>
  endOfLocalDay(midnightOf(toLocal(now, zone)), zone)

/** An end date, and how months are added to it. */
export interface CalendarEnd {
  readonly instant: EndDate
  /**
   * The day of the month that months count with, if the end date hides it; else `undefined`. Only the last day of a
   * month hides another one:
   * - The day was cut: 28 February stands for the 30th.
   * - In days, the last day of a month means 31. So 28 February hides the 28th, and 30 April the 30th, if months led
   *   there.
   */
  readonly keptDay: number | undefined
  /** Whether the end date is that of a whole day. */
  readonly inDays: boolean
}

/** A kept day that a host or a client passes, as a membership has it. */
export const keptDaySetting = Setting.integer({ least: 1, most: 31 })

/** The result is after the year 9999. */
export class EndsTooLate extends TaggedError("EndsTooLate") {}

const tooLate = Result.fail(new EndsTooLate())

/** Returns the day of the month that months count with. A kept day counts only on the last day of a month. */
const meantDay = (local: number, keptDay: number | undefined, inDays: boolean): number => {
  const date = new Date(local)
  const day = date.getUTCDate()
  if (day < lengthOfMonth(date.getUTCFullYear(), date.getUTCMonth() + 1)) return day
  if (keptDay !== undefined && keptDay >= day) return keptDay
  return inDays ? 31 : day
}

/** Returns when a local time is. In days, it is the midnight that begins the last day. */
const arrive = (local: number, inDays: boolean, zone: TimeZone): number =>
  inDays ? (endOfLocalDay(local, zone) ?? Infinity) : fromLocal(local, zone)

/** How an end date is extended. */
export interface CalendarExtension {
  readonly end: CalendarEnd
  readonly by: DurationText
  readonly zone: TimeZone
}

/**
 * Extends an end date by the calendar of a time zone, in the order of `Temporal`: by years and months, by weeks and days,
 * and then by hours, minutes and seconds, which are exact. Whole days count by their last day, and hours end that.
 */
export const extendByCalendar = ({
  by,
  end,
  zone,
}: CalendarExtension): Result.Result<CalendarEnd, EndsTooLate> => {
  const { days, millis, months } = durationParts(by)
  const lastDay = end.inDays ? lastMidnight(end.instant, zone) : undefined
  const wasInDays = lastDay !== undefined
  const local = lastDay ?? toLocal(end.instant, zone)
  const meant = meantDay(local, end.keptDay, wasInDays)
  const target = addMonths(local, months, meant) + days * dayMillis
  // Clocks ahead of UTC show the year 10000 earlier.
  if (target > latestInstant + dayMillis) return tooLate
  const moved = months + days === 0 ? end.instant : arrive(target, wasInDays, zone)
  const instant = moved + millis
  if (!EndDate.is(instant)) return tooLate
  const inDays = wasInDays && millis === 0
  // Weeks and days choose another day, and so do hours and clock changes that lead to one.
  const isSameDay = (): boolean =>
    inDays || (!wasInDays && midnightOf(toLocal(instant, zone)) === midnightOf(target))
  // Each month has 28 days.
  const isHidden = meant >= 28 && meantDay(target, undefined, inDays) !== meant
  const keptDay = isHidden && days === 0 && isSameDay() ? meant : undefined
  return Result.succeed({ instant, keptDay, inDays })
}

/**
 * Adds a duration to an instant as `Temporal.ZonedDateTime` does by default. Returns `undefined` if the result is after
 * the year 9999.
 */
export const addToInstant = (
  instant: EndDate,
  by: DurationText,
  zone: TimeZone,
): EndDate | undefined =>
  Result.match(
    extendByCalendar({ end: { instant, keptDay: undefined, inDays: false }, by, zone }),
    {
      onFailure: () => undefined,
      onSuccess: (end) => end.instant,
    },
  )
