/** Moves everything from one database to another, as a whole or not at all. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import * as Migrations from "../migrations/migrate.ts"
import * as sql from "./tables.sql.ts"

// How many rows are in memory at a time. The largest are events, of up to 256 kB.
const batchSize = 200

/** The data cannot be moved. The message says why. */
class MoveRefused extends Data.TaggedError("MoveRefused")<{ readonly message: string }> {}

/** How far a move has come. */
export interface Progress {
  readonly table: string
  /** How many rows have been written, of all tables, and how many there are. */
  readonly rows: number
  readonly of: number
}

/** Orders tables so that each comes after those that it refers to. */
const ordered = (tables: ReadonlyArray<sql.TableRow>): ReadonlyArray<sql.TableRow> => {
  const found: Array<sql.TableRow> = []
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
  tables: ReadonlyArray<sql.TableRow>,
) {
  const found = new Map<string, sql.Summary>()
  for (const table of tables) {
    const [summary] = yield* client.unsafe<sql.Summary>(sql.summarize(schema, table))
    if (summary !== undefined) found.set(table.name, summary)
  }
  return found
})

const isIn = (days: ReadonlyArray<sql.DayRow>, { day, is_of_audit }: sql.DayRow): boolean =>
  days.some((other) => other.day === day && other.is_of_audit === is_of_audit)

/** Gives a database the partitions that another one has. */
const copyDays = Effect.fnUntraced(function* (from: SqlClient, to: SqlClient, schema: string) {
  const wanted = yield* from.unsafe<sql.DayRow>(sql.listDays(schema))
  const existing = yield* to.unsafe<sql.DayRow>(sql.listDays(schema))
  // Its rows would come before those that it follows.
  const parts = existing.filter((day) => day.is_of_audit && !isIn(wanted, day))
  for (const { day } of parts) yield* to.unsafe(sql.dropPart(schema, day))
  for (const day of wanted) if (!isIn(existing, day)) yield* to.unsafe(sql.createDay(schema, day))
})

const copySequences = Effect.fnUntraced(function* (from: SqlClient, to: SqlClient, schema: string) {
  for (const { last, name } of yield* from.unsafe<sql.SequenceRow>(sql.listSequences(schema)))
    yield* to.unsafe(sql.continueSequence, [name, last])
})

/** Copies a table. Tells after each batch how many rows it had. */
const copyTable = Effect.fnUntraced(function* (
  from: SqlClient,
  to: SqlClient,
  schema: string,
  table: sql.TableRow,
  onWritten: (rows: number) => void,
) {
  yield* from.unsafe(sql.startReading(schema, table))
  for (;;) {
    const rows = yield* from.unsafe<sql.ReadRow>(sql.readOn(batchSize))
    if (rows.length === 0) break
    yield* to.unsafe(sql.write(schema, table), [`[${rows.map(({ row }) => row).join(",")}]`])
    onWritten(rows.length)
  }
  yield* from.unsafe(sql.stopReading)
})

const refuse = (message: string) => Effect.fail(new MoveRefused({ message }))

const total = (all: ReadonlyMap<string, sql.Summary>): number =>
  [...all.values()].reduce((sum, { count }) => sum + count, 0)

/** Copies everything within a transaction at each end, and compares what both have then. */
const copy = Effect.fnUntraced(function* (
  from: SqlClient,
  to: SqlClient,
  schema: string,
  onProgress: (progress: Progress) => void,
) {
  yield* from.unsafe("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
  yield* from.unsafe(sql.settle)
  yield* to.unsafe(sql.settle)
  const tables = ordered(yield* from.unsafe<sql.TableRow>(sql.listTables(schema)))
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
  return given
})

/**
 * Copies all tables of a schema to another database, whose tables it creates. They must be empty. At the
 * end, it compares the number and a digest of the rows of each table at both ends. If anything fails,
 * the target has nothing of it. The copy is of one moment: what changes at the source in the meantime is
 * not in it. Nothing else may write to the target.
 *
 * @param schema - the name of the schema, quoted
 * @returns the number of rows of each table
 */
export const move = Effect.fnUntraced(function* (
  source: PgClient,
  target: PgClient,
  schema: string,
  onProgress: (progress: Progress) => void,
) {
  const [from, to] = [source.withoutTransforms(), target.withoutTransforms()]
  yield* Migrations.check(source, schema)
  yield* Migrations.migrate(target, schema)
  const moved = yield* from.withTransaction(to.withTransaction(copy(from, to, schema, onProgress)))
  return new Map([...moved].map(([table, { count }]) => [table, count]))
})
