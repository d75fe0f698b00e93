/** Lists by ends of projects with many members, also while others have locked some. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import {
  EndDate,
  type EndingCursor,
  type EndingPage,
  MembershipStore,
  Millis,
  UserId,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import {
  continueEndingBackfill,
  continueEndingBackfillParams,
  walkByEndDate,
  walkParams,
} from "../src/ending-list.ts"
import { postgresLayer } from "../src/index.ts"
import { blocksReadBy } from "./blocks.ts"
import { clientLayer, execute, sql, urlOf } from "./harness.ts"
import { holding, testsOn } from "./locking.ts"

const schema = "ending"
const { change, occasion, p1 } = Fixture
const onStores = testsOn(schema)

// More than a request gives places to, and than one walks through.
const members = 12_000
const daysFromNow = (days: number): EndDate => EndDate(Date.now() + days * 86_400_000)

/** A project with many members, who end one after the other. */
const filled = Effect.gen(function* () {
  // No index has entries of earlier tests.
  yield* sql(`TRUNCATE ${schema}.memberships`)
  yield* sql(
    `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq)
     SELECT number, n::text, date_trunc('second', now()) + n * interval '1 minute', 1
     FROM ${schema}.projects, generate_series(1, ${members}) n WHERE id = 'p1'`,
  )
  return yield* MembershipStore
})

/** Returns all pages of a list. */
const pagesOf = Effect.fnUntraced(function* (before: EndDate, limit: number) {
  const store = yield* MembershipStore
  const pages: Array<EndingPage> = []
  let after: EndingCursor | undefined
  do {
    const page = yield* store.listEnding(p1, { before, after, limit })
    pages.push(page)
    after = page.next
  } while (after !== undefined && pages.length < 100)
  expect(after).toBeUndefined()
  return pages
})

/** Returns all user ids of a list, which must have each once and in order. */
const usersBefore = Effect.fnUntraced(function* (before: EndDate, limit = 1000) {
  const listed = (yield* pagesOf(before, limit)).flatMap(({ memberships }) => memberships)
  const dates = listed.map(({ endDate }) => endDate)
  expect(dates).toEqual(dates.toSorted((one, other) => one - other))
  const users = new Set(listed.map(({ userId }) => userId))
  expect(users.size).toBe(listed.length)
  return users
})

