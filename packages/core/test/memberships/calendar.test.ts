/** The calendar rules, held to tables of cases and to `Temporal`. */

import * as Result from "effect/Result"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type CalendarEnd,
  Day,
  EndsTooLate,
  TimeZone,
  addToInstant,
  dayEndedAt,
  endOfDay,
  endOfToday,
  extendByCalendar,
  parseTimeZone,
  timeZoneSetting,
  utc,
} from "../../src/memberships/calendar.ts"
import { DurationText, addDuration } from "../../src/memberships/duration.ts"
import { EndDate, lastEndDate } from "../../src/memberships/end-date.ts"
import { askTemporal } from "../support/temporal.ts"

const minuteMillis = 60_000
const dayMillis = 86_400_000

const berlin = TimeZone("Europe/Berlin")

const zones = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "America/Sao_Paulo",
  "Asia/Kathmandu",
  "Australia/Lord_Howe",
  "Pacific/Apia",
  "Africa/Casablanca",
].map((zone) => TimeZone(zone))

const at = (text: string): EndDate => EndDate(Date.parse(text))

const shown = (instant: number | undefined): string | undefined =>
  instant === undefined ? undefined : new Date(instant).toISOString().replace(":00.000Z", "Z")

const through = (day: string, zone: TimeZone, keptDay?: number): CalendarEnd => ({
  instant: endOfDay(Day(day), zone),
  keptDay,
  inDays: true,
})

const until = (instant: string, keptDay?: number): CalendarEnd => ({
  instant: at(instant),
  keptDay,
  inDays: false,
})

const extend = (end: CalendarEnd, by: string, zone: TimeZone): CalendarEnd =>
  Result.getOrThrow(extendByCalendar({ end, by: DurationText(by), zone }))

const steps = (end: CalendarEnd, by: ReadonlyArray<string>, zone: TimeZone): CalendarEnd =>
  by.reduce((last, step) => extend(last, step, zone), end)

/** The end after each step. */
const course = (
  end: CalendarEnd,
  by: ReadonlyArray<string>,
  zone: TimeZone,
): ReadonlyArray<CalendarEnd> => by.map((_, index) => steps(end, by.slice(0, index + 1), zone))

const sample = <A>(cases: fc.Arbitrary<A>, numRuns: number): ReadonlyArray<A> =>
  fc.sample(cases, { numRuns, seed: 1 })

const anyZone = fc.constantFrom(...zones)

const dayAfter = (day: string): string =>
  new Date(Date.parse(day) + dayMillis).toISOString().slice(0, 10)

const anyDay = fc
  .integer({ min: Date.UTC(1990, 0, 1) / dayMillis, max: Date.UTC(2060, 0, 1) / dayMillis })
  .map((day) => new Date(day * dayMillis).toISOString().slice(0, 10))

