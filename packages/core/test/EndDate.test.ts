import * as EndDate from "@tenure/core/EndDate"
import * as Result from "effect/Result"
import fc from "fast-check"
import { describe, expect, it } from "vitest"

const secondsPerDay = 86_400

/** Days from 1970-01-01, by Howard Hinnant's "days from civil": a computation independent of Date. */
const daysFromCivil = (year: number, month: number, day: number): number => {
  const y = month <= 2 ? year - 1 : year
  const era = Math.floor(y / 400)
  const yearOfEra = y - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

/** Whether a day exists: the day after the one before it, and not one of the next month. */
const exists = (year: number, month: number, day: number): boolean => {
  const lengthOfMonth =
    (month === 12 ? daysFromCivil(year + 1, 1, 1) : daysFromCivil(year, month + 1, 1)) -
    daysFromCivil(year, month, 1)
  return month >= 1 && month <= 12 && day >= 1 && day <= lengthOfMonth
}

const pad = (value: number, width: number): string => String(value).padStart(width, "0")

interface Fields {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly millisecond: number
}

const print = (f: Fields): string =>
  `${pad(f.year, 4)}-${pad(f.month, 2)}-${pad(f.day, 2)}T${pad(f.hour, 2)}:${pad(f.minute, 2)}:${pad(f.second, 2)}.${pad(f.millisecond, 3)}Z`

const instantOf = (f: Fields): number =>
  (daysFromCivil(f.year, f.month, f.day) * secondsPerDay +
    f.hour * 3600 +
    f.minute * 60 +
    f.second) *
    1000 +
  f.millisecond

const anyFields = fc.record({
  year: fc.integer({ min: 0, max: 9999 }),
  month: fc.integer({ min: 1, max: 12 }),
  day: fc.integer({ min: 1, max: 31 }),
  hour: fc.integer({ min: 0, max: 23 }),
  minute: fc.integer({ min: 0, max: 59 }),
  second: fc.integer({ min: 0, max: 59 }),
  millisecond: fc.integer({ min: 0, max: 999 }),
})

const realFields = anyFields.filter(({ day, month, year }) => exists(year, month, day))

/** The rule for a string, read from its fields by a regular expression and the calendar above. */
const instantByTheRule = (text: string): number | undefined => {
  const match = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})\.(\d{3})Z$/.exec(text)
  if (match === null) return undefined
  const [year, month, day, hour, minute, second, millisecond] = match.slice(1).map(Number)
  if (
    year === undefined ||
    month === undefined ||
    day === undefined ||
    hour === undefined ||
    minute === undefined ||
    second === undefined ||
    millisecond === undefined
  ) {
    return undefined
  }
  return exists(year, month, day) && hour <= 23 && minute <= 59 && second <= 59
    ? instantOf({ year, month, day, hour, minute, second, millisecond })
    : undefined
}

