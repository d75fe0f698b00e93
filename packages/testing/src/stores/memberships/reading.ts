/** Member lists and the audit trail. */

import { expect } from "@effect/vitest"
import { type MembershipState } from "@tenure/core/internal"
import type { EndDate } from "@tenure/core/store"
import {
  ApiKeyId,
  AuditCursor,
  type AuditRow,
  MembershipStore,
  Reason,
  UserId,
  UserIdPrefix,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import {
  change,
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
} from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { endingPagesOf } from "./ending-lists.ts"
import { prepared } from "./model.ts"

/** Reads the whole history in pages. */
const historyInPages = Effect.fnUntraced(function* (userId: UserId | undefined, limit: number) {
  const store = yield* MembershipStore
  const rows: Array<AuditRow> = []
  for (;;) {
    const page = yield* store.history(p1, { userId, after: rows.at(-1)?.cursor, limit })
    if (page.length === 0) return rows
    expect(page.length).toBeLessThanOrEqual(limit)
    rows.push(...page)
  }
})

const historyTests = ({ testsAfter, describe }: StoreTests): void => {
  const { test } = testsAfter(prepared)
  describe("history", () => {
    test("returns who changed what, the request, and both dates, newest first", function* (store) {
      const by = (index: number) => ({
        origin: { requestId: `request ${index}`, keyId: ApiKeyId(`key ${index}`) },
        at: index,
      })
      const one = () => ({ ...change(p1), userId: u1 })
      yield* store.extend({ ...one(), endDate: in2028, ...by(5) })
      yield* store.extendAll({ ...one(), bulk: { endDate: in2029, mode: "set" }, ...by(6) })
      yield* store.grant({ ...one(), endDate: in2027, ...by(7) })
      yield* store.end({ ...one(), ...by(8) })
      const row = {
        projectId: p1,
        userId: u1,
        changes: [],
        cursor: expect.any(String),
        reason: undefined,
      }
      expect(yield* store.history(p1, { userId: undefined, limit: 5 })).toEqual([
        { ...row, action: "ended", from: in2027, to: undefined, ...by(8) },
        { ...row, action: "granted", from: in2029, to: in2027, ...by(7) },
        {
          ...row,
          action: "bulk_extended",
          userId: undefined,
          subject: expect.any(String),
          from: undefined,
          to: in2029,
          ...by(6),
        },
        { ...row, action: "extended", from: in2027, to: in2028, ...by(5) },
        { ...row, action: "granted", userId: u2, from: undefined, to: in2029, ...occasion },
      ])
    })

    test("returns the reason of every change", function* (store) {
      const reasons = ["one", "two", "three", "four", "five", "Grüße 🎉\n".repeat(55)].map(Reason)
      const [byGrant, byExtension, byBulk, byRaise, byImport, byEnding] = reasons
      const one = (reason: Reason | undefined) => ({ ...change(p1), userId: u3, reason })
      yield* store.grant({ ...one(byGrant), endDate: in2027 })
      yield* store.extend({ ...one(byExtension), endDate: in2028 })
      yield* store.extendAll({ ...one(byBulk), bulk: { endDate: in2027, mode: "set" } })
      yield* store.extendAll({ ...one(byRaise), bulk: { endDate: in2028, mode: "neverShorten" } })
      const memberships = [{ userId: u3, endDate: in2029 }]
      yield* store.import({ ...one(byImport), memberships })
      yield* store.end(one(byEnding))
      const rows = yield* store.history(p1, { userId: undefined, limit: 6 })
      expect(rows.map(({ reason }) => reason)).toEqual(reasons.toReversed())
      const ofUser = yield* store.history(p1, { userId: u3, limit: 1 })
      expect(ofUser).toMatchObject([{ reason: byEnding }])
    })

    test("has of one user the bulk extensions that applied, page by page", function* (store) {
      const one = () => ({ ...change(p1), userId: u3 })
      const bulk = (endDate: EndDate, mode: "set" | "neverShorten") =>
        store.extendAll({ ...change(p1), bulk: { endDate, mode } })
      yield* bulk(in2029, "set")
      yield* store.grant({ ...one(), endDate: in2027 })
      yield* store.extend({ ...one(), userId: u1, endDate: in2028 })
      yield* bulk(in2028, "neverShorten")
      yield* bulk(in2027, "neverShorten")
      yield* bulk(in2029, "set")
      yield* bulk(in2028, "neverShorten")
      yield* bulk(in2027, "set")
      yield* store.end(one())
      yield* bulk(in2028, "set")
      yield* store.grant({ ...one(), endDate: in2028 })
      yield* bulk(in2028, "neverShorten")
      yield* bulk(in2029, "neverShorten")
      const expected = [
        ["bulk_lengthened", in2029],
        ["granted", in2028],
        ["ended", undefined],
        ["bulk_extended", in2027],
        ["bulk_extended", in2029],
        ["bulk_lengthened", in2028],
        ["granted", in2027],
      ]
      for (const limit of [1, 2, 3, 100]) {
        const rows = yield* historyInPages(u3, limit)
        expect(rows.map(({ action, to }) => [action, to])).toEqual(expected)
      }
      const all = yield* store.history(p1, { userId: undefined, limit: 100 })
      expect(yield* historyInPages(undefined, 3)).toEqual(all)
    })

    test("has nothing after a cursor that no row has", function* (store) {
      const [newest] = yield* store.history(p1, { userId: undefined, limit: 1 })
      const unknown = ["1.1", "0.0", "1.999999999999999999", "999999999999999999.1"]
      for (const text of [...unknown, `${newest?.cursor}9`]) {
        const page = { after: AuditCursor(text), limit: 10 }
        expect(yield* store.history(p1, { ...page, userId: undefined })).toEqual([])
        expect(yield* store.history(p1, { ...page, userId: u3 })).toEqual([])
        expect(yield* store.history(undefined, { ...page, userId: undefined })).toEqual([])
      }
    })

    test("has nothing after a cursor of another project, or from before it was deleted", function* (store) {
      const [one] = yield* store.history(p1, { userId: undefined, limit: 1 })
      const [other] = yield* store.history(undefined, { userId: undefined, limit: 1 })
      const after = (cursor: AuditCursor | undefined, projectId: typeof p1 | undefined) =>
        store.history(projectId, { userId: undefined, after: cursor, limit: 10 })
      yield* store.grant({ ...change(p2), userId: u3, endDate: in2027 })
      expect(yield* after(one?.cursor, p2)).toEqual([])
      expect(yield* after(one?.cursor, undefined)).toEqual([])
      expect(yield* after(other?.cursor, p1)).toEqual([])
      yield* store.deleteProject(p1, occasion)
      yield* store.createProject(p1, occasion)
      yield* store.grant({ ...change(p1), userId: u3, endDate: in2027 })
      expect(yield* after(one?.cursor, p1)).toEqual([])
    })
  })
}

type Page = Partial<Parameters<MembershipStore["Service"]["list"]>[1]>

const listedIds = (page: Page) =>
  MembershipStore.use((store) =>
    Effect.map(store.list(p1, { after: undefined, limit: 100, ...page }), (found) =>
      found.map(({ userId }) => userId),
    ),
  )

/** Declares the tests. */
export const readingTests = (on: StoreTests): void => {
  const { describe } = on
  const { test } = on.testsAfter(prepared)

  describe("list", () => {
    test("has user ids of any kind in the order of their code units, as the list by end dates", function* (store) {
      const users = [...manyKindsOfUser, u1, u2]
      const memberships = users.map((userId) => ({ userId, endDate: in2027 }))
      yield* store.import({ ...change(p1), memberships })
      const sorted = users.toSorted((one, other) => (one < other ? -1 : 1))
      for (const [index, after] of [undefined, ...sorted].entries()) {
        expect(yield* listedIds({ after, limit: 2 })).toEqual(sorted.slice(index, index + 2))
      }
      const ending = yield* endingPagesOf(store, { before: in2028, limit: 3 })
      expect(ending.map(({ userId }) => userId)).toEqual(sorted)
    })

    test("returns only memberships in one state, to the limit, by the date that holds", function* (store) {
      yield* store.grant({ ...change(p1), userId: UserId("9"), endDate: in2027 })
      const users = (state: MembershipState, at: number, limit = 10) =>
        listedIds({ limit, only: { state, at } })
      expect(yield* users("active", in2027 - 1)).toEqual([u1, u2, "9"])
      expect(yield* users("active", in2027)).toEqual([u2])
      expect(yield* users("expired", in2027)).toEqual([u1, "9"])
      expect(yield* users("active", in2027, 1)).toEqual([u2])
      yield* store.extendAll({ ...change(p1), bulk: { endDate: in2028, mode: "set" } })
      expect(yield* users("expired", in2027)).toEqual([])
      expect(yield* users("expired", in2028)).toEqual([u1, u2, "9"])
    })

    test("returns only memberships of the users asked for, in the same way", function* (store) {
      yield* store.grant({ ...change(p1), userId: UserId("9"), endDate: in2027 })
      yield* store.grant({ ...change(p2), userId: u3, endDate: in2027 })
      const list = (userIds: ReadonlyArray<UserId>, page: Page = {}) =>
        listedIds({ userIds, ...page })
      expect(yield* list([UserId("9"), u1, u3, u1])).toEqual([u1, "9"])
      expect(yield* list([UserId("9"), u1, u2], { after: u1, limit: 1 })).toEqual([u2])
      const only = { state: "active", at: in2027 } as const
      expect(yield* list([UserId("9"), u1, u2], { only })).toEqual([u2])
      expect(yield* list([UserId("9")], { limit: 1 })).toEqual(["9"])
      expect(yield* list([u3])).toEqual([])
      expect(yield* list([])).toEqual([])
    })

    test("returns only users whose ids start with a prefix", function* (store) {
      const ids = `7 07 0 A Ab a aB ab ab_ abc ab@ b _ + z ~ ~~ a~ a|b a%b a\\b a"b`.split(" ")
      const memberships = ids.map((id, index) => ({
        userId: UserId(id),
        endDate: index % 2 === 0 ? in2027 : in2029,
      }))
      yield* store.import({ ...change(p1), memberships })
      for (const text of "0 7 a ab abc abcd A _ + . .. z - ~ a| a% a\\".split(" ")) {
        const prefix = UserIdPrefix(text)
        const expected = ids.filter((id) => id.startsWith(text)).toSorted()
        expect(yield* listedIds({ prefix })).toEqual(expected)
        // A cursor may come from another list.
        for (const after of [...expected, "z".repeat(128), "+"].map(UserId)) {
          const rest = expected.filter((id) => id > after)
          expect(yield* listedIds({ prefix, after, limit: 2 })).toEqual(rest.slice(0, 2))
        }
        const only = { state: "active", at: in2027 } as const
        const active = expected.filter((id) => ids.indexOf(id) % 2 === 1)
        expect(yield* listedIds({ prefix, only })).toEqual(active)
      }
    })
  })

  historyTests(on)
}
