/** Instants of the years 0000 to 9999, in whole milliseconds since the epoch. */

/**
 * An instant as hosts pass it: a `Date`, text in the form `YYYY-MM-DDTHH:mm:ss.sssZ`, or milliseconds
 * since the epoch.
 */
export type Input = Date | string | number

/** The form of text. Not all text in this form is an instant: a day may not exist. */
export const pattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/u

/** What a valid `Input` is, for error messages. */
export const expected =
  "a valid Date, text such as 2027-01-01T00:00:00.000Z, or whole milliseconds since the epoch, in the years 0000 to 9999"

const earliest = -62_167_219_200_000
const latest = 253_402_300_799_999

// The Gregorian calendar repeats every 400 years. Adding 400 years and subtracting them again avoids
// a special case of Date.UTC, which takes the years 0 to 99 as 1900 to 1999.
const millisPer400Years = 146_097 * 86_400_000

const daysInMonth = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

const isLeapYear = (year: number): boolean =>
  year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

const lengthOfMonth = (year: number, month: number): number =>
  month === 2 && isLeapYear(year) ? 29 : (daysInMonth[month - 1] ?? 0)

/** The decimal number in `text` from `start` to `end`, or NaN if a character is not a digit. */
const digits = (text: string, start: number, end: number): number => {
  let value = 0
  for (let index = start; index < end; index++) {
    const digit = text.charCodeAt(index) - 48
    if (digit < 0 || digit > 9) return NaN
    value = value * 10 + digit
  }
  return value
}

/** Tells whether `text` has the length and the punctuation of `YYYY-MM-DDTHH:mm:ss.sssZ`. */
const isPunctuated = (text: string): boolean =>
  text.length === 24 &&
  text[4] === "-" &&
  text[7] === "-" &&
  text[10] === "T" &&
  text[13] === ":" &&
  text[16] === ":" &&
  text[19] === "." &&
  text[23] === "Z"

/**
 * Parses text in the form `YYYY-MM-DDTHH:mm:ss.sssZ`. Returns `undefined` if it has another form or
 * names a day or a time that does not exist.
 */
export const parse = (text: string): number | undefined => {
  if (!isPunctuated(text)) return undefined
  const year = digits(text, 0, 4)
  const month = digits(text, 5, 7)
  const day = digits(text, 8, 10)
  const hour = digits(text, 11, 13)
  const minute = digits(text, 14, 16)
  const second = digits(text, 17, 19)
  const millisecond = digits(text, 20, 23)
  const exists =
    !Number.isNaN(year + month + day + hour + minute + second + millisecond) &&
    day >= 1 &&
    day <= lengthOfMonth(year, month) &&
    hour <= 23 &&
    minute <= 59 &&
    second <= 59
  if (!exists) return undefined
  const millis = Date.UTC(year + 400, month - 1, day, hour, minute, second, millisecond)
  return millis - millisPer400Years
}

/** Tells whether a number is whole milliseconds in the years 0000 to 9999. */
export const isInstant = (millis: number): boolean =>
  Number.isInteger(millis) && millis >= earliest && millis <= latest

/** Converts what a host passes to milliseconds. Returns `undefined` if it is invalid. */
export const fromInput = (input: Input): number | undefined => {
  if (typeof input === "string") return parse(input)
  const millis = input instanceof Date ? input.getTime() : input
  return isInstant(millis) ? millis : undefined
}
