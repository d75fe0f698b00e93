/** End dates as people write them: last whole days, instants, durations, and `never`. */

import type { Membership } from "@tenure/client"
import { addToInstant, dayEndedAt, endOfToday } from "@tenure/core/internal"
import { DurationText, EndDate, TimeZone, parseTimeZone } from "@tenure/core/store"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Api, callApi } from "./api.ts"
import { type Failure, operationFailed, usageFailure } from "./failure.ts"
import { dateFormat, durationFlag, parseDate, parseDuration, whatIsExpected } from "./flags.ts"
import { endText, isoOf } from "./text.ts"

/** An end date as it is written. */
export type GivenEnd =
  /** The last whole day: `2027-01-31`, `today` or `tomorrow`. */
  | { readonly _tag: "Day"; readonly day: string }
  | { readonly _tag: "Instant"; readonly date: string }
  | { readonly _tag: "Duration"; readonly duration: string }
  | { readonly _tag: "Never" }

const isDay = (text: string): boolean => /^\d{4}-\d\d-\d\d$/.test(text)

const relativeDays = ["today", "tomorrow"]

/** Reads a day of the calendar. Returns `undefined` if it does not exist. */
export const parseDay = (text: string): string | undefined =>
  isDay(text) && parseDate(text) !== undefined ? text : undefined

/** Reads a day, also `today` and `tomorrow`. */
const parseLastDay = (text: string): string | undefined =>
  relativeDays.includes(text) ? text : parseDay(text)

/** Tells whether a text in place of an end date means a membership for life. */
export const isNever = (text: string): boolean => text.toLowerCase() === "never"

/** Reads an end date. */
const parseEnd = (text: string): GivenEnd | undefined => {
  if (isNever(text)) return { _tag: "Never" }
  const duration = parseDuration(text)
  if (duration !== undefined) return { _tag: "Duration", duration }
  const day = parseLastDay(text)
  if (day !== undefined) return { _tag: "Day", day }
  const date = parseDate(text)
  return date === undefined ? undefined : { _tag: "Instant", date }
}

const relativeFormat = "tomorrow, +30d, +2w, +1mo or +1y, or P1M"

const whatMayBeRelative = () => `${whatIsExpected()}, or ${relativeFormat}`

/** The end date of a grant, which may count from now. */
export const endArgument = Argument.String("date").pipe(
  Argument.filterMap(Option.liftNullishOr(parseEnd), () => `${whatMayBeRelative()}, or never`),
  Argument.withDescription(
    `The end date: ${dateFormat}; ${relativeFormat} from now; or never. A day is the last one`,
  ),
  Argument.optional,
)

/** Reads to which end date, or by which duration, to extend. */
export const parseGoal = (text: string): Option.Option<GivenEnd> =>
  isNever(text) ? Option.none() : Option.fromNullishOr(parseEnd(text))

/** The new end date of an extension, which may count from the present one. */
export const goalArgument = Argument.String("date").pipe(
  Argument.filterMap(parseGoal, (text) =>
    isNever(text)
      ? "a date in the future. Use tenure members grant to make a membership for life"
      : whatMayBeRelative(),
  ),
  Argument.withMetavar("DATE"),
  Argument.withDescription(
    `The end date: ${dateFormat}; or ${relativeFormat} from the present one. A day is the last one`,
  ),
  Argument.optional,
)

/** Makes a flag for an end date, which does not count from now. */
export const endFlag = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.filterMap(
      (text) =>
        Option.filter(Option.fromNullishOr(parseEnd(text)), ({ _tag }) => _tag !== "Duration"),
      () => `${whatIsExpected()}, or never`,
    ),
    Flag.withMetavar("DATE"),
    Flag.withDescription(description),
    Flag.optional,
  )

/** When a pause is to end by itself. */
export const untilFlag = Flag.String("until").pipe(
  Flag.filterMap(parseGoal, (text) =>
    isNever(text)
      ? "a date. Without --until, the pause lasts until the membership is resumed"
      : whatMayBeRelative(),
  ),
  Flag.withMetavar("DATE"),
  Flag.withDescription(
    `When the pause ends by itself: ${dateFormat}; or ${relativeFormat} from now. A day is its last one. By default, it lasts until members resume`,
  ),
  Flag.optional,
)

/** The last whole day, in place of a date. */
export const throughFlag = Flag.String("through").pipe(
  Flag.filterMap(
    (text) =>
      Option.map(Option.fromNullishOr(parseLastDay(text)), (day): GivenEnd => ({
        _tag: "Day",
        day,
      })),
    () => "a day, such as 2027-01-31, today or tomorrow",
  ),
  Flag.withMetavar("DAY"),
  Flag.withDescription("The last whole day, as a day in place of a date says, too"),
  Flag.optional,
)

/** The time zone of days and months. */
export const timeZoneFlag = Flag.String("time-zone").pipe(
  Flag.withMetavar("NAME"),
  Flag.withDescription(
    "The IANA time zone in which days end and months count; by default, that of the project",
  ),
  Flag.optional,
)

/** The duration of an extension. */
export const extendBy = durationFlag(
  "by",
  "Adds a duration, such as P1M or +1mo, in place of setting a date",
)

