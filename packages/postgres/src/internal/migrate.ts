/** Migrations: numbered, applied in order, each once. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { migration0001 } from "./migration0001.ts"

// The first has the number 1. One that has been published is never changed.
const migrations = [migration0001]

/** The tables are not those that this version of the code works with. */
export class SchemaMismatch extends Data.TaggedError("SchemaMismatch")<{
  readonly message: string
}> {}

const newest = migrations.length

/** Any number, so long as it is the same wherever migrations run. */
const migrationLock = 7_236_830_184n

const tableExists = Effect.fnUntraced(function* (sql: SqlClient, schema: string) {
  const rows = yield* sql.unsafe<{ readonly exists: boolean }>(
    "SELECT to_regclass($1) IS NOT NULL AS exists",
    [`${schema}.migrations`],
  )
  return rows[0]?.exists === true
})

const schemaExists = Effect.fnUntraced(function* (sql: SqlClient, schema: string) {
  const rows = yield* sql.unsafe<{ readonly exists: boolean }>(
    "SELECT to_regnamespace($1) IS NOT NULL AS exists",
    [schema],
  )
  return rows[0]?.exists === true
})

const appliedVersion = Effect.fnUntraced(function* (sql: SqlClient, schema: string) {
  if (!(yield* tableExists(sql, schema))) return 0
  const rows = yield* sql.unsafe<{ readonly version: number | null }>(
    `SELECT max(version) AS version FROM ${schema}.migrations`,
  )
  return rows[0]?.version ?? 0
})

const refuseNewer = (schema: string, version: number): Effect.Effect<void, SchemaMismatch> =>
  version <= newest
    ? Effect.void
    : Effect.fail(
        new SchemaMismatch({
          message: `The schema ${schema} has version ${version}, this code knows ${newest} at most: a newer Tenure has migrated it.`,
        }),
      )

/**
 * Brings the tables of a schema up to date. Several processes may do so at once: one does the work,
 * the others wait for it.
 *
 * @param schema - the schema's name, quoted
 * @returns the numbers of the migrations that were applied
 */
export const migrate = (
  client: PgClient,
  schema: string,
): Effect.Effect<ReadonlyArray<number>, SqlError | SchemaMismatch> => {
  const sql = client.withoutTransforms()
  return sql.withTransaction(
    Effect.gen(function* () {
      // What another process has done meanwhile is to be seen after the lock.
      yield* sql.unsafe("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
      yield* sql.unsafe("SELECT pg_advisory_xact_lock($1)", [migrationLock])
      // Whoever may not create schemas may still use one that is there.
      if (!(yield* schemaExists(sql, schema))) yield* sql.unsafe(`CREATE SCHEMA ${schema}`)
      yield* sql.unsafe(`
        CREATE TABLE IF NOT EXISTS ${schema}.migrations (
          version    integer PRIMARY KEY,
          applied_at timestamptz NOT NULL DEFAULT now()
        )
      `)
      const version = yield* appliedVersion(sql, schema)
      yield* refuseNewer(schema, version)
      const pending = migrations.slice(version)
      for (const [index, migration] of pending.entries()) {
        for (const statement of migration(schema)) yield* sql.unsafe(statement)
        yield* sql.unsafe(`INSERT INTO ${schema}.migrations (version) VALUES ($1)`, [
          version + index + 1,
        ])
      }
      return pending.map((_, index) => version + index + 1)
    }),
  )
}

/** Fails where the tables of a schema are not up to date. */
export const check = Effect.fnUntraced(function* (client: PgClient, schema: string) {
  const sql = client.withoutTransforms()
  const version = yield* appliedVersion(sql, schema)
  yield* refuseNewer(schema, version)
  if (version < newest) {
    return yield* new SchemaMismatch({
      message: `The schema ${schema} has version ${version}, this code needs ${newest}: run tenure-migrate.`,
    })
  }
})
