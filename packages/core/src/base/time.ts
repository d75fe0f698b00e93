/** Time: units as brands, instants in the years 0000 to 9999, and two clocks. */

import type { Branded } from "effect/Brand"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { branded } from "./values.ts"

/** An instant since the epoch, or a duration, in milliseconds. */
export type Millis = Branded<number, "@tenure/core/Millis">

/** An instant since the epoch, or a duration, in whole microseconds. */
export type Micros = Branded<number, "@tenure/core/Micros">

/** Brands a number as milliseconds. */
export const Millis = branded<number, Millis>()

/** Brands a number as microseconds. */
export const Micros = branded<number, Micros>()

/**
 * Brands a function's results as microseconds, at no cost for each call.
 */
export function brandMicros<Args extends ReadonlyArray<unknown>>(
  f: (...args: Args) => number,
): (...args: Args) => Micros
export function brandMicros(f: () => number): () => number {
  return f
}

/** Converts milliseconds to microseconds. */
export const toMicros = brandMicros((millis: Millis) => millis * 1000)

/** Converts microseconds to seconds, rounded up. */
export const toSeconds = (micros: Micros): number => Math.ceil(micros / 1_000_000)

/** Adds two durations, or a duration to an instant. */
export const addMicros = brandMicros((one: Micros, other: Micros) => one + other)

/** Subtracts a duration, or an earlier instant. */
export const subtractMicros = brandMicros((one: Micros, other: Micros) => one - other)

/**
 * An instant as hosts pass it: a `Date`, text in the form `YYYY-MM-DDTHH:mm:ss.sssZ`, or milliseconds
 * since the epoch. Numbers before 1973 are refused, because they are seconds by mistake.
 */
export type InstantInput = Date | string | number

/** The text form. Not all text in this form is an instant: a day may not exist. */
export const instantPattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/u

/** The form of a valid `InstantInput`, for error messages. */
export const instantFormat =
  "a valid Date, text such as 2027-01-01T00:00:00.000Z, or whole milliseconds since the epoch, in the years 0000 to 9999"

/** The first instant allowed as a number. Smaller numbers, read as seconds, are dates up to the year 4970. */
const earliestNumber = 94_694_400_000

/** The first instant in the year 0000. */
export const earliestInstant = -62_167_219_200_000

/** The last instant in the year 9999. */
export const latestInstant = 253_402_300_799_999

// The Gregorian calendar repeats every 400 years. Adding 400 years and subtracting them again avoids a
// special case in Date.UTC, because it takes the years 0 to 99 as 1900 to 1999.
const millisPer400Years = 146_097 * 86_400_000

/**
 * Returns a UTC day's beginning, in milliseconds since the epoch.
 *
 * @param month - from 0 for January
 */
export const utcMillis = (year: number, month: number, day: number): number =>
  Date.UTC(year + 400, month, day) - millisPer400Years

const daysInMonth = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

const isLeapYear = (year: number): boolean =>
  year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

/** The days in a month, from 1 for January. */
export const lengthOfMonth = (year: number, month: number): number =>
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

/** Tells whether `text` is as long as `YYYY-MM-DDTHH:mm:ss.sssZ` and has its punctuation. */
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
 * names a nonexistent day or time.
 */
export const parseInstant = (text: string): number | undefined => {
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
  return utcMillis(year, month - 1, day) + ((hour * 60 + minute) * 60 + second) * 1000 + millisecond
}

/** Tells whether a number is whole milliseconds in the years 0000 to 9999. */
export const isInstant = (millis: number): boolean =>
  Number.isInteger(millis) && millis >= earliestInstant && millis <= latestInstant

/** Converts the host's instant to milliseconds. Returns `undefined` if it is invalid. */
export const readInstant = (input: InstantInput): number | undefined => {
  if (typeof input === "string") return parseInstant(input)
  const millis = input instanceof Date ? input.getTime() : input
  return isInstant(millis) && (input instanceof Date || millis >= earliestNumber)
    ? millis
    : undefined
}

/** Returns an instant, perhaps sent as text by a client, in a form valid for hosts. */
export const toInstantInput = (millis: number): InstantInput =>
  millis < earliestNumber ? new Date(millis) : millis

const dayPattern = /^\d{4}-\d{2}-\d{2}$/

const numberHint = (given: number): string => {
  if (given >= earliestInstant && given < earliestNumber)
    return ": numbers are milliseconds, not seconds; an instant before 1973 is written as text"
  const isTooGreat = given > latestInstant
  if (isTooGreat && given / 1000 <= latestInstant)
    return ": numbers are milliseconds, not microseconds"
  return isTooGreat && given / 1_000_000 <= latestInstant
    ? ": numbers are milliseconds, not nanoseconds"
    : ""
}

/** Tells whether a value is a day, which is no instant. */
export const isDayText = (given: unknown): boolean =>
  typeof given === "string" && dayPattern.test(given)

/** Names the notation probably meant by an invalid instant, and the right one; otherwise `""`. */
export const instantHint = (given: unknown): string => {
  if (typeof given === "number") return numberHint(given)
  if (typeof given === "bigint") return ": milliseconds are passed as a number, not as a bigint"
  if (typeof given !== "string") return ""
  if (dayPattern.test(given)) return `: a day is no instant; it begins at ${given}T00:00:00.000Z`
  return /^-?\d+$/.test(given) ? ": milliseconds are passed as a number, not as text" : ""
}