/** Returns the only end date that is given. */
export const requireOne = (problem: string, ...given: ReadonlyArray<Option.Option<GivenEnd>>) => {
  const [first, ...others] = given.flatMap(Option.toArray)
  return first === undefined || others.length > 0
    ? Effect.fail(usageFailure(problem))
    : Effect.succeed(first)
}

/** The parameters of an extension. */
export interface GoalFlags {
  readonly date: Option.Option<GivenEnd>
  readonly by: Option.Option<string>
  readonly through: Option.Option<GivenEnd>
}

/** Returns to which date, or by which duration, to extend. */
export const requireGoal = ({ by, date, through }: GoalFlags) =>
  requireOne(
    "Give either a date, such as 2027-01-31 or +30d, or --by with a duration, or --through with a day.",
    date,
    Option.map(by, (duration): GivenEnd => ({ _tag: "Duration", duration })),
    through,
  )

/** Where days are counted. */
export interface DayPlace {
  readonly project: string
  readonly timeZone: Option.Option<string>
}

/** Returns a time zone by its name. */
export const readZone = (name: string) => {
  const zone = parseTimeZone(name)
  return zone === undefined
    ? Effect.fail(usageFailure(`--time-zone must be ${TimeZone.expected}.`))
    : Effect.succeed(zone)
}

/** Returns the time zone of a project. */
const zoneOfProject = (project_id: string) =>
  Effect.map(
    callApi(({ projects }, options) => projects.get({ project_id }, options)),
    ({ data }) => data.time_zone,
  )

const dayMillis = 86_400_000

/** Returns a day as the API takes it. */
export const resolveDay = Effect.fnUntraced(function* (
  day: string,
  { project, timeZone }: DayPlace,
) {
  const index = relativeDays.indexOf(day)
  if (index === -1) return day
  const zone = yield* readZone(
    Option.isSome(timeZone) ? timeZone.value : yield* zoneOfProject(project),
  )
  const end = endOfToday(yield* Clock.currentTimeMillis, zone)
  const today = end && dayEndedAt(end, zone)
  if (today === undefined) return yield* operationFailed(`${zone} has no such day.`)
  return isoOf(Date.parse(today) + index * dayMillis).slice(0, today.length)
})

const needsDay = usageFailure("--time-zone is for a day or a duration.")

/** Returns the part of a request that says to which date, or by which duration, to extend. */
export const goalOf = Effect.fnUntraced(function* (given: GivenEnd, place: DayPlace) {
  const time_zone = Option.getOrUndefined(place.timeZone)
  switch (given._tag) {
    case "Day":
      return { through: yield* resolveDay(given.day, place), time_zone }
    case "Duration":
      return { extend_by: given.duration, time_zone }
    case "Instant":
      return time_zone === undefined ? { extend: given.date } : yield* needsDay
    case "Never":
      return yield* usageFailure("An extension needs a date.")
  }
})

/** Returns the part of a request that says when a granted membership ends. */
export const endOf = Effect.fnUntraced(function* (given: GivenEnd, place: DayPlace) {
  const time_zone = Option.getOrUndefined(place.timeZone)
  switch (given._tag) {
    case "Day":
      return { through: yield* resolveDay(given.day, place), time_zone }
    case "Duration": {
      const zone = yield* readZone(time_zone ?? "UTC")
      const now = EndDate(yield* Clock.currentTimeMillis)
      const date = addToInstant(now, DurationText(given.duration), zone)
      return date === undefined
        ? yield* usageFailure("The end date is after the year 9999.")
        : { end_date: isoOf(date) }
    }
    case "Instant":
      return time_zone === undefined ? { end_date: given.date } : yield* needsDay
    case "Never":
      return time_zone === undefined ? { end_date: null } : yield* needsDay
  }
})

/** The part of a request that says when a pause ends; empty if somebody has to end it. */
export interface PauseEnd {
  readonly until?: string | undefined
  readonly through?: string | undefined
  readonly time_zone?: string | undefined
}

/** Returns the part of a request that says when a pause ends. */
export const pauseEndOf = (
  given: GivenEnd,
  place: DayPlace,
): Effect.Effect<PauseEnd, Failure, Api> =>
  Effect.map(endOf(given, place), (end) =>
    "through" in end ? end : { until: end.end_date ?? undefined },
  )

/** When a membership ends. */
export type MembershipEnd = Pick<Membership, "end_date" | "through">

/** Writes when a membership ends, for people: by its last day, if it counts in days. */
export const shortEnd = ({ end_date, through }: MembershipEnd): string =>
  through === null ? endText(end_date) : `through ${through}`

/** Writes when a membership ends, for people: the last day with its instant and time zone. */
export const wholeEnd = (end: MembershipEnd, zone: string | undefined): string =>
  end.through === null
    ? shortEnd(end)
    : `${shortEnd(end)} (${[end.end_date, zone].filter(Boolean).join(", ")})`

/** Returns the time zone in which a membership ends a day; `undefined` if it ends none, or nobody tells. */
export const findZone = (project: string, { through }: Pick<MembershipEnd, "through">) =>
  through === null
    ? Effect.succeed(undefined)
    : Effect.orElseSucceed(zoneOfProject(project), () => undefined)
