/** The forms of end dates: whole days, and days of the month that are kept. */

import { expect } from "@effect/vitest"
import {
  type BulkChange,
  type DateForm,
  EndDate,
  type EventId,
  MembershipStore,
  Millis,
  type OptionalForm,
  type UserId,
  instantForm,
  joinMemberships,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import * as Fixture from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { dayMillis, expectFailure, outcomeOf } from "../steps.ts"
import { prepared } from "./every-change.ts"

const { change, draft, in2027, in2028, in2029, longAgo, p1, u1, u2, u3 } = Fixture

const asDay: DateForm = { inDays: true, keptDay: undefined }

const kept: DateForm = { inDays: true, keptDay: 30 }

const formOf = ({ inDays, keptDay }: DateForm): DateForm => ({ inDays, keptDay })

/** Returns the form of a member's date, by every way to read it. */
const formsOf = Effect.fnUntraced(function* (userId: UserId) {
  const store = yield* MembershipStore
  const page = { after: undefined, limit: 10 }
  const ending = yield* store.listEnding(p1, { ...page, before: EndDate(in2029 + 9 * dayMillis) })
  const read = [
    yield* store.find(p1, userId),
    ...(yield* store.list(p1, page)),
    ...(yield* store.list(p1, { ...page, userIds: [userId] })),
    ...ending.memberships,
  ]
  return read.filter((one) => one.userId === userId).map(formOf)
})

const expectForm = Effect.fnUntraced(function* (userId: UserId, form: DateForm) {
  expect(yield* formsOf(userId)).toEqual([form, form, form, form])
})

interface Own extends DateForm {
  readonly endDate: EndDate
}

interface MadeBulk {
  readonly bulk: BulkChange
  readonly id: EventId
  isUndone: boolean
}

/** The rule step by step: what one bulk extension after the other makes of a member's own date and its form. */
const formAfter = (own: Own, made: ReadonlyArray<MadeBulk>): DateForm =>
  made
    .filter(({ isUndone }) => !isUndone)
    .reduce<DateForm>(({ inDays, keptDay }, { bulk }) => {
      if (bulk.mode === "extendBy") return { inDays, keptDay: undefined }
      const isLeft = bulk.mode === "neverShorten" && bulk.endDate <= own.endDate
      return {
        inDays: inDays || bulk.inDays === true,
        keptDay: isLeft ? keptDay : undefined,
      }
    }, formOf(own))

const dates = fc.nat({ max: 3 }).map((days) => EndDate(in2028 + days * dayMillis))

const forms = fc.record({
  inDays: fc.boolean(),
  keptDay: fc.option(fc.integer({ min: 28, max: 31 }), { nil: undefined }),
})

const changingTests = ({ testsAfter }: StoreTests): void => {
  const { test } = testsAfter(prepared)
  test("is an instant unless a change says otherwise, and is stored by each of them", function* (store) {
    yield* expectForm(u1, instantForm)
    const one = (form: OptionalForm) => ({ ...change(p1), userId: u1, endDate: in2028, ...form })
    const makers: ReadonlyArray<(form: OptionalForm) => Effect.Effect<unknown, unknown>> = [
      (form) => store.grant(one(form)),
      (form) =>
        store.import({
          ...change(p1),
          memberships: [{ userId: u1, endDate: in2028, ...form }],
        }),
      (form) => store.extend(one(form)),
      // Two at once are made in order.
      (form) =>
        Effect.all([store.extend(one(form)), store.extend(one(form))], {
          concurrency: "unbounded",
        }),
      (form) => store.extend({ ...one(form), expectedEndDate: in2028 }),
      (form) => store.extend({ ...one(form), idempotency: Fixture.idempotency() }),
    ]
    for (const make of makers) {
      for (const form of [kept, asDay, { inDays: false, keptDay: 31 }]) {
        yield* make(form)
        yield* expectForm(u1, form)
      }
      yield* make({})
      yield* expectForm(u1, instantForm)
    }
    yield* store.grant({ ...change(p1), userId: u3, endDate: in2028, ...kept })
    yield* expectForm(u3, kept)
  })

  test("stays where an extension leaves the date as it is", function* (store) {
    const one = { userId: u1, endDate: in2028 }
    yield* store.extend({ ...change(p1), ...one, ...kept })
    yield* store.extend({ ...change(p1), ...one, endDate: in2027, mode: "neverShorten" })
    yield* expectForm(u1, kept)
    const stale = { ...change(p1), ...one, endDate: in2029, expectedEndDate: in2027 }
    yield* expectFailure("EndDateConflict", store.extend(stale))
    yield* expectForm(u1, kept)
  })

  test("can be expected", function* (store) {
    const one = { userId: u1, endDate: in2028, expectedEndDate: in2027 }
    for (const expectedForm of [kept, asDay, { inDays: false, keptDay: 31 }]) {
      const failed = yield* Effect.flip(store.extend({ ...change(p1), ...one, expectedForm }))
      expect(failed).toMatchObject({ _tag: "EndDateConflict", currentEndDate: in2027 })
      yield* expectForm(u1, instantForm)
    }
    const expected = { ...one, ...kept, expectedForm: instantForm }
    yield* store.extend({ ...change(p1), ...expected })
    yield* expectForm(u1, kept)
    const next = { ...one, expectedEndDate: in2028, expectedForm: kept }
    yield* store.extend({ ...change(p1), ...next, ...asDay })
    yield* expectForm(u1, asDay)
  })

  test("moves with the later date, and is expected", function* (store) {
    yield* store.extend({ ...change(p1), userId: u2, endDate: in2029, ...kept })
    const move = Effect.fnUntraced(function* (form: OptionalForm) {
      const from = yield* store.find(p1, u1)
      const to = { ...(yield* store.find(p1, u2)), ...form }
      const joined = joinMemberships(from, to) ?? expect.fail()
      const moving = { ...change(p1), ...joined, userId: u1, to: u2, expected: { from, to } }
      return yield* store.move({ ...moving, granted: draft(p1) })
    })
    yield* expectFailure("MoveConflict", move(asDay), move({ keptDay: 29 }))
    yield* move({})
    yield* expectForm(u2, kept)
  })
}

const step = fc.oneof(
  fc.record({ _tag: fc.constant("Extend" as const), endDate: dates, form: forms }),
  fc.record({
    _tag: fc.constant("Bulk" as const),
    bulk: fc.oneof(
      fc.record({
        mode: fc.constantFrom("set" as const, "neverShorten" as const),
        endDate: dates,
        inDays: fc.boolean(),
      }),
      fc.record({ mode: fc.constant("extendBy" as const), by: fc.constant(Millis(dayMillis)) }),
    ),
  }),
  fc.record({ _tag: fc.constant("Undo" as const), which: fc.nat({ max: 9 }) }),
)

export const formTests = (on: StoreTests): void => {
  on.describe("the form of an end date", () => {
    changingTests(on)

    on.property(
      "is that of the member's own date, as far as bulk extensions leave it, and comes back when they are undone",
      fc.array(step, { maxLength: 8 }),
      Effect.fnUntraced(function* (steps) {
        const store = yield* prepared
        let own: Own = { endDate: in2028, ...instantForm }
        let bulk: Array<MadeBulk> = []
        yield* store.grant({ ...change(p1), userId: u1, endDate: own.endDate })
        for (const one of steps) {
          if (one._tag === "Extend") {
            own = { endDate: one.endDate, ...one.form }
            bulk = []
            yield* store.extend({ ...change(p1), userId: u1, ...own })
          } else if (one._tag === "Bulk") {
            const extension = { ...change(p1), bulk: one.bulk }
            yield* store.extendAll(extension)
            bulk.push({ bulk: one.bulk, id: extension.event.id, isUndone: false })
          } else {
            const undone = bulk.filter(({ isUndone }) => !isUndone).at(one.which)
            if (undone === undefined) continue
            const target = { bulkExtensionId: undone.id, madeAfter: longAgo }
            const outcome = yield* outcomeOf(store.undoBulkExtension({ ...change(p1), ...target }))
            undone.isUndone = outcome === "done"
          }
          yield* expectForm(u1, formAfter(own, bulk))
        }
      }),
    )
  })
}