describe("whole days", () => {
  it.each([
    ["2027-01-31", ["P1M", "P1M", "P1M"], ["2027-02-28", "2027-03-31", "2027-04-30"]],
    [
      "2027-01-30",
      ["P1M", "P1M", "P1M", "P1M"],
      ["2027-02-28 30", "2027-03-30", "2027-04-30 30", "2027-05-30"],
    ],
    ["2027-01-28", ["P1M", "P1M"], ["2027-02-28 28", "2027-03-28"]],
    ["2027-02-28", ["P1M", "P1M"], ["2027-03-31", "2027-04-30"]],
    ["2028-02-29", ["P1Y", "P1M"], ["2029-02-28", "2029-03-31"]],
    ["2028-02-28", ["P1Y", "P1M"], ["2029-02-28 28", "2029-03-28"]],
    ["2028-02-28", ["P1M"], ["2028-03-28"]],
    ["2028-01-29", ["P1M", "P1M"], ["2028-02-29 29", "2028-03-29"]],
    ["2027-04-30", ["P1M", "P1M"], ["2027-05-31", "2027-06-30"]],
    ["2028-02-29", ["P1Y", "P3Y"], ["2029-02-28", "2032-02-29"]],
    ["2028-01-30", ["P1Y1M", "P1Y", "P2Y"], ["2029-02-28 30", "2030-02-28 30", "2032-02-29 30"]],
    ["2027-12-31", ["P2M"], ["2028-02-29"]],
    // Weeks and days count in days, and choose the day anew.
    ["2027-01-30", ["P1M", "P1W", "P1M"], ["2027-02-28 30", "2027-03-07", "2027-04-07"]],
    ["2027-01-30", ["P1M", "P3D", "P1M"], ["2027-02-28 30", "2027-03-03", "2027-04-03"]],
    ["2027-02-21", ["P1W", "P1M"], ["2027-02-28", "2027-03-31"]],
    ["2027-01-30", ["P1M1D", "P1M"], ["2027-03-01", "2027-04-01"]],
    ["2027-01-31", ["P1M1W2D"], ["2027-03-09"]],
    ["2027-03-27", ["P1D", "P1D"], ["2027-03-28", "2027-03-29"]],
  ])("through %s, extended by %j, last through %j", (day, by, expected) => {
    for (const zone of [...zones, TimeZone("America/Havana")]) {
      const ends = course(through(day, zone), by, zone)
      const days = ends.map(({ instant, keptDay }) =>
        `${dayEndedAt(instant, zone)} ${keptDay ?? ""}`.trim(),
      )
      expect([zone, ...days]).toEqual([zone, ...expected])
      expect(ends.every(({ inDays }) => inDays)).toBe(true)
    }
  })

  it("end at midnight in the zone, in summer and in winter", () => {
    const ends = course(through("2027-02-28", berlin), ["P1M", "P7M"], berlin)
    expect(ends.map(({ instant }) => shown(instant))).toEqual([
      "2027-03-31T22:00Z",
      "2027-10-31T23:00Z",
    ])
  })

  it("become instants by hours", () => {
    const end = through("2027-02-28", berlin, 30)
    expect(extend(end, "PT12H", berlin)).toEqual(until("2027-03-01T11:00Z"))
    expect(extend(end, "P1MT12H", berlin)).toEqual(until("2027-03-31T10:00Z"))
    expect(extend(end, "PT24H", berlin)).toEqual(until("2027-03-01T23:00Z"))
  })

  it("count as an instant if another time zone is in force", () => {
    const end = through("2027-02-28", TimeZone("Asia/Tokyo"), 30)
    expect(extend(end, "P1M", berlin)).toEqual(until("2027-03-30T14:00Z"))
    const early = through("2027-02-28", berlin, 30)
    expect(extend(early, "P1M", TimeZone("Asia/Tokyo"))).toEqual(until("2027-03-31T23:00Z"))
  })

  it("ignore a kept day that their last day cannot stand for", () => {
    expect(extend(through("2027-03-15", berlin, 31), "P1M", berlin)).toEqual(
      through("2027-04-15", berlin),
    )
    expect(extend(through("2027-02-28", berlin, 5), "P1M", berlin)).toEqual(
      through("2027-03-31", berlin),
    )
  })

  it("end up where one step of all months leads", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...zones.filter((zone) => zone !== "Pacific/Apia")),
        anyDay,
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 8 }),
        (zone, day, months) => {
          const each = months.map((count) => `P${count}M`)
          const all = months.reduce((sum, count) => sum + count, 0)
          const end = through(day, zone)
          expect(steps(end, each, zone)).toEqual(extend(end, `P${all}M`, zone))
          expect(extend(end, `P${all}Y`, zone)).toEqual(extend(end, `P${12 * all}M`, zone))
        },
      ),
      { numRuns: 300 },
    )
  })
})

