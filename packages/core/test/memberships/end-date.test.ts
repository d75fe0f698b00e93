import * as Result from "effect/Result"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type Ledger,
  applyChange,
  bulkDate,
  datesOf,
  drawChanges,
} from "../../../testing/src/stores/memberships/changes.ts"
import { instantPattern } from "../../src/base/time.ts"
import {
  type BulkChange,
  EndDate,
  type EndDateInput,
  type LoggedBulkExtension,
  type OrderedEndDate,
  adjust,
  adjustmentOf,
  composeAdjustments,
  composeLog,
  composeWith,
  decodeEndDate,
  effectiveEndDate,
  endDateNotInFuture,
  formatEndDate,
  parseEndDate,
  readEndDate,
} from "../../src/memberships/end-date.ts"
import { extension } from "../../src/memberships/extension-inputs.ts"
import { isTooLate } from "../../src/memberships/extensions.ts"
import { UserId } from "../../src/memberships/membership.ts"

const dayMillis = 86_400_000

/** Counts days from 1970-01-01 by Howard Hinnant's `days_from_civil`, without `Date`. */
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

const pad = (value: number, width = 2): string => String(value).padStart(width, "0")

/** An instant's year, month, day, hour, minute, second and millisecond. */
type Fields = readonly [number, number, number, number, number, number, number]

const print = ([year, month, day, hour, minute, second, millisecond]: Fields): string =>
  `${pad(year, 4)}-${pad(month)}-${pad(day)}T${pad(hour)}:${pad(minute)}:${pad(second)}.${pad(millisecond, 3)}Z`

const instantOf = ([year, month, day, hour, minute, second, millisecond]: Fields): number =>
  daysFromCivil(year, month, day) * dayMillis +
  ((hour * 60 + minute) * 60 + second) * 1000 +
  millisecond

const realFields = fc
  .tuple(
    fc.integer({ min: 0, max: 9999 }),
    fc.integer({ min: 1, max: 12 }),
    fc.integer({ min: 1, max: 31 }),
    fc.integer({ min: 0, max: 23 }),
    fc.integer({ min: 0, max: 59 }),
    fc.integer({ min: 0, max: 59 }),
    fc.integer({ min: 0, max: 999 }),
  )
  .filter(([year, month, day]) => exists(year, month, day))

/** The expected result for a string, by a regular expression and the calendar above. */
const instantByTheRule = (text: string): number | undefined => {
  const match = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})\.(\d{3})Z$/.exec(text)
  if (match === null) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, millisecond = 0] = match
    .slice(1)
    .map(Number)
  return exists(year, month, day) && hour <= 23 && minute <= 59 && second <= 59
    ? instantOf([year, month, day, hour, minute, second, millisecond])
    : undefined
}

