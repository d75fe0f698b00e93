/** Membership counts by end day, compared with the simplest way to count. */

import * as Effect from "effect/Effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { membershipActions } from "../../src/memberships/audit-trail.ts"
import {
  type DayRange,
  type Extended,
  cellOf,
  dayOf,
  endCellsAt,
  endCountsOf,
  extendingActions,
  readDays,
} from "../../src/memberships/ends.ts"

const dayMillis = 86_400_000
const firstDay = dayOf(Date.parse("0000-01-01T00:00:00.000Z"))
const lastDay = dayOf(Date.parse("9999-12-31T00:00:00.000Z"))

const textOf = (instant: number): string => new Date(instant).toISOString().slice(0, 10)

const nothingKnown: Extended = { knownFrom: -Infinity, byDay: new Map() }

/** Counts end dates as stores do. */
const countOf = (
  days: DayRange | undefined,
  now: number,
  endDates: ReadonlyArray<number>,
  extended = nothingKnown,
) => {
  const cells = endCellsAt({ days }, now)
  const inCell = new Map<number, number>()
  for (const endDate of endDates) {
    const cell = cellOf(cells, endDate)
    inCell.set(cell, (inCell.get(cell) ?? 0) + 1)
  }
  return endCountsOf(cells, inCell, extended, 0)
}

// Some are a day's first or last instant, and some are near the first or last supported day.
const instants = fc
  .tuple(
    fc.oneof(
      fc.integer({ min: 20_000, max: 20_500 }),
      fc.constantFrom(firstDay, firstDay + 1, lastDay - 1, lastDay),
    ),
    fc.oneof(fc.constantFrom(0, 1, dayMillis - 1), fc.nat({ max: dayMillis - 1 })),
  )
  .map(([day, rest]) => day * dayMillis + rest)

const ranges = fc
  .tuple(instants, fc.nat({ max: 399 }))
  .map(([first, more]) => ({ first: dayOf(first), last: Math.min(lastDay, dayOf(first) + more) }))

const read = (given: { readonly from?: string; readonly to?: string }) =>
  Effect.runSync(
    Effect.match(readDays(given), {
      onFailure: ({ field, problem }) => `${field} ${problem}`,
      onSuccess: (days) => days && [textOf(days.first * dayMillis), textOf(days.last * dayMillis)],
    }),
  )

describe("ends by day", () => {
  it("counts each end date once, on its day in UTC, and as active only after now", () => {
    const input = fc.record({
      days: fc.option(ranges, { nil: undefined }),
      now: instants,
      // Some end now, or seven days later.
      endDates: fc.array(fc.oneof(instants, fc.constantFrom(-1, 0, 1, 604_799_999, 604_800_000))),
    })
    fc.assert(
      fc.property(input, ({ days, endDates: given, now }) => {
        const endDates = given.map((endDate) => (Math.abs(endDate) < 1e9 ? now + endDate : endDate))
        const count = (test: (endDate: number) => boolean): number => endDates.filter(test).length
        const counts = countOf(days, now, endDates)
        expect(counts).toMatchObject({
          at: now,
          total: endDates.length,
          active: count((endDate) => endDate > now),
          expired: count((endDate) => endDate <= now),
          endsToday: count((endDate) => textOf(endDate) === textOf(now)),
          endsIn7Days: count((endDate) => endDate > now && endDate < now + 7 * dayMillis),
        })
        const first = days?.first ?? Math.max(firstDay, dayOf(now) - 14)
        const last = days?.last ?? Math.min(lastDay, dayOf(now) + 45)
        expect(counts.days).toEqual(
          Array.from({ length: last - first + 1 }, (_, index) => {
            const day = textOf((first + index) * dayMillis)
            return { day, ends: count((endDate) => textOf(endDate) === day), extended: 0 }
          }),
        )
      }),
      { numRuns: 500 },
    )
  })

  it("tells how many were extended on a day, from the first day that is known", () => {
    const days = { first: 20_000, last: 20_003 }
    const byDay = new Map([
      [20_000, 7],
      [20_001, 3],
      [20_003, 5],
    ])
    const counts = countOf(days, 20_000 * dayMillis, [], { knownFrom: 20_001, byDay })
    expect(counts.days.map(({ extended }) => extended)).toEqual([undefined, 3, 0, 5])
  })

  it("counts as extended what was changed by itself, and may last longer", () => {
    expect(membershipActions.filter((action) => extendingActions.has(action))).toEqual([
      "granted",
      "extended",
    ])
  })

  it("reads the days, and names what is wrong with them", () => {
    expect(read({})).toBeUndefined()
    expect(read({ from: "2027-01-01", to: "2027-01-01" })).toEqual(["2027-01-01", "2027-01-01"])
    expect(read({ from: "2027-01-01" })).toEqual(["2027-01-01", "2027-03-01"])
    expect(read({ to: "2027-03-01" })).toEqual(["2027-01-01", "2027-03-01"])
    expect(read({ from: "9999-12-31" })).toEqual(["9999-12-31", "9999-12-31"])
    expect(read({ to: "0000-01-01" })).toEqual(["0000-01-01", "0000-01-01"])
    expect(read({ from: "2027-01-01", to: "2028-02-04" })).toEqual(["2027-01-01", "2028-02-04"])
    expect(read({ from: "2027-01-01", to: "2028-02-05" })).toBe(
      "to must be less than 400 days after from",
    )
    expect(read({ from: "2027-01-02", to: "2027-01-01" })).toBe("to must not be before from")
    expect(read({ to: "tomorrow" })).toBe(
      'to must be an existing day such as 2027-01-31; received "tomorrow"',
    )
    const list: { readonly from: string } = JSON.parse('{ "from": ["2027-01-01"] }')
    expect(read(list)).toMatch(/^from must be an existing day/)
    for (const from of ["2027-02-29", "2027-1-1", "tomorrow", "", "+002027-01-01", "10000-01-01"]) {
      expect(read({ from })).toBe(
        `from must be an existing day such as 2027-01-31; received "${from}"`,
      )
    }
  })
})