// Tests in hosts without Effect may replace the runtime's timers.
const monotonicNanos = (): bigint => BigInt(Math.round(performance.now() * 1_000_000))

/** A clock with monotonic time readable without big integers, because each request reads it often. */
export interface MonotonicClock extends Clock.Clock {
  /** Returns the monotonic time in milliseconds, with fractions. */
  readonly monotonicMillisUnsafe: () => number
  /**
   * Sleeps between two polls.
   *
   * @param dueAt - returns when a poll finds something, in milliseconds since the epoch. A clock moved
   *   by a program, such as a test clock, jumps over the end of the sleep, but not over this time
   */
  readonly sleepPoll: (millis: number, dueAt: () => number) => Effect.Effect<void>
  /** Sleeps so that others go first. A clock moved by a program does not wait until it is moved. */
  readonly sleepAside: (millis: number) => Effect.Effect<void>
}

/** Tells whether a clock belongs to a host without Effect. */
const isMonotonicClock = (clock: Clock.Clock): clock is MonotonicClock =>
  "monotonicMillisUnsafe" in clock

/** Sleeps by a timer that does not keep the process running. */
const sleepLightly = (millis: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    // Browsers and workers have numbers for timers, and no process.
    if (Predicate.hasProperty(timer, "unref") && typeof timer.unref === "function") timer.unref()
    return Effect.sync(() => clearTimeout(timer))
  })

/**
 * Makes a clock that asks the global `performance` for the monotonic time at each call. Effect's clock
 * keeps the function it found when loaded, so a test's fake timers do not move it.
 */
const make = (clock: Clock.Clock): MonotonicClock => ({
  currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
  currentTimeMillis: clock.currentTimeMillis,
  currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
  currentTimeNanos: clock.currentTimeNanos,
  monotonicMillisUnsafe: () => performance.now(),
  monotonicTimeNanosUnsafe: monotonicNanos,
  monotonicTimeNanos: Effect.sync(monotonicNanos),
  sleep: (duration) => clock.sleep(duration),
  sleepPoll: sleepLightly,
  sleepAside: (millis) => clock.sleep(Duration.millis(millis)),
})

const never = (): number => Infinity

/**
 * Sleeps between two polls. Hosts without Effect may forget to close Tenure: these sleeps alone do not
 * keep their process running.
 *
 * @param dueAt - returns when a poll finds something, in milliseconds since the epoch, if this process
 *   knows
 */
export const sleepPoll = (millis: number, dueAt: () => number = never): Effect.Effect<void> =>
  Clock.clockWith((clock) =>
    isMonotonicClock(clock) ? clock.sleepPoll(millis, dueAt) : Effect.sleep(millis),
  )

/** Sleeps so that others go first. A test's time may stand still meanwhile. */
export const sleepAside = (millis: number): Effect.Effect<void> =>
  Clock.clockWith((clock) =>
    isMonotonicClock(clock) ? clock.sleepAside(millis) : Effect.sleep(millis),
  )

/** The running effect's clock, with such a monotonic time. */
export const currentMonotonicClock: Effect.Effect<MonotonicClock> = Clock.clockWith((clock) =>
  Effect.succeed(make(clock)),
)

/**
 * The time by both clocks. Durations are measured with the monotonic clock, because nobody can set it;
 * times read by others, such as an event's, come from the wall clock.
 */
export interface Moment {
  /** Whole milliseconds since an unknown start, by the monotonic clock. */
  readonly tick: Millis
  /** Milliseconds since the epoch, by the wall clock. */
  readonly unix: Millis
}

/** Reads the monotonic clock: milliseconds, to the microsecond. */
export const readMonotonic = (clock: Clock.Clock): number =>
  isMonotonicClock(clock)
    ? clock.monotonicMillisUnsafe()
    : // A number has no room for as many nanoseconds as a clock may have counted.
      Number(clock.monotonicTimeNanosUnsafe() / 1000n) / 1000

/** Reads the monotonic clock: whole milliseconds. */
export const readMonotonicMillis = (clock: Clock.Clock): Millis =>
  Millis(Math.floor(readMonotonic(clock)))

/** Reads the wall clock. The monotonic one was read already, by `precise`. */
export const momentAt = (millis: number, clock: Clock.Clock): Moment => ({
  tick: Millis(Math.floor(millis)),
  unix: Millis(clock.currentTimeMillisUnsafe()),
})

/** Reads both clocks. */
const readMoment = (clock: Clock.Clock): Moment => momentAt(readMonotonic(clock), clock)

/** The time by both clocks, now. */
export const currentMoment: Effect.Effect<Moment> = Effect.withFiberSucceed((fiber) =>
  readMoment(fiber.getRef(Clock.Clock)),
)

/** Milliseconds since the epoch by the wall clock, now, in fewer steps than `Clock.currentTimeMillis`. */
export const currentUnixMillis: Effect.Effect<Millis> = Effect.withFiberSucceed((fiber) =>
  Millis(fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()),
)

/** Makes an effect that begins with both clocks' times. */
export const withMoment = <A, E, R>(
  begin: (now: Moment) => Effect.Effect<A, E, R>,
): Effect.Effect<A, E, R> => Clock.clockWith((clock) => begin(readMoment(clock)))
