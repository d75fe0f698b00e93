/**
 * Statements about a project that moves. While it does, it is parked: its row in `projects` has a name that no
 * project can have, so that nothing finds it, and its webhooks are held forever. That lasts until somebody
 * ends it, even if the process dies.
 */

import type { PgClient } from "@effect/sql-pg/PgClient"
import { TaggedError } from "@tenure/core/internal"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { purgeDeletedProjects } from "../retention.ts"
import { checkSchema } from "../schema/migrate.ts"
import { parkedId } from "../sql/clauses.ts"
import {
  type CopyProgress,
  type ReadRow,
  type Summary,
  readNext,
  stopReading,
  waitForWrites,
} from "./copy-database.ts"

/** Returns where the project `$1` is: under its name, or parked. */
const findProject = (schema: string): string => `
  SELECT p.number::text AS number, p.id <> $1::text AS is_parked FROM ${schema}.projects p
  WHERE p.id IN ($1::text, ${parkedId})
`

/** The row of `findProject`. */
export interface ProjectPlaceRow {
  readonly number: string
  readonly is_parked: boolean
}

/** Parks the project `$1`. What is the home keeps its name for the keys that open it. */
export const hideProject = (schema: string): string => `
  WITH parked AS (
    UPDATE ${schema}.projects p SET id = ${parkedId} WHERE p.id = $1::text RETURNING p.number
  ),
  remembered AS (
    INSERT INTO ${schema}.projects_elsewhere (id, number) SELECT $1::text, p.number FROM parked p
    ON CONFLICT (id) DO UPDATE SET number = excluded.number
  )
  UPDATE ${schema}.webhooks w SET paused_until = 'infinity' FROM parked p WHERE w.project_number = p.number
`

/**
 * Ends the parking of the project `$1`, and has dispatchers look for its deliveries. A pass gives its members
 * next checks: those that they bring are as they were watched elsewhere, and passes there have ended with the move.
 */
export const unhideProject = (schema: string): string => `
  WITH found AS (
    UPDATE ${schema}.projects p SET id = $1::text WHERE p.id = ${parkedId} RETURNING p.number
  ),
  here AS (
    DELETE FROM ${schema}.projects_elsewhere e WHERE e.id = $1::text
  ),
  freed AS (
    UPDATE ${schema}.webhooks w SET paused_until = NULL FROM found p WHERE w.project_number = p.number
  ),
  begun AS (
    INSERT INTO ${schema}.expiry_passes (after_project, last_project) SELECT number, number FROM found
  )
  SELECT pg_notify('${schema}.deliveries', 'unparked')::text FROM found
`

/** Deletes the parked project `$1`. Housekeeping removes the rest; see `delete_project`. */
const deleteHidden = (schema: string): string => `
  SELECT ${schema}.delete_project(${parkedId}, '${schema}.deliveries')
`

/** Returns a transaction that begins now, and others that are open in the database, separated by commas. */
const beginning = `
  SELECT pg_current_xact_id()::text AS xid, (
    SELECT string_agg(l.virtualtransaction, ',')
    FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'virtualxid' AND a.datname = current_database() AND a.pid <> pg_backend_pid()
      -- No vacuum, which has no user.
      AND a.usesysid IS NOT NULL
  ) AS others
`

/** The row of `beginning`. */
interface BeginningRow {
  readonly xid: string
  readonly others: string | null
}

/**
 * Returns whether all transactions have ended that had begun before the transaction `$1` did. Those that had not
 * written yet are among the others, `$2`: they may still see the project, and write then.
 */
const writesHaveEnded = `
  SELECT $1::text::xid8 < pg_snapshot_xmin(pg_current_snapshot()) AND NOT EXISTS (
    SELECT FROM pg_locks l
    WHERE l.locktype = 'virtualxid' AND l.virtualtransaction = ANY (string_to_array($2::text, ','))
  ) AS holds
`

