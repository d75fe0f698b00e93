/** Copies everything from one database to another, as a whole or not at all, whatever columns the tables have. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { beginEpoch } from "../feed.ts"
import { applyMigrations, checkSchema } from "../schema/migrate.ts"
import { refuse } from "./move-checks.ts"

/** Sets the time zone that a row's JSON depends on, until the transaction ends. */
const waitForWrites = "SET LOCAL TimeZone = 'UTC'"

/**
 * Returns the tables with data, each with its columns and the tables it refers to. Partitions belong to their
 * tables. `late_events` is left out, because transaction numbers mean nothing elsewhere.
 */
const listTables = (schema: string): string => `
  SELECT c.relname AS name, (
           SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
           WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         ) AS columns, ARRAY(
           SELECT f.relname::text FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid
           WHERE k.conrelid = c.oid AND k.contype = 'f' AND f.oid <> c.oid
         ) AS refers_to
  FROM pg_class c
  WHERE c.relnamespace = '${schema}'::regnamespace AND c.relkind IN ('r', 'p')
    AND NOT c.relispartition
    AND c.relname NOT IN ('migrations', 'late_events')
  ORDER BY c.relname
`

/** The row from `listTables`. */
interface TableRow {
  readonly name: string
  /** Separated by commas. */
  readonly columns: string
  readonly refers_to: ReadonlyArray<string>
}

/** Returns a table's row count, and a digest that does not depend on row order: the sum of the rows' digests. */
const summarize = (schema: string, { columns, name }: TableRow): string => `
  SELECT count(*)::float8 AS count,
         coalesce(sum(
           ('x' || encode(substr(sha256(convert_to(to_json(t)::text, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
         ), 0)::text AS digest
  FROM (SELECT ${columns} FROM ${schema}.${name}) t
`

/** The row from `summarize`. */
interface Summary {
  readonly count: number
  readonly digest: string
}

/** Deletes the state of the empty feed, so that the copied state replaces it and readers can continue. */
const deleteFeedState = (schema: string): string => `DELETE FROM ${schema}.feed_state`

/** Makes the next epoch begin, because the copied transaction numbers come from elsewhere. */
const forgetHistory = (schema: string): string => `UPDATE ${schema}.feed_state SET history = ''`

/** Starts to read a table. */
const startReading = (schema: string, { columns, name }: TableRow): string => `
  DECLARE moved NO SCROLL CURSOR FOR
  SELECT to_json(t)::text AS row FROM (SELECT ${columns} FROM ${schema}.${name}) t
`

/** Reads up to a number of rows. */
const readNext = (maxRows: number): string => `FETCH ${maxRows} FROM moved`

/** A row from `readNext`: a table row as JSON. */
interface ReadRow {
  readonly row: string
}

const stopReading = "CLOSE moved"

/** Writes the rows in the JSON array `$1`. */
const write = (schema: string, { columns, name }: TableRow): string => `
  INSERT INTO ${schema}.${name} (${columns}) OVERRIDING SYSTEM VALUE
  SELECT ${columns} FROM json_populate_recordset(NULL::${schema}.${name}, $1::text::json)
`

/** Returns the last numbers from sequences that have been used. */
const listSequences = (schema: string): string => `
  SELECT * FROM (
    SELECT c.oid::regclass::text AS name,
           CASE c.relkind WHEN 'S' THEN pg_sequence_last_value(c.oid)::text END AS last
    FROM pg_class c WHERE c.relnamespace = '${schema}'::regnamespace
  ) s
  WHERE last IS NOT NULL
`

/** The row from `listSequences`. */
interface SequenceRow {
  readonly name: string
  readonly last: string
}

/** Continues a sequence `$1` after the number `$2`. */
const continueSequence = "SELECT setval($1::text::regclass, $2::text::bigint)"

/** Returns the days that have event partitions, and those on which audit parts begin. */
const listDays = (schema: string): string => `
  SELECT c.relname ~ '^audit_' AS is_of_audit, right(c.relname, 8) AS day
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent IN ('${schema}.events'::regclass, '${schema}.audit'::regclass)
    AND c.relname ~ '_[0-9]{8}$'
`

/** The row from `listDays`. */
interface DayRow {
  readonly is_of_audit: boolean
  readonly day: string
}

/** Drops the audit part that begins on a day. */
const dropPart = (schema: string, day: string): string => `DROP TABLE ${schema}.audit_${day}`

/** Creates a day's partitions. */
const createDay = (schema: string, { day, is_of_audit }: DayRow): string =>
  `SELECT ${schema}.${is_of_audit ? "create_audit_part" : "create_day"}(to_date('${day}', 'YYYYMMDD'))`

// The number of rows in memory at a time. The largest are events, up to 256 kB each.
const batchSize = 200

/** The progress of a copy. */
export interface CopyProgress {
  readonly table: string
  /** How many rows have been written in all tables; `of` is how many there are. */
  readonly rows: number
  readonly of: number
}

