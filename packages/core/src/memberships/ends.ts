/** Counts memberships by the day they end on in the project's time zone: the rule for all stores. */

import * as Effect from "effect/Effect"
import { InvalidInput } from "../base/errors.ts"
import { readArgument } from "../base/input.ts"
import * as Setting from "../base/setting.ts"
import { type Millis, earliestInstant, latestInstant, parseInstant } from "../base/time.ts"
import { dayNumberAt, startOfDayNumber, utc } from "./calendar.ts"
import type { BulkChange } from "./end-date.ts"
import { type ProjectSettings, defaultProjectSettings } from "./project-settings.ts"

const dayMillis = 86_400_000

/** Returns how many days after 1970-01-01 an instant is, by default in UTC. */
export const dayOf = (instant: number, zone = utc): number => dayNumberAt(instant, zone)

const firstDay = dayOf(earliestInstant)
const lastDay = dayOf(latestInstant)

/** Parses a day in the form `YYYY-MM-DD`. */
const parseDay = (text: unknown): number | undefined => {
  const instant = typeof text === "string" ? parseInstant(`${text}T00:00:00.000Z`) : undefined
  return instant === undefined ? undefined : dayOf(instant)
}

const formatDay = (day: number): string => new Date(day * dayMillis).toISOString().slice(0, 10)

/** The counted days, the first and the last one included. */
export interface DayRange {
  readonly first: number
  readonly last: number
}

const daysBack = 14
const daysAhead = 45
const maxDays = 400

/** The days around an instant, if none are asked for. */
const daysAround = (today: number): DayRange => ({
  first: Math.max(firstDay, today - daysBack),
  last: Math.min(lastDay, today + daysAhead),
})

const dayFormat = "an existing day such as 2027-01-31"

const dayOption = Setting.optional(Setting.custom<string, number>(dayFormat, parseDay))

/** A day; `readDays` reads it with the other one. */
export const dayText = Setting.inJson(
  Setting.string(dayFormat, () => true),
  { $ref: "Day" },
)

const backwards = new InvalidInput({ field: "to", problem: "must not be before from" })

const tooMany = new InvalidInput({
  field: "to",
  problem: `must be less than ${maxDays} days after from`,
})

/** Reads the days to count: 60 if one end is missing, and `undefined` for the days around now. */
export const readDays = Effect.fnUntraced(function* (given: {
  readonly from?: string | undefined
  readonly to?: string | undefined
}): Effect.fn.Return<DayRange | undefined, InvalidInput> {
  const from = yield* readArgument("from", dayOption, given.from)
  const to = yield* readArgument("to", dayOption, given.to)
  const others = daysBack + daysAhead
  const first = from ?? (to === undefined ? undefined : Math.max(firstDay, to - others))
  if (first === undefined) return undefined
  const last = to ?? Math.min(lastDay, first + others)
  if (last < first) return yield* backwards
  if (last - first >= maxDays) return yield* tooMany
  return { first, last }
})

/** A store's query for counts. */
export interface EndsQuery {
  /** By default, the days around today, by the store's clock. */
  readonly days: DayRange | undefined
  /** Counts as if this change had been made. */
  readonly change: BulkChange | undefined
}

/** A count's division into time cells. */
export interface EndCells {
  /** In milliseconds since the epoch. */
  readonly now: number
  /** The project's. */
  readonly grace: Millis
  readonly days: DayRange
  /** Each day's first instant, and that of the day after the last one. */
  readonly starts: ReadonlyMap<number, number>
  /** The day of `now`. */
  readonly today: number
  /**
   * Each cell's beginning but the first's, in ascending order. An end date's cell is the number of
   * bounds up to it.
   */
  readonly bounds: ReadonlyArray<number>
}

const soonMillis = 7 * dayMillis

/** Memberships with an end date after now are active. */
const firstActive = (now: number): number => now + 1

