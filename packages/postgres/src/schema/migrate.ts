/** Applies the migrations, which are the files in `migrations`: in order, each once. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import { TaggedError } from "@tenure/core/internal"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { textParam, textsParam } from "../sql/values.ts"
import { digests, migrations } from "./migrations.generated.ts"

/** Migrations after which earlier Tenure versions cannot use the tables. */
const breakingMigrations: ReadonlySet<number> = new Set([1])

/**
 * Returns the statements for a schema. The files name the schema `tenure`, so that psql and editors can read
 * them.
 *
 * @param schema - the name of the schema, quoted
 */
const statementsFor = (statements: ReadonlyArray<string>, schema: string): ReadonlyArray<string> =>
  statements.map((statement) => statement.replaceAll(/\btenure\./g, () => `${schema}.`))

/** The tables have another version than this Tenure version needs. */
export class SchemaMismatch extends TaggedError("SchemaMismatch")<{
  readonly message: string
}> {}

const newest = migrations.length

// An arbitrary number that identifies the lock to every process that migrates.
const migrationLock = 7_236_830_184n

/** Runs a query that returns one boolean, in the column `holds`. */
export const holds = (sql: SqlClient, query: string, params: ReadonlyArray<unknown> = []) =>
  Effect.map(sql.unsafe<{ readonly holds: boolean }>(query, params), ([row]) => row?.holds === true)

/** Whether a schema exists, given its name, quoted. */
export const schemaExists = (sql: SqlClient, schema: string) =>
  holds(sql, "SELECT to_regnamespace($1) IS NOT NULL AS holds", [schema])

const tableExists = (sql: SqlClient, schema: string) =>
  holds(sql, "SELECT to_regclass($1) IS NOT NULL AS holds", [`${schema}.migrations`])

/** A row in the migrations table, if it is Tenure's. Rows from an earlier version have no digest. */
interface AppliedRow {
  readonly version: string | null
  readonly is_breaking: boolean | null
  readonly digest: string | null
}

/** Returns the rows, whatever columns the table has. */
const readApplied = (schema: string): string => `
  SELECT to_jsonb(m) ->> 'version' AS version, (to_jsonb(m) -> 'is_breaking') = 'true' AS is_breaking,
         to_jsonb(m) ->> 'digest' AS digest
  FROM ${schema}.migrations m ORDER BY to_jsonb(m) -> 'version'
`

/** Returns the tables, views and functions in `$2` that the schema `$1` has. */
const findMade = `
  SELECT name FROM unnest($2::text[]) AS name
  WHERE EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = to_regnamespace($1::text) AND c.relname = name)
     OR EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = to_regnamespace($1::text) AND p.proname = name)
`

/** How statements begin that create or drop a table, a view or a function. */
const makes =
  /^(CREATE|DROP) (?:OR REPLACE )?(?:UNLOGGED )?(TABLE|VIEW|FUNCTION) (?:IF EXISTS )?tenure\.(\w+)/gm

/** The tables and views that the first migrations create, and the functions. */
const madeBy = (count: number) => {
  const relations = new Set<string>()
  const functions = new Set<string>()
  for (const [, verb, kind, name = ""] of migrations
    .slice(0, count)
    .flat()
    .join("\n")
    .matchAll(makes)) {
    const names = kind === "FUNCTION" ? functions : relations
    if (verb === "CREATE") names.add(name)
    else names.delete(name)
  }
  return { relations: [...relations], functions: [...functions] }
}

const elsewhere =
  "Export the projects with that version (tenure projects export), and import them with this one into another schema, an empty database or another folder (tenure members import); make API keys and webhooks anew. If you need nothing of it, drop the schema."

/**
 * Returns an error about tables with these migrations, or `undefined` if this Tenure version can use them or
 * bring them up to date.
 *
 * @param schema - the schema's name, quoted
 * @param rows - the applied migrations, in order
 * @param expected - the digests of this version's migrations
 */
export const problemOf = (
  schema: string,
  rows: ReadonlyArray<AppliedRow>,
  expected: ReadonlyArray<string>,
): string | undefined => {
  const breaking = rows.findLast(({ is_breaking }) => is_breaking === true)
  if (Number(breaking?.version ?? 0) > expected.length)
    return `The schema ${schema} is at version ${breaking?.version}, but this version of Tenure supports versions up to ${expected.length}. Upgrade Tenure.`
  const other = rows.findIndex(
    ({ digest, version }, index) =>
      version !== String(index + 1) || (index < expected.length && digest !== expected[index]),
  )
  return other === -1
    ? undefined
    : `The tables in the schema ${schema} were made by another version of Tenure: its migration ${other + 1} was not the one of this version. ${elsewhere}`
}

const mismatch = (message: string) => Effect.fail(new SchemaMismatch({ message }))

/**
 * Reads the last applied migration's number, or 0. Fails with `SchemaMismatch` if this Tenure version cannot
 * use the tables, or if one is missing.
 */
