/** Counts of memberships by the day of their end. */

import { expect } from "@effect/vitest"
import {
  type DayRange,
  EndDate,
  type EndCounts,
  MembershipStore,
  Millis,
  UserId,
  dayOf,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import {
  change,
  date,
  in2027,
  in2028,
  in2029,
  occasion,
  p1,
  p2,
  u1,
  u2,
  u3,
} from "../../support/fixtures.ts"
import { inDays } from "../announcing.ts"
import type { StoreTests } from "../declare.ts"
import { createProjects, dayMillis, times } from "../steps.ts"

/** Counts end dates in the simplest way, and compares. */
export const expectEndCounts = (
  { at, days, ...counts }: EndCounts,
  endDates: ReadonlyArray<number>,
): void => {
  const count = (test: (endDate: number) => boolean): number => endDates.filter(test).length
  const dayTextOf = (instant: number): string => new Date(instant).toISOString().slice(0, 10)
  expect(counts).toEqual({
    total: endDates.length,
    active: count((endDate) => endDate > at),
    expired: count((endDate) => endDate <= at),
    endsToday: count((endDate) => dayTextOf(endDate) === dayTextOf(at)),
    endsIn7Days: count((endDate) => endDate > at && endDate < at + 7 * dayMillis),
  })
  expect(days.map(({ day, ends }) => [day, ends])).toEqual(
    days.map(({ day }) => [day, count((endDate) => dayTextOf(endDate) === day)]),
  )
}

const rangeOf = (first: number, last: number): DayRange => ({
  first: dayOf(first),
  last: dayOf(last),
})

const unasked = { days: undefined, change: undefined }

/** Declares the tests. */
export const countingEndsTests = ({ describe, test }: StoreTests): void => {
  describe("countEnds", () => {
    test("counts the days around today, the active, and those that end soon", function* () {
      yield* createProjects
      const store = yield* MembershipStore
      expectEndCounts(yield* store.countEnds(p1, unasked), [])
      yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
      const endDates: Array<EndDate> = []
      for (const [index, days] of [-400, -14, -1, -0.01, 0.01, 1, 6.99, 7.01, 45, 400].entries()) {
        const endDate = yield* inDays(days)
        endDates.push(endDate)
        yield* store.grant({ ...change(p1), userId: UserId(`user-${index}`), endDate })
      }
      const counts = yield* store.countEnds(p1, unasked)
      expect(counts).toMatchObject({ total: 10, active: 6, expired: 4, endsIn7Days: 3 })
      expect(counts.days).toHaveLength(60)
      expect(counts.days[14]?.day).toBe(new Date(counts.at).toISOString().slice(0, 10))
      expectEndCounts(counts, endDates)
    })

    test("counts the days that are asked for, also at both ends of time", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      const first = date("0000-01-01T00:00:00.000Z")
      const last = date("9999-12-31T23:59:59.999Z")
      const endDates = [first, last, in2027]
      for (const [index, userId] of [u1, u2, u3].entries()) {
        yield* store.grant({ ...change(p1), userId, endDate: endDates[index] ?? in2027 })
      }
      for (const days of [
        rangeOf(first, first),
        rangeOf(first, first + 399 * dayMillis),
        rangeOf(last - 399 * dayMillis, last),
        rangeOf(in2027 - dayMillis, in2027),
      ]) {
        const counts = yield* store.countEnds(p1, { ...unasked, days })
        expect(counts.days).toHaveLength(days.last - days.first + 1)
        expect(counts.days.reduce((sum, { ends }) => sum + ends, 0)).toBe(1)
        expectEndCounts(counts, endDates)
      }
    })

    test("counts what more time would lead to, which ends nobody after the last instant", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      const last = date("9999-12-31T23:59:59.999Z")
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
      yield* store.grant({ ...change(p1), userId: u2, endDate: last })
      const by = Millis(3 * dayMillis)
      const later = EndDate(in2027 + by)
      for (const around of [later, last]) {
        const days = rangeOf(around - dayMillis, around)
        const counts = yield* store.countEnds(p1, { days, change: { mode: "extendBy", by } })
        expectEndCounts(counts, [later, last])
      }
      expectEndCounts(yield* store.countEnds(p1, unasked), [in2027, last])
    })

    test("tells how many memberships were extended or granted by day", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      const { at: now } = yield* store.countEnds(p1, unasked)
      const at = (days: number) => ({ ...change(p1), at: now + days * dayMillis })
      yield* store.grant({ ...at(0), userId: u1, endDate: in2027 })
      yield* store.extend({ ...at(0), userId: u1, endDate: in2028 })
      yield* store.extend({ ...at(0), userId: u1, endDate: in2029 })
      // Not by itself, and no longer.
      yield* store.import({ ...at(0), memberships: [{ userId: u2, endDate: in2027 }] })
      yield* store.extendAll({ ...at(0), bulk: { mode: "set", endDate: in2028 } })
      yield* store.end({ ...at(0), userId: u2 })
      const { days } = yield* store.countEnds(p1, unasked)
      expect(days[14]?.extended).toBe(3)
      expect(days[15]?.extended).toBe(0)
    })

    test("counts for many at the same time, who see what they have done before", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      const grantAndCount = Effect.fnUntraced(function* (userId: UserId) {
        yield* store.grant({ ...change(p1), userId, endDate: in2027 })
        const { days, total } = yield* store.countEnds(p1, {
          ...unasked,
          days: rangeOf(in2027, in2027),
        })
        expect(days[0]?.ends).toBe(total)
        return total
      })
      const totals = yield* times(10, (index) => grantAndCount(UserId(`user-${index}`)))
      expect(Math.max(...totals)).toBe(10)
      expect(Math.min(...totals)).toBeGreaterThan(0)
    })
  })
}
