/**
 * Moves a project from one database to another, so that nothing is lost whenever the process dies.
 *
 * 1. The project is parked at the source: nobody finds it from then on, so nothing changes it. Transactions
 *    that have begun before are waited for, and for a while also attempts of its deliveries.
 * 2. It is copied, parked, in one transaction at each end, and both ends are compared.
 * 3. The parking ends at the target.
 * 4. The project is deleted at the source.
 *
 * Where a project is at both ends tells which steps are done. So after each of them, the command can be
 * repeated, which goes on, or until the third be cancelled, which goes back. A complete copy exists at any
 * time, and at most one that can be found.
 */

import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { forgetProjects } from "../memberships/forgetProjects.sql.ts"
import * as Migrations from "../migrations/migrate.ts"
import type { Progress } from "./move.ts"
import * as parking from "./parking.sql.ts"
import * as sql from "./rows.sql.ts"
import * as tables from "./tables.sql.ts"

/** The project cannot be moved. The message says why. */
class ProjectMoveRefused extends Data.TaggedError("ProjectMoveRefused")<{
  readonly message: string
}> {}

/** What a move has done. */
type Step = "parked" | "copied" | "found at the target" | "deleted at the source"

/** Both ends of a move, of one project. */
export interface Move {
  readonly source: PgClient
  readonly target: PgClient
  /** The name of the schema at both ends, quoted. */
  readonly schema: string
  readonly projectId: string
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Called after each step. */
  readonly onStep?: ((step: Step) => Effect.Effect<void>) | undefined
}

// How many rows are in memory at a time. The largest are events, of up to 256 kB.
const batchSize = 200

const pause = "200 millis"

// How long transactions are waited for that may have read the project before it was parked.
const longestTransaction = "60 seconds"

// How long attempts are waited for. Those that last longer are made again from the target.
const longestAttempt = "20 seconds"

const refuse = (message: string) => Effect.fail(new ProjectMoveRefused({ message }))

interface HoldsRow {
  readonly holds: boolean
}

/** Waits until a statement says that something holds. */
const until = (client: SqlClient, statement: string, params: ReadonlyArray<unknown>) =>
  Effect.repeat(
    Effect.tap(
      Effect.map(client.unsafe<HoldsRow>(statement, params), ([row]) => row?.holds === true),
      (holds) => (holds ? Effect.void : Effect.sleep(pause)),
    ),
    { until: (holds) => holds },
  )

const find = ({ projectId, schema }: Move, client: SqlClient) =>
  Effect.map(
    client.unsafe<parking.PlaceRow>(parking.findProject(schema), [projectId]),
    ([row]) => row,
  )

/** Waits until nothing changes what is parked any more. */
const settle = Effect.fnUntraced(function* (
  { projectId, schema }: Move,
  from: SqlClient,
  number: string,
) {
  const [{ xid } = { xid: "0" }] = yield* from.unsafe<{ readonly xid: string }>(parking.beginning)
  yield* until(from, parking.haveEnded, [xid]).pipe(
    Effect.timeoutOrElse({
      duration: longestTransaction,
      orElse: () =>
        refuse(
          `A transaction in the database of ${projectId} does not end. End it and repeat the command, or cancel the move.`,
        ),
    }),
  )
  yield* Effect.timeoutOption(until(from, parking.isQuiet(schema), [number]), longestAttempt)
})

/** Copies a table. Tells after each batch how many rows it had. */
const copyTable = Effect.fnUntraced(function* (
  [from, to]: readonly [SqlClient, SqlClient],
  reading: string,
  writing: string,
  onWritten: (rows: number) => void,
) {
  yield* from.unsafe(reading)
  for (;;) {
    const rows = yield* from.unsafe<tables.ReadRow>(tables.readOn(batchSize))
    if (rows.length === 0) break
    yield* to.unsafe(writing, [`[${rows.map(({ row }) => row).join(",")}]`])
    onWritten(rows.length)
  }
  yield* from.unsafe(tables.stopReading)
})

