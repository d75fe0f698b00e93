/**
 * End dates of memberships: what the API accepts in JSON, what hosts pass in process, and the rule
 * that a new end date lies in the future.
 */

import type { Branded } from "effect/Brand"
import * as Data from "effect/Data"
import * as Result from "effect/Result"
import * as Instant from "../base/Instant.ts"
import { memoizeLast } from "../base/MemoizeLast.ts"
import { nominal, refined } from "../base/Refined.ts"

/** An instant in milliseconds since 1970-01-01T00:00:00.000Z, in the years 0000 to 9999. */
export type EndDate = Branded<number, "@tenure/core/EndDate">

/**
 * An end date as hosts pass it in process: a `Date`, text in the form `YYYY-MM-DDTHH:mm:ss.sssZ`, or
 * milliseconds since the epoch, in the years 0000 to 9999.
 */
export type Input = Instant.Input

/** Brands whole milliseconds in the years 0000 to 9999. Throws a `TypeError` on any other number. */
export const EndDate = refined<number, EndDate>(
  "end date",
  "whole milliseconds since the epoch, in the years 0000 to 9999",
  Instant.isInstant,
)

const brand = nominal<number, EndDate>()

/** The numbers that a client may send: those of 13 digits, in milliseconds since the epoch. */
export const timestamps = { minimum: 1_000_000_000_000, maximum: 9_999_999_999_999 }

const hasThirteenDigits = (input: unknown): input is number =>
  typeof input === "number" &&
  Number.isInteger(input) &&
  input >= timestamps.minimum &&
  input <= timestamps.maximum

const fromJson = (json: unknown): number | undefined => {
  if (typeof json === "string") return Instant.parse(json)
  return hasThirteenDigits(json) ? json : undefined
}

/**
 * Parses an end date by the rule of the API.
 *
 * @param json - a 13-digit integer (Unix time in milliseconds), or a string in the form
 *   `YYYY-MM-DDTHH:mm:ss.sssZ` that names an existing instant of the years 0000 to 9999 in UTC
 * @returns the end date, or `undefined` if `json` is anything else
 * @example
 * ```ts
 * import * as EndDate from "tenure/EndDate"
 *
 * EndDate.parse("2027-01-01T00:00:00.000Z") // 1798761600000
 * EndDate.parse(1798761600000) // 1798761600000
 * EndDate.parse("2027-02-30T00:00:00.000Z") // undefined
 * ```
 */
export const parse = (json: unknown): EndDate | undefined => {
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

// These errors are common and their stack traces useless, so one instance of each serves every call.
const invalidJson = Result.fail(
  new InvalidEndDate({
    message:
      "The end date must be a 13-digit Unix timestamp in milliseconds or text such as 2027-01-01T00:00:00.000Z",
  }),
)
const invalidInput = Result.fail(
  new InvalidEndDate({ message: `The end date must be ${Instant.expected}` }),
)
/** The error of an end date that is not in the future. */
export const notInFuture = new EndDateNotInFuture({ message: "The end date must be in the future" })
const past = Result.fail(notInFuture)

/** Decodes an end date as `parse` does, or fails with `InvalidEndDate`. */
export const decode = (json: unknown): Result.Result<EndDate, InvalidEndDate> => {
  const endDate = parse(json)
  return endDate === undefined ? invalidJson : Result.succeed(endDate)
}

/**
 * Converts what a host passes in process, or fails with `InvalidEndDate`.
 *
 * @example
 * ```ts
 * import * as EndDate from "tenure/EndDate"
 *
 * EndDate.fromInput(new Date("2027-01-01")) // succeeds with 1798761600000
 * EndDate.fromInput(0) // succeeds with 0, which is 1970-01-01T00:00:00.000Z
 * EndDate.fromInput("tomorrow") // fails with InvalidEndDate
 * ```
 */
export const fromInput = (input: Input): Result.Result<EndDate, InvalidEndDate> => {
  const millis = Instant.fromInput(input)
  return millis === undefined ? invalidInput : Result.succeed(brand(millis))
}

/**
 * Converts what a host passes in process, or fails with `InvalidEndDate`, or with
 * `EndDateNotInFuture` unless it is later than `now` (milliseconds since the epoch).
 */
export const futureFromInput = (
  input: Input,
  now: number,
): Result.Result<EndDate, InvalidEndDate | EndDateNotInFuture> => {
  const endDate = fromInput(input)
  return Result.isFailure(endDate) || endDate.success > now ? endDate : past
}

/** Formats an end date as `YYYY-MM-DDTHH:mm:ss.sssZ`. */
export const format = memoizeLast((endDate: EndDate): string => new Date(endDate).toISOString())
