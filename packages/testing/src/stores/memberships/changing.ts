/** Projects that exist or not, and conditions of changes to one membership. */

import { expect } from "@effect/vitest"
import { isEndsLater, isReplayedResponse } from "@tenure/core/internal"
import {
  EndDate,
  type Extension,
  MembershipStore,
  ProjectId,
  UserId,
  replayedResponse,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import {
  change,
  date,
  draft,
  in2027,
  in2028,
  in2029,
  manyKindsOfUser,
  occasion,
  once,
  p1,
  p2,
  u1,
  u2,
  u3,
} from "../../support/fixtures.ts"
import { inDays } from "../announcing.ts"
import { HostTransaction, type StoreTests } from "../declare.ts"
import { expectFailure, together } from "../steps.ts"
import { endDateOf, nowhere, prepared } from "./model.ts"

/** Declares the tests. */
export const changingTests = (on: StoreTests): void => {
  const { describe } = on
  const { test } = on.testsAfter(prepared)

  describe("projects", () => {
    test("keep their members and their history when they are created again", function* (store) {
      yield* store.createProject(p1, occasion)
      expect(yield* endDateOf(u1)).toBe(in2027)
      expect(yield* store.history(p1, { userId: u1, limit: 10 })).toHaveLength(1)
    })

    test("that are missing are told from empty ones, whatever is asked of them", function* (store) {
      const all = { after: undefined, limit: 1 }
      const ofU1 = { ...change(nowhere), userId: u1, endDate: in2028 }
      const bulk = { mode: "set", endDate: in2028 } as const
      yield* expectFailure(
        "ProjectNotFound",
        store.findProject(nowhere),
        store.grant(ofU1),
        store.extendAll({ ...ofU1, bulk }),
        store.previewBulkExtension(nowhere, bulk),
        store.import({ ...ofU1, memberships: [ofU1] }),
        store.import({ ...ofU1, memberships: [] }),
        store.erase(ofU1),
        store.list(nowhere, all),
        store.list(nowhere, { ...all, userIds: [u1] }),
        store.list(nowhere, { ...all, userIds: [] }),
        store.listEnding(nowhere, { ...all, before: yield* inDays(1) }),
        store.bulkExtensions(nowhere, all),
        store.countEnds(nowhere, { days: undefined, change: undefined }),
        store.history(nowhere, { userId: undefined, limit: 1 }),
      )
      yield* expectFailure(
        "MembershipNotFound",
        store.extend(ofU1),
        store.extend({ ...ofU1, ...change(p2) }),
      )
    })

    test("can have any valid id as their name, and names that look alike", function* (store) {
      const alike = ["acme", "ACME", "caf\u00e9", "cafe\u0301", "cafe"]
      for (const id of ["__proto__", "a/b?c#d", "日本", "'; --", "%00", ...alike]) {
        const projectId = ProjectId(id)
        yield* expectFailure("MembershipNotFound", store.find(projectId, u1))
        yield* store.createProject(projectId, occasion)
        yield* store.grant({ ...change(projectId), userId: u1, endDate: in2027 })
        expect(yield* endDateOf(u1, projectId)).toBe(in2027)
      }
    })
  })

  describe("grant", () => {
    test("stores end dates from year 0000 to 9999 with millisecond precision, which can be expected", function* (store) {
      for (const text of ["0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]) {
        const endDate = date(text)
        yield* store.grant({ ...change(p1), userId: u1, endDate })
        expect(yield* endDateOf(u1)).toBe(endDate)
        expect(yield* extendIf(u1, endDate)).toBe("done")
      }
    })

    test("accepts user ids of any kind, and distinguishes 7 from 07", function* (store) {
      for (const [index, userId] of manyKindsOfUser.entries()) {
        yield* store.grant({ ...change(p1), userId, endDate: EndDate(in2027 + index) })
      }
      for (const [index, userId] of manyKindsOfUser.entries()) {
        const endDate = EndDate(in2028 + index)
        yield* store.extend({ ...change(p1), event: draft(p1), userId, endDate })
        expect(yield* endDateOf(userId)).toBe(endDate)
        const [newest] = yield* store.history(p1, { userId, limit: 2 })
        expect(newest).toMatchObject({ action: "extended", userId, to: endDate })
      }
    })
  })
}

/** Extends a membership, and tells what has come of it. */
const extend = (userId: UserId, endDate: EndDate, more: Partial<Extension>) =>
  MembershipStore.use((store) =>
    Effect.match(store.extend({ ...change(p1), userId, endDate, ...more }), {
      onSuccess: (result) => {
        if (isReplayedResponse(result)) return result
        return isEndsLater(result) ? { later: result.endDate } : "done"
      },
      onFailure: (error) =>
        error._tag === "EndDateConflict" ? { current: error.currentEndDate } : error._tag,
    }),
  )

/** Extends a membership if it has the expected date. */
const extendIf = (userId: UserId, expectedEndDate: EndDate, endDate = in2028) =>
  extend(userId, endDate, { expectedEndDate })

/** Extends a membership unless it ends later. */
const lengthen = (userId: UserId, endDate: EndDate, more: Partial<Extension> = {}) =>
  extend(userId, endDate, { mode: "neverShorten", ...more })

/** Declares the tests. */
export const expectingTests = (on: StoreTests): void => {
  const { property } = on
  const { test, transactional } = on.testsAfter(prepared)

  on.describe("an extension that expects an end date", () => {
    test("fails with the current one if that is another, by a millisecond or more", function* (store) {
      for (const expectedEndDate of [in2029, EndDate(in2027 - 1), EndDate(in2027 + 1)]) {
        const extension = { ...change(p1), userId: u1, endDate: in2028, expectedEndDate }
        expect(yield* Effect.flip(store.extend(extension))).toMatchObject({
          _tag: "EndDateConflict",
          projectId: p1,
          userId: u1,
          currentEndDate: in2027,
        })
      }
      expect(yield* endDateOf(u1)).toBe(in2027)
      expect(yield* extendIf(u3, in2027)).toBe("MembershipNotFound")
    })

    transactional("can go on with a transaction of the host in which it failed", function* () {
      const { run } = yield* HostTransaction
      yield* run(Effect.andThen(extendIf(u1, in2029), extendIf(u2, in2029)))
      expect(yield* endDateOf(u1)).toBe(in2027)
      expect(yield* endDateOf(u2)).toBe(in2028)
    })

    property(
      "succeeds once, if many expect the same date at the same time",
      fc.uniqueArray(fc.integer({ min: 1, max: 1000 }), { minLength: 2, maxLength: 12 }),
      Effect.fnUntraced(function* (offsets: ReadonlyArray<number>) {
        yield* prepared
        const wanted = offsets.map((offset) => EndDate(in2027 + offset))
        const results = yield* together(wanted.map((to) => extendIf(u1, in2027, to)))
        const current = yield* endDateOf(u1)
        expect(wanted).toContain(current)
        // The losers learn the winner's date.
        expect(results).toEqual(wanted.map((to) => (to === current ? "done" : { current })))
      }),
    )
  })

  on.describe("an extension that never shortens", () => {
    test("is audited with both dates, and expects an end date first", function* (store) {
      expect(yield* lengthen(u1, in2028, { expectedEndDate: in2029 })).toEqual({ current: in2027 })
      expect(yield* lengthen(u1, in2029, { expectedEndDate: in2027 })).toBe("done")
      const [row] = yield* store.history(p1, { userId: u1, limit: 1 })
      expect(row).toMatchObject({ action: "extended", from: in2027, to: in2029 })
      expect(yield* lengthen(u1, in2028, { expectedEndDate: in2028 })).toEqual({ current: in2029 })
      expect(yield* lengthen(u1, in2028, { expectedEndDate: in2029 })).toEqual({ later: in2029 })
      expect(yield* endDateOf(u1)).toBe(in2029)
    })

    test("keeps its idempotency key with the date that it left", function* (store) {
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2029 })
      const key = once()
      expect(yield* lengthen(u1, in2028, { once: key })).toEqual({ later: in2029 })
      yield* store.extend({ ...change(p1), userId: u1, endDate: in2027 })
      expect(yield* lengthen(u1, in2028, { once: key })).toEqual(replayedResponse(String(in2029)))
      expect(yield* endDateOf(u1)).toBe(in2027)
      const other = once()
      expect(yield* lengthen(u1, in2028, { once: other })).toBe("done")
      expect(yield* lengthen(u1, in2028, { once: other })).toEqual(replayedResponse())
    })

    test("ends with the latest date, if many arrive at the same time", function* () {
      const dates = [in2028, in2029, in2027, in2028]
      const results = yield* together(dates.map((endDate) => lengthen(u1, endDate)))
      expect(yield* endDateOf(u1)).toBe(in2029)
      expect(results[1]).toBe("done")
    })
  })

  test("extensions with conditions are decided alone, if several arrive at the same time", function* (store) {
    const users = [u1, u2, u3, UserId("1004"), UserId("1005")] as const
    const memberships = users.map((userId) => ({ userId, endDate: in2028 }))
    yield* store.import({ ...change(p1), memberships })
    const results = yield* together([
      extendIf(users[0], in2029),
      extend(users[1], in2027, {}),
      extendIf(users[2], in2028, in2029),
      lengthen(users[3], in2027),
      lengthen(users[4], in2029),
    ])
    expect(results).toEqual([{ current: in2028 }, "done", "done", { later: in2028 }, "done"])
    const members = yield* store.list(p1, { after: undefined, limit: 10 })
    expect(members.map(({ endDate }) => endDate)).toEqual([in2028, in2027, in2029, in2028, in2029])
  })
}
