/** Dates as far away as a date can be: hosts grant them to members for life. */

import { expect } from "@effect/vitest"
import { lastEndDate, mostExamples } from "@tenure/core/internal"
import { type DatedMembership, EndDate, MembershipStore, Millis, UserId } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { change, date, in2027, occasion, p1 } from "../../support/fixtures.ts"
import { HostTransaction, type StoreTests } from "../declare.ts"
import { dayMillis, together } from "../steps.ts"

const threeDays = Millis(3 * dayMillis)

// Beyond the year 4253, a double has no room for the microseconds of each millisecond.
const farDates = fc
  .integer({ min: date("4000-01-01T00:00:00.000Z"), max: lastEndDate })
  .map((millis) => EndDate(millis))

/** Members with many milliseconds, and those that end in the last instants. */
const members = fc.array(farDates, { minLength: 30, maxLength: 30 }).map((dates) =>
  [lastEndDate, EndDate(lastEndDate - 1), ...dates].map((endDate, index): DatedMembership => ({
    userId: UserId(String(1000 + index)),
    endDate,
  })),
)

const listed = MembershipStore.use((store) =>
  Effect.map(store.list(p1, { after: undefined, limit: 100 }), (page) =>
    page.map(({ endDate, userId }) => ({ userId, endDate })),
  ),
)

/** Extends each member with the expected date. */
const extendEach = (expected: ReadonlyArray<DatedMembership>, by: (endDate: EndDate) => EndDate) =>
  MembershipStore.use((store) =>
    together(
      expected.map(({ endDate, userId }) =>
        store.extend({ ...change(p1), userId, endDate: by(endDate), expectedEndDate: endDate }),
      ),
    ),
  )

/** Declares the tests. */
export const farDatesTests = ({ describe, property, test, transactional }: StoreTests): void => {
  describe("far dates", () => {
    property(
      "keep each millisecond, wherever they are written, read and compared",
      members,
      Effect.fnUntraced(function* (memberships) {
        const store = yield* MembershipStore
        yield* store.createProject(p1, occasion)
        yield* store.import({ ...change(p1), memberships })
        expect(yield* listed).toEqual(memberships)
        const sooner = (endDate: EndDate) => EndDate(endDate - 1)
        yield* extendEach(memberships, sooner)
        const changed = memberships.map(({ endDate, userId }) => ({
          userId,
          endDate: sooner(endDate),
        }))
        expect(yield* listed).toEqual(changed)
        const [first] = changed
        if (first === undefined) return
        const { endDate, userId } = first
        expect(yield* store.history(p1, { userId, limit: 1 })).toMatchObject([{ to: endDate }])
        const set = { mode: "set", endDate } as const
        expect(yield* store.previewBulkExtension(p1, set)).toMatchObject({
          examples: changed
            .filter((one) => one.endDate !== endDate)
            .slice(0, mostExamples)
            .map((one) => ({ ...one, wouldEnd: endDate })),
        })
        yield* store.extendAll({ ...change(p1), bulk: set })
        yield* extendEach([{ userId, endDate }], (before) => before)
      }),
    )

    test("can be expected after everybody has more time, and are capped at the last instant", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      const users = ["1001", "1002", "1003"].map(UserId)
      const endingAt = (dates: ReadonlyArray<EndDate>) =>
        users.map((userId, index) => ({ userId, endDate: EndDate(dates[index] ?? NaN) }))
      const memberships = endingAt([lastEndDate, date("9999-12-30T12:34:56.789Z"), in2027])
      yield* store.import({ ...change(p1), memberships })
      const bulk = { mode: "extendBy", by: threeDays } as const
      const toLast = { mode: "set", endDate: lastEndDate } as const
      expect(yield* store.previewBulkExtension(p1, bulk)).toMatchObject({ capped: 1 })
      expect(yield* store.previewBulkExtension(p1, toLast)).toMatchObject({ capped: 2 })
      yield* store.extendAll({ ...change(p1), bulk })
      const extended = endingAt([lastEndDate, lastEndDate, EndDate(in2027 + threeDays)])
      expect(yield* listed).toEqual(extended)
      yield* extendEach(extended, () => lastEndDate)
      expect(yield* store.previewBulkExtension(p1, toLast)).toMatchObject({ capped: 0 })
    })

    transactional("are the same in a transaction of the host", function* () {
      const store = yield* MembershipStore
      const { run } = yield* HostTransaction
      yield* store.createProject(p1, occasion)
      const endingAt = (dateOf: (index: number) => EndDate) =>
        Array.from({ length: 20 }, (_, index) => ({
          userId: UserId(String(1000 + index)),
          endDate: dateOf(index),
        }))
      const granted = endingAt((index) => EndDate(lastEndDate - index))
      const grantEach = MembershipStore.use((joined) =>
        Effect.forEach(granted, (one) => joined.grant({ ...change(p1), ...one })),
      )
      yield* run(grantEach)
      yield* extendEach(granted, (endDate) => endDate)
      yield* run(extendEach(granted, () => in2027))
      expect(yield* listed).toEqual(endingAt(() => in2027))
    })
  })
}