describe("an instant", () => {
  it.each([
    [
      "2027-01-31T09:00",
      ["P1M", "P1M", "P1M"],
      ["2027-02-28T09:00 31", "2027-03-31T09:00", "2027-04-30T09:00 31"],
    ],
    ["2027-02-28T09:00", ["P1M"], ["2027-03-28T09:00"]],
    ["2028-02-29T09:00", ["P1Y", "P3Y"], ["2029-02-28T09:00 29", "2032-02-29T09:00"]],
    ["2028-02-28T09:00", ["P1Y", "P1M"], ["2029-02-28T09:00", "2029-03-28T09:00"]],
    ["2027-01-31T00:00", ["P1M", "P1M"], ["2027-02-28T00:00 31", "2027-03-31T00:00"]],
    ["2027-03-01T00:00", ["P1M"], ["2027-04-01T00:00"]],
    // Weeks and days choose the day anew, and so do hours that lead to another one.
    [
      "2027-01-31T09:00",
      ["P1M", "P1D", "P1M"],
      ["2027-02-28T09:00 31", "2027-03-01T09:00", "2027-04-01T09:00"],
    ],
    [
      "2027-01-31T09:00",
      ["P1M", "P4W", "P1M"],
      ["2027-02-28T09:00 31", "2027-03-28T09:00", "2027-04-28T09:00"],
    ],
    [
      "2027-01-31T09:00",
      ["P1M", "PT1H", "P1M"],
      ["2027-02-28T09:00 31", "2027-02-28T10:00 31", "2027-03-31T10:00"],
    ],
    [
      "2027-01-31T09:00",
      ["P1M", "PT15H", "P1M"],
      ["2027-02-28T09:00 31", "2027-03-01T00:00", "2027-04-01T00:00"],
    ],
    ["2027-01-31T09:00", ["P1MT14H59M", "P1M"], ["2027-02-28T23:59 31", "2027-03-31T23:59"]],
  ])("at %s, extended by %j, comes to %j", (start, by, expected) => {
    // Neither zone changes its clocks.
    for (const [zone, offset] of [
      [utc, "Z"],
      [TimeZone("Asia/Kathmandu"), "+05:45"],
    ] as const) {
      const ends = course(until(`${start}${offset}`), by, zone)
      expect(ends).toEqual(
        expected.map((text) => {
          const [local, kept] = text.split(" ")
          return until(`${local}${offset}`, kept === undefined ? undefined : Number(kept))
        }),
      )
    }
  })

  it("comes by steps at noon where one step of all months leads", () => {
    fc.assert(
      fc.property(
        anyZone,
        anyDay,
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 8 }),
        (zone, day, months) => {
          // After a step onto the skipped day, months go on with the number of the next one.
          const [year = 0, month = 0] = dayAfter(day).split("-").map(Number)
          const untilSkipped = 12 * 2011 + 12 - (12 * year + month)
          const sums = months.map((_, n) => months.slice(0, n + 1).reduce((sum, one) => sum + one))
          fc.pre(zone !== "Pacific/Apia" || !sums.includes(untilSkipped))
          const midnight = endOfDay(Day(day), zone)
          const end: CalendarEnd = {
            instant: addToInstant(EndDate(midnight), DurationText("PT12H"), zone) ?? lastEndDate,
            keptDay: undefined,
            inDays: false,
          }
          const all = months.reduce((sum, count) => sum + count, 0)
          const each = months.map((count) => `P${count}M`)
          expect(steps(end, each, zone)).toEqual(extend(end, `P${all}M`, zone))
        },
      ),
      { numRuns: 300 },
    )
  })
})

