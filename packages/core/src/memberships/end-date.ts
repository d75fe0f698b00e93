/** End dates: parsing them from JSON and from hosts, and the effective end date after bulk extensions. */

import type { Branded } from "effect/Brand"
import * as Data from "effect/Data"
import * as Result from "effect/Result"
import {
  type InstantInput,
  instantFormat,
  isInstant,
  latestInstant,
  parseInstant,
  readInstant,
} from "../base/time.ts"
import { branded, brandedWhere, memoizeLatest } from "../base/values.ts"

/** An instant in milliseconds since 1970-01-01T00:00:00.000Z, in the years 0000 to 9999. */
export type EndDate = Branded<number, "@tenure/core/EndDate">

/**
 * An end date as hosts pass it in process: a `Date`, text in the form `YYYY-MM-DDTHH:mm:ss.sssZ`, or
 * milliseconds since the epoch, in the years 0000 to 9999.
 */
export type EndDateInput = InstantInput

/** Brands whole milliseconds in the years 0000 to 9999. Throws a `TypeError` on any other number. */
export const EndDate = brandedWhere<number, EndDate>(
  "end date",
  "whole milliseconds since the epoch, in the years 0000 to 9999",
  isInstant,
)

const brand = branded<number, EndDate>()

/** The last end date: the last instant of the year 9999. */
export const lastEndDate = brand(latestInstant)

/** The numbers a client may send: 13 digits, in milliseconds since the epoch. */
export const timestampFormat = { minimum: 1_000_000_000_000, maximum: 9_999_999_999_999 }

const hasThirteenDigits = (input: unknown): input is number =>
  typeof input === "number" &&
  Number.isInteger(input) &&
  input >= timestampFormat.minimum &&
  input <= timestampFormat.maximum

const fromJson = (json: unknown): number | undefined => {
  if (typeof json === "string") return parseInstant(json)
  return hasThirteenDigits(json) ? json : undefined
}

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
  const millis = fromJson(json)
  return millis === undefined ? undefined : brand(millis)
}

/** The value is not an end date. */
export class InvalidEndDate extends Data.TaggedError("InvalidEndDate")<{
  readonly message: string
}> {}

/** The end date is not in the future. */
export class EndDateNotInFuture extends Data.TaggedError("EndDateNotInFuture")<{
  readonly message: string
}> {}

// These errors are common and their stack traces useless, so all calls share one instance of each.
const invalidJson = Result.fail(
  new InvalidEndDate({
    message:
      "The end date must be a 13-digit Unix timestamp in milliseconds or text such as 2027-01-01T00:00:00.000Z",
  }),
)
const invalidInput = Result.fail(
  new InvalidEndDate({ message: `The end date must be ${instantFormat}` }),
)
/** The error for an end date in the past. */
export const endDateNotInFuture = new EndDateNotInFuture({
  message: "The end date must be in the future",
})
const past = Result.fail(endDateNotInFuture)

/** Decodes an end date as `parse` does, or fails with `InvalidEndDate`. */
export const decodeEndDate = (json: unknown): Result.Result<EndDate, InvalidEndDate> => {
  const endDate = parseEndDate(json)
  return endDate === undefined ? invalidJson : Result.succeed(endDate)
}

/**
 * Converts an end date from the host, or fails with `InvalidEndDate`.
 * @example
 * ```ts
 * import { readEndDate } from "tenure/store"
 *
 * readEndDate(new Date("2027-01-01")) // succeeds with 1798761600000
 * readEndDate(0) // succeeds with 0, which is 1970-01-01T00:00:00.000Z
 * readEndDate("tomorrow") // fails with InvalidEndDate
 * ```
 */
export const readEndDate = (input: EndDateInput): Result.Result<EndDate, InvalidEndDate> => {
  const millis = readInstant(input)
  return millis === undefined ? invalidInput : Result.succeed(brand(millis))
}

/**
 * Converts an end date from the host. Fails with `InvalidEndDate`, or with `EndDateNotInFuture` unless
 * it is later than `now` (milliseconds since the epoch).
 */
export const readFutureEndDate = (
  input: EndDateInput,
  now: number,
): Result.Result<EndDate, InvalidEndDate | EndDateNotInFuture> => {
  const endDate = readEndDate(input)
  return Result.isFailure(endDate) || endDate.success > now ? endDate : past
}

/** Formats an end date as `YYYY-MM-DDTHH:mm:ss.sssZ`. */
export const formatEndDate = memoizeLatest((endDate: EndDate): string =>
  new Date(endDate).toISOString(),
)

/** The bulk modes: change every date, or only extend earlier ones. */
export const bulkModes = ["set", "neverShorten"] as const

/** A bulk extension's mode. */
export type BulkMode = (typeof bulkModes)[number]

/** The modes as JSON has them. */
export const bulkModeNames = {
  set: "set",
  neverShorten: "never_shorten",
} as const satisfies Record<BulkMode, string>

/** An end date with its sequence number in the project: the greater number is later. */
export interface OrderedEndDate {
  readonly endDate: EndDate
  readonly order: number
}
