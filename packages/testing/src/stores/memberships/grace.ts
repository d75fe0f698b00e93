/** Grace: memberships that are active for some time after they have ended. */

import { expect } from "@effect/vitest"
import { stateAt } from "@tenure/core/internal"
import {
  type EndDate,
  MembershipStore,
  Millis,
  UserId,
  defaultProjectSettings,
  formatGrantAnswer,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { asInstant, change, idempotency, p1, p2 } from "../../support/fixtures.ts"
import { type Announcing, announcedOn, eventually, inDays } from "../announcing.ts"
import type { StoreTests } from "../declare.ts"
import { createProjects, dayMillis, expectFailure } from "../steps.ts"
import { changeSettings, nowhere } from "./every-change.ts"

const weekOf = { ...defaultProjectSettings, grace: Millis(7 * dayMillis) }

const prepared = Effect.gen(function* () {
  yield* createProjects
  const store = yield* MembershipStore
  yield* changeSettings(store, change(p1), weekOf)
  const grant = (days: number, projectId = p1) =>
    Effect.flatMap(inDays(days), (endDate) =>
      store.grant({
        ...change(projectId),
        userId: UserId(`in ${days}`.replace(" ", "_")),
        endDate,
      }),
    )
  for (const days of [-8, -6, -1, 3, 30]) yield* grant(days)
  yield* grant(-1, p2)
  return store
})

const user = (days: number) => UserId(`in_${days}`)

const readingTests = ({ describe, testsAfter }: StoreTests): void => {
  const { test } = testsAfter(prepared)

  describe("grace", () => {
    test("is among the settings of a project, and of each membership", function* (store) {
      const other = yield* store.find(p2, user(-1))
      expect([(yield* store.findProject(p1)).grace, other.grace]).toEqual([weekOf.grace, 0])
      const found = yield* store.find(p1, user(-6))
      const listed = yield* store.list(p1, { after: undefined, limit: 10 })
      const ending = yield* store.listEnding(p1, {
        before: yield* inDays(100),
        after: undefined,
        limit: 10,
      })
      for (const { grace } of [found, ...listed, ...ending.memberships]) {
        expect(grace).toBe(weekOf.grace)
      }
      const now = found.endDate + 6 * dayMillis
      expect(listed.map((one) => [one.userId, stateAt(one, now)])).toEqual([
        [user(-1), "active"],
        [user(-6), "active"],
        [user(-8), "expired"],
        [user(3), "active"],
        [user(30), "active"],
      ])
      const moved = changeSettings(store, change(p1), { grace: Millis(0) })
      yield* expectFailure("ProjectConflict", moved)
    })

    test("counts where memberships are listed by state or by end date", function* (store) {
      const at = (yield* store.find(p1, user(-1))).endDate + dayMillis
      const inState = (state: "active" | "expired") =>
        Effect.map(store.list(p1, { after: undefined, limit: 10, only: { state, at } }), (found) =>
          found.map(({ userId }) => userId),
        )
      const ending = Effect.map(
        Effect.flatMap(inDays(10), (before: EndDate) =>
          store.listEnding(p1, { before, after: undefined, limit: 10 }),
        ),
        ({ memberships }) => memberships.map(({ userId }) => userId),
      )
      expect(yield* inState("active")).toEqual([-1, -6, 3, 30].map(user))
      expect(yield* inState("expired")).toEqual([user(-8)])
      expect(yield* ending).toEqual([-6, -1, 3].map(user))
      yield* changeSettings(store, change(p1), { grace: Millis(2 * dayMillis) }, weekOf)
      expect(yield* inState("expired")).toEqual([-6, -8].map(user))
      expect(yield* ending).toEqual([-1, 3].map(user))
      const weeks = { grace: Millis(14 * dayMillis) }
      const before = { ...weekOf, grace: Millis(2 * dayMillis) }
      yield* changeSettings(store, change(p1), weeks, before)
      expect(yield* inState("expired")).toEqual([])
      expect(yield* ending).toEqual([-8, -6, -1, 3].map(user))
    })

    test("counts where memberships are counted", function* (store) {
      const asked = { days: undefined, change: undefined }
      const counts = { total: 5, active: 4, overdue: 2, expired: 1, endsIn7Days: 1 }
      expect(yield* store.countEnds(p1, asked)).toMatchObject(counts)
      const by = Millis(2 * dayMillis)
      const { reactivated } = yield* store.previewBulkExtension(p1, { mode: "extendBy", by })
      expect(reactivated).toBe(1)
      const later = { days: undefined, change: { mode: "extendBy", by } } as const
      expect(yield* store.countEnds(p1, later)).toMatchObject({ active: 5, overdue: 2, expired: 0 })
      expect(yield* store.countEnds(p2, asked)).toMatchObject({ active: 0, overdue: 0, expired: 1 })
    })

    test("is kept with the first response of a grant", function* (store) {
      const userId = user(-1)
      const { endDate } = yield* store.find(p1, userId)
      const grace = Millis(3 * dayMillis)
      const once = { ...change(p1), userId, endDate, grace, idempotency: idempotency() }
      yield* store.grant(once)
      const answer = { ...asInstant, endDate, at: once.at, grace, isLeft: false, metadata: "{}" }
      expect(yield* store.grant(once)).toMatchObject({ answer: formatGrantAnswer(answer) })
      const absent = { ...once, isFinal: true, idempotency: idempotency() }
      yield* store.grantIfAbsent(absent)
      const left = { ...answer, grace: weekOf.grace, isLeft: true }
      expect(yield* store.grantIfAbsent(absent)).toMatchObject({ answer: formatGrantAnswer(left) })
    })

    test("would make a difference to those that ended within it", function* (store) {
      const between = (from: number, to: number, projectId = p1) =>
        store.countEndedBetween(projectId, {
          from: Millis(from * dayMillis),
          to: Millis(to * dayMillis),
        })
      const counted = yield* Effect.all([
        between(0, 90),
        between(0.5, 7),
        between(0, 0.5),
        between(7, 7),
        between(0, 90, p2),
      ])
      expect(counted).toEqual([3, 2, 0, 0, 1])
      yield* expectFailure("ProjectNotFound", between(0, 90, nowhere))
    })
  })
}

const announcingTests = (tests: StoreTests): void => {
  const { advance, describe } = tests
  const test = announcedOn(tests)
  const days = (count: number) => advance(count * dayMillis)
  const u1 = user(1)

  /** Lets so many days pass in a project with grace, with a membership that ends at noon on the first. */
  const passDays = Effect.fnUntraced(function* (
    { grant, store, sweep }: Pick<Announcing, "grant" | "store" | "sweep">,
    passed: number,
  ) {
    yield* changeSettings(store, change(p1), weekOf)
    yield* grant(u1, 0.5)
    yield* sweep
    yield* days(passed)
  })

  const extendAllByDays = Effect.fnUntraced(function* (store: Announcing["store"], count: number) {
    const by = Millis(count * dayMillis)
    const at = yield* inDays(0)
    yield* store.extendAll({ ...change(p1), at, bulk: { mode: "extendBy", by } })
  })

  describe("grace and announcements", () => {
    test("an end comes at once, and that it has expired when the grace is over", function* (world) {
      const { drain, store, sweep } = world
      yield* passDays(world, 1)
      const [overdue] = yield* drain()
      const { endDate } = yield* store.find(p1, u1)
      expect(JSON.parse(overdue?.body ?? "{}")).toMatchObject({
        type: "membership.overdue",
        data: {
          user_id: u1,
          end_date: new Date(endDate).toISOString(),
          grace_until: new Date(endDate + weekOf.grace).toISOString(),
        },
      })
      yield* days(6)
      expect(yield* sweep).toEqual([])
      yield* days(1)
      expect(yield* sweep).toEqual([["membership.expired", u1]])
      const rows = yield* store.history(p1, { userId: u1, limit: 2 })
      // A harness may have moved the membership into the past, and not what is recorded.
      const { endDate: ended } = yield* store.find(p1, u1)
      expect(rows).toMatchObject([
        { action: "expired", from: ended, to: ended },
        { action: "overdue", from: endDate, to: endDate },
      ])
    })

    test("nothing comes twice when the grace becomes longer", function* (world) {
      const { grant, store, sweep } = world
      yield* grant(u1, 0.5)
      yield* sweep
      yield* days(1)
      expect(yield* sweep).toEqual([["membership.expired", u1]])
      yield* changeSettings(store, change(p1), weekOf)
      for (let day = 0; day < 9; day++) {
        expect(yield* sweep).toEqual([])
        yield* days(1)
      }
    })

    test("memberships expire at once when the grace becomes shorter, and once", function* (world) {
      const { store, sweep } = world
      yield* passDays(world, 3)
      expect(yield* sweep).toEqual([["membership.overdue", u1]])
      yield* changeSettings(store, change(p1), defaultProjectSettings, weekOf)
      expect(yield* eventually(sweep)).toEqual([["membership.expired", u1]])
      yield* changeSettings(store, change(p1), weekOf)
      yield* days(5)
      expect(yield* sweep).toEqual([])
    })

    test("a bulk extension to a date in grace is announced, and expires when the grace is over", function* (world) {
      const { store, sweep } = world
      yield* passDays(world, 1)
      expect(yield* sweep).toEqual([["membership.overdue", u1]])
      yield* days(7)
      expect(yield* sweep).toEqual([["membership.expired", u1]])
      yield* extendAllByDays(store, 3)
      expect(yield* eventually(sweep)).toEqual([["membership.overdue", u1]])
      yield* days(3)
      expect(yield* sweep).toEqual([["membership.expired", u1]])
    })

    test("a bulk extension into a grace that ends before a sweep has its expiry announced", function* (world) {
      const { store, sweep } = world
      yield* passDays(world, 8)
      expect(yield* sweep).toEqual([["membership.expired", u1]])
      yield* extendAllByDays(store, 3)
      yield* changeSettings(store, change(p1), defaultProjectSettings, weekOf)
      expect(yield* eventually(sweep)).toEqual([["membership.expired", u1]])
      yield* days(30)
      expect(yield* sweep).toEqual([])
    })

    test("an extension during the grace ends it", function* (world) {
      const { extend, sweep } = world
      yield* passDays(world, 1)
      expect(yield* sweep).toEqual([["membership.overdue", u1]])
      yield* extend(u1, 10)
      yield* days(8)
      expect(yield* sweep).toEqual([["membership.expiring", u1, 7]])
      yield* days(3)
      expect(yield* sweep).toEqual([["membership.overdue", u1]])
    })

    test(
      "what ended before ends were watched expires when a later grace is over",
      function* ({ store, sweep }) {
        expect(yield* sweep).toEqual([])
        yield* changeSettings(store, change(p1), weekOf)
        expect(yield* sweep).toEqual([])
        yield* days(7)
        expect(yield* eventually(sweep)).toEqual([["membership.expired", u1]])
      },
      ({ grant }) => grant(u1, -0.5),
    )

    test(
      "what ended before ends were watched expires when the grace is over",
      function* ({ sweep }) {
        expect(yield* sweep).toEqual([])
        yield* days(7)
        expect(yield* eventually(sweep)).toEqual([["membership.expired", u1]])
      },
      ({ grant, store }) =>
        Effect.andThen(changeSettings(store, change(p1), weekOf), grant(u1, -0.5)),
    )
  })
}

export const graceTests = (on: StoreTests): void => {
  readingTests(on)
  if (on.announcesEnds) announcingTests(on)
}
