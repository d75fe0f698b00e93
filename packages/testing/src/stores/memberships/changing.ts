/** Changes to one membership. */

import { expect } from "@effect/vitest"
import {
  EndDate,
  type EndDateConflict,
  MembershipStore,
  Outbox,
  ProjectId,
  type UserId,
  WebhookStore,
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
  p1,
  p2,
  u1,
  u2,
  u3,
  makeWebhook as newWebhook,
} from "../../support/fixtures.ts"
import { inDays } from "../announcing.ts"
import { HostTransaction, type StoreTests } from "../declare.ts"
import { endDateOf, nowhere, prepared } from "./model.ts"

/** Declares the tests. */
export const changingTests = (on: StoreTests): void => {
  const { describe, test } = on

  describe("projects", () => {
    test("keep their members and their history when they are created again", function* () {
      const store = yield* prepared
      yield* store.createProject(p1, occasion)
      expect(yield* endDateOf(u1)).toBe(in2027)
      expect(yield* store.history(p1, { userId: u1, limit: 10 })).toHaveLength(1)
    })

    test("that are missing are told from empty ones, whatever is asked of them", function* () {
      const store = yield* prepared
      const after = undefined
      const ofU1 = { ...change(nowhere), userId: u1, endDate: in2028 }
      const asked: ReadonlyArray<Effect.Effect<unknown, { readonly _tag: string }>> = [
        store.findProject(nowhere),
        store.grant(ofU1),
        store.extendAll({ ...change(nowhere), bulk: { endDate: in2028, mode: "set" } }),
        store.import({ ...change(nowhere), memberships: [{ userId: u1, endDate: in2028 }] }),
        store.import({ ...change(nowhere), memberships: [] }),
        ...[undefined, [u1], []].map((userIds) =>
          store.list(nowhere, { after, limit: 1, userIds }),
        ),
        store.listEnding(nowhere, { before: yield* inDays(1), after, limit: 1 }),
        store.history(nowhere, { userId: undefined, limit: 1 }),
      ]
      for (const [index, one] of asked.entries()) {
        const { _tag } = yield* Effect.flip(one)
        expect([index, _tag]).toEqual([index, "ProjectNotFound"])
      }
    })

    test("can have any valid id as their name, and names that look alike", function* () {
      const store = yield* MembershipStore
      const alike = ["acme", "ACME", "caf\u00e9", "cafe\u0301", "cafe"]
      for (const id of ["__proto__", "a/b?c#d", "日本", "'; --", "%00", ...alike]) {
        const projectId = ProjectId(id)
        const missing = yield* Effect.flip(store.find(projectId, u1))
        expect(missing._tag).toBe("MembershipNotFound")
        yield* store.createProject(projectId, occasion)
        yield* store.grant({ ...change(projectId), userId: u1, endDate: in2027 })
        expect(yield* endDateOf(u1, projectId)).toBe(in2027)
      }
    })
  })

  describe("grant", () => {
    test("stores end dates from year 0000 to 9999 with millisecond precision", function* () {
      const store = yield* prepared
      for (const text of ["0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]) {
        const endDate = date(text)
        yield* store.grant({ ...change(p1), userId: u1, endDate })
        expect(yield* endDateOf(u1)).toBe(endDate)
      }
    })

    test("accepts user ids of any kind, and distinguishes 7 from 07", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
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

  describe("extend", () => {
    test("can be repeated, which is audited each time", function* () {
      const store = yield* prepared
      const extension = { ...change(p1), userId: u1, endDate: in2028 }
      yield* store.extend(extension)
      yield* store.extend({ ...extension, event: draft(p1) })
      expect(yield* endDateOf(u1)).toBe(in2028)
      expect(yield* store.history(p1, { userId: u1, limit: 2 })).toMatchObject([
        { from: in2028, to: in2028 },
        { from: in2027, to: in2028 },
      ])
    })

    test("fails if the user has no membership in the project", function* () {
      const store = yield* prepared
      const unknown = [
        { ...change(p1), userId: u3 },
        { ...change(p2), userId: u1 },
        { ...change(nowhere), userId: u1 },
      ]
      for (const one of unknown) {
        const error = yield* Effect.flip(store.extend({ ...one, endDate: in2028 }))
        expect(error._tag).toBe("MembershipNotFound")
      }
    })
  })
}

/** Bulk extensions. */

/** A day after all members' end dates. */
const day = (number: number): EndDate => EndDate(in2029 + number * 86_400_000)

/** Declares the tests. */
export const bulkTests = ({ describe, test }: StoreTests): void => {
  describe("extendAll", () => {
    test("sets and counts every membership of the project, including those that end later", function* () {
      const store = yield* prepared
      yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
      const extended = yield* store.extendAll({
        ...change(p1),
        bulk: { endDate: in2028, mode: "set" },
      })
      expect(extended).toMatchObject({ total: 2 })
      expect(yield* endDateOf(u1)).toBe(in2028)
      expect(yield* endDateOf(u2)).toBe(in2028)
      expect(yield* endDateOf(u1, p2)).toBe(in2027)
    })

    test("with neverShorten, counts every membership, and changes none that ends later", function* () {
      const store = yield* prepared
      const bulk = { ...change(p1), bulk: { endDate: in2028, mode: "neverShorten" } } as const
      expect(yield* store.extendAll(bulk)).toMatchObject({ total: 2 })
      expect(yield* endDateOf(u1)).toBe(in2028)
      expect(yield* endDateOf(u2)).toBe(in2029)
    })

    test("with neverShorten, applies each of many dates that fall", function* () {
      const store = yield* prepared
      for (let left = 100; left > 0; left--) {
        const bulk = {
          ...change(p1),
          bulk: { endDate: day(left), mode: "neverShorten" },
        } as const
        expect(yield* store.extendAll(bulk)).toMatchObject({ total: 2 })
        expect(yield* endDateOf(u1)).toBe(day(left))
        yield* store.extend({ ...change(p1), userId: u1, endDate: day(0) })
      }
      expect(yield* endDateOf(u1)).toBe(day(0))
      expect(yield* endDateOf(u2)).toBe(day(100))
    })

    test("overrides the extensions that ended before it, including concurrent ones", function* () {
      const store = yield* prepared
      const extensions = Array.from({ length: 50 }, (_, index) =>
        store.extend({ ...change(p1), userId: index % 2 === 0 ? u1 : u2, endDate: in2027 }),
      )
      yield* Effect.all(extensions, { concurrency: "unbounded" })
      yield* store.extendAll({ ...change(p1), bulk: { endDate: in2029, mode: "set" } })
      expect(yield* endDateOf(u1)).toBe(in2029)
      expect(yield* endDateOf(u2)).toBe(in2029)
    })
  })
}

/** Extends a membership to 2028 if it has the expected date. Returns the result. */
const extendIf = (userId: UserId, expectedEndDate: EndDate, endDate = in2028) =>
  MembershipStore.use((store) =>
    Effect.match(store.extend({ ...change(p1), userId, endDate, expectedEndDate }), {
      onSuccess: () => "done",
      onFailure: (error) =>
        error._tag === "EndDateConflict" ? { current: error.currentEndDate } : error._tag,
    }),
  )

/** Declares the tests. */
export const expectingTests = (on: StoreTests): void => {
  const { property, test, transactional } = on

  on.describe("an extension that expects an end date", () => {
    test("sets the end date of a membership that has the expected one", function* () {
      const store = yield* prepared
      for (const text of ["0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]) {
        const endDate = date(text)
        yield* store.grant({ ...change(p1), userId: u1, endDate })
        expect(yield* extendIf(u1, endDate)).toBe("done")
        expect(yield* endDateOf(u1)).toBe(in2028)
      }
      const [row] = yield* store.history(p1, { userId: u1, limit: 1 })
      expect(row).toMatchObject({ action: "extended", to: in2028 })
    })

    test("fails with the current end date if it is not the expected one, by a millisecond or more", function* () {
      yield* prepared
      for (const expected of [in2029, EndDate(in2027 - 1), EndDate(in2027 + 1)]) {
        expect(yield* extendIf(u1, expected)).toEqual({ current: in2027 })
        expect(yield* endDateOf(u1)).toBe(in2027)
      }
      expect(yield* extendIf(u3, in2027)).toBe("MembershipNotFound")
    })

    test("fails with the ids of the membership", function* () {
      const store = yield* prepared
      const extension = { ...change(p1), userId: u1, endDate: in2028, expectedEndDate: in2028 }
      const error = yield* Effect.flip(store.extend(extension))
      const expected: Partial<EndDateConflict> = {
        _tag: "EndDateConflict",
        projectId: p1,
        userId: u1,
      }
      expect(error).toMatchObject(expected)
    })

    test("expects the date of the last bulk extension, not the one that it overrode", function* () {
      const store = yield* prepared
      yield* store.extendAll({ ...change(p1), bulk: { endDate: in2029, mode: "set" } })
      expect(yield* extendIf(u1, in2027)).toEqual({ current: in2029 })
      expect(yield* endDateOf(u1)).toBe(in2029)
      yield* store.extendAll({ ...change(p1), bulk: { endDate: in2027, mode: "set" } })
      expect(yield* extendIf(u1, in2029)).toEqual({ current: in2027 })
      expect(yield* endDateOf(u1)).toBe(in2027)
      expect(yield* extendIf(u1, in2027)).toBe("done")
      expect(yield* endDateOf(u1)).toBe(in2028)
    })

    test("neither audits nor publishes what it does not change", function* () {
      const store = yield* prepared
      const webhook = newWebhook(p1)
      yield* (yield* WebhookStore).add(webhook, 50, occasion)
      const before = yield* store.history(p1, { userId: undefined, limit: 100 })
      yield* extendIf(u1, in2029)
      expect(yield* store.history(p1, { userId: undefined, limit: 100 })).toEqual(before)
      const of = { projectId: p1, webhookId: webhook.id }
      expect(yield* (yield* Outbox).deliveries(of, { limit: 10 })).toEqual([])
    })

    transactional("can go on with a transaction of the host in which it failed", function* () {
      yield* prepared
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
        const results = yield* Effect.forEach(wanted, (to) => extendIf(u1, in2027, to), {
          concurrency: "unbounded",
        })
        const current = yield* endDateOf(u1)
        expect(wanted).toContain(current)
        // The losers learn the winner's date.
        expect(results).toEqual(wanted.map((to) => (to === current ? "done" : { current })))
      }),
    )

    test("fails alone among others that arrive at the same time", function* () {
      const store = yield* prepared
      yield* store.grant({ ...change(p1), userId: u3, endDate: in2027 })
      const results = yield* Effect.all(
        [
          extendIf(u1, in2029),
          store.extend({ ...change(p1), userId: u2, endDate: in2027 }),
          extendIf(u3, in2027),
        ],
        { concurrency: "unbounded" },
      )
      expect(results).toMatchObject([{ current: in2027 }, { projectId: p1 }, "done"])
      expect(yield* Effect.forEach([u1, u2, u3], (user) => endDateOf(user))).toEqual([
        in2027,
        in2027,
        in2028,
      ])
    })
  })
}