/** Divides time for a count of a project's memberships. */
export const endCellsAt = (
  { days }: Pick<EndsQuery, "days">,
  now: number,
  { grace, timeZone }: ProjectSettings = defaultProjectSettings,
): EndCells => {
  const today = dayOf(now, timeZone)
  const range = days ?? daysAround(today)
  const starts = new Map<number, number>()
  const addDay = (day: number) => starts.set(day, startOfDayNumber(day, timeZone))
  for (const day of [today, today + 1]) addDay(day)
  for (let day = range.first; day <= range.last + 1; day++) addDay(day)
  const bounds = new Set([
    firstActive(now - grace),
    firstActive(now),
    now + soonMillis,
    ...starts.values(),
  ])
  return {
    now,
    grace,
    days: range,
    starts,
    today,
    bounds: [...bounds].toSorted((one, other) => one - other),
  }
}

/** Returns the first instants of the counted days in order, and of the day after the last one. */
export const dayStartsOf = ({ days, starts }: EndCells): ReadonlyArray<number> =>
  Array.from(
    { length: days.last - days.first + 2 },
    (_, index) => starts.get(days.first + index) ?? NaN,
  )

/** Returns an end date's cell. */
export const cellOf = ({ bounds }: Pick<EndCells, "bounds">, endDate: number): number => {
  let least = 0
  let most = bounds.length
  while (least < most) {
    const middle = (least + most) >>> 1
    if ((bounds[middle] ?? Infinity) <= endDate) least = middle + 1
    else most = middle
  }
  return least
}

/** The memberships that end on a day. */
export interface DayEnds {
  /** In the form `YYYY-MM-DD`, in the project's time zone. */
  readonly day: string
  /** How many memberships end on this day, or have ended. */
  readonly ends: number
  /**
   * How many memberships were extended or granted on this day, each by itself: changes in the audit trail. `undefined`
   * if the store no longer keeps the day, or would have to read too much to tell.
   */
  readonly extended: number | undefined
}

/** How many memberships are active, and how many end on each day. */
export interface EndCounts {
  /** When it was counted, by the store's clock, in milliseconds since the epoch. */
  readonly at: number
  /** All memberships. */
  readonly total: number
  /** Memberships with an end date still to come, or in grace. */
  readonly active: number
  /** Active memberships in grace: their end date is over. */
  readonly overdue: number
  /** Paused memberships, which are in no other count but the total. */
  readonly paused: number
  /** Memberships with a past end date, and not in grace. */
  readonly expired: number
  /** Memberships ending today, or ended today. */
  readonly endsToday: number
  /** Active memberships ending within seven times 24 hours. */
  readonly endsIn7Days: number
  /** Each day in order. */
  readonly days: ReadonlyArray<DayEnds>
}

/** How many memberships were extended by day, from the first known day. */
export interface Extended {
  readonly knownFrom: number
  readonly byDay: ReadonlyMap<number, number>
}

/**
 * Returns the counts.
 *
 * @param inCell - the number of end dates in each cell, without paused memberships; none for a missing cell
 * @param paused - the number of paused memberships
 */
export const endCountsOf = (
  { bounds, days, grace, now, starts, today }: EndCells,
  inCell: ReadonlyMap<number, number>,
  extended: Extended,
  paused: number,
): EndCounts => {
  const before = new Map<number, number>()
  let total = inCell.get(0) ?? 0
  for (const [index, bound] of bounds.entries()) {
    before.set(bound, total)
    total += inCell.get(index + 1) ?? 0
  }
  const within = (from: number, to: number): number =>
    (before.get(to) ?? 0) - (before.get(from) ?? 0)
  const startOf = (day: number): number => starts.get(day) ?? NaN
  const endsOn = (day: number): number => within(startOf(day), startOf(day + 1))
  const expired = before.get(firstActive(now - grace)) ?? 0
  return {
    at: now,
    total: total + paused,
    active: total - expired,
    overdue: within(firstActive(now - grace), firstActive(now)),
    paused,
    expired,
    endsToday: endsOn(today),
    endsIn7Days: within(firstActive(now), now + soonMillis),
    days: Array.from({ length: days.last - days.first + 1 }, (_, index) => {
      const day = days.first + index
      return {
        day: formatDay(day),
        ends: endsOn(day),
        extended: day < extended.knownFrom ? undefined : (extended.byDay.get(day) ?? 0),
      }
    }),
  }
}

/** The actions counted in `Extended`. */
export const extendingActions: ReadonlySet<string> = new Set(["extended", "granted"])