describe("the ISO format", () => {
  it("names the instant that the calendar says, for every real date and time", () => {
    fc.assert(
      fc.property(realFields, (fields) => {
        expect(EndDate.parse(print(fields))).toBe(instantOf(fields))
      }),
    )
  })

  it("round-trips: what was read prints as it was written", () => {
    fc.assert(
      fc.property(realFields, (fields) => {
        const endDate = EndDate.parse(print(fields))
        expect(endDate !== undefined && EndDate.format(endDate)).toBe(print(fields))
      }),
    )
  })

  it("knows every day of the years 0000 to 9999, and no other", () => {
    for (let year = 0; year <= 9999; year++) {
      for (const [month, day] of [
        [2, 28],
        [2, 29],
        [2, 30],
        [12, 31],
      ] as const) {
        const text = `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}T00:00:00.000Z`
        const instant = exists(year, month, day)
          ? daysFromCivil(year, month, day) * secondsPerDay * 1000
          : undefined
        if (EndDate.parse(text) !== instant) expect.fail(text)
      }
    }
  })

  it("knows the length of every month", () => {
    for (const year of [1900, 2000, 2023, 2024]) {
      for (let month = 0; month <= 13; month++) {
        for (let day = 0; day <= 32; day++) {
          const text = `${year}-${pad(month, 2)}-${pad(day, 2)}T12:00:00.000Z`
          expect([text, EndDate.parse(text) !== undefined]).toEqual([
            text,
            exists(year, month, day),
          ])
        }
      }
    }
  })

  it("is judged by format and calendar alone after any edit of one character", () => {
    const character = fc.oneof(
      fc.constantFrom(..."0123456789-:.TZtz+ ,/\u0660\uFF11\u00A0\u0000"),
      fc.string({ minLength: 1, maxLength: 1 }),
    )
    const edit = fc.oneof(
      fc.record({ kind: fc.constant("replace" as const), character }),
      fc.record({ kind: fc.constant("insert" as const), character }),
      fc.record({ kind: fc.constant("delete" as const), character }),
    )
    fc.assert(
      fc.property(realFields, edit, fc.nat({ max: 24 }), (fields, change, at) => {
        const text = print(fields)
        const edited =
          text.slice(0, at) +
          (change.kind === "delete" ? "" : change.character) +
          text.slice(change.kind === "insert" ? at : at + 1)
        expect(EndDate.parse(edited)).toBe(instantByTheRule(edited))
      }),
      { numRuns: 2000 },
    )
  })

  it.each([
    "2027-01-01T00:00:00Z",
    "2027-01-01T00:00:00.00Z",
    "2027-01-01T00:00:00.0000Z",
    "2027-01-01T00:00:00.000z",
    "2027-01-01t00:00:00.000Z",
    "2027-01-01 00:00:00.000Z",
    "2027-01-01T00:00:00.000",
    "2027-01-01T00:00:00.000+00:00",
    " 2027-01-01T00:00:00.000Z",
    "2027-01-01T00:00:00.000Z\n",
    "+002027-01-01T00:00:00.000Z",
    "2027-02-30T00:00:00.000Z",
    "2027-01-01T24:00:00.000Z",
    "2027-01-01T23:59:60.000Z",
    "2027-1-1T0:0:0.000Z",
    "1798761600000",
    "",
  ])("refuses %j", (text) => {
    expect(EndDate.parse(text)).toBeUndefined()
  })
})

describe("the numeric format", () => {
  it.each([1_000_000_000_000, 9_999_999_999_999, 1_798_761_600_000])("takes %d", (number) => {
    expect(EndDate.parse(number)).toBe(number)
  })

  it.each([
    999_999_999_999,
    10_000_000_000_000,
    1_798_761_600_000.5,
    -1_798_761_600_000,
    0,
    -0,
    NaN,
    Infinity,
    Number.MAX_SAFE_INTEGER,
    1e300,
  ])("refuses %d", (number) => {
    expect(EndDate.parse(number)).toBeUndefined()
  })

  it("takes a number if and only if it is whole and has thirteen digits", () => {
    const number = fc.oneof(
      fc.double(),
      fc.integer(),
      fc.maxSafeInteger(),
      fc.integer({ min: 0, max: 2000 }).map((n) => 1e12 - 1000 + n),
      fc.integer({ min: 0, max: 2000 }).map((n) => 1e13 - 1000 + n),
    )
    fc.assert(
      fc.property(number, (value) => {
        const isThirteenDigits = /^[1-9][0-9]{12}$/.test(String(value))
        expect(EndDate.parse(value) !== undefined).toBe(isThirteenDigits)
      }),
    )
  })
})

describe("both formats", () => {
  it("agree on every instant that both can say", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1e12, max: 1e13 - 1 }), (instant) => {
        expect(EndDate.parse(new Date(instant).toISOString())).toBe(EndDate.parse(instant))
      }),
    )
  })

  it("throw on no JSON value, and take nothing but strings and numbers", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const endDate = EndDate.parse(value)
        if (typeof value !== "string" && typeof value !== "number") {
          expect(endDate).toBeUndefined()
        }
      }),
    )
  })
})

describe("the future rule", () => {
  it("is strict at the millisecond", () => {
    const endDate = 1_800_000_000_000
    const decode = (now: number) => EndDate.decodeFuture(endDate, now)
    expect(decode(endDate - 1)).toEqual(Result.succeed(endDate))
    for (const now of [endDate, endDate + 1]) {
      expect(Result.getFailure(decode(now))).toMatchObject({
        value: { _tag: "EndDateNotInFuture" },
      })
    }
  })

  it("comes after the format: what is no end date is not called past", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.integer(), (value, now) => {
        const isEndDate = EndDate.parse(value) !== undefined
        const decoded = EndDate.decodeFuture(value, now)
        if (!isEndDate && Result.isFailure(decoded)) {
          expect(decoded.failure._tag).toBe("InvalidEndDate")
        } else {
          expect(isEndDate).toBe(true)
        }
      }),
    )
  })
})