/** Orders tables so that each comes after the tables it refers to. */
const ordered = (tables: ReadonlyArray<TableRow>): ReadonlyArray<TableRow> => {
  const found: Array<TableRow> = []
  let left = tables
  while (left.length > 0) {
    const names = new Set(found.map(({ name }) => name))
    const ready = left.filter(({ refers_to }) => refers_to.every((name) => names.has(name)))
    if (ready.length === 0) throw new Error("The tables refer to each other in a circle")
    found.push(...ready)
    left = left.filter((table) => !ready.includes(table))
  }
  return found
}

const summaries = Effect.fnUntraced(function* (
  client: SqlClient,
  schema: string,
  tables: ReadonlyArray<TableRow>,
) {
  const found = new Map<string, Summary>()
  for (const table of tables) {
    const [summary] = yield* client.unsafe<Summary>(summarize(schema, table))
    if (summary !== undefined) found.set(table.name, summary)
  }
  return found
})

const isIn = (days: ReadonlyArray<DayRow>, { day, is_of_audit }: DayRow): boolean =>
  days.some((other) => other.day === day && other.is_of_audit === is_of_audit)

/** Creates the partitions that another database has. */
export const copyDays = Effect.fnUntraced(function* (
  from: SqlClient,
  to: SqlClient,
  schema: string,
) {
  const wanted = yield* from.unsafe<DayRow>(listDays(schema))
  const existing = yield* to.unsafe<DayRow>(listDays(schema))
  // Rows in such a part would sort before earlier ones.
  const parts = existing.filter((day) => day.is_of_audit && !isIn(wanted, day))
  for (const { day } of parts) yield* to.unsafe(dropPart(schema, day))
  for (const day of wanted) if (!isIn(existing, day)) yield* to.unsafe(createDay(schema, day))
})

const copySequences = Effect.fnUntraced(function* (from: SqlClient, to: SqlClient, schema: string) {
  for (const { last, name } of yield* from.unsafe<SequenceRow>(listSequences(schema)))
    yield* to.unsafe(continueSequence, [name, last])
})

/** Copies a table. Reports the number of rows after each batch. */
const copyTable = Effect.fnUntraced(function* (
  from: SqlClient,
  to: SqlClient,
  schema: string,
  table: TableRow,
  onWritten: (rows: number) => void,
) {
  yield* from.unsafe(startReading(schema, table))
  for (;;) {
    const rows = yield* from.unsafe<ReadRow>(readNext(batchSize))
    if (rows.length === 0) break
    yield* to.unsafe(write(schema, table), [`[${rows.map(({ row }) => row).join(",")}]`])
    onWritten(rows.length)
  }
  yield* from.unsafe(stopReading)
})

const total = (all: ReadonlyMap<string, Summary>): number =>
  [...all.values()].reduce((sum, { count }) => sum + count, 0)

/** Copies everything within one transaction at each end, and compares both ends afterwards. */
const copy = Effect.fnUntraced(function* (
  from: SqlClient,
  to: SqlClient,
  schema: string,
  onProgress: (progress: CopyProgress) => void,
) {
  yield* from.unsafe("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
  yield* from.unsafe(waitForWrites)
  yield* to.unsafe(waitForWrites)
  const tables = ordered(yield* from.unsafe<TableRow>(listTables(schema)))
  yield* to.unsafe(deleteFeedState(schema))
  const existing = yield* summaries(to, schema, tables)
  const [full] = [...existing].find(([, { count }]) => count > 0) ?? []
  if (full !== undefined)
    return yield* refuse(
      `The table ${full} of the target has rows already. Move to an empty schema.`,
    )
  const given = yield* summaries(from, schema, tables)
  yield* copyDays(from, to, schema)
  let rows = 0
  for (const table of tables) {
    yield* copyTable(from, to, schema, table, (written) => {
      rows += written
      onProgress({ table: table.name, rows, of: total(given) })
    })
  }
  yield* copySequences(from, to, schema)
  const moved = yield* summaries(to, schema, tables)
  for (const [name, { count, digest }] of given) {
    const found = moved.get(name)
    if (found?.count !== count || found.digest !== digest)
      return yield* refuse(`The table ${name} of the target is not as the one of the source.`)
  }
  yield* to.unsafe(forgetHistory(schema))
  yield* beginEpoch((sql) => to.unsafe(sql), schema)
  return given
})

/**
 * Copies all tables in a schema to another database, whose tables it creates. They must be empty. At the end,
 * it compares each table's row count and digest at both ends. If anything fails, the target stays as it was.
 * The copy shows one moment: later changes at the source are not in it. Nothing else may write to the target.
 *
 * @param schema - the name of the schema, quoted
 * @returns the number of rows in each table
 */
export const copyDatabase = Effect.fnUntraced(function* (
  source: PgClient,
  target: PgClient,
  schema: string,
  onProgress: (progress: CopyProgress) => void,
) {
  const [from, to] = [source.withoutTransforms(), target.withoutTransforms()]
  yield* checkSchema(source, schema)
  yield* applyMigrations(target, schema)
  const moved = yield* from.withTransaction(to.withTransaction(copy(from, to, schema, onProgress)))
  return new Map([...moved].map(([table, { count }]) => [table, count]))
})
