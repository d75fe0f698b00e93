/** The plans for extensions, which a connection keeps: they are right for what the tables have become since then. */

import type { PgClient } from "@effect/sql-pg"
import { EndDate, type Extension, UserId } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import { migrate } from "../src/index.ts"
import { extend, paramsOfEach } from "../src/memberships.sql.ts"
import { type ItemRow, pickFormOfEach } from "../src/sql/clauses.ts"
import { blocksReadBy } from "./blocks.ts"
import { clientLayer, sql } from "./harness.ts"

const schema = "kept_plans"
const name = `"${schema}"`

const numbers = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, n) => n)

/** Extensions for the members with these numbers. */
const extensionsOf = (members: ReadonlyArray<number>): ReadonlyArray<Extension> =>
  members.map((member) => ({
    ...Fixture.change(Fixture.p1),
    userId: UserId(String(member)),
    endDate: EndDate(Date.UTC(2099)),
  }))

const withKeys = (extensions: ReadonlyArray<Extension>): ReadonlyArray<Extension> =>
  extensions.map((extension) => ({
    ...extension,
    idempotency: { owner: "a key", key: crypto.randomUUID(), fingerprint: "a request" },
  }))

/** Without and with idempotency keys. */
const forms = [(extensions: ReadonlyArray<Extension>) => extensions, withKeys]

const formOf = (extensions: ReadonlyArray<Extension>) =>
  pickFormOfEach(extend(name), paramsOfEach(extensions), extensions)

const run = (extensions: ReadonlyArray<Extension>) => sql<ItemRow>(...formOf(extensions))

/** Creates the tables, which nobody analyzes: that would have all connections plan anew. */
const empty = Effect.gen(function* () {
  yield* sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
  yield* Effect.provide(migrate({ schema }), clientLayer())
  for (const table of ["projects", "memberships", "webhooks", "idempotency_keys"])
    yield* sql(`ALTER TABLE ${schema}.${table} SET (autovacuum_enabled = off)`)
})

const projects = 10_000
const members = 200_000
const keys = 100_000
const webhooks = 20_000

const fill = Effect.gen(function* () {
  yield* sql(
    `INSERT INTO ${schema}.projects (id) SELECT 'x' || n FROM generate_series(1, ${projects}) n`,
  )
  yield* sql(
    `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq)
     SELECT p.number, n::text, now(), 0 FROM ${schema}.projects p, generate_series(0, ${members}) n
     WHERE p.id = '${Fixture.p1}'`,
  )
  yield* sql(
    `INSERT INTO ${schema}.idempotency_keys (owner, key, project_number, fingerprint, response)
     SELECT 'a key', n::text, 0, '', '' FROM generate_series(1, ${keys}) n`,
  )
  yield* sql(
    `INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at)
     SELECT gen_random_uuid(), n, 'https://receiver.example', 'whsec_', now()
     FROM generate_series(2, ${webhooks}) n`,
  )
})

// The rows, and their indexes' levels. Each table has more blocks than that.
const blocksOfOne = 60

// One connection for each test, without statements that the driver has prepared and DISCARD would drop.
const connection = clientLayer({ maxConnections: 1, prepare: false })

const onConnection = <A, E>(work: Effect.Effect<A, E, PgClient.PgClient>): Promise<A> =>
  Effect.runPromise(Effect.provide(work, connection))

/** The rows that the tables have when a plan is made. */
export const firsts = {
  "empty tables": 0,
  "a single member": 1,
  "a few members": 3,
} as const

/**
 * Declares the tests.
 *
 * @param tables - those for which plans are made first: to fill them afterwards takes seconds
 */
export const planSuite = (tables: ReadonlyArray<keyof typeof firsts>): void => {
  describe("the plan of extensions", () => {
    it.each(tables)("that was made for %s reads little of large tables", (table) =>
      onConnection(
        Effect.gen(function* () {
          const first = firsts[table]
          yield* empty
          if (first > 0) {
            yield* sql(`INSERT INTO ${schema}.projects (id) VALUES ('${Fixture.p1}')`)
            yield* sql(
              `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq)
               SELECT 1, 'first ' || n, now(), 0 FROM generate_series(1, ${first}) n`,
            )
            yield* sql(`VACUUM ANALYZE ${schema}.projects, ${schema}.memberships`)
          }
          for (const given of forms) expect(yield* run(given(extensionsOf([1])))).toEqual([])
          if (first === 0)
            yield* sql(`INSERT INTO ${schema}.projects (id) VALUES ('${Fixture.p1}')`)
          yield* fill
          for (const given of forms)
            for (const count of [1, 100]) {
              // What a table's first rows read anew does not count.
              expect(yield* run(given(extensionsOf(numbers(count))))).toHaveLength(count)
              const again = formOf(given(extensionsOf(numbers(count))))
              expect(yield* blocksReadBy(...again)).toBeLessThan(blocksOfOne * count)
            }
        }),
      ),
    )

    it("goes on after the tables or the session have changed", () =>
      onConnection(
        Effect.gen(function* () {
          yield* empty
          yield* sql(`INSERT INTO ${schema}.projects (id) VALUES ('${Fixture.p1}')`)
          yield* sql(
            `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq) VALUES (1, '0', now(), 0)`,
          )
          for (const change of [
            "SELECT",
            `ALTER TABLE ${schema}.memberships ADD COLUMN later text`,
            `ALTER TABLE ${schema}.memberships DROP COLUMN later`,
            `SELECT ${schema}.create_audit_part('2999-01-01'), setval('${schema}.audit_ids', ${schema}.first_audit_id('2999-01-01'))`,
            "DISCARD PLANS",
            "DISCARD ALL",
          ]) {
            yield* sql(change)
            for (const given of forms)
              expect(yield* run(given(extensionsOf([0, 1])))).toMatchObject([
                { n: 1, deliveries: 0 },
              ])
          }
          const [parts] = yield* sql(
            `SELECT count(DISTINCT tableoid)::integer AS count FROM ${schema}.audit`,
          )
          expect(parts).toEqual({ count: 2 })
        }),
      ))
  })
}
