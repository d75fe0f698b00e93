/** Certifies searches in the audit trail, against a simple filter of the whole trail. */

import { expect } from "@effect/vitest"
import {
  ApiKeyId,
  type AuditAction,
  type AuditCursor,
  type AuditFilter,
  type AuditRow,
  MembershipStore,
  ProjectId,
  UserId,
  noMetadata,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import * as Fixture from "../../support/fixtures.ts"
import { announcedOn } from "../announcing.ts"
import type { StoreTests } from "../declare.ts"
import { createProjects, dayMillis, expectFailure } from "../steps.ts"
import { gold, nowhere } from "./every-change.ts"

const { change, in2027, in2028, in2029, p1, p2, u1, u2, u3 } = Fixture

type Store = MembershipStore["Service"]

interface Search extends AuditFilter {
  readonly userId?: UserId | undefined
}

/** Reads what a search finds, page by page. */
const searched = Effect.fnUntraced(function* (
  projectId: ProjectId | undefined,
  search: Search,
  limit = 1000,
) {
  const store = yield* MembershipStore
  const found: Array<AuditRow> = []
  let after: AuditCursor | undefined
  for (let pages = 0; pages < 1000; pages++) {
    const page = yield* store.searchHistory(projectId, {
      userId: undefined,
      ...search,
      after,
      limit,
    })
    expect(page.rows.length).toBeLessThanOrEqual(limit)
    found.push(...page.rows)
    if (page.next === undefined) return found
    after = page.next
  }
  return expect.fail("the pages do not end")
})

/** Returns what a search finds in the whole trail. */
const expected = Effect.fnUntraced(function* (projectId: ProjectId | undefined, search: Search) {
  const store = yield* MembershipStore
  const { action, announcements, keyId, requestId, since, until, userId } = search
  const all = yield* store.history(projectId, { userId, limit: 10_000 })
  return all
    .filter((row) => keyId === undefined || row.origin.keyId === keyId)
    .filter((row) => action === undefined || row.action === action)
    .filter((row) => requestId === undefined || row.origin.requestId === requestId)
    .filter((row) => since === undefined || row.at >= since)
    .filter((row) => until === undefined || row.at < until)
    .filter((row) => announcements !== false || !/^(expiring|overdue|expired)$/.test(row.action))
})

const start = Date.UTC(2026, 0, 1)
const users = [u1, u2, u3]

/** A kind of change, its origin, and how many milliseconds after the one before it is. */
interface Step {
  readonly kind: "bulk" | "end" | "extend" | "grant" | "shown" | "updated"
  readonly user: UserId
  readonly key: string | undefined
  readonly request: string | undefined
  /** Servers' clocks differ. */
  readonly later: number
}

const keys = fc.constantFrom(undefined, "key-1", "key-2", "k'y%_\\")
const requests = fc.constantFrom(undefined, "request 1", "request 2")

const steps = fc.array(
  fc.record<Step>({
    kind: fc.constantFrom("bulk", "end", "extend", "extend", "grant", "shown", "updated"),
    user: fc.constantFrom(...users),
    key: keys,
    request: requests,
    later: fc.constantFrom(0, 0, 1, 1000, -1000),
  }),
  { maxLength: 30 },
)

const some = <A>(values: fc.Arbitrary<A>) => fc.option(values, { nil: undefined, freq: 2 })

const actions: ReadonlyArray<AuditAction> = ["granted", "extended", "bulk_extended", "secret_shown"]
const offsets = fc.integer({ min: -3, max: 10 }).map((seconds) => start + 1000 * seconds)

const searches = fc.record<Search>({
  userId: some(fc.constantFrom(...users)),
  keyId: some(keys.map((key) => ApiKeyId(key ?? "key-3"))),
  action: some(fc.constantFrom(...actions)),
  requestId: some(requests.map((request) => request ?? "request 3")),
  since: some(offsets),
  until: some(offsets),
  announcements: some(fc.boolean()),
})

/** Makes changes. What fails is not recorded. */
const make = (store: Store, made: ReadonlyArray<Step>) => {
  let at = start
  return Effect.forEach(made, ({ key, kind, later, request, user }) => {
    at += later
    const origin = { keyId: key === undefined ? undefined : ApiKeyId(key), requestId: request }
    const by = { ...change(p1), origin, at, userId: user }
    const work: Record<Step["kind"], Effect.Effect<unknown, unknown>> = {
      bulk: store.extendAll({ ...by, bulk: { mode: "set", endDate: in2029 } }),
      end: store.end(by),
      extend: store.extend({ ...by, endDate: in2028 }),
      grant: store.grant({ ...by, endDate: in2027 }),
      shown: store.recordShown(p1, { action: "secret_shown", subject: "a webhook" }, by),
      updated: store.setMetadata({ ...by, expected: noMetadata, metadata: gold }),
    }
    return Effect.ignore(work[kind])
  })
}

/** Changes of one user each, by several keys, in a project with another. */
const prepared = Effect.gen(function* () {
  yield* createProjects
  const store = yield* MembershipStore
  const by = (projectId: ProjectId, key: string, at: number) => ({
    ...change(projectId),
    origin: { keyId: ApiKeyId(key), requestId: `request ${at}` },
    at,
  })
  yield* store.grant({ ...by(p1, "key-1", start), userId: u1, endDate: in2027 })
  yield* store.grant({ ...by(p1, "key-2", start + 1000), userId: u2, endDate: in2027 })
  yield* store.extend({ ...by(p1, "key-1", start + 2000), userId: u2, endDate: in2028 })
  yield* store.grant({ ...by(p2, "key-1", start + 3000), userId: u1, endDate: in2027 })
  return { store, by }
})

const foundBy = (projectId: ProjectId | undefined, search: Search) =>
  Effect.map(searched(projectId, search), (rows) =>
    rows.map(({ action, userId }) => (userId === undefined ? [action] : [action, userId])),
  )

/** More rows than the stores of Tenure read for a page. */
const manyUsers = Array.from({ length: 5100 }, (_, index) => UserId(`many-${index}`))

export const searchTests = (on: StoreTests): void => {
  const { announcesEnds, describe, property } = on
  const { test } = on.testsAfter(prepared)

  describe("a search in the audit trail", () => {
    property(
      "finds what a filter of the whole trail finds, page by page",
      fc.record({ steps, search: searches, limit: fc.integer({ min: 1, max: 5 }) }),
      Effect.fnUntraced(function* ({ limit, search, steps: made }) {
        const store = yield* MembershipStore
        yield* createProjects
        yield* make(store, made)
        const found = yield* searched(p1, search, limit)
        expect(found).toEqual(yield* expected(p1, search))
      }),
    )

    test("finds only what matches all of its fields, from `since` on, and before `until`", function* () {
      const [first, second, third] = [
        ["granted", u1],
        ["granted", u2],
        ["extended", u2],
      ]
      const keyId = ApiKeyId("key-1")
      for (const [search, found] of [
        [{}, [third, second, first]],
        [{ keyId }, [third, first]],
        [{ keyId, userId: u2 }, [third]],
        [{ keyId, action: "granted" }, [first]],
        [{ requestId: `request ${start + 1000}` }, [second]],
        [{ since: start + 1000 }, [third, second]],
        [{ until: start + 1000 }, [first]],
        [{ since: start + 1000, until: start + 1001 }, [second]],
        [{ keyId: ApiKeyId("key-2"), action: "extended" }, []],
      ] as const) {
        expect([search, yield* foundBy(p1, search)]).toEqual([search, found])
      }
    })

    test("finds changes outside projects", function* ({ by, store }) {
      const { origin } = by(p1, "key-9", start)
      yield* store.createProject(ProjectId("p3"), { origin, at: start })
      expect(yield* foundBy(undefined, { keyId: ApiKeyId("key-9") })).toEqual([["project_created"]])
      expect(yield* foundBy(undefined, { action: "project_created" })).toHaveLength(3)
      expect(yield* foundBy(undefined, { action: "granted" })).toEqual([])
    })

    test("finds nothing after a cursor from another trail, and fails without a project", function* ({
      store,
    }) {
      const page = { userId: undefined, keyId: ApiKeyId("key-1"), limit: 1 }
      const { next } = yield* store.searchHistory(p1, page)
      expect(next).toBeDefined()
      const other = yield* store.searchHistory(p2, { ...page, after: next })
      expect(other).toEqual({ rows: [], next: undefined })
      yield* expectFailure(
        "ProjectNotFound",
        store.searchHistory(nowhere, page),
        store.searchHistory(nowhere, { ...page, userId: u1 }),
        store.searchHistory(nowhere, { ...page, keyId: undefined }),
      )
    })

    test("finds nothing of an erased person, and the changes of others", function* ({ by, store }) {
      const bulk = { mode: "set", endDate: in2029 } as const
      yield* store.extendAll({ ...by(p1, "key-1", start + 4000), bulk })
      yield* store.erase({ ...by(p1, "key-2", start + 5000), userId: u2 })
      expect(yield* foundBy(p1, { userId: u2 })).toEqual([])
      expect(yield* foundBy(p1, { userId: u2, keyId: ApiKeyId("key-1") })).toEqual([])
      expect(yield* foundBy(p1, { userId: u1, keyId: ApiKeyId("key-1") })).toEqual([
        ["bulk_extended"],
        ["granted", u1],
      ])
    })

    test("finds rows behind more others than a page is made from", function* ({ by, store }) {
      const memberships = manyUsers.map((userId) => ({ userId, endDate: in2027 }))
      // Recorded before the others by a server whose clock is nearly an hour ahead.
      const ahead = start + 3_500_000
      yield* store.extend({ ...by(p1, "key-3", ahead), userId: u1, endDate: in2028 })
      yield* store.import({ ...by(p1, "key-2", start + 1000), memberships })
      for (const [search, found] of [
        [{ keyId: ApiKeyId("key-3") }, [["extended", u1]]],
        [{ since: ahead }, [["extended", u1]]],
        [{ until: start + 1000 }, [["granted", u1]]],
        [{ since: ahead + 1 }, []],
      ] as const) {
        expect([search, yield* foundBy(p1, search)]).toEqual([search, found])
      }
    })

    if (!announcesEnds) return
    announcedOn(on)("leaves out announcements", function* ({ grant, sweep }) {
      yield* grant(u1, 0.5)
      yield* on.advance(dayMillis)
      yield* sweep
      const all = yield* foundBy(p1, {})
      expect(all.filter(([action]) => action === "expired")).toHaveLength(1)
      expect(yield* foundBy(p1, { announcements: true })).toEqual(all)
      for (const search of [{}, { userId: u1 }]) {
        const found = yield* foundBy(p1, { ...search, announcements: false })
        expect(found).toEqual([["granted", u1]])
      }
    })
  })
}