/** Copies a parked project within a transaction at each end, and compares what both have then. */
const copy = Effect.fnUntraced(function* (
  { onProgress = () => {}, projectId, schema }: Move,
  [from, to]: readonly [SqlClient, SqlClient],
  number: string,
) {
  yield* from.unsafe("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
  yield* from.unsafe(sql.settle)
  yield* to.unsafe(sql.settle)
  const all = yield* from.unsafe<sql.TableRow>(sql.listTables(schema))
  const [last] = yield* from.unsafe<{ readonly position: string }>(sql.lastPosition(schema, number))
  const given = { number, shift: last?.position ?? "0" }
  const [own] = yield* from.unsafe<Pick<sql.TableRow, "columns">>(sql.listProjectColumns(schema))
  const columns = (own?.columns ?? []).join(", ")
  const [read] = yield* from.unsafe<tables.ReadRow>(sql.readProject(schema, columns, number))
  const [written] = yield* to.unsafe<{ readonly number: string }>(
    sql.writeProject(schema, columns),
    [projectId, read?.row],
  )
  if (written === undefined) return yield* refuse(`The project ${projectId} is being deleted.`)
  yield* to.unsafe(sql.deleteAnswers(schema, written.number))
  const copied = { number: written.number, shift: "0" }

  const summaries = yield* Effect.forEach(all, (table) =>
    from.unsafe<tables.Summary>(sql.summarize(schema, table, given)),
  )
  const total = summaries.reduce((sum, [summary]) => sum + (summary?.count ?? 0), 0)
  let rows = 0
  for (const table of all) {
    const reading = sql.startReading(schema, table, given)
    const writing = sql.write(schema, table, written.number)
    yield* copyTable([from, to], reading, writing, (more) => {
      rows += more
      onProgress({ table: table.name, rows, of: total })
    })
  }
  for (const [index, table] of all.entries()) {
    const [expected] = summaries[index] ?? []
    const [found] = yield* to.unsafe<tables.Summary>(sql.summarize(schema, table, copied))
    if (found?.count !== expected?.count || found?.digest !== expected?.digest)
      return yield* refuse(`The table ${table.name} of the target is not as the one of the source.`)
  }
  yield* to.unsafe(sql.hold(schema, written.number))
})

/** Fails if both ends are one database. */
const checkEnds = Effect.fnUntraced(function* (
  { schema, source, target }: Move,
  ends: readonly [SqlClient, SqlClient],
) {
  yield* Migrations.check(source, schema)
  yield* Migrations.check(target, schema)
  const ids = yield* Effect.forEach(ends, (end) =>
    Effect.map(end.unsafe<{ readonly id: string }>(parking.identity), ([row]) => row?.id),
  )
  if (ids[0] === ids[1]) return yield* refuse("The source and the target are the same database.")
})

const endsOf = ({ source, target }: Move) =>
  [source.withoutTransforms(), target.withoutTransforms()] as const

/**
 * Moves a project, or goes on with a move that has stopped. Servers may run, with the old map or the new one:
 * they answer requests for the project 503 until the new map is theirs and the move is over.
 */
export const moveProject = Effect.fnUntraced(function* (move: Move) {
  const { onStep = () => Effect.void, projectId, schema } = move
  const ends = endsOf(move)
  const [from, to] = ends
  yield* checkEnds(move, ends)
  const here = yield* find(move, from)
  const there = yield* find(move, to)
  if (here === undefined) {
    if (there?.is_parked !== false)
      return yield* refuse(`There is no project ${projectId} at the source.`)
    return
  }
  if (!here.is_parked && there !== undefined)
    return yield* refuse(`There is a project ${projectId} at the target, too.`)
  if (there === undefined) {
    yield* from.unsafe(parking.park(schema), [projectId])
    yield* onStep("parked")
    yield* settle(move, from, here.number)
    // Of an earlier stay, perhaps.
    yield* Effect.repeat(to.unsafe(forgetProjects(schema)), { while: (rows) => rows.length > 0 })
    if (!(yield* Effect.map(to.unsafe<HoldsRow>(sql.isSwept(schema)), ([row]) => row?.holds)))
      return yield* refuse(
        "The target cannot remove yet what is left of a project: try again later.",
      )
    yield* from.withTransaction(to.withTransaction(copy(move, ends, here.number)))
    yield* onStep("copied")
  }
  if (there?.is_parked !== false) {
    yield* to.unsafe(parking.unpark(schema), [projectId])
    yield* onStep("found at the target")
  }
  yield* from.unsafe(parking.deleteParked(schema), [projectId])
  yield* onStep("deleted at the source")
})

/** Goes back to the beginning of a move that has stopped. */
export const cancelMove = Effect.fnUntraced(function* (move: Move) {
  const { projectId, schema } = move
  const ends = endsOf(move)
  const [from, to] = ends
  yield* checkEnds(move, ends)
  const here = yield* find(move, from)
  const there = yield* find(move, to)
  if (here?.is_parked !== true) return yield* refuse(`No move of ${projectId} has begun there.`)
  if (there?.is_parked === false)
    return yield* refuse(`${projectId} is at the target already: repeat the move, which ends it.`)
  yield* to.unsafe(parking.deleteParked(schema), [projectId])
  yield* from.unsafe(parking.unpark(schema), [projectId])
})
