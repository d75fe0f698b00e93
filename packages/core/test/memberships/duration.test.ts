/** Durations: their form, and their sums. */

import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Millis } from "../../src/base/time.ts"
import {
  DurationText,
  addDuration,
  fixedDurationFormat,
  fixedMillis,
  formatDuration,
} from "../../src/memberships/duration.ts"
import { EndDate, formatEndDate, lastEndDate } from "../../src/memberships/end-date.ts"
import { askTemporal } from "../support/temporal.ts"

const dayMillis = 86_400_000

const sum = (from: string, duration: string): string | undefined => {
  const endDate = addDuration(EndDate(Date.parse(from)), DurationText(duration))
  return endDate === undefined ? undefined : formatEndDate(endDate)
}

describe("a duration", () => {
  it("may be one of many forms", () => {
    const texts = [
      "P1Y",
      "P1M",
      "P2W",
      "P3D",
      "PT36H",
      "PT90M",
      "PT1S",
      "P1Y2M3W4DT5H6M7S",
      "P0DT1S",
    ]
    expect(texts.filter((text) => !DurationText.is(text))).toEqual([])
  })

  it.each(["P#Y", "P#M", "P#W", "P#D", "PT#H", "PT#M", "PT#S"])(
    "may be %s with a number of one to nine digits",
    (form) => {
      const isDuration = (number: string) => DurationText.is(form.replace("#", number))
      expect(["1", "09", "10", "123456789"].filter((number) => !isDuration(number))).toEqual([])
      expect(["", "0", "00", "1234567890", "x", "1x"].filter(isDuration)).toEqual([])
    },
  )

  it("must not be another text", () => {
    const [empty, signs] = [
      ["", "P", "PT", "P1DT", "P0D", "PT0S"],
      ["-P1D", "P-1D", "+P1D"],
    ]
    const fractions = ["P1.5D", "P0,5D", "PT1.5S"]
    const around = ["P1D ", " P1D", "xPT1S", "PT1Sx"]
    const others = ["p1d", "P1H", "PT1D", "P1D1M", "P1D2D", "1 day", "P1000000000D", "P１D"]
    const texts = [...empty, ...signs, ...fractions, ...around, ...others]
    expect(texts.filter((text) => DurationText.is(text))).toEqual([])
  })

  const examplesIn = (text: string): ReadonlyArray<string> => text.match(/\bP\w+/g) ?? []

  it("is named in errors, by examples", () => {
    expect(() => DurationText("1 day")).toThrow(/^invalid duration: /)
    expect(examplesIn(DurationText.expected)).toHaveLength(3)
    expect(examplesIn(DurationText.expected).filter((text) => !DurationText.is(text))).toEqual([])
    const fixed = examplesIn(fixedDurationFormat).map((text) => fixedMillis(DurationText(text)))
    expect(fixed).toEqual([3 * dayMillis])
  })
})

describe("a sum", () => {
  it.each([
    ["2027-01-31T10:20:30.456Z", "P1M", "2027-02-28T10:20:30.456Z"],
    ["2028-01-31T00:00:00.000Z", "P1M", "2028-02-29T00:00:00.000Z"],
    ["2028-02-29T00:00:00.000Z", "P1Y", "2029-02-28T00:00:00.000Z"],
    ["2028-02-29T00:00:00.000Z", "P4Y", "2032-02-29T00:00:00.000Z"],
    ["2027-08-31T00:00:00.000Z", "P1M", "2027-09-30T00:00:00.000Z"],
    ["2027-12-31T23:59:59.999Z", "P2M", "2028-02-29T23:59:59.999Z"],
    // Months come first, and then the days.
    ["2027-01-31T00:00:00.000Z", "P1M1D", "2027-03-01T00:00:00.000Z"],
    ["2027-01-01T00:00:00.000Z", "P2W", "2027-01-15T00:00:00.000Z"],
    ["2027-03-28T00:30:00.000Z", "PT36H", "2027-03-29T12:30:00.000Z"],
    ["0000-01-31T00:00:00.000Z", "P1M", "0000-02-29T00:00:00.000Z"],
    ["1969-11-30T10:20:30.456Z", "P1M", "1969-12-30T10:20:30.456Z"],
    ["9998-12-31T23:59:59.999Z", "P12M", "9999-12-31T23:59:59.999Z"],
    ["0000-01-01T00:00:00.000Z", "P9999Y11M30DT23H59M59S", "9999-12-31T23:59:59.000Z"],
    ["9999-12-31T23:59:59.998Z", "PT1S", undefined],
    ["9999-11-30T23:59:59.999Z", "P1M", "9999-12-30T23:59:59.999Z"],
    ["9999-12-01T00:00:00.000Z", "P1M", undefined],
    ["2027-01-01T00:00:00.000Z", "P999999999Y", undefined],
    ["2027-01-01T00:00:00.000Z", "P999999999D", undefined],
  ])("of %s and %s is %s", (from, duration, expected) => {
    expect(sum(from, duration)).toBe(expected)
  })

  it("is that of Temporal", () => {
    const part = (letter: string, max: number) =>
      fc.option(
        fc.integer({ min: 1, max }).map((count) => `${count}${letter}`),
        { nil: "" },
      )
    const duration = fc
      .tuple(
        fc.tuple(part("Y", 40), part("M", 30), part("W", 9), part("D", 400)),
        fc.tuple(part("H", 100), part("M", 100), part("S", 100)),
      )
      .map(([days, times]) => {
        const time = times.join("")
        return `P${days.join("")}${time === "" ? "" : `T${time}`}`
      })
      .filter((text) => text !== "P")
    const instant = fc.integer({ min: Date.UTC(1999, 11, 1), max: Date.UTC(2101, 1, 1) })
    const cases = fc.sample(fc.tuple(instant, duration), { numRuns: 5000, seed: 1 })
    const sums = cases.map(([at, text]) => addDuration(EndDate(at), DurationText(text)))
    expect(sums).toEqual(askTemporal(cases, "at, by", 'zoned(at, "UTC").add(by).epochMilliseconds'))
  })
})

describe("a duration for all memberships", () => {
  it("is in units that are equally long for everybody, and at most ten years", () => {
    expect(fixedMillis(DurationText("P1W1DT1H1M1S"))).toBe(8 * dayMillis + 3_661_000)
    expect(fixedMillis(DurationText("P3653D"))).toBe(3653 * dayMillis)
    expect(fixedMillis(DurationText("P3653DT1S"))).toBeUndefined()
    expect(fixedMillis(DurationText("P1M"))).toBeUndefined()
    expect(fixedMillis(DurationText("P1Y"))).toBeUndefined()
  })

  it("is written as the same duration", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3653 * 86_400 }), (seconds) => {
        const text = formatDuration(Millis(seconds * 1000))
        expect(DurationText.is(text)).toBe(true)
        expect(fixedMillis(DurationText(text))).toBe(seconds * 1000)
      }),
    )
    expect(formatDuration(Millis(3 * dayMillis))).toBe("P3D")
    expect(formatDuration(Millis(1.5 * dayMillis))).toBe("P1DT12H")
    expect(formatDuration(Millis(90_000))).toBe("PT1M30S")
  })

  it("does not lead past the last instant of the year 9999", () => {
    expect(addDuration(EndDate(lastEndDate - 1000), DurationText("PT1S"))).toBe(lastEndDate)
  })
})