/** Returns whether no delivery of the project with the number `$1` is being attempted. */
const hasNoWriters = (schema: string): string => `
  SELECT NOT EXISTS (
    SELECT FROM ${schema}.deliveries d JOIN ${schema}.webhooks w ON w.id = d.webhook_id
    WHERE w.project_number = $1::text::bigint AND d.state = 'leased' AND d.next_attempt_at > clock_timestamp()
  ) AS holds
`

/** Returns what tells a database from all others. */
const identity = `
  SELECT (SELECT c.system_identifier FROM pg_control_system() c) || ' ' ||
         (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()) AS id
`

/** Statements that copy the rows of a project, whatever their columns are, and compare them. */

/** A table with rows of projects. */
interface TableRow {
  readonly name: string
  /** Its columns, quoted, without those that mean nothing elsewhere. */
  readonly columns: ReadonlyArray<string>
  /** Whether it has the number of the project. Otherwise it has the id of an event. */
  readonly has_number: boolean
}

/**
 * Returns the tables. Columns that count within one database, or that tell which process has a delivery, are
 * given new values.
 */
const listTables = (schema: string): string => `
  SELECT c.relname AS name,
         array_agg(quote_ident(a.attname) ORDER BY a.attnum) FILTER (
           WHERE a.attname NOT IN ('project_number', 'lease', 'dispatcher', 'paused_until', 'paused_since', 'moved_with')
             AND (c.relname, a.attname) NOT IN (('audit', 'id'), ('webhooks', 'position'))
             AND a.atttypid <> 'xid8'::regtype
         ) AS columns,
         bool_or(a.attname = 'project_number') AS has_number
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE c.relnamespace = '${schema}'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND c.relname <> 'api_key_projects'
  GROUP BY c.relname
  HAVING bool_or(a.attname = 'project_number') OR c.relname IN ('deliveries', 'finished_deliveries')
  ORDER BY c.relname
`

/** Returns the columns of a project itself. */
const listProjectColumns = (schema: string): string => `
  SELECT array_agg(quote_ident(a.attname) ORDER BY a.attnum) AS columns FROM pg_attribute a
  WHERE a.attrelid = '${schema}.projects'::regclass AND a.attnum > 0 AND NOT a.attisdropped
    AND a.attname NOT IN ('id', 'number')
`

/** The order in which rows get new numbers. */
const orders: Readonly<Record<string, string>> = {
  audit: "ORDER BY t.id",
  webhooks: "ORDER BY t.position",
}

/** A project in a database. */
interface RowPosition {
  /** Its number there: digits. */
  readonly number: string
  /** By how much its deliveries come earlier than in the database: before all others. */
  readonly shift: string
}

/** Nobody attempts at the target what somebody attempts at the source. Claims there block again what has to wait. */
const moved = (table: string, column: string, shift: string): string => {
  // `quote_ident` quotes it, because it is a keyword.
  if (column === '"position"') return `t.position - ${shift} AS position`
  if (table !== "deliveries") return `t.${column}`
  if (column === "state")
    return "CASE WHEN t.state IN ('leased', 'blocked') THEN 'ready' ELSE t.state END AS state"
  if (column === "next_attempt_at")
    return "CASE t.state WHEN 'leased' THEN now() ELSE t.next_attempt_at END AS next_attempt_at"
  return `t.${column}`
}

const rowsOf = (schema: string, table: TableRow, { number, shift }: RowPosition): string => `
  SELECT ${table.columns.map((column) => moved(table.name, column, shift)).join(", ")}
  FROM ${schema}.${table.name} t
  WHERE ${
    table.has_number
      ? `t.project_number = ${number}`
      : `t.event_id IN (SELECT e.id FROM ${schema}.events e WHERE e.project_number = ${number})`
  }
`

/** Returns how many rows of a project a table has, and a digest in which their order does not count. */
const summarize = (schema: string, table: TableRow, place: RowPosition): string => `
  SELECT count(*)::float8 AS count,
         coalesce(sum(
           ('x' || encode(substr(sha256(convert_to(to_json(r)::text, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
         ), 0)::text AS digest
  FROM (${rowsOf(schema, table, place)}) r
`