describe("a list by ends", () => {
  onStores(
    "gives places to all members first, and has each once",
    Effect.gen(function* () {
      yield* filled
      const pages = yield* pagesOf(daysFromNow(30), 1000)
      expect(pages[0]?.memberships).toEqual([])
      expect(pages.flatMap(({ memberships }) => memberships)).toHaveLength(members)
      expect((yield* pagesOf(daysFromNow(30), 1000))[0]?.memberships).toHaveLength(1000)
    }),
  )

  onStores(
    "finds members where they end now, after many were extended and after bulk extensions",
    Effect.gen(function* () {
      const store = yield* filled
      yield* usersBefore(daysFromNow(1))
      // As extensions do: the bounds stay where they are.
      yield* sql(
        `UPDATE ${schema}.memberships SET end_date = end_date + interval '1 year', seq = seq + 1
         WHERE user_id::int % 4 > 0`,
      )
      expect((yield* usersBefore(daysFromNow(30))).size).toBe(members / 4)
      expect((yield* usersBefore(daysFromNow(400))).size).toBe(members)
      const floor = daysFromNow(100)
      yield* store.extendAll({ ...change(p1), bulk: { endDate: floor, mode: "neverShorten" } })
      expect((yield* usersBefore(floor)).size).toBe(0)
      expect((yield* usersBefore(EndDate(floor + 1))).size).toBe(members / 4)
      expect((yield* usersBefore(daysFromNow(400))).size).toBe(members)
      const date = daysFromNow(200)
      yield* store.extendAll({ ...change(p1), bulk: { endDate: date, mode: "set" } })
      expect((yield* usersBefore(date)).size).toBe(0)
      expect((yield* usersBefore(EndDate(date + 1))).size).toBe(members)
      // An extension that expects another date leaves the member where it is.
      const refused = { userId: UserId("7"), endDate: daysFromNow(300), expectedEndDate: floor }
      yield* Effect.exit(store.extend({ ...change(p1), ...refused }))
      expect((yield* usersBefore(EndDate(date + 1))).size).toBe(members)
    }),
  )

  onStores(
    "waits for no member that others have locked, and loses none",
    Effect.gen(function* () {
      const store = yield* filled
      yield* usersBefore(daysFromNow(1))
      const userId = UserId("2000")
      yield* store.extend({ ...change(p1), userId, endDate: daysFromNow(50) })
      const locked = `SELECT 1 FROM ${schema}.memberships WHERE user_id = '2000' FOR UPDATE`
      const page = { before: daysFromNow(60), after: undefined, limit: 3000 }
      const during = yield* holding(locked, store.listEnding(p1, page))
      // Those before it: it may belong anywhere after them.
      expect(during.memberships).toHaveLength(1999)
      const rest = yield* store.listEnding(p1, { ...page, after: during.next, limit: 10_000 })
      const last = yield* store.listEnding(p1, { ...page, after: rest.next, limit: 10_000 })
      expect([...rest.memberships, ...last.memberships].at(-1)?.userId).toBe(userId)
    }),
  )

  onStores(
    "leaves extensions that write to no index",
    Effect.gen(function* () {
      const store = yield* filled
      yield* usersBefore(daysFromNow(1))
      const placeOf = Effect.flatMap(PgClient.PgClient, (client) =>
        client.unsafe<{ readonly ending_generation: string; readonly ending_lower_bound: Date }>(
          `SELECT ending_generation, ending_lower_bound FROM ${schema}.memberships WHERE user_id = '7'`,
        ),
      )
      const before = yield* placeOf
      yield* store.extend({ ...change(p1), userId: UserId("7"), endDate: daysFromNow(99) })
      expect(yield* placeOf).toEqual(before)
    }),
  )

  it.live("writes no temporary files, however many members get places", () =>
    Effect.gen(function* () {
      // A database of its own, because PostgreSQL counts the files of each database.
      const database = "tenure_temporary_files"
      const listed = Effect.gen(function* () {
        const store = yield* MembershipStore
        yield* store.createProject(p1, occasion)
        yield* filled
        return yield* store.listEnding(p1, { before: daysFromNow(30), after: undefined, limit: 5 })
      }).pipe(
        Effect.provide(
          Layer.provideMerge(
            Layer.fresh(postgresLayer({ schema })),
            clientLayer({ url: Redacted.make(urlOf(database)) }),
          ),
        ),
      )
      yield* execute(
        `DROP DATABASE IF EXISTS ${database} WITH (FORCE)`,
        `CREATE DATABASE ${database}`,
      )
      expect((yield* listed).memberships).toEqual([])
      // Sessions report when they end.
      yield* Effect.repeat(sql(`SELECT FROM pg_stat_activity WHERE datname = '${database}'`), {
        until: (rows) => rows.length === 0,
      })
      const statistics = yield* sql<{ readonly xacts: string; readonly bytes: string }>(
        `SELECT xact_commit::text AS xacts, temp_bytes::text AS bytes
         FROM pg_stat_database WHERE datname = '${database}'`,
      )
      expect(Number(statistics[0]?.xacts)).toBeGreaterThan(5)
      expect(statistics[0]?.bytes).toBe("0")
      yield* execute(`DROP DATABASE ${database} WITH (FORCE)`)
    }).pipe(Effect.provide(clientLayer({ maxConnections: 1 }))),
  )

  onStores(
    "reads as much as it walks, and gives places without reading the whole table",
    Effect.gen(function* () {
      const store = yield* filled
      // Another project, whose members are nearly the whole table.
      yield* sql(
        `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq)
         SELECT number, n::text, now(), 1
         FROM ${schema}.projects, generate_series(1, 100000) n WHERE id = 'p2'`,
      )
      yield* sql(`ANALYZE ${schema}.memberships`)
      yield* sql(`UPDATE ${schema}.projects SET ending_backfilled_to = ''`)
      const [plan] = yield* sql<{ readonly "QUERY PLAN": unknown }>(
        `EXPLAIN (FORMAT JSON) ${continueEndingBackfill(`"${schema}"`)}`,
        continueEndingBackfillParams(p1, 10_000),
      )
      expect(JSON.stringify(plan)).not.toMatch(/"Seq Scan"[^}]*"memberships"/)

      yield* usersBefore(daysFromNow(1))
      const most = 100
      const asked = { projectId: p1, before: daysFromNow(400), most, limit: most }
      const ends = (at: number) =>
        blocksReadBy(
          walkByEndDate(`"${schema}"`),
          walkParams({ at, generation: 0, bound: at, userId: "" }, asked),
        )
      // A block for each membership, and the levels of the index.
      expect(yield* ends(0)).toBeLessThan(2 * most)
      expect(yield* ends(daysFromNow(4))).toBeLessThan(2 * most)
      const date = daysFromNow(200)
      yield* store.extendAll({ ...change(p1), bulk: { endDate: date, mode: "set" } })
      // And what bulk extensions make of each date.
      expect(yield* ends(0)).toBeLessThan(5 * most)
      for (let count = 0; count < 62; count++) {
        const bulk = { mode: "extendBy", by: Millis(1000 * (count + 1)) } as const
        yield* store.extendAll({ ...change(p1), bulk })
      }
      expect((yield* usersBefore(daysFromNow(400))).size).toBe(members)
    }),
  )
})
