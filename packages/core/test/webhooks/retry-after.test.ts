import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { parseHttpDate, parseRetryAfter } from "../../src/webhooks/verdict.ts"

const now = Date.UTC(2026, 10, 18, 11, 6, 40)
const year = 365.25 * 86_400_000
const longest = 10 * year

const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

/** A date in the three formats of HTTP, of which the last two are obsolete. */
const spellings = (instant: number) => {
  const fixdate = new Date(instant).toUTCString()
  const [weekday = "", day = "", month = "", yyyy = "", time = ""] = fixdate.split(" ")
  const weekdayInFull = weekdays[new Date(instant).getUTCDay()]
  return {
    fixdate,
    rfc850: `${weekdayInFull}, ${day}-${month}-${yyyy.slice(2)} ${time} GMT`,
    asctime: `${weekday.slice(0, 3)} ${month} ${day.replace(/^0/, " ")} ${time} ${yyyy}`,
  }
}

const secondsBetween = (min: number, max: number) =>
  fc
    .integer({ min: Math.ceil(min / 1000), max: Math.floor(max / 1000) })
    .map((seconds) => seconds * 1000)

const instants = secondsBetween(Date.UTC(1000, 0, 1), Date.UTC(9999, 11, 31))

describe("an HTTP date", () => {
  it("has one of the formats in RFC 9110", () => {
    for (const text of [
      "Sun, 06 Nov 1994 08:49:37 GMT",
      "Sunday, 06-Nov-94 08:49:37 GMT",
      "Sun Nov  6 08:49:37 1994",
    ]) {
      expect(parseHttpDate(text, now)).toBe(784_111_777_000)
    }
  })

  it("is read to the second in the formats with a four-digit year", () => {
    fc.assert(
      fc.property(instants, (instant) => {
        const { asctime, fixdate } = spellings(instant)
        expect(parseHttpDate(fixdate, now)).toBe(instant)
        expect(parseHttpDate(asctime, now)).toBe(instant)
      }),
    )
  })

  it("with a two-digit year is at most fifty years in the future", () => {
    fc.assert(
      fc.property(secondsBetween(now - 48 * year, now + 49 * year), (instant) => {
        expect(parseHttpDate(spellings(instant).rfc850, now)).toBe(instant)
      }),
    )
  })

  it.each([
    "Mon, 06 Nov 1994 08:49:37 GMT",
    "Thu, 31 Feb 2028 00:00:00 GMT",
    "Sun, 06 Nov 1994 24:49:37 GMT",
    "Sun, 06 Nov 1994 08:60:37 GMT",
    "Sun, 6 Nov 1994 08:49:37 GMT",
    "Sun, 06 nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 UTC",
    "Sun, 06 Nov 1994 08:49:37 +0000",
    "Sun, 06 Nov 1994 08:49:37",
    "xSun, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 GMTx",
    "xSunday, 06-Nov-94 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMTx",
    "xSun Nov  6 08:49:37 1994",
    "Sun Nov  6 08:49:37 1994x",
    "Sun Nov  6 08:49:37 19941",
    "Sunday, 06 Nov 1994 08:49:37 GMT",
    "Sundays, 06-Nov-94 08:49:37 GMT",
    "Sun Nov 6 08:49:37 1994",
    "1994-11-06T08:49:37Z",
    "06 Nov 1994",
    "784111777",
    "",
  ])("cannot be %j", (text) => {
    expect(parseHttpDate(text, now)).toBeUndefined()
  })
})

describe("Retry-After", () => {
  it("is a number of seconds, up to the longest wait", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 400n }), fc.nat(), (seconds, most) => {
        const asked = parseRetryAfter(String(seconds), now, most)
        expect(asked).toBe(Math.min(Number(seconds) * 1000, most))
      }),
    )
  })

  it("is a date, up to the longest wait; 0 for a date in the past", () => {
    fc.assert(
      fc.property(secondsBetween(now - year, now + year), fc.nat(), (instant, most) => {
        const expected = Math.min(Math.max(0, instant - now), most)
        for (const field of Object.values(spellings(instant))) {
          expect(parseRetryAfter(field, now, most)).toBe(expected)
        }
      }),
    )
  })

  it("is 0 if the field is missing or invalid", () => {
    for (const field of [
      undefined,
      "",
      "soon",
      "-5",
      "+5",
      "1.5",
      "1e3",
      "0x10",
      "Infinity",
      "5 seconds",
      "5, 10",
      "2030",
      "2030-01-01",
      "2030-01-01T00:00:00Z",
      "January 1, 2030",
      "Tue, 01 Jan 2030 00:00:00 +0100",
    ]) {
      // A year alone is a number of seconds.
      const expected = field === "2030" ? 2_030_000 : 0
      expect([field, parseRetryAfter(field, now, longest)]).toEqual([field, expected])
    }
  })

  it("is from 0 to the longest wait, whatever the field is", () => {
    const fields = fc.oneof(
      fc.string(),
      fc.string({ unit: fc.constantFrom(..."0123456789 :,GMT") }),
    )
    fc.assert(
      fc.property(fields, fc.nat(), (field, most) => {
        const asked = parseRetryAfter(field, now, most)
        expect(asked).toBeGreaterThanOrEqual(0)
        expect(asked).toBeLessThanOrEqual(most)
      }),
    )
  })
})