const readVersion = Effect.fnUntraced(function* (sql: SqlClient, schema: string) {
  const find = (names: ReadonlyArray<string>) =>
    Effect.map(
      sql.unsafe<{ readonly name: string }>(findMade, [textParam(schema), textsParam(names)]),
      (found) => found.map(({ name }) => name),
    )
  const rows = (yield* tableExists(sql, schema))
    ? yield* sql.unsafe<AppliedRow>(readApplied(schema))
    : []
  const problem = problemOf(schema, rows, digests)
  if (problem !== undefined) return yield* mismatch(problem)
  if (rows.length === 0) {
    const others = yield* find(madeBy(newest).relations)
    if (others.length === 0) return 0
    return yield* mismatch(
      `The schema ${schema} has ${others.join(", ")}, but no record of a migration of Tenure. Name another schema, or restore this one from a backup, as a whole.`,
    )
  }
  const { functions, relations } = madeBy(rows.length)
  const made = [...relations, ...functions]
  const found = new Set(yield* find(made))
  const missing = made.filter((name) => !found.has(name))
  if (missing.length > 0)
    return yield* mismatch(
      `The schema ${schema} lacks ${missing.join(", ")}, which its migrations have made. Restore it from a backup, as a whole.`,
    )
  return rows.length
})

/** Waits until no other process migrates, and keeps others out until the transaction ends. */
const lock = Effect.fnUntraced(function* (sql: SqlClient) {
  // A statement after the lock must see what another process committed before it.
  yield* sql.unsafe("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
  yield* sql.unsafe("SELECT pg_advisory_xact_lock($1)", [migrationLock])
})

const createMigrationsTable = Effect.fnUntraced(function* (sql: SqlClient, schema: string) {
  // A role without the right to create schemas can still use an existing one.
  if (!(yield* schemaExists(sql, schema))) yield* sql.unsafe(`CREATE SCHEMA ${schema}`)
  yield* sql.unsafe(`
    CREATE TABLE IF NOT EXISTS ${schema}.migrations (
      version     integer PRIMARY KEY,
      is_breaking boolean NOT NULL,
      digest      text NOT NULL,
      applied_at  timestamptz NOT NULL DEFAULT now()
    )
  `)
})

/** The migrations after a version, by number. */
const pendingAfter = (version: number): ReadonlyArray<number> =>
  migrations.map((_, index) => index + 1).slice(version)

const apply = Effect.fnUntraced(function* (sql: SqlClient, schema: string, version: number) {
  for (const statement of statementsFor(migrations[version - 1] ?? [], schema))
    yield* sql.unsafe(statement)
  yield* sql.unsafe(
    `INSERT INTO ${schema}.migrations (version, is_breaking, digest) VALUES ($1, $2, $3)`,
    [version, breakingMigrations.has(version), textParam(digests[version - 1])],
  )
})

const outdated = (schema: string, version: number): string =>
  version === 0
    ? `The schema ${schema} has no tables of Tenure. Name the schema that has them, or run tenure migrate, which makes them.`
    : `The schema ${schema} is at version ${version}, but this version of Tenure needs version ${newest}. Run tenure migrate.`

/** Fails while a cell moves, because its tables must stay the same at both ends. */
const refuseInMove = Effect.fnUntraced(function* (sql: SqlClient, schema: string) {
  const query = "SELECT pg_try_advisory_xact_lock_shared(hashtextextended($1, 0)) AS holds"
  if (!(yield* holds(sql, query, [moveLock(schema)])))
    return yield* new SchemaMismatch({
      message: `The schema ${schema} is moving to another server. Migrate it when that is over.`,
    })
})

/** The text whose hash is the advisory lock that a process holds while it moves a cell. */
export const moveLock = (schema: string): string => `${schema}.move`

/** Applies migrations within a transaction. */
const migrateWithin = Effect.fnUntraced(function* (
  sql: SqlClient,
  schema: string,
  which: "all" | "existing",
) {
  yield* lock(sql)
  if (which === "existing" && !(yield* tableExists(sql, schema)))
    return yield* new SchemaMismatch({
      message: `The schema ${schema} is not on this server. It may have moved to another one.`,
    })
  yield* createMigrationsTable(sql, schema)
  const version = yield* readVersion(sql, schema)
  const pending = pendingAfter(version)
  if (pending.length > 0 && version > 0) yield* refuseInMove(sql, schema)
  for (const number of pending) yield* apply(sql, schema, number)
  return pending
})

/**
 * Brings a schema's tables up to date, in one transaction. Several processes may call it at the same time:
 * one migrates, the others wait.
 *
 * @param schema - the name of the schema, quoted
 * @param which - `"existing"` if missing tables must not be created, because they may have moved
 * @returns the numbers of the applied migrations
 */
export const applyMigrations = (
  client: PgClient,
  schema: string,
  which: "all" | "existing" = "all",
): Effect.Effect<ReadonlyArray<number>, SqlError | SchemaMismatch> => {
  const sql = client.withoutTransforms()
  return sql.withTransaction(migrateWithin(sql, schema, which))
}

/** Creates a schema's tables and fills them, in one transaction. */
export const createTables = <E, R>(
  client: PgClient,
  schema: string,
  fill: (sql: SqlClient) => Effect.Effect<void, E, R>,
): Effect.Effect<void, SqlError | SchemaMismatch | E, R> => {
  const sql = client.withoutTransforms()
  return sql.withTransaction(Effect.andThen(migrateWithin(sql, schema, "all"), fill(sql)))
}

/** Returns the numbers of pending migrations. */
export const pendingMigrations = Effect.fnUntraced(function* (client: PgClient, schema: string) {
  return pendingAfter(yield* readVersion(client.withoutTransforms(), schema))
})

/** Fails with `SchemaMismatch` if a schema's tables are not up to date. */
export const checkSchema = Effect.fnUntraced(function* (client: PgClient, schema: string) {
  const version = yield* readVersion(client.withoutTransforms(), schema)
  if (version < newest) return yield* new SchemaMismatch({ message: outdated(schema, version) })
})