describe("a sum", () => {
  it.each([
    ["Europe/Berlin", "2027-02-28T23:00Z", "P1M", "2027-03-31T22:00Z"],
    // 02:30 does not exist on 28 March, and is there twice on 31 October.
    ["Europe/Berlin", "2027-03-27T01:30Z", "P1D", "2027-03-28T01:30Z"],
    ["Europe/Berlin", "2027-02-28T01:30Z", "P1M", "2027-03-28T01:30Z"],
    ["Europe/Berlin", "2027-10-30T00:30Z", "P1D", "2027-10-31T00:30Z"],
    ["Europe/Berlin", "2027-10-24T00:30Z", "P1W", "2027-10-31T00:30Z"],
    // From the second 02:30, a day leads to the same time, and 24 hours to an exact instant.
    ["Europe/Berlin", "2027-10-31T01:30Z", "P1D", "2027-11-01T01:30Z"],
    ["Europe/Berlin", "2027-10-31T00:30Z", "PT1H", "2027-10-31T01:30Z"],
    ["Europe/Berlin", "2027-10-31T00:30Z", "PT24H", "2027-11-01T00:30Z"],
    ["Europe/Berlin", "2027-10-31T00:30Z", "P1D", "2027-11-01T01:30Z"],
    ["Europe/Berlin", "2027-03-27T11:00Z", "P1D", "2027-03-28T10:00Z"],
    ["Europe/Berlin", "2027-03-27T11:00Z", "PT24H", "2027-03-28T11:00Z"],
    // The date comes before the time: at 02:30 on 28 March, and not at 03:30 on 27 March.
    ["Europe/Berlin", "2027-03-27T00:30Z", "P1DT1H", "2027-03-28T01:30Z"],
    ["Europe/Berlin", "2027-03-27T01:30Z", "P1DT1H", "2027-03-28T02:30Z"],
    // A gap on the way makes no difference: only the whole sum is looked up.
    ["Europe/Berlin", "2027-02-28T01:30Z", "P1M1D", "2027-03-29T00:30Z"],
    // Years and months are cut once, and before days.
    ["Europe/Berlin", "2028-01-31T11:00Z", "P1Y1M", "2029-02-28T11:00Z"],
    ["Europe/Berlin", "2027-01-31T11:00Z", "P1M1D", "2027-03-01T11:00Z"],
    ["America/Vancouver", "2020-01-31T23:00Z", "P1M", "2020-02-29T23:00Z"],
    ["America/New_York", "2027-03-13T07:30Z", "P1D", "2027-03-14T07:30Z"],
    ["America/New_York", "2027-11-06T05:30Z", "P1D", "2027-11-07T05:30Z"],
    ["America/Sao_Paulo", "2018-10-04T03:00Z", "P1M", "2018-11-04T03:00Z"],
    ["Australia/Lord_Howe", "2027-10-01T15:45Z", "P1D", "2027-10-02T15:45Z"],
    ["Pacific/Apia", "2011-12-29T20:00Z", "P1D", "2011-12-30T20:00Z"],
    ["Pacific/Apia", "2011-12-29T20:00Z", "PT24H", "2011-12-30T20:00Z"],
    ["Pacific/Apia", "2011-12-28T20:00Z", "P2D", "2011-12-30T20:00Z"],
    // Clocks turned from 00:00 to 00:15 for good.
    ["Asia/Kathmandu", "1985-12-30T18:30Z", "P1D", "1985-12-31T18:30Z"],
    ["Asia/Kathmandu", "1985-12-30T18:45Z", "P1D", "1985-12-31T18:30Z"],
    // Clocks turned from 23:00 to 24:00, and 23:30 became 00:30 of the next day.
    ["America/Scoresbysund", "2025-03-29T01:30Z", "P1D", "2025-03-30T01:30Z"],
  ])("in %s of %s and %s is %s", (zone, start, by, expected) => {
    expect(shown(addToInstant(at(start), DurationText(by), TimeZone(zone)))).toBe(expected)
  })

  const anyDuration = (() => {
    const part = (letter: string, max: number) =>
      fc.option(
        fc.integer({ min: 1, max }).map((count) => `${count}${letter}`),
        { nil: "" },
      )
    return fc
      .tuple(
        fc.tuple(part("Y", 9), part("M", 30), part("W", 9), part("D", 400)),
        fc.tuple(part("H", 100), part("M", 100), part("S", 100)),
      )
      .map(([days, times]) => {
        const time = times.join("")
        return `P${days.join("")}${time === "" ? "" : `T${time}`}`
      })
      .filter((text) => text !== "P")
  })()

  it("is that of Temporal in every time zone", () => {
    const anyInstant = fc
      .integer({
        min: Date.UTC(1971, 0, 1) / minuteMillis / 15,
        max: Date.UTC(2060, 0, 1) / minuteMillis / 15,
      })
      .chain((quarter) =>
        fc.constantFrom(0, 0, 1, 59_999, 899_999).map((more) => quarter * 15 * minuteMillis + more),
      )
    const cases = sample(fc.tuple(anyInstant, anyDuration, anyZone), 4000)
    const expected = askTemporal(cases, "at, by, zone", "zoned(at, zone).add(by).epochMilliseconds")
    const wrong = cases.flatMap(([from, by, zone], index) => {
      const sum = addToInstant(EndDate(from), DurationText(by), zone)
      return sum === expected[index] ? [] : [{ from: shown(from), by, zone, sum: shown(sum) }]
    })
    expect(wrong).toEqual([])
  })

  it("is that of Temporal where clocks are turned", () => {
    const clocks = [
      ...zones,
      ...[
        "America/Havana",
        "America/St_Johns",
        "Asia/Beirut",
        "Africa/Cairo",
        "Antarctica/Troll",
      ].map((zone) => TimeZone(zone)),
    ].filter((zone) => zone !== utc)
    const turns = askTemporal(
      clocks.map((zone) => [zone]),
      "zone",
      `(() => {
        const turns = []
        const offsetAt = (at) => zoned(at, zone).offsetNanoseconds
        for (let at = Date.UTC(2010, 0, 1); at < Date.UTC(2012, 0, 1); at += 7 * 86_400_000) {
          let [before, after] = [at, at + 7 * 86_400_000]
          if (offsetAt(before) === offsetAt(after)) continue
          while (after - before > 1000) {
            const middle = Math.floor((before + after) / 2)
            if (offsetAt(middle) === offsetAt(before)) before = middle
            else after = middle
          }
          turns.push(Math.round(after / 60_000) * 60_000)
        }
        return turns
      })()`,
    )
    const anyTurn = fc.constantFrom(
      ...clocks.flatMap((zone, index) => {
        const found = turns[index]
        return Array.isArray(found) ? found.map((turn) => ({ turn: Number(turn), zone })) : []
      }),
    )
    const around = fc.integer({ min: -12, max: 12 }).map((quarter) => quarter * 15 * minuteMillis)
    const daysBefore = fc.constantFrom(0, 1, 7, 28, 30, 31)
    const cases = sample(
      fc
        .tuple(
          anyTurn,
          around,
          daysBefore,
          fc.constantFrom("P1D", "P1W", "P4W", "P1M", "P2M", "P1DT1H", "P1MT2H30M", "PT24H"),
        )
        .map(
          ([{ turn, zone }, near, days, by]) => [turn + near - days * dayMillis, by, zone] as const,
        ),
      3000,
    )
    const expected = askTemporal(cases, "at, by, zone", "zoned(at, zone).add(by).epochMilliseconds")
    const wrong = cases.flatMap(([from, by, zone], index) => {
      const sum = addToInstant(EndDate(from), DurationText(by), zone)
      return sum === expected[index] ? [] : [{ from: shown(from), by, zone, sum: shown(sum) }]
    })
    expect(wrong).toEqual([])
  })

  it("is in UTC that of the extensions so far", () => {
    const instant = fc.integer({ min: Date.UTC(1600, 0, 1), max: lastEndDate })
    fc.assert(
      fc.property(instant, anyDuration, (from, by) => {
        const duration = DurationText(by)
        expect(addToInstant(EndDate(from), duration, utc)).toBe(
          addDuration(EndDate(from), duration),
        )
      }),
      { numRuns: 1000 },
    )
  })

  it("is none after the year 9999", () => {
    const tooLate = Result.fail(new EndsTooLate())
    for (const zone of zones) {
      for (const by of ["P1M", "P999999999Y", "P999999999W", "P999999999DT1S", "PT999999999H"]) {
        const end = through("9999-12-30", zone)
        const extension = { by: DurationText(by), zone }
        expect(addToInstant(lastEndDate, extension.by, zone)).toBeUndefined()
        expect(extendByCalendar({ end, ...extension })).toEqual(tooLate)
        expect(extendByCalendar({ end: { ...end, inDays: false }, ...extension })).toEqual(tooLate)
      }
    }
    expect(new EndsTooLate()._tag).toBe("EndsTooLate")
    const by = DurationText("P1D")
    expect(extendByCalendar({ end: through("9999-12-30", berlin), by, zone: berlin })).toEqual(
      tooLate,
    )
    expect(extend(through("9999-12-29", berlin), "P1D", berlin)).toEqual(
      through("9999-12-30", berlin),
    )
    expect(addToInstant(EndDate(lastEndDate - 1000), DurationText("PT1S"), berlin)).toBe(
      lastEndDate,
    )
  })
})

