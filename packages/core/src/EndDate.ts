/**
 * End dates of memberships: the two spellings a client may use, the calendar, and the rule that a
 * new end date lies in the future.
 */

import type { Branded } from "effect/Brand"
import * as Data from "effect/Data"
import * as Result from "effect/Result"
import { nominal, refined } from "./internal/refined.ts"
import { rememberLatest } from "./internal/rememberLatest.ts"

/** An instant in milliseconds since 1970-01-01T00:00:00.000Z, in the years 0000 to 9999. */
export type EndDate = Branded<number, "@tenure/core/EndDate">

const earliest = -62_167_219_200_000
const latest = 253_402_300_799_999
const smallest13Digits = 1_000_000_000_000
const largest13Digits = 9_999_999_999_999

// The Gregorian calendar repeats every 400 years. Moving the year there and back steers clear of
// Date.UTC, which reads the years 0 to 99 as 1900 to 1999.
const millisPer400Years = 146_097 * 86_400_000

const daysInMonth = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

const isLeapYear = (year: number): boolean =>
  year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

const lengthOfMonth = (year: number, month: number): number =>
  month === 2 && isLeapYear(year) ? 29 : (daysInMonth[month - 1] ?? 0)

/** Whole milliseconds within the years 0000 to 9999. Throws on any other number. */
export const EndDate = refined<number, EndDate>(
  "end date",
  (instant) => Number.isInteger(instant) && instant >= earliest && instant <= latest,
)

const make = nominal<number, EndDate>()

/** The decimal number in `text` from `start` to `end`, or NaN where any character is no digit. */
const digits = (text: string, start: number, end: number): number => {
  let value = 0
  for (let index = start; index < end; index++) {
    const digit = text.charCodeAt(index) - 48
    if (digit < 0 || digit > 9) return NaN
    value = value * 10 + digit
  }
  return value
}

/** Whether `text` has the punctuation of `YYYY-MM-DDTHH:mm:ss.sssZ` where it belongs. */
const isPunctuated = (text: string): boolean =>
  text.length === 24 &&
  text[4] === "-" &&
  text[7] === "-" &&
  text[10] === "T" &&
  text[13] === ":" &&
  text[16] === ":" &&
  text[19] === "." &&
  text[23] === "Z"

const parseIso = (text: string): EndDate | undefined => {
  if (!isPunctuated(text)) return undefined
  const year = digits(text, 0, 4)
  const month = digits(text, 5, 7)
  const day = digits(text, 8, 10)
  const hour = digits(text, 11, 13)
  const minute = digits(text, 14, 16)
  const second = digits(text, 17, 19)
  const millisecond = digits(text, 20, 23)
  const isReal =
    !Number.isNaN(year + month + day + hour + minute + second + millisecond) &&
    day >= 1 &&
    day <= lengthOfMonth(year, month) &&
    hour <= 23 &&
    minute <= 59 &&
    second <= 59
  if (!isReal) return undefined
  const millis = Date.UTC(year + 400, month - 1, day, hour, minute, second, millisecond)
  return make(millis - millisPer400Years)
}

/**
 * Reads an end date in either of its two spellings, and nothing else.
 *
 * @param input - a 13-digit integer (Unix time in milliseconds), or a string
 *   `YYYY-MM-DDTHH:mm:ss.sssZ` that names a real instant of the years 0000 to 9999 in UTC
 * @returns the instant, or `undefined` where `input` is anything else
 * @example
 * ```ts
 * import * as EndDate from "@tenure/core/EndDate"
 *
 * EndDate.parse("2027-01-01T00:00:00.000Z") // 1798761600000
 * EndDate.parse(1798761600000) // 1798761600000
 * EndDate.parse("2027-02-30T00:00:00.000Z") // undefined
 * ```
 */
export const parse = (input: unknown): EndDate | undefined => {
  if (typeof input === "string") return parseIso(input)
  const isIn13Digits =
    typeof input === "number" &&
    Number.isInteger(input) &&
    input >= smallest13Digits &&
    input <= largest13Digits
  return isIn13Digits ? make(input) : undefined
}

/** The value is an end date in neither spelling. */
export class InvalidEndDate extends Data.TaggedError("InvalidEndDate")<{
  readonly message: string
}> {}

/** The value is an end date, but not a future one. */
export class EndDateNotInFuture extends Data.TaggedError("EndDateNotInFuture")<{
  readonly message: string
}> {}

// Refusals are common and say nothing of their cause: one instance each spares the stack traces.
const invalid = Result.fail(
  new InvalidEndDate({
    message: "an end date is a 13-digit Unix timestamp in milliseconds or YYYY-MM-DDTHH:mm:ss.sssZ",
  }),
)
const notInFuture = Result.fail(
  new EndDateNotInFuture({ message: "an end date has to be in the future" }),
)

/** Reads an end date as `parse` does, or fails with `InvalidEndDate`. */
export const decode = (input: unknown): Result.Result<EndDate, InvalidEndDate> => {
  const endDate = parse(input)
  return endDate === undefined ? invalid : Result.succeed(endDate)
}

/**
 * Reads an end date that lies strictly after `now` (milliseconds since the epoch), or fails with
 * `InvalidEndDate` or `EndDateNotInFuture`.
 */
export const decodeFuture = (
  input: unknown,
  now: number,
): Result.Result<EndDate, InvalidEndDate | EndDateNotInFuture> => {
  const endDate = parse(input)
  if (endDate === undefined) return invalid
  return endDate > now ? Result.succeed(endDate) : notInFuture
}

/** Prints an end date as `YYYY-MM-DDTHH:mm:ss.sssZ`. */
export const format = rememberLatest((endDate: EndDate): string => new Date(endDate).toISOString())
