import fc from "fast-check"
import { expect, it } from "vitest"
import { Millis } from "../../src/base/time.ts"
import { EndDate } from "../../src/memberships/end-date.ts"
import { expiredLead } from "../../src/memberships/expiry.ts"
import { foresee } from "../../src/memberships/foresight.ts"

const hour = 3_600_000
const day = 24 * hour

const lengths = (most: number) =>
  fc.oneof(
    fc.integer({ min: 0, max: most }).map((hours) => Millis(hours * hour)),
    fc.integer({ min: 0, max: most * hour }).map((millis) => Millis(millis)),
  )

const settings = fc.record({
  reminders: fc.array(
    lengths(400).map((lead) => Millis(lead + 1000)),
    { maxLength: 4 },
  ),
  late: fc.constantFrom("skip" as const, "send" as const),
  holdAfterBulk: lengths(24),
  announcementsPerSecond: fc.constant(1),
})

/** What a date that is set now is told, by the rules in words: in turn, what is due at once as its last, and nothing late. */
const told = (
  { holdAfterBulk, late, reminders }: typeof settings extends fc.Arbitrary<infer A> ? A : never,
  grace: number,
  end: number,
  since: number,
) => {
  const leads = [...new Set<number>(reminders)].toSorted((one, other) => other - one)
  const all = [
    ...leads.map((lead) => ({ lead, due: end - lead })),
    ...(grace > 0 ? [{ lead: 0, due: end }] : []),
    { lead: expiredLead, due: end + grace },
  ]
  const timed = all.map((one) => ({ ...one, at: Math.max(one.due, holdAfterBulk) }))
  return timed
    .filter(({ at }, index) => timed[index + 1]?.at !== at)
    .filter(({ due, lead }) => late === "send" || lead <= 0 || due > 0)
    .filter(({ at, due }) => at <= 7 * day && Math.max(end, due) > since)
}

it("counts changed ends one by one, past ones, too, unless they are from before announcements began", () => {
  const at = Date.UTC(2027, 0, 1)
  const given = {
    reminders: [],
    late: "skip" as const,
    holdAfterBulk: Millis(0),
    announcementsPerSecond: 1,
  }
  const end = (days: number) => EndDate(at + days * day)
  const { countEach } = foresee(given, {
    grace: Millis(0),
    isSetWithOthers: true,
    sinceFromNow: -10 * day,
  })
  const ends = [
    { before: end(-3), after: end(-2) },
    { before: undefined, after: end(-9) },
    { before: undefined, after: end(-10) },
    { before: undefined, after: end(-3650) },
    { before: end(5), after: end(5) },
    { before: end(5), after: end(6) },
    { before: end(5), after: end(8) },
  ]
  const expected = { expiring: 0, overdue: 0, expired: 3, next24Hours: 2 }
  expect(countEach(ends, at)).toEqual(expected)
})

it("counts the announcements for new end dates, at the bounds of their ranges, too", () => {
  fc.assert(
    fc.property(
      settings,
      lengths(300),
      lengths(1000),
      lengths(500),
      (given, grace, further, ago) => {
        const sinceFromNow = -ago
        const { count, offsets } = foresee(given, { grace, isSetWithOthers: true, sinceFromNow })
        expect(offsets).toEqual([...new Set(offsets)].toSorted((one, other) => one - other))
        const ends = [further - 400 * hour, ...offsets, ...offsets.map((offset) => offset - 1)]
        for (const end of ends) {
          const moved = Array.from({ length: offsets.length + 1 }, () => 0)
          moved[offsets.filter((offset) => offset <= end).length] = 3
          const expected = told(given, grace, end, sinceFromNow)
          expect([end, count(moved)]).toEqual([
            end,
            {
              expiring: 3 * expected.filter(({ lead }) => lead > 0).length,
              overdue: 3 * expected.filter(({ lead }) => lead === 0).length,
              expired: 3 * expected.filter(({ lead }) => lead === expiredLead).length,
              next24Hours: 3 * expected.filter(({ at }) => at <= day).length,
            },
          ])
        }
      },
    ),
  )
})
