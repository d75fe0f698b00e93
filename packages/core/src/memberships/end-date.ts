/** End dates: parsing them from JSON and from hosts, and adjusting them by bulk extensions. */

import type { Branded } from "effect/Brand"
import * as Result from "effect/Result"
import { parseRequestInstant, shownEndDate, shownInstant } from "../base/input.ts"
import type * as Setting from "../base/setting.ts"
import { TaggedError } from "../base/tagged-error.ts"
import {
  type InstantInput,
  Millis,
  instantFormat,
  isInstant,
  latestInstant,
  readInstant,
} from "../base/time.ts"
import { branded, brandedWhere, memoizeLatest } from "../base/values.ts"

/** An instant in milliseconds since 1970-01-01T00:00:00.000Z, in the years 0000 to 9999. */
export type EndDate = Branded<number, "@tenure/core/EndDate">

/** An end date as hosts pass it in process: an instant in the years 0000 to 9999. */
export type EndDateInput = InstantInput

/** Brands whole milliseconds in the years 0000 to 9999. Throws a `TypeError` on any other number. */
export const EndDate = brandedWhere<number, EndDate>(
  "end date",
  "whole milliseconds since the epoch, in the years 0000 to 9999",
  isInstant,
)

const brand = branded<number, EndDate>()

/** The last end date: the last instant in the year 9999. Memberships for life have it, so comparisons need no exception. */
export const lastEndDate = brand(latestInstant)

/**
 * Parses an end date by the API's rules.
 *
 * @param json - a 13-digit integer (Unix time in milliseconds), or a string in the form
 *   `YYYY-MM-DDTHH:mm:ss.sssZ`, naming an existing instant in the years 0000 to 9999 in UTC
 * @returns the end date, or `undefined` for any other value
 * @example
 * ```ts
 * import { parseEndDate } from "tenure/store"
 *
 * parseEndDate("2027-01-01T00:00:00.000Z") // 1798761600000
 * parseEndDate(1798761600000) // 1798761600000
 * parseEndDate("2027-02-30T00:00:00.000Z") // undefined
 * ```
 */
export const parseEndDate = (json: unknown): EndDate | undefined => {
  const millis = parseRequestInstant(json)
  return millis === undefined ? undefined : brand(millis)
}

/** The value is not an end date. */
export class InvalidEndDate extends TaggedError("InvalidEndDate")<{
  readonly message: string
}> {}

/** The end date is not in the future. */
export class EndDateNotInFuture extends TaggedError("EndDateNotInFuture")<{
  readonly message: string
}> {}

// These errors are common and their stack traces useless, so all calls share one instance per error.
const invalidJson = Result.fail(
  new InvalidEndDate({
    message:
      "The end date must be a 13-digit Unix timestamp in milliseconds or text such as 2027-01-01T00:00:00.000Z",
  }),
)
/** The error for an end date in the past. */
export const endDateNotInFuture = new EndDateNotInFuture({
  message: "The end date must be in the future",
})

/** Decodes an end date as `parse` does, or fails with `InvalidEndDate`. */
export const decodeEndDate = (json: unknown): Result.Result<EndDate, InvalidEndDate> => {
  const endDate = parseEndDate(json)
  return endDate === undefined ? invalidJson : Result.succeed(endDate)
}

const makeEndDateSetting = (
  shown: (given: unknown) => string,
): Setting.Setting<EndDateInput, EndDate, InvalidEndDate> => ({
  expected: instantFormat,
  read: (given) => {
    const isInput = typeof given === "number" || typeof given === "string" || given instanceof Date
    const millis = isInput ? readInstant(given) : undefined
    if (millis !== undefined) return Result.succeed(brand(millis))
    const message = `The end date must be ${instantFormat}; received ${shown(given)}`
    return Result.fail(new InvalidEndDate({ message }))
  },
})

/** An end date from a host. It has its own error. */
export const endDateSetting = makeEndDateSetting(shownEndDate)

/** An instant from a host that end dates are compared with. It has their error. */
export const endBoundSetting = makeEndDateSetting(shownInstant)

