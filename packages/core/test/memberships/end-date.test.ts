import * as Result from "effect/Result"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { instantPattern } from "../../src/base/time.ts"
import {
  EndDate,
  type EndDateInput,
  decodeEndDate,
  formatEndDate,
  parseEndDate,
  readEndDate,
  readFutureEndDate,
} from "../../src/memberships/end-date.ts"

const secondsPerDay = 86_400

/** Days from 1970-01-01, by Howard Hinnant's `days_from_civil`, which does not use `Date`. */
const daysFromCivil = (year: number, month: number, day: number): number => {
  const y = month <= 2 ? year - 1 : year
  const era = Math.floor(y / 400)
  const yearOfEra = y - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

/** Whether a day exists. */
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

/** The expected result for a string, by a regular expression and the calendar above. */
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

describe("the ISO format of the API", () => {
  it("is parsed to the instant that the calendar says, for every existing date and time", () => {
    fc.assert(
      fc.property(realFields, (fields) => {
        expect(parseEndDate(print(fields))).toBe(instantOf(fields))
      }),
    )
  })

  it("has the pattern that the OpenAPI document shows", () => {
    fc.assert(
      fc.property(realFields, (fields) => {
        expect(print(fields)).toMatch(instantPattern)
        for (const text of [` ${print(fields)}`, `${print(fields)} `]) {
          expect(text).not.toMatch(instantPattern)
        }
      }),
    )
  })

  it("is formatted as it was parsed", () => {
    fc.assert(
      fc.property(realFields, (fields) => {
        const endDate = parseEndDate(print(fields))
        expect(endDate !== undefined && formatEndDate(endDate)).toBe(print(fields))
      }),
    )
  })

  it("accepts the days of the years 0000 to 9999 that exist, and no others", () => {
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
        if (parseEndDate(text) !== instant) expect.fail(text)
      }
    }
  })

  it("knows the length of every month", () => {
    for (const year of [1900, 2000, 2023, 2024]) {
      for (let month = 0; month <= 13; month++) {
        for (let day = 0; day <= 32; day++) {
          const text = `${year}-${pad(month, 2)}-${pad(day, 2)}T12:00:00.000Z`
          expect([text, parseEndDate(text) !== undefined]).toEqual([text, exists(year, month, day)])
        }
      }
    }
  })

  it("is valid or not by format and calendar alone, after any edit of one character", () => {
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
        expect(parseEndDate(edited)).toBe(instantByTheRule(edited))
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
  ])("rejects %j", (text) => {
    expect(parseEndDate(text)).toBeUndefined()
  })
})

describe("the numeric format of the API", () => {
  it.each([1_000_000_000_000, 9_999_999_999_999, 1_798_761_600_000])("accepts %d", (number) => {
    expect(parseEndDate(number)).toBe(number)
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
  ])("rejects %d", (number) => {
    expect(parseEndDate(number)).toBeUndefined()
  })

  it("accepts a number if and only if it is whole and has thirteen digits", () => {
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
        expect(parseEndDate(value) !== undefined).toBe(isThirteenDigits)
      }),
    )
  })
})

describe("the two formats of the API", () => {
  it("agree on every instant that both can express", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1e12, max: 1e13 - 1 }), (instant) => {
        expect(parseEndDate(new Date(instant).toISOString())).toBe(parseEndDate(instant))
      }),
    )
  })

  it("accept only strings and numbers, and never throw", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const endDate = parseEndDate(value)
        if (typeof value !== "string" && typeof value !== "number") {
          expect(endDate).toBeUndefined()
        }
      }),
    )
  })
})

const earliest = Date.UTC(2000, 0, 1) - 5 * 146_097 * secondsPerDay * 1000
const latest = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

const instants = fc.integer({ min: earliest, max: latest })

describe("an end date that the API cannot parse", () => {
  it.each(["2027-02-30T00:00:00.000Z", 999_999_999_999, null])("fails to decode: %j", (json) => {
    expect(Result.getFailure(decodeEndDate(json))).toMatchObject({
      value: {
        _tag: "InvalidEndDate",
        message:
          "The end date must be a 13-digit Unix timestamp in milliseconds or text such as 2027-01-01T00:00:00.000Z",
      },
    })
  })
})

describe("the constructor of end dates", () => {
  it("accepts the years 0000 to 9999, from the first millisecond to the last", () => {
    expect([EndDate(earliest), EndDate(latest)]).toEqual([earliest, latest])
  })

  it.each([earliest - 1, latest + 1, 0.5, NaN])("throws a TypeError on %d", (number) => {
    expect(() => EndDate(number)).toThrow(
      new TypeError(
        "invalid end date: expected whole milliseconds since the epoch, in the years 0000 to 9999",
      ),
    )
  })
})