/** Starts to read the rows of a project in a table. */
const startReading = (schema: string, table: TableRow, place: RowPosition): string => `
  DECLARE moved NO SCROLL CURSOR FOR
  SELECT to_json(r)::text AS row FROM (${rowsOf(schema, table, place)} ${orders[table.name] ?? ""}) r
`

/** Writes rows of a project: a JSON array of them, `$1`. */
const write = (schema: string, { columns, has_number, name }: TableRow, number: string) => {
  const all = columns.join(", ")
  // The same key may belong to a request of another project there.
  const numbers =
    name === "idempotency_keys" ? ["project_number", "moved_with"] : ["project_number"]
  return has_number
    ? `INSERT INTO ${schema}.${name} (${numbers.join(", ")}, ${all}) OVERRIDING SYSTEM VALUE
       SELECT ${numbers.map(() => number).join(", ")}, ${all} FROM json_populate_recordset(NULL::${schema}.${name}, $1::text::json)`
    : `INSERT INTO ${schema}.${name} (${all}) OVERRIDING SYSTEM VALUE
       SELECT ${all} FROM json_populate_recordset(NULL::${schema}.${name}, $1::text::json)`
}

/** Returns the last position of a delivery of a project. */
const lastPosition = (schema: string, number: string): string => `
  SELECT greatest(
    (SELECT max(d.position) FROM ${schema}.deliveries d WHERE d.event_id IN (
      SELECT e.id FROM ${schema}.events e WHERE e.project_number = ${number})),
    (SELECT max(d.position) FROM ${schema}.finished_deliveries d WHERE d.event_id IN (
      SELECT e.id FROM ${schema}.events e WHERE e.project_number = ${number})),
    0
  )::text AS position
`

/** Returns a project itself, as JSON. */
const readProject = (schema: string, columns: string, number: string): string => `
  SELECT to_json(r)::text AS row
  FROM (SELECT ${columns} FROM ${schema}.projects WHERE number = ${number}) r
`

/**
 * Writes a project, parked: its id `$1`, and what was read of it, `$2`. It keeps the number that the directory
 * has for it. Returns the number.
 */
const writeProject = (schema: string, columns: string): string => `
  INSERT INTO ${schema}.projects (id, number, ${columns}) OVERRIDING SYSTEM VALUE
  SELECT chr(1) || $1::text, coalesce(
    (SELECT e.number FROM ${schema}.projects_elsewhere e WHERE e.id = $1::text),
    nextval(pg_get_serial_sequence('${schema}.projects', 'number'))
  ), ${columns} FROM json_populate_record(NULL::${schema}.projects, $2::text::json)
  RETURNING number::text
`

/** Deletes the answers that an earlier stay of a project has left: housekeeping leaves them until they are old. */
const deleteAnswers = (schema: string, number: string): string => `
  DELETE FROM ${schema}.idempotency_keys WHERE project_number = ${number}
`

/** Holds the webhooks of a project forever. */
const hold = (schema: string, number: string): string => `
  UPDATE ${schema}.webhooks SET paused_until = 'infinity' WHERE project_number = ${number}
`

/** Returns whether nothing is left of projects that were deleted. */
const isSwept = (schema: string): string => `
  SELECT NOT EXISTS (SELECT FROM ${schema}.deleted_projects) AS holds
`

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

/** The project cannot be moved. The message says why. */
class ProjectMoveRefused extends TaggedError("ProjectMoveRefused")<{
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
  readonly onProgress?: ((progress: CopyProgress) => void) | undefined
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
  Effect.map(client.unsafe<ProjectPlaceRow>(findProject(schema), [projectId]), ([row]) => row)

/** Waits until nothing changes what is parked any more. */
const settle = Effect.fnUntraced(function* (
  { projectId, schema }: Move,
  from: SqlClient,
  number: string,
) {
  const [begun] = yield* from.unsafe<BeginningRow>(beginning)
  yield* until(from, writesHaveEnded, [begun?.xid ?? "0", begun?.others ?? ""]).pipe(
    Effect.timeoutOrElse({
      duration: longestTransaction,
      orElse: () =>
        refuse(
          `A transaction in the database of ${projectId} does not end. End it and repeat the command, or cancel the move.`,
        ),
    }),
  )
  yield* Effect.timeoutOption(until(from, hasNoWriters(schema), [number]), longestAttempt)
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
    const rows = yield* from.unsafe<ReadRow>(readNext(batchSize))
    if (rows.length === 0) break
    yield* to.unsafe(writing, [`[${rows.map(({ row }) => row).join(",")}]`])
    onWritten(rows.length)
  }
  yield* from.unsafe(stopReading)
})

