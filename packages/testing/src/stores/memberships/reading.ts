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
  hostOrigin,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import {
  change,
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
} from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { endingPagesOf } from "./ending-lists.ts"
import { prepared } from "./model.ts"

const historyTests = ({ describe, test }: StoreTests): void => {
  describe("history", () => {
    test("returns who changed what, the request, and both dates, newest first", function* () {
      const store = yield* prepared
      const origins = Array.from({ length: 4 }, () => ({
        requestId: crypto.randomUUID(),
        keyId: ApiKeyId(crypto.randomUUID()),
      }))
      const [
        byExtension = hostOrigin,
        byBulk = hostOrigin,
        byGrant = hostOrigin,
        byEnding = hostOrigin,
      ] = origins
      const one = { ...change(p1), userId: u1 }
      yield* store.extend({ ...one, endDate: in2028, origin: byExtension, at: 5 })
      yield* store.extendAll({
        ...change(p1),
        bulk: { endDate: in2029, mode: "set" },
        origin: byBulk,
        at: 6,
      })
      yield* store.grant({ ...one, event: draft(p1), endDate: in2027, origin: byGrant, at: 7 })
      yield* store.end({ ...one, event: draft(p1), origin: byEnding, at: 8 })
      const rows = yield* store.history(p1, { userId: undefined, limit: 5 })
      const ofUser = { projectId: p1, userId: u1, changes: [] }
      const [ended, granted, bulk, extended, first] = rows
      expect(ended).toEqual({
        ...ofUser,
        cursor: expect.any(String),
        action: "ended",
        origin: byEnding,
        reason: undefined,
        from: in2027,
        to: undefined,
        at: 8,
      })
      expect(granted).toEqual({
        ...ofUser,
        cursor: expect.any(String),
        action: "granted",
        origin: byGrant,
        reason: undefined,
        from: in2029,
        to: in2027,
        at: 7,
      })
      expect(bulk).toEqual({
        projectId: p1,
        changes: [],
        userId: undefined,
        cursor: expect.any(String),
        action: "bulk_extended",
        subject: expect.any(String),
        origin: byBulk,
        reason: undefined,
        from: undefined,
        to: in2029,
        at: 6,
      })
      expect(extended).toEqual({
        ...ofUser,
        cursor: expect.any(String),
        action: "extended",
        origin: byExtension,
        reason: undefined,
        from: in2027,
        to: in2028,
        at: 5,
      })
      expect(first).toEqual({
        ...ofUser,
        userId: u2,
        cursor: expect.any(String),
        action: "granted",
        origin: hostOrigin,
        reason: undefined,
        from: undefined,
        to: in2029,
        at: 0,
      })
    })

    test("returns the reason of every change", function* () {
      const store = yield* prepared
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

    test("has of one user the bulk extensions that applied, page by page", function* () {
      const store = yield* prepared
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
        const rows: Array<AuditRow> = []
        for (;;) {
          const page: ReadonlyArray<AuditRow> = yield* store.history(p1, {
            userId: u3,
            after: rows.at(-1)?.cursor,
            limit,
          })
          if (page.length === 0) break
          rows.push(...page)
        }
        expect(rows.map(({ action, to }) => [action, to])).toEqual(expected)
      }
      const all = yield* store.history(p1, { userId: undefined, limit: 100 })
      const rest = yield* store.history(p1, {
        userId: undefined,
        after: all[4]?.cursor,
        limit: 3,
      })
      expect(rest).toEqual(all.slice(5, 8))
    })

    test("has nothing after a cursor that no row has", function* () {
      const store = yield* prepared
      for (const endDate of [in2027, in2028, in2029]) {
        yield* store.grant({ ...change(p1), userId: u3, endDate })
      }
      const [newest] = yield* store.history(p1, { userId: undefined, limit: 1 })
      const unknown = ["1.1", "0.0", "1.999999999999999999", "999999999999999999.1"]
      for (const text of [...unknown, `${newest?.cursor}9`]) {
        const page = { after: AuditCursor(text), limit: 10 }
        expect(yield* store.history(p1, { ...page, userId: undefined })).toEqual([])
        expect(yield* store.history(p1, { ...page, userId: u3 })).toEqual([])
        expect(yield* store.history(undefined, { ...page, userId: undefined })).toEqual([])
      }
    })

    test("has nothing after a cursor of another project, or from before it was deleted", function* () {
      const store = yield* prepared
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
      for (const endDate of [in2027, in2028, in2029]) {
        yield* store.grant({ ...change(p1), userId: u3, endDate })
      }
      expect(yield* after(one?.cursor, p1)).toEqual([])
    })
  })
}

/** Declares the tests. */
export const readingTests = (on: StoreTests): void => {
  const { describe, test } = on

  describe("list", () => {
    test("has user ids of any kind in the order of their code units, as the list by end dates", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      for (const userId of manyKindsOfUser) {
        yield* store.grant({ ...change(p1), userId, endDate: in2027 })
      }
      const sorted = manyKindsOfUser.toSorted((one, other) => (one < other ? -1 : 1))
      for (const [index, after] of [undefined, ...sorted].entries()) {
        const page = yield* store.list(p1, { after, limit: 2 })
        expect(page.map(({ userId }) => userId)).toEqual(sorted.slice(index, index + 2))
      }
      const ending = yield* endingPagesOf(store, { before: in2028, limit: 3 })
      expect(ending.map(({ userId }) => userId)).toEqual(sorted)
    })

    test("returns only memberships in one state, to the limit, by the date that holds", function* () {
      const store = yield* prepared
      yield* store.grant({ ...change(p1), userId: UserId("9"), endDate: in2027 })
      const users = (state: MembershipState, at: number, limit = 10) =>
        Effect.map(store.list(p1, { after: undefined, limit, only: { state, at } }), (page) =>
          page.map(({ userId }) => userId),
        )
      expect(yield* users("active", in2027 - 1)).toEqual([u1, u2, "9"])
      expect(yield* users("active", in2027)).toEqual([u2])
      expect(yield* users("expired", in2027)).toEqual([u1, "9"])
      expect(yield* users("active", in2027, 1)).toEqual([u2])
      yield* store.extendAll({ ...change(p1), bulk: { endDate: in2028, mode: "set" } })
      expect(yield* users("expired", in2027)).toEqual([])
      expect(yield* users("expired", in2028)).toEqual([u1, u2, "9"])
    })

    test("returns only memberships of the users asked for, in the same way", function* () {
      const store = yield* prepared
      yield* store.grant({ ...change(p1), userId: UserId("9"), endDate: in2027 })
      yield* store.grant({ ...change(p2), userId: u3, endDate: in2027 })
      const list = (userIds: ReadonlyArray<UserId>, page: object = {}) =>
        Effect.map(store.list(p1, { after: undefined, limit: 10, userIds, ...page }), (found) =>
          found.map(({ userId }) => userId),
        )
      expect(yield* list([UserId("9"), u1, u3, u1])).toEqual([u1, "9"])
      expect(yield* list([UserId("9"), u1, u2], { after: u1, limit: 1 })).toEqual([u2])
      const only = { state: "active", at: in2027 } as const
      expect(yield* list([UserId("9"), u1, u2], { only })).toEqual([u2])
      expect(yield* list([UserId("9")], { limit: 1 })).toEqual(["9"])
      expect(yield* list([u3])).toEqual([])
      expect(yield* list([])).toEqual([])
    })

    test("returns only users whose ids start with a prefix", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      const ids = [
        "7",
        "07",
        "0",
        "A",
        "Ab",
        "a",
        "aB",
        "ab",
        "ab_",
        "abc",
        "ab@",
        "b",
        "_",
        "+",
        "z",
        "~",
        "~~",
        "a~",
        "a|b",
        "a%b",
        "a\\b",
        'a"b',
      ]
      for (const [index, id] of ids.entries()) {
        const endDate = index % 2 === 0 ? in2027 : in2029
        yield* store.grant({ ...change(p1), userId: UserId(id), endDate })
      }
      const list = (prefix: string, page: object = {}) =>
        Effect.map(
          store.list(p1, { after: undefined, limit: 100, prefix: UserIdPrefix(prefix), ...page }),
          (found) => found.map(({ userId }) => userId),
        )
      for (const prefix of [
        "0",
        "7",
        "a",
        "ab",
        "abc",
        "abcd",
        "A",
        "_",
        "+",
        ".",
        "..",
        "z",
        "-",
        "~",
        "a|",
        "a%",
        "a\\",
      ]) {
        const expected = ids.filter((id) => id.startsWith(prefix)).toSorted()
        expect(yield* list(prefix)).toEqual(expected)
        const paged = [...(yield* list(prefix, { limit: 2 }))]
        for (;;) {
          const after = paged.at(-1)
          const next = after === undefined ? [] : yield* list(prefix, { limit: 2, after })
          if (next.length === 0) break
          paged.push(...next)
        }
        expect(paged).toEqual(expected)
        const only = { state: "active", at: in2027 } as const
        expect(yield* list(prefix, { only })).toEqual(
          expected.filter((id) => ids.indexOf(id) % 2 === 1),
        )
        // A cursor may come from another list.
        const last = UserId("z".repeat(128))
        expect(yield* list(prefix, { after: last })).toEqual(expected.filter((id) => id > last))
        expect(yield* list(prefix, { after: UserId("+") })).toEqual(
          expected.filter((id) => id > "+"),
        )
      }
    })
  })

  historyTests(on)
}
