/** The rule for effective end dates, which is said once in core and once in SQL. */

import { expect, it } from "@effect/vitest"
import {
  EndDate,
  addBulkExtension,
  bulkModes,
  effectiveEndDate,
  noBulkExtensions,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { migrate } from "../src/index.ts"
import { effectiveDateLocked, effectiveEndDateSql } from "../src/sql/clauses.ts"
import {
  type Integer,
  bigintsParam,
  instantsParam,
  integersParam,
  millisOf,
} from "../src/sql/values.ts"
import { clientLayer, execute, sql } from "./harness.ts"

const schema = "effective_date"
const quoted = `"${schema}"`

const date = fc.nat({ max: 9 }).map((days) => EndDate(days * 86_400_000))

/** The bulk extensions of a project, and the dates that ten members were given between them. */
const project = fc.record({
  bulk: fc.array(fc.record({ mode: fc.constantFrom(...bulkModes), date }), { maxLength: 12 }),
  own: fc.array(fc.record({ endDate: date, after: fc.nat({ max: 12 }), by: fc.nat({ max: 1 }) }), {
    minLength: 10,
    maxLength: 10,
  }),
})

// Of two neighbours, a bulk extension has the first number, so that a member may also have exactly this one.
const bulkSeq = (index: number): number => 2 * index

const projects = fc.sample(project, { numRuns: 1000, seed: 20_260_101 }).map(({ bulk, own }) => ({
  bulk: bulk.reduce(
    (state, one, index) =>
      addBulkExtension(state, one.mode, { endDate: one.date, order: bulkSeq(index + 1) }),
    noBulkExtensions,
  ),
  last: bulkSeq(bulk.length),
  own: own.map(({ after, by, endDate }) => ({ endDate, order: bulkSeq(after) + by })),
}))

const rows = projects.flatMap(({ bulk, last, own }, index) =>
  own.map((one) => ({ number: index + 1, bulk, last, own: one })),
)

const floors = projects.flatMap(({ bulk }, index) =>
  bulk.floors.map((floor) => ({ number: index + 1, ...floor })),
)

const filled = Effect.gen(function* () {
  yield* execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
  yield* migrate({ schema })
  yield* sql(
    `INSERT INTO ${schema}.projects (id, number, bulk_seq, overwrite_seq, bulk_end_date) OVERRIDING SYSTEM VALUE
     SELECT 'p' || n, n, bulk_seq, overwrite_seq, bulk_end_date
     FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) WITH ORDINALITY AS p (bulk_seq, overwrite_seq, bulk_end_date, n)`,
    [
      bigintsParam(projects.map(({ last }) => BigInt(last))),
      bigintsParam(projects.map(({ bulk }) => BigInt(bulk.set?.order ?? 0))),
      instantsParam(projects.map(({ bulk }) => bulk.set?.endDate)),
    ],
  )
  yield* sql(
    `INSERT INTO ${schema}.minimum_end_dates SELECT * FROM unnest($1::integer[], $2::bigint[], $3::timestamptz[])`,
    [
      integersParam(floors.map(({ number }) => number)),
      bigintsParam(floors.map(({ order }) => BigInt(order))),
      instantsParam(floors.map(({ endDate }) => endDate)),
    ],
  )
  yield* sql(
    `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq)
     SELECT number, n::text, end_date, seq
     FROM unnest($1::integer[], $2::timestamptz[], $3::bigint[]) WITH ORDINALITY AS m (number, end_date, seq, n)`,
    [
      integersParam(rows.map(({ number }) => number)),
      instantsParam(rows.map(({ own }) => own.endDate)),
      bigintsParam(rows.map(({ own }) => BigInt(own.order))),
    ],
  )
})

/** The dates of all members, in the order in which they were made. */
const datesBy = (expression: string) =>
  Effect.map(
    sql<{ readonly end_date: Integer }>(
      `SELECT ${millisOf(expression)} AS end_date
       FROM ${schema}.memberships m
       JOIN ${schema}.projects p ON p.number = m.project_number
       JOIN ${schema}.memberships_current c ON c.project_id = p.id AND c.user_id = m.user_id
       ORDER BY m.user_id::integer`,
    ),
    (found) => found.map(({ end_date }) => Number(end_date)),
  )

it.live("10,000 members have the same effective end dates in core and in SQL", () =>
  Effect.gen(function* () {
    yield* filled
    const expected = rows.map(({ bulk, own }) => effectiveEndDate(bulk, own))
    expect(expected).toHaveLength(10_000)
    // Not as if the rule did nothing.
    expect(rows.filter(({ own }, index) => own.endDate !== expected[index]).length).toBeGreaterThan(
      3000,
    )
    expect(yield* datesBy("c.end_date")).toEqual(expected)
    expect(yield* datesBy(effectiveEndDateSql(quoted))).toEqual(expected)
    expect(yield* datesBy(effectiveDateLocked(quoted))).toEqual(expected)
  }).pipe(Effect.provide(clientLayer({ maxConnections: 1 }))),
)

it.live("the planner puts the rule into the statements that call it", () =>
  Effect.gen(function* () {
    for (const expression of [effectiveEndDateSql(quoted), effectiveDateLocked(quoted)]) {
      const plan = yield* sql(
        `EXPLAIN (VERBOSE, FORMAT JSON)
         SELECT ${expression} FROM ${schema}.memberships m JOIN ${schema}.projects p ON p.number = m.project_number`,
      )
      expect(JSON.stringify(plan)).toMatch(/CASE WHEN \(m\.seq >= p\.bulk_seq\)/)
      expect(JSON.stringify(plan)).not.toContain("effective_end_date")
    }
  }).pipe(Effect.provide(clientLayer({ maxConnections: 1 }))),
)