/**
 * Converts an end date from the host, or fails with `InvalidEndDate`.
 * @example
 * ```ts
 * import { readEndDate } from "tenure/store"
 *
 * readEndDate(new Date("2027-01-01")) // succeeds with 1798761600000
 * readEndDate(1798761600000) // succeeds with 1798761600000
 * readEndDate(1798761600) // fails with InvalidEndDate: these are seconds
 * readEndDate("tomorrow") // fails with InvalidEndDate
 * ```
 */
export const readEndDate = (input: EndDateInput): Result.Result<EndDate, InvalidEndDate> =>
  endDateSetting.read(input, "endDate")

/** Formats an end date as `YYYY-MM-DDTHH:mm:ss.sssZ`. */
export const formatEndDate = memoizeLatest((endDate: EndDate): string =>
  new Date(endDate).toISOString(),
)

/** Formats an end date for a response: `null` for a membership for life. */
export const formatEndDateOrNull = (endDate: EndDate): string | null =>
  endDate === lastEndDate ? null : formatEndDate(endDate)

/** Adds `null` to the end dates that a setting reads: the membership is for life. */
export const orForLife = <I, E>(
  setting: Setting.Setting<I, EndDate, E>,
): Setting.Setting<I | null, EndDate, E> => ({
  ...setting,
  expected: `${setting.expected}, or null for life`,
  ...(setting.json && { json: { anyOf: [setting.json, { const: null }] } }),
  read: (given, field, source) =>
    given === null ? Result.succeed(lastEndDate) : setting.read(given, field, source),
})

/** The bulk modes: change every date, or only extend earlier ones. */
export const bulkModes = ["set", "neverShorten"] as const

/** A bulk extension's mode. */
export type BulkMode = (typeof bulkModes)[number]

/** The modes as JSON has them. */
export const bulkModeNames = {
  set: "set",
  neverShorten: "never_shorten",
} as const satisfies Record<BulkMode, string>

/** How an end date was given, and how months are added to it. */
export interface DateForm {
  /** Whether it was given as a day. */
  readonly inDays: boolean
  /** The day of the month that months count with, from 1 to 31, if the end date hides it: see `CalendarEnd`. */
  readonly keptDay: number | undefined
}

/** A form that may be left out: the end date is an instant then. */
export interface OptionalForm {
  readonly inDays?: boolean | undefined
  readonly keptDay?: number | undefined
}

/** The form of an end date that was given as an instant. */
export const instantForm: DateForm = { inDays: false, keptDay: undefined }

/** Tells whether two end dates have the same form. Without a form, they are instants. */
export const isSameForm = (one: OptionalForm, other: OptionalForm): boolean =>
  (one.inDays ?? false) === (other.inDays ?? false) && one.keptDay === other.keptDay

/** An end date with its sequence number in the project: the greater number is later. */
export interface OrderedEndDate {
  readonly endDate: EndDate
  readonly order: number
}

/** An end date with its form. */
export interface FormedEndDate extends DateForm {
  readonly endDate: EndDate
}

/** A bulk extension's change: gives every member a date, at least a date, or more time. */
export type BulkChange =
  | {
      /** Whether a later end date is set, too, or left as it is. */
      readonly mode: BulkMode
      /** The new end date. */
      readonly endDate: EndDate
      /** Whether it was given as a day. Default: `false`. */
      readonly inDays?: boolean | undefined
    }
  | {
      /** Every membership ends later. */
      readonly mode: "extendBy"
      /** How much later, in milliseconds. */
      readonly by: Millis
    }

/** Bulk modes as written in JSON. */
export const bulkChangeNames = {
  ...bulkModeNames,
  extendBy: "extend_by",
} as const satisfies Record<BulkChange["mode"], string>

/**
 * A bulk extension's adjustment to an end date: adds to it, and then raises it to a minimum. Every bulk
 * extension has this form, and so has any sequence.
 */
export interface Adjustment {
  /** In milliseconds; `undefined` if the date before makes no difference. */
  readonly addition: Millis | undefined
  /** `undefined` for no minimum. */
  readonly minimum: EndDate | undefined
}

/** Changes no date. */
export const noAdjustment: Adjustment = { addition: Millis(0), minimum: undefined }