describe("the ISO format of the API", () => {
  it("is parsed to the instant that the calendar says, and formatted as it was parsed", () => {
    fc.assert(
      fc.property(realFields, (fields) => {
        const text = print(fields)
        const endDate = parseEndDate(text)
        expect(endDate).toBe(instantOf(fields))
        expect(endDate !== undefined && formatEndDate(endDate)).toBe(text)
        // The OpenAPI document shows the pattern.
        const matching = [text, ` ${text}`, `${text} `].map((one) => instantPattern.test(one))
        expect(matching).toEqual([true, false, false])
      }),
    )
  })

  it("accepts the days of the years 0000 to 9999 that exist, and no others", () => {
    const check = (year: number, month: number, day: number): void => {
      const text = `${pad(year, 4)}-${pad(month)}-${pad(day)}T00:00:00.000Z`
      const isReal = exists(year, month, day)
      const instant = isReal ? daysFromCivil(year, month, day) * dayMillis : undefined
      if (parseEndDate(text) !== instant) expect.fail(text)
    }
    for (let year = 0; year <= 9999; year++) {
      for (const day of [28, 29, 30]) check(year, 2, day)
      check(year, 12, 31)
    }
    for (const year of [1900, 2000, 2023, 2024]) {
      for (let month = 0; month <= 13; month++) {
        for (let day = 0; day <= 32; day++) check(year, month, day)
      }
    }
  })

  it("is valid or not by format and calendar alone, after any edit of one character", () => {
    const character = fc.oneof(
      fc.constantFrom(..."0123456789-:.TZtz+ ,/\u0660\uFF11\u00A0\u0000\n"),
      fc.string({ minLength: 1, maxLength: 1 }),
    )
    const kind = fc.constantFrom("replace", "insert", "delete")
    const at = fc.nat({ max: 24 })
    fc.assert(
      fc.property(realFields, kind, character, at, (fields, edit, inserted, index) => {
        const text = print(fields)
        const edited =
          text.slice(0, index) +
          (edit === "delete" ? "" : inserted) +
          text.slice(edit === "insert" ? index : index + 1)
        expect(parseEndDate(edited)).toBe(instantByTheRule(edited))
      }),
      { numRuns: 3000 },
    )
  })

  it.each([
    "2027-01-01T00:00:00Z",
    "2027-01-01T00:00:00.000+00:00",
    "2027-01-01T00:00:00.000Z\n",
    "+002027-01-01T00:00:00.000Z",
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
  it.each([
    [1_000_000_000_000, true],
    [9_999_999_999_999, true],
    [999_999_999_999, false],
    [10_000_000_000_000, false],
    [1_798_761_600_000.5, false],
    [-1_798_761_600_000, false],
  ])("accepts %d: %s", (number, isValid) => {
    expect(parseEndDate(number)).toBe(isValid ? number : undefined)
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
        expect(parseEndDate(value)).toBe(isThirteenDigits ? value : undefined)
      }),
    )
  })
})

describe("an end date of the API", () => {
  it("is nothing but text or a number, and never throws", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const endDate = parseEndDate(value)
        if (!["string", "number"].includes(typeof value)) expect(endDate).toBeUndefined()
      }),
    )
  })

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

const earliest = Date.UTC(2000, 0, 1) - 5 * 146_097 * dayMillis
const latest = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
const in1973 = Date.UTC(1973, 0, 1)

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
  it("are every end date that the API accepts", () => {
    const input = fc.oneof(realFields.map(print), fc.integer({ min: 1e12, max: 1e13 - 1 }))
    fc.assert(
      fc.property(input, (written) => {
        expect(readEndDate(written)).toEqual(decodeEndDate(written))
      }),
    )
  })

  it("may be a Date or text of any year from 0000 to 9999, or milliseconds from 1973 on", () => {
    fc.assert(
      fc.property(fc.integer({ min: earliest, max: latest }), (instant) => {
        const date = new Date(instant)
        const isNumber = instant >= in1973
        for (const input of [date, date.toISOString(), isNumber ? instant : date]) {
          expect(readEndDate(input)).toEqual(Result.succeed(instant))
        }
        expect(Result.isSuccess(readEndDate(instant))).toBe(isNumber)
      }),
      { examples: [[earliest], [latest], [in1973]] },
    )
  })

  it.each<readonly [string, number, string]>([
    ["seconds", 1_800_000_000, "milliseconds, not seconds"],
    ["seconds with a fraction", 1_800_000_000.25, "milliseconds, not seconds"],
    ["0, as of null", 0, "milliseconds, not seconds"],
    ["the last millisecond of 1972", in1973 - 1, "milliseconds, not seconds"],
    ["microseconds", 1_800_000_000_000_000, "milliseconds, not microseconds"],
    ["nanoseconds", 1_800_000_000_000_000_000, "milliseconds, not nanoseconds"],
    ["a bigint", JSON.parse("0") || BigInt(1_800_000_000_000), "not as a bigint"],
    ["digits", JSON.parse('"1800000000000"'), "not as text"],
    ["a day", JSON.parse('"2027-01-31"'), "for the whole day, send through"],
  ])("say which notation is right in place of %s", (_name, input, hint) => {
    expect(Result.getFailure(readEndDate(input))).toMatchObject({
      value: { _tag: "InvalidEndDate", message: expect.stringContaining(hint) },
    })
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

describe("the date of an extension", () => {
  it("is too late if and only if it is not later than now, unless it may have been made before", () => {
    const dated = { endDate: EndDate(1_800_000_000_000), dryRun: false }
    const idempotency = { owner: "", key: "k", fingerprint: "f" }
    expect(isTooLate(dated, { at: dated.endDate - 1, idempotency: undefined })).toBe(false)
    for (const at of [dated.endDate, dated.endDate + 1]) {
      expect(isTooLate(dated, { at, idempotency: undefined })).toBe(true)
      expect(isTooLate(dated, { at, idempotency })).toBe(false)
      expect(isTooLate({ ...dated, dryRun: true }, { at, idempotency })).toBe(true)
    }
    expect(endDateNotInFuture).toMatchObject({
      _tag: "EndDateNotInFuture",
      message: "The end date must be in the future",
    })
  })

  it("is refused as every end date if it is invalid", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const endDate = JSON.parse(JSON.stringify(value))
        fc.pre(Result.isFailure(readEndDate(endDate)))
        const given = { projectId: "p1", userId: "1001", endDate }
        expect(extension.fromHost(given)).toEqual(readEndDate(endDate))
      }),
    )
  })
})