describe("end dates passed in process", () => {
  it("may be a Date or text of any year from 0000 to 9999, or milliseconds from 1973 on", () => {
    fc.assert(
      fc.property(instants, (instant) => {
        const date = new Date(instant)
        for (const input of [date, date.toISOString()]) {
          expect(readEndDate(input)).toEqual(Result.succeed(instant))
        }
        expect(Result.isSuccess(readEndDate(instant))).toBe(instant >= Date.UTC(1973, 0, 1))
      }),
    )
  })

  it.each<readonly [string, number, string]>([
    ["seconds", 1_800_000_000, "milliseconds, not seconds"],
    ["seconds with a fraction", 1_800_000_000.25, "milliseconds, not seconds"],
    ["0, as of null", 0, "milliseconds, not seconds"],
    ["the last millisecond of 1972", Date.UTC(1973, 0, 1) - 1, "milliseconds, not seconds"],
    ["microseconds", 1_800_000_000_000_000, "milliseconds, not microseconds"],
    ["nanoseconds", 1_800_000_000_000_000_000, "milliseconds, not nanoseconds"],
    ["a bigint", JSON.parse("0") || BigInt(1_800_000_000_000), "not as a bigint"],
    ["digits", JSON.parse('"1800000000000"'), "not as text"],
    ["a day", JSON.parse('"2027-01-31"'), "it begins at 2027-01-31T00:00:00.000Z"],
  ])("say which notation is right in place of %s", (_name, input, hint) => {
    expect(Result.getFailure(readEndDate(input))).toMatchObject({
      value: { _tag: "InvalidEndDate", message: expect.stringContaining(hint) },
    })
  })

  it("are accepted again after they were decoded", () => {
    fc.assert(
      fc.property(instants, (instant) => {
        const once = readEndDate(new Date(instant))
        fc.pre(instant >= Date.UTC(1973, 0, 1))
        expect(Result.flatMap(once, readEndDate)).toEqual(once)
      }),
    )
  })

  it("are every end date that the API accepts", () => {
    fc.assert(
      fc.property(
        fc.oneof(realFields.map(print), fc.integer({ min: 1e12, max: 1e13 - 1 })),
        (input) => {
          expect(readEndDate(input)).toEqual(decodeEndDate(input))
        },
      ),
    )
  })

  it.each<readonly [string, EndDateInput]>([
    ["an invalid Date", new Date("tomorrow")],
    ["the millisecond before the year 0000", earliest - 1],
    ["the millisecond after the year 9999", latest + 1],
    ["a Date after the year 9999", new Date(latest + 1)],
    ["NaN", NaN],
    ["Infinity", Infinity],
    ["a fraction of a millisecond", 1_798_761_600_000.5],
    ["a day that does not exist", "2027-02-30T00:00:00.000Z"],
    ["text without milliseconds", "2027-01-01T00:00:00Z"],
    ["digits in text", "1798761600000"],
    ["null", JSON.parse("null")],
    ["true", JSON.parse("true")],
    ["an object", JSON.parse("{}")],
    ["an array", JSON.parse("[1798761600000]")],
  ])("are invalid as %s, with a message that says what is valid", (_name, input) => {
    expect(Result.getFailure(readEndDate(input))).toMatchObject({
      value: {
        _tag: "InvalidEndDate",
        message: expect.stringMatching(
          /^The end date must be a valid Date, text such as 2027-01-01T00:00:00.000Z, or whole milliseconds since the epoch, in the years 0000 to 9999; received .+$/,
        ),
      },
    })
  })
})

describe("the future rule", () => {
  it("accepts an end date if and only if it is later than now", () => {
    const endDate = 1_800_000_000_000
    const decode = (now: number) => readFutureEndDate(endDate, now)
    expect(decode(endDate - 1)).toEqual(Result.succeed(endDate))
    for (const now of [endDate, endDate + 1]) {
      expect(Result.getFailure(decode(now))).toMatchObject({
        value: {
          _tag: "EndDateNotInFuture",
          message: "The end date must be in the future",
        },
      })
    }
  })

  it("applies only to valid end dates", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.integer(), (value, now) => {
        const input = JSON.parse(JSON.stringify(value))
        fc.pre(Result.isFailure(readEndDate(input)))
        expect(readFutureEndDate(input, now)).toEqual(readEndDate(input))
      }),
    )
  })
})