describe("the end of a day", () => {
  it.each([
    ["UTC", "2027-01-31", "2027-02-01T00:00Z"],
    ["Europe/Berlin", "2027-01-31", "2027-01-31T23:00Z"],
    ["Europe/Berlin", "2027-03-28", "2027-03-28T22:00Z"],
    // Clocks turned from 00:00 to 01:00, and the next day began there.
    ["America/Sao_Paulo", "2018-11-03", "2018-11-04T03:00Z"],
    ["Asia/Beirut", "2024-03-30", "2024-03-30T22:00Z"],
    ["Africa/Cairo", "2024-04-25", "2024-04-25T22:00Z"],
    ["America/Havana", "2024-03-09", "2024-03-10T05:00Z"],
    // Clocks turned from 23:30 to 00:30.
    ["America/Toronto", "1919-03-30", "1919-03-31T04:30Z"],
    // Clocks turned from 01:00 to 00:00, or from 00:01 to 23:01: the first midnight counts.
    ["America/Havana", "2024-11-02", "2024-11-03T04:00Z"],
    ["America/St_Johns", "2010-11-06", "2010-11-07T02:30Z"],
    // Clocks turned from 24:00 to 23:00.
    ["America/Sao_Paulo", "2018-02-17", "2018-02-18T03:00Z"],
    // A day was left out.
    ["Pacific/Apia", "2011-12-29", "2011-12-30T10:00Z"],
    ["Pacific/Apia", "2011-12-30", "2011-12-30T10:00Z"],
    ["Pacific/Kwajalein", "1993-08-20", "1993-08-21T12:00Z"],
    ["Pacific/Kwajalein", "1993-08-21", "1993-08-21T12:00Z"],
    ["UTC", "9999-12-30", "9999-12-31T00:00Z"],
    ["America/New_York", "9999-12-30", "9999-12-31T05:00Z"],
    ["UTC", "0001-01-01", "0001-01-02T00:00Z"],
  ])("in %s, %s, is %s", (zone, day, expected) => {
    expect(shown(endOfDay(Day(day), TimeZone(zone)))).toBe(expected)
  })

  it("is where the next day of Temporal starts", () => {
    const cases = sample(fc.tuple(anyDay, anyZone), 4000)
    const expected = askTemporal(
      cases,
      "day, zone",
      "Temporal.PlainDate.from(day).add({ days: 1 }).toZonedDateTime(zone).epochMilliseconds",
    )
    expect(cases.map(([day, zone]) => endOfDay(Day(day), zone))).toEqual(expected)
  })

  it("tells the day", () => {
    const skipped = "2011-12-30"
    fc.assert(
      fc.property(anyDay, anyZone, fc.integer({ min: 1, max: 3_600_000 }), (day, zone, millis) => {
        const end = endOfDay(Day(day), zone)
        expect(dayEndedAt(end, zone)).toBe(
          zone === "Pacific/Apia" && day === skipped ? "2011-12-29" : day,
        )
        expect(dayEndedAt(end + millis, zone)).toBeUndefined()
        expect(dayEndedAt(end - millis, zone)).toBeUndefined()
        expect(endOfToday(end - millis, zone)).toBe(end)
      }),
      { numRuns: 500 },
    )
    expect(dayEndedAt(Date.parse("2010-11-07T02:30Z"), TimeZone("America/St_Johns"))).toBe(
      "2010-11-06",
    )
    // The second midnight of that day.
    expect(
      dayEndedAt(Date.parse("2010-11-07T03:30Z"), TimeZone("America/St_Johns")),
    ).toBeUndefined()
    expect(dayEndedAt(Date.parse("1919-03-31T04:30Z"), TimeZone("America/Toronto"))).toBe(
      "1919-03-30",
    )
    // An offset with seconds.
    expect(dayEndedAt(Date.parse("1971-06-01T00:44:30Z"), TimeZone("Africa/Monrovia"))).toBe(
      "1971-05-31",
    )
    expect(dayEndedAt(Date.parse("0000-01-01T00:00Z"), utc)).toBeUndefined()
    expect(dayEndedAt(lastEndDate, utc)).toBeUndefined()
  })

  it("is none for the last day of all", () => {
    expect(endOfToday(lastEndDate, utc)).toBeUndefined()
    expect(endOfToday(lastEndDate, TimeZone("Asia/Tokyo"))).toBeUndefined()
  })
})