describe("bulk extensions, compared with making one change after the other", () => {
  // Some are near the last supported date.
  const date = fc
    .oneof(fc.nat({ max: 5 }), fc.integer({ min: 2_932_893, max: 2_932_896 }))
    .map((days) => EndDate(days * dayMillis))
  const users = fc.constantFrom(...["1", "2", "3", "4"].map(UserId))
  const { bulk, extendAll, grant, undo } = drawChanges(users, date)

  it("have an adjustment that is what they do to a date, and is composed of several", () => {
    const changes = fc.array(bulk, { minLength: 1, maxLength: 3 })
    const composed = (all: ReadonlyArray<BulkChange>) =>
      all.map(adjustmentOf).reduce(composeAdjustments)
    fc.assert(
      fc.property(date, changes, changes, (before, first, second) => {
        const after = first.reduce(bulkDate, before)
        expect(adjust(before, composed(first))).toBe(after)
        const both = composeAdjustments(composed(first), composed(second))
        expect(adjust(before, both)).toBe(second.reduce(bulkDate, after))
      }),
    )
  })

  it("give each member the date of all changes but those that are undone, in their order", () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: grant },
      { weight: 3, arbitrary: extendAll },
      { weight: 1, arbitrary: undo },
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), bulk, (steps, further) => {
        let ledger: Ledger = []
        let log: Array<LoggedBulkExtension> = []
        const own = new Map<UserId, OrderedEndDate>()
        for (const [order, one] of steps.entries()) {
          ledger = applyChange(ledger, one)[0]
          switch (one._tag) {
            case "Grant":
              own.set(one.userId, { endDate: one.endDate, order })
              break
            case "ExtendAll":
              log.push({ order, adjustment: adjustmentOf(one.bulk), isUndone: false })
              break
            case "Undo": {
              const undone = log[one.which % Math.max(1, log.length)]
              log = log.map((entry) => (entry === undone ? { ...entry, isUndone: true } : entry))
            }
          }
        }
        const composed = composeLog(log)
        const later = composeWith(composed, further)
        for (const [userId, endDate] of datesOf(ledger)) {
          const placed = own.get(userId) ?? expect.fail("nobody was granted this")
          for (const same of [composed, composeWith(composed, undefined)]) {
            expect(effectiveEndDate(same, placed)).toBe(endDate)
          }
          expect(effectiveEndDate(later, placed)).toBe(bulkDate(endDate, further))
        }
      }),
    )
  })
})
