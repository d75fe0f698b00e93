/** Ending lists with many members, also while others have locked some. */

import { describe, expect, it } from "@effect/vitest"
import { EndDate, MembershipStore, Millis, UserId } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  continueEndingBackfill,
  continueEndingBackfillParams,
  walkByEndDate,
  walkParams,
} from "../src/ending-list.ts"
import { postgresLayer } from "../src/index.ts"
import { blocksReadBy } from "./blocks.ts"
import { clientLayer, during, endingPages, ownDatabase, sql, testsOn } from "./harness.ts"

const schema = "ending_list"
const { change, context, p1 } = Fixture
const test = testsOn(schema)

// More than a request gives places to, and than one walks through.
const members = 12_000
const daysFromNow = (days: number): EndDate => EndDate(Date.now() + days * 86_400_000)

/** Makes a project with many members, who end one after the other. */
const filled = Effect.gen(function* () {
  // No index has entries from earlier tests.
  yield* sql(`TRUNCATE ${schema}.memberships`)
  yield* sql(
    `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq)
     SELECT number, n::text, date_trunc('second', now()) + n * interval '1 minute', 1
     FROM ${schema}.projects, generate_series(1, ${members}) n WHERE id = 'p1'`,
  )
  return yield* MembershipStore
})

/** Returns how many members a list has. It must have each once and in order. */
const countBefore = Effect.fnUntraced(function* (before: EndDate) {
  const pages = yield* endingPages(before, 1000)
  const listed = pages.flatMap(({ memberships }) => memberships)
  const dates = listed.map(({ endDate }) => endDate)
  expect(dates).toEqual(dates.toSorted((one, other) => one - other))
  expect(new Set(listed.map(({ userId }) => userId)).size).toBe(listed.length)
  return listed.length
})

describe("a list by ends", () => {
  test("gives places to all members, and finds them where they end now", function* () {
    const store = yield* filled
    const pages = endingPages(daysFromNow(30), 1000)
    const found = yield* pages
    expect(found[0]?.memberships).toEqual([])
    expect(found.flatMap(({ memberships }) => memberships)).toHaveLength(members)
    expect((yield* pages)[0]?.memberships).toHaveLength(1000)
    expect(yield* countBefore(daysFromNow(30))).toBe(members)
    // As extensions do: the bounds stay where they are.
    yield* sql(
      `UPDATE ${schema}.memberships SET end_date = end_date + interval '1 year', seq = seq + 1
       WHERE user_id::int % 4 > 0`,
    )
    expect(yield* countBefore(daysFromNow(30))).toBe(members / 4)
    expect(yield* countBefore(daysFromNow(400))).toBe(members)
    const floor = daysFromNow(100)
    yield* store.extendAll({ ...change(p1), bulk: { endDate: floor, mode: "neverShorten" } })
    expect(yield* countBefore(floor)).toBe(0)
    expect(yield* countBefore(EndDate(floor + 1))).toBe(members / 4)
    expect(yield* countBefore(daysFromNow(400))).toBe(members)
    const date = daysFromNow(200)
    yield* store.extendAll({ ...change(p1), bulk: { endDate: date, mode: "set" } })
    expect(yield* countBefore(date)).toBe(0)
    expect(yield* countBefore(EndDate(date + 1))).toBe(members)
    // An extension that expects another date leaves the member where it is.
    const refused = { userId: UserId("7"), endDate: daysFromNow(300), expectedEndDate: floor }
    yield* Effect.exit(store.extend({ ...change(p1), ...refused }))
    expect(yield* countBefore(EndDate(date + 1))).toBe(members)
  })

  test("waits for no member that others have locked, and loses none", function* () {
    const store = yield* filled
    yield* countBefore(daysFromNow(1))
    const userId = UserId("2000")
    const place = sql(
      `SELECT ending_generation, ending_lower_bound FROM ${schema}.memberships WHERE user_id = '2000'`,
    )
    const before = yield* place
    yield* store.extend({ ...change(p1), userId, endDate: daysFromNow(50) })
    // The extension has written to no index.
    expect(yield* place).toEqual(before)
    const page = { before: daysFromNow(60), after: undefined, limit: 3000 }
    const first = yield* during(
      sql(`SELECT 1 FROM ${schema}.memberships WHERE user_id = '2000' FOR UPDATE`),
      store.listEnding(p1, page),
    )
    // Those before it: it may belong anywhere after them.
    expect(first.memberships).toHaveLength(1999)
    const rest = yield* store.listEnding(p1, { ...page, after: first.next, limit: 10_000 })
    const last = yield* store.listEnding(p1, { ...page, after: rest.next, limit: 10_000 })
    expect([...rest.memberships, ...last.memberships].at(-1)?.userId).toBe(userId)
  })

  // PostgreSQL counts temporary files by database.
  const database = ownDatabase("tenure_temporary_files")

  it.live("writes no temporary files, however many members get places", () =>
    Effect.gen(function* () {
      const listed = Effect.gen(function* () {
        yield* (yield* MembershipStore).createProject(p1, context)
        const store = yield* filled
        return yield* store.listEnding(p1, { before: daysFromNow(30), after: undefined, limit: 5 })
      }).pipe(
        Effect.provide(
          Layer.provideMerge(Layer.fresh(postgresLayer({ schema })), clientLayer(database)),
        ),
      )
      expect((yield* listed).memberships).toEqual([])
      // Sessions report when they end.
      yield* Effect.repeat(
        sql("SELECT FROM pg_stat_activity WHERE datname = 'tenure_temporary_files'"),
        { until: (rows) => rows.length === 0 },
      )
      const [statistics] = yield* sql<{ readonly xacts: string; readonly bytes: string }>(
        `SELECT xact_commit::text AS xacts, temp_bytes::text AS bytes
         FROM pg_stat_database WHERE datname = 'tenure_temporary_files'`,
      )
      expect(Number(statistics?.xacts)).toBeGreaterThan(5)
      expect(statistics?.bytes).toBe("0")
    }).pipe(Effect.provide(clientLayer({ maxConnections: 1 }))),
  )

  test("reads as much as it walks, and never the whole table", function* () {
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

    yield* countBefore(daysFromNow(1))
    const most = 100
    const asked = { projectId: p1, before: daysFromNow(400), maxSteps: most, limit: most }
    const blocksFrom = (at: number) =>
      blocksReadBy(
        walkByEndDate(`"${schema}"`),
        walkParams({ at, generation: 0, bound: at, userId: "" }, asked),
      )
    // A block for each membership, and the index's levels.
    expect(yield* blocksFrom(0)).toBeLessThan(2 * most)
    expect(yield* blocksFrom(daysFromNow(4))).toBeLessThan(2 * most)
    const date = daysFromNow(200)
    yield* store.extendAll({ ...change(p1), bulk: { endDate: date, mode: "set" } })
    // And what bulk extensions make from each date.
    expect(yield* blocksFrom(0)).toBeLessThan(5 * most)
    for (let count = 0; count < 62; count++) {
      const bulk = { mode: "extendBy", by: Millis(1000 * (count + 1)) } as const
      yield* store.extendAll({ ...change(p1), bulk })
    }
    expect(yield* countBefore(daysFromNow(400))).toBe(members)
  })
})