const words = (text: string): ReadonlyArray<string> => text.trim().split(/\s+/)

describe("a day", () => {
  it("exists in the calendar", () => {
    const days = words("0001-01-01 2027-01-31 2028-02-29 9999-12-30")
    expect(days.filter((day) => !Day.is(day))).toEqual([])
    const others = words(`
      2027 2027-01 2027-1-31 27-01-31 20270131 +002027-01-31 0000-01-01 10000-01-01 -001-01-01
      2027-02-29 2027-00-10 2027-13-01 2027-01-00 2027-01-32 2100-02-29
      2027-01-31T00:00:00.000Z 2027-01-31Z 2027-01-31T 2027/01/31 31.01.2027 today ２０２７-01-31`)
    const around = ["", "2027-01-31 ", " 2027-01-31", "2027-01-31\n", "2027-01-31\0"]
    expect([...others, ...around].filter((day) => Day.is(day))).toEqual([])
    expect(() => Day("2027-02-29")).toThrow(/^invalid day: expected an existing day/)
  })
})

describe("a time zone", () => {
  it("is spelled as IANA does, in whatever case it comes", () => {
    const aliases = words(`
      Africa/Dar_es_Salaam America/Argentina/ComodRivadavia America/Knox_IN America/Port-au-Prince
      America/Port_of_Spain Antarctica/DumontDUrville Antarctica/McMurdo Asia/Kolkata Australia/ACT Australia/LHI
      Australia/NSW Brazil/DeNoronha Chile/EasterIsland EST5EDT Etc/GMT+1 Etc/GMT-14 Europe/Isle_of_Man Europe/Kyiv
      GB-Eire Japan Mexico/BajaNorte Mexico/BajaSur NZ-CHAT US/East-Indiana US/Eastern UTC W-SU`)
    const names = [...Intl.supportedValuesOf("timeZone"), ...aliases]
    expect(names.filter((name) => parseTimeZone(name) !== name)).toEqual([])
    expect(names.filter((name) => parseTimeZone(name.toLowerCase()) !== name)).toEqual([])
    expect(names.filter((name) => parseTimeZone(name.toUpperCase()) !== name)).toEqual([])
    expect(names.filter((name) => !TimeZone.is(name))).toEqual([])
    expect(TimeZone.is("europe/berlin")).toBe(false)
  })

  it("is UTC by many names", () => {
    const names = words("utc GMT Zulu Etc/UTC Etc/GMT Etc/GMT+0 Etc/GMT0 etc/universal UCT")
    expect(names.map(parseTimeZone)).toEqual(names.map(() => utc))
  })

  it("is neither an offset nor an unknown name", () => {
    const offsets = words("+01:00 -05:00 +01 +0100 Z z UTC+1 GMT+1 GMT-01:00 GMT+0 UTC0 −01:00")
    const unknown = words(
      "Mars/Phobos Europe/Atlantis Europe Europe/ /Berlin Berlin Etc/Unknown Factory local Europe//Berlin ../Europe/Berlin",
    )
    // ICU takes these for Dhaka, Darwin, Kolkata and others.
    const abbreviations = words("BST ACT IST PST CST JST SystemV/PST8")
    const around = ["", "Europe/Berlin ", " Europe/Berlin", "Europe/Berlin\0", "Europe/Berlin\n"]
    const hostile = ["Ｅurope/Berlin", "Europe/\u212Ayiv", "constructor", "__proto__"]
    const long = [`Europe/${"a".repeat(1_000_000)}`, "Europe/Berlin/Berlin/Berlin"]
    const texts = [...offsets, ...unknown, ...abbreviations, ...around, ...hostile, ...long]
    expect(texts.filter((text) => parseTimeZone(text) !== undefined)).toEqual([])
    // The second time, it is known that they are unknown.
    expect(texts.filter((text) => parseTimeZone(text) !== undefined)).toEqual([])
    const startsNoName = (text: string) => parseTimeZone(`Europe/.${text}`) === undefined
    fc.assert(fc.property(fc.string(), startsNoName))
  })

  it("is read from hosts and from requests", () => {
    expect(timeZoneSetting.read("europe/berlin", "timeZone")).toEqual(
      Result.succeed("Europe/Berlin"),
    )
    const problems = ["+01:00", 1, null, undefined, {}].map((given) =>
      Result.match(timeZoneSetting.read(given, "time_zone", "json"), {
        onFailure: ({ message }) => message,
        onSuccess: () => "",
      }),
    )
    expect(problems.every((problem) => problem.includes("such as Europe/Berlin or UTC"))).toBe(true)
    expect(timeZoneSetting.json).toEqual({ type: "string" })
    expect(problems[0]).toContain('"+01:00"')
    expect(() => TimeZone("Europe/Atlantis")).toThrow(/^invalid time zone: /)
  })
})