/** Returns a bulk extension's adjustment to end dates. */
export const adjustmentOf = (change: BulkChange): Adjustment => {
  switch (change.mode) {
    case "set":
      return { addition: undefined, minimum: change.endDate }
    case "neverShorten":
      return { addition: Millis(0), minimum: change.endDate }
    case "extendBy":
      return { addition: change.by, minimum: undefined }
  }
}

/** Adds to a date. Nothing ends after the year 9999. An absent part has no sum. */
const plus = (date: number | undefined, addition: number | undefined): number =>
  date === undefined || addition === undefined ? -Infinity : Math.min(date + addition, lastEndDate)

/** Adjusts a date, in milliseconds. `-Infinity` stands for an unknown date, before all others. */
export const adjust = (date: number, { addition, minimum }: Adjustment): number =>
  Math.max(plus(date, addition), minimum ?? -Infinity)

/** Returns one adjustment equal to both in succession. */
export const composeAdjustments = (first: Adjustment, second: Adjustment): Adjustment => {
  const minimum = Math.max(plus(first.minimum, second.addition), second.minimum ?? -Infinity)
  return {
    addition:
      first.addition === undefined || second.addition === undefined
        ? undefined
        : Millis(first.addition + second.addition),
    minimum: minimum === -Infinity ? undefined : EndDate(minimum),
  }
}

/** A bulk extension in a log. */
export interface LoggedBulkExtension {
  /** Its sequence number in the project: the greater number is later. */
  readonly order: number
  readonly adjustment: Adjustment
  readonly isUndone: boolean
  /** Whether it has given a day. Default: `false`. */
  readonly inDays?: boolean | undefined
}

/** An adjustment of all members whose own date has a lower sequence number. */
export interface OrderedAdjustment extends Adjustment {
  readonly order: number
}

/** A bulk extension with all later ones in the log. */
export interface ComposedBulkExtensions extends OrderedAdjustment {
  /** Whether one of them has given a day. */
  readonly inDays: boolean
}

/** Composes each bulk extension in a log, oldest first, with all later ones. Undone ones adjust nothing. */
export const composeLog = (
  log: ReadonlyArray<LoggedBulkExtension>,
): ReadonlyArray<ComposedBulkExtensions> => {
  let later = noAdjustment
  let givesDay = false
  return log
    .toReversed()
    .map(({ adjustment, inDays = false, isUndone, order }) => {
      if (!isUndone) {
        later = composeAdjustments(adjustment, later)
        givesDay ||= inDays
      }
      return { order, ...later, inDays: givesDay }
    })
    .toReversed()
}

/** Composes each bulk extension with one more, later than all. */
export const composeWith = (
  composed: ReadonlyArray<OrderedAdjustment>,
  change: BulkChange | undefined,
): ReadonlyArray<OrderedAdjustment> => {
  if (change === undefined) return composed
  const last = adjustmentOf(change)
  return [
    ...composed.map(({ order, ...earlier }) => ({ order, ...composeAdjustments(earlier, last) })),
    { order: Number.MAX_SAFE_INTEGER, ...last },
  ]
}

/**
 * Returns a member's end date.
 *
 * @param composed - the project's bulk extensions, oldest first, each composed with all later ones
 * @param own - the date last set for this member alone
 */
export const effectiveEndDate = (
  composed: ReadonlyArray<OrderedAdjustment>,
  own: OrderedEndDate,
): EndDate => {
  if ((composed.at(-1)?.order ?? -Infinity) <= own.order) return own.endDate
  const first = composed.find(({ order }) => order > own.order)
  return first === undefined ? own.endDate : EndDate(adjust(own.endDate, first))
}

/**
 * Returns the form of a member's end date. A day that bulk extensions gave counts for all members. A kept day belongs to
 * the member's own date: it is hidden while a bulk extension moves that, or sets every date.
 *
 * @param composed - the project's bulk extensions, oldest first, each composed with all later ones
 * @param own - the date last set for this member alone
 */
export const effectiveForm = (
  composed: ReadonlyArray<ComposedBulkExtensions>,
  own: OrderedEndDate & DateForm,
): DateForm => {
  const first = composed.find(({ order }) => order > own.order)
  if (first === undefined) return own
  const isKept = first.addition === 0 && (first.minimum ?? -Infinity) <= own.endDate
  return { inDays: own.inDays || first.inDays, keptDay: isKept ? own.keptDay : undefined }
}