/** Copies a parked project within a transaction at each end, and compares what both have then. */
const copy = Effect.fnUntraced(function* (
  { onProgress = () => {}, projectId, schema }: Move,
  [from, to]: readonly [SqlClient, SqlClient],
  number: string,
) {
  yield* from.unsafe("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
  yield* from.unsafe(waitForWrites)
  yield* to.unsafe(waitForWrites)
  const all = yield* from.unsafe<TableRow>(listTables(schema))
  const [last] = yield* from.unsafe<{ readonly position: string }>(lastPosition(schema, number))
  const given = { number, shift: last?.position ?? "0" }
  const [own] = yield* from.unsafe<Pick<TableRow, "columns">>(listProjectColumns(schema))
  const columns = (own?.columns ?? []).join(", ")
  const [read] = yield* from.unsafe<ReadRow>(readProject(schema, columns, number))
  const [written] = yield* to.unsafe<{ readonly number: string }>(writeProject(schema, columns), [
    projectId,
    read?.row,
  ])
  if (written === undefined) return yield* refuse(`The project ${projectId} is being deleted.`)
  yield* to.unsafe(deleteAnswers(schema, written.number))
  const copied = { number: written.number, shift: "0" }

  const summaries = yield* Effect.forEach(all, (table) =>
    from.unsafe<Summary>(summarize(schema, table, given)),
  )
  const total = summaries.reduce((sum, [summary]) => sum + (summary?.count ?? 0), 0)
  let rows = 0
  for (const table of all) {
    const reading = startReading(schema, table, given)
    const writing = write(schema, table, written.number)
    yield* copyTable([from, to], reading, writing, (more) => {
      rows += more
      onProgress({ table: table.name, rows, of: total })
    })
  }
  for (const [index, table] of all.entries()) {
    const [expected] = summaries[index] ?? []
    const [found] = yield* to.unsafe<Summary>(summarize(schema, table, copied))
    if (found?.count !== expected?.count || found?.digest !== expected?.digest)
      return yield* refuse(`The table ${table.name} of the target is not as the one of the source.`)
  }
  yield* to.unsafe(hold(schema, written.number))
})

/** Fails if both ends are one database. */
const checkEnds = Effect.fnUntraced(function* (
  { schema, source, target }: Move,
  ends: readonly [SqlClient, SqlClient],
) {
  yield* checkSchema(source, schema)
  yield* checkSchema(target, schema)
  const ids = yield* Effect.forEach(ends, (end) =>
    Effect.map(end.unsafe<{ readonly id: string }>(identity), ([row]) => row?.id),
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
    yield* from.unsafe(hideProject(schema), [projectId])
    yield* onStep("parked")
    yield* settle(move, from, here.number)
    // Of an earlier stay, perhaps.
    yield* Effect.repeat(to.unsafe(purgeDeletedProjects(schema)), {
      while: (rows) => rows.length > 0,
    })
    if (!(yield* Effect.map(to.unsafe<HoldsRow>(isSwept(schema)), ([row]) => row?.holds)))
      return yield* refuse(
        "The target cannot remove yet what is left of a project: try again later.",
      )
    yield* from.withTransaction(to.withTransaction(copy(move, ends, here.number)))
    yield* onStep("copied")
  }
  if (there?.is_parked !== false) {
    yield* to.unsafe(unhideProject(schema), [projectId])
    yield* onStep("found at the target")
  }
  yield* from.unsafe(deleteHidden(schema), [projectId])
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
  yield* to.unsafe(deleteHidden(schema), [projectId])
  yield* from.unsafe(unhideProject(schema), [projectId])
})
