/**
 * Moves a cell from server to server with PostgreSQL's logical replication.
 *
 * The tables are created at the target, where they refuse changes, and filled by a subscription. When that
 * has caught up, locks stop writers at the source until a last row has arrived. Renaming the schema at the
 * source decides the move: before that, everything can be undone, and after it, repeatable steps complete
 * everything.
 */

import type { PgClient, PgClientConfig } from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { type SqlError, isSqlError } from "effect/sql/SqlError"
import {
  cellSchema,
  forgottenMillis,
  isOpen,
  movedSchema,
  openCell,
  switchCell,
  switchCellParams,
} from "../connection/cells.ts"
import { isLockTimeout, isLostRace } from "../connection/errors.ts"
import { createTables, holds, moveLock, schemaExists } from "../schema/migrate.ts"
import { quoted } from "../sql/clauses.ts"
import { flagsParam, integerParam, textParam, textsParam } from "../sql/values.ts"
import { copyDays } from "./copy-database.ts"
import { type CellMove, type GrantRow, type MoveServer, checkEnds, refuse } from "./move-checks.ts"
import {
  type MoveProgress,
  arrivalMillis,
  catchUp,
  detach,
  dropSubscription,
  retryOften,
  readName,
  sendMarker,
  waitForCopy,
} from "./replication.ts"

/** A move's steps, in order. */
export const moveSteps = [
  "announced",
  "created",
  "published",
  "slotted",
  "subscribed",
  "locked",
  "prepared",
  "decided",
  "opened",
  "switched",
] as const

/** A step that has been done. */
export type MoveStep = (typeof moveSteps)[number]

/** Callbacks about a move. */
export interface MoveObserver {
  readonly onStep: (step: MoveStep) => Effect.Effect<void>
  readonly onProgress: (progress: MoveProgress) => void
}

/** Runs statements in one session, until the scope closes. */
const openSession = Effect.fnUntraced(function* (config: PgClientConfig) {
  const session = yield* PgConnection.make({ ...config, multiplex: false })
  return <Row extends object>(
    sql: string,
    params: ReadonlyArray<unknown> = [],
  ): Effect.Effect<ReadonlyArray<Row>, SqlError> => rowsOf(session.query(sql, params, false))
})

type Session = Effect.Success<ReturnType<typeof openSession>>

function rowsOf<Row>(
  answer: Effect.Effect<PgConnection.Result, SqlError>,
): Effect.Effect<ReadonlyArray<Row>, SqlError>
function rowsOf(answer: Effect.Effect<PgConnection.Result, SqlError>) {
  return Effect.map(answer, ({ rows }) => rows)
}

interface HoldsRow {
  readonly holds: boolean
}

/** The state of a cell at both ends. */
export interface MoveState {
  /** At the source: the cell's schema. */
  readonly isAtSource: boolean
  /** At the source: the schema under the name that it gets by the decision. */
  readonly isDecided: boolean
  /** At the target: nothing, a copy that refuses changes, or tables that accept them. */
  readonly target: "absent" | "closed" | "open"
}

/** Decides how to continue. */
export const decideMove = ({
  isAtSource,
  isDecided,
  target,
}: MoveState): "begin" | "undo" | "complete" | "refuse" => {
  if (isDecided) return isAtSource || target === "absent" ? "refuse" : "complete"
  if (!isAtSource || target === "open") return "refuse"
  return target === "closed" ? "undo" : "begin"
}

const readState = Effect.fnUntraced(function* ({ schema, source, target }: CellMove) {
  const isThere = yield* schemaExists(target.client, quoted(schema))
  const state: MoveState = {
    isAtSource: yield* schemaExists(source.client, quoted(schema)),
    isDecided: yield* schemaExists(source.client, quoted(movedSchema(schema))),
    target: isThere
      ? (yield* holds(target.client, isOpen(schema)))
        ? "open"
        : "closed"
      : "absent",
  }
  return state
})

const describeState = ({ schema, source, target }: CellMove, state: MoveState): string =>
  `The cell cannot move: ${source.name} has ${state.isAtSource ? "" : "no "}${schema} and ${state.isDecided ? "" : "no "}${movedSchema(schema)}, and ${schema} at ${target.name} is ${state.target}. Remove the schema that is not in use.`

/** Drops a schema that statements may still read. They must not wait behind it. */
const dropSchema = (client: PgClient, schema: string) => {
  const sql = client.withoutTransforms()
  return sql
    .withTransaction(
      Effect.andThen(
        sql.unsafe("SET LOCAL lock_timeout = '500ms'"),
        sql.unsafe(`DROP SCHEMA IF EXISTS ${quoted(schema)} CASCADE`),
      ),
    )
    .pipe(Effect.retry({ ...retryOften, while: isBlocked }), Effect.asVoid)
}

const isBlocked = (error: unknown): boolean =>
  isSqlError(error) && (isLockTimeout(error) || isLostRace(error))

/** Undoes a move that is not decided. */
const undo = Effect.fnUntraced(function* (move: CellMove) {
  const { schema, source, target } = move
  yield* detach(move)
  yield* dropSchema(target.client, schema)
  yield* source.client.unsafe(`DELETE FROM ${quoted(schema)}.move_markers`)
})

/** The row of a cell in the directory. */
interface DirectoryRow {
  readonly server: string
  readonly moving_to: string | null
  readonly moved_from: string | null
  /** How long processes may still use its former place, in milliseconds. */
  readonly wait: number
}

const readDirectory = Effect.fnUntraced(function* (
  home: PgClient,
  homeSchema: string,
  number: number,
) {
  const [row] = yield* home.unsafe<DirectoryRow>(
    `SELECT server, moving_to, moved_from, coalesce(greatest(0,
       ${forgottenMillis} - extract(epoch FROM clock_timestamp() - moved_at) * 1000
     ), 0)::float8 AS wait
     FROM ${quoted(homeSchema)}.cells WHERE number = $1`,
    [integerParam(number)],
  )
  return row ?? (yield* refuse(`There is no cell ${number}. tenure cells lists them.`))
})

const announce = ({ home, homeSchema, number, source, target }: CellMove) =>
  home.unsafe(
    `UPDATE ${quoted(homeSchema)}.cells SET moving_to = $3 WHERE number = $1 AND server = $2`,
    switchCellParams(number, source.name, target.name),
  )

const retract = ({ home, homeSchema, number }: CellMove) =>
  home.unsafe(`UPDATE ${quoted(homeSchema)}.cells SET moving_to = NULL WHERE number = $1`, [
    integerParam(number),
  ])

const forget = (home: PgClient, homeSchema: string, number: number) =>
  home.unsafe(`UPDATE ${quoted(homeSchema)}.cells SET moved_from = NULL WHERE number = $1`, [
    integerParam(number),
  ])

const listTables = (schema: string): string => `
  SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = '${schema}' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND c.relpersistence = 'p' AND c.relname <> 'migrations'
  ORDER BY 1
`

/** Returns the tables to be moved. */
const readTables = ({ schema, source }: CellMove) =>
  Effect.map(source.client.unsafe<{ readonly name: string }>(listTables(schema)), (rows) =>
    rows.map(({ name }) => name),
  )

const qualified = (schema: string, tables: ReadonlyArray<string>): string =>
  tables.map((table) => `${quoted(schema)}.${table}`).join(", ")

// The order in which most statements lock. Otherwise a writer and the switch would wait for each other.
const writingOrder: ReadonlyArray<string> = [
  "projects",
  "memberships",
  "audit",
  "events",
  "leases",
  "deliveries",
  "webhooks",
  "finished_deliveries",
  "delivered_runs",
  "idempotency_keys",
]

/** Orders tables as statements lock them. */
const inWritingOrder = (tables: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...writingOrder.filter((name) => tables.includes(name)),
  ...tables.filter((name) => !writingOrder.includes(name)),
]

/** Creates the tables at the target, with the same partitions and rights, empty and closed. */
const createCopy = (
  { schema, source, target }: CellMove,
  tables: ReadonlyArray<string>,
  grants: ReadonlyArray<GrantRow>,
) =>
  createTables(
    target.client,
    quoted(schema),
    Effect.fnUntraced(function* (sql) {
      yield* copyDays(source.client.withoutTransforms(), sql, quoted(schema))
      for (const table of tables) yield* sql.unsafe(`DELETE FROM ${quoted(schema)}.${table}`)
      for (const { statement } of grants) yield* sql.unsafe(statement)
      yield* sql.unsafe(`SELECT ${quoted(schema)}.close_cell()`)
    }),
  )

/** Quotes a text for a statement that takes no parameters. */
const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

const listSequences = (schema: string): string => `
  SELECT string_agg(
    format('SELECT %L AS name, last_value::text AS last, is_called FROM %s', c.oid::regclass, c.oid::regclass),
    ' UNION ALL '
  ) AS query
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = '${schema}' AND c.relkind = 'S'
`

interface SequenceRow {
  readonly name: string
  readonly last: string
  readonly is_called: boolean
}

// Committing this also makes durable what the subscription applied before, which commits without waiting for
// the disk.
const setSequences = `
  SELECT setval(name::regclass, last::bigint, is_called)
  FROM unnest($1::text[], $2::text[], $3::boolean[]) s (name, last, is_called)
`

/** How long an attempt holds up writers at most, if this process stops in the middle. */
const gateLife = "1s"

// Waits for a writer in the way again and again, ever less often, for 90 seconds.
const maxAttempts = 100
const pauseAfter = (attempts: number): number => Math.min(1000, 50 * attempts)

/**
 * Switches from the source to the target. Before the rename commits, the cell is at the source; after it, at
 * the target.
 */
const switchOver = Effect.fnUntraced(function* (
  move: CellMove,
  gate: Session,
  name: string,
  { onStep }: MoveObserver,
) {
  const { schema, source, target } = move
  const tables = (yield* readTables(move)).filter((table) => table !== "move_markers")
  const all = qualified(schema, inWritingOrder(tables))
  const [sequences] = yield* source.client.unsafe<{ readonly query: string }>(listSequences(schema))
  const there = yield* openSession(target.client.config)
  yield* gate(`SET idle_in_transaction_session_timeout = '${gateLife}'`)

  /** Returns whether the cell is at the target now. It is not if changes did not arrive in time. */
  const attempt = Effect.gen(function* () {
    // These locks only stop vacuum. A running one ends, or is cancelled.
    yield* there("BEGIN")
    yield* there(`LOCK TABLE ${all} IN SHARE UPDATE EXCLUSIVE MODE`)
    yield* gate("BEGIN")
    yield* gate(`LOCK TABLE ${all} IN SHARE UPDATE EXCLUSIVE MODE`)
    // Below deadlock_timeout, so that no writer is the victim.
    yield* gate("SET LOCAL lock_timeout = '200ms'")
    yield* gate("SET LOCAL synchronous_commit = on")
    yield* gate(`LOCK TABLE ${all} IN EXCLUSIVE MODE`)
    yield* onStep("locked")
    if ((yield* sendMarker(move, name, arrivalMillis)) > arrivalMillis) return false
    const last = yield* gate<SequenceRow>(sequences?.query ?? "")
    yield* target.client.unsafe(setSequences, [
      textsParam(last.map((sequence) => sequence.name)),
      textsParam(last.map((sequence) => sequence.last)),
      flagsParam(last.map((sequence) => sequence.is_called)),
    ])
    yield* there(openCell(schema))
    yield* onStep("prepared")
    yield* gate(`ALTER SCHEMA ${quoted(schema)} RENAME TO ${quoted(movedSchema(schema))}`)
    yield* gate("COMMIT")
    return true
  })

  for (let attempts = 1; ; attempts++) {
    const outcome = yield* Effect.catchIf(attempt, isBlocked, () => Effect.succeed("blocked"))
    if (outcome === true) break
    yield* gate("ROLLBACK")
    yield* there("ROLLBACK")
    if (attempts === maxAttempts)
      return yield* refuse(
        outcome === "blocked"
          ? `Transactions on ${source.name} or ${target.name} stay open. Try again when they have ended.`
          : `${target.name} does not keep up with ${source.name}. Try again under less load.`,
      )
    yield* Effect.sleep(pauseAfter(attempts))
    yield* catchUp(move, name)
  }
  yield* onStep("decided")
  // If this session has ended, `complete` does the same.
  yield* Effect.ignore(there("COMMIT"))
}, Effect.scoped)

/** Completes a decided move. Any step can be repeated. */
const complete = Effect.fnUntraced(function* (move: CellMove, { onStep }: MoveObserver) {
  const { home, homeSchema, number, schema, source, target } = move
  yield* Effect.retry(target.client.unsafe(openCell(schema)), { ...retryOften, while: isBlocked })
  yield* onStep("opened")
  const params = switchCellParams(number, source.name, target.name)
  yield* home.unsafe(switchCell(quoted(homeSchema)), params)
  // Makes dispatchers look for deliveries there.
  yield* target.client.unsafe("SELECT pg_notify($1, 'moved')", [
    textParam(`${quoted(homeSchema)}.deliveries`),
  ])
  yield* onStep("switched")
  yield* removeFormer(move)
})

/** Removes what a completed move left at the source. */
const removeFormer = Effect.fnUntraced(function* (move: CellMove) {
  yield* detach(move)
  yield* dropSchema(move.source.client, movedSchema(move.schema))
  yield* forget(move.home, move.homeSchema, move.number)
})

// How long a session that has died may keep its locks.
const lockMillis = 3000

/** Opens the session at the source that holds the move's locks, until the scope closes. No other run can have it. */
const lockMove = Effect.fnUntraced(function* ({ schema, source }: CellMove) {
  const gate = yield* openSession(source.client.config)
  const attempt = Effect.map(
    gate<HoldsRow>("SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS holds", [
      textParam(moveLock(quoted(schema))),
    ]),
    ([row]) => row?.holds === true,
  )
  const isAlone = yield* Effect.repeat(attempt, {
    until: (is) => is,
    times: lockMillis / 100,
    schedule: Schedule.spaced("100 millis"),
  })
  return isAlone ? gate : yield* refuse("Another process moves the cell.")
})

/** Copies the cell and switches to the copy. */
const begin = Effect.fnUntraced(function* (
  move: CellMove,
  gate: Session,
  wait: number,
  observer: MoveObserver,
) {
  const { schema, source, target } = move
  const { onStep } = observer
  const grants = yield* checkEnds(move)
  const name = yield* readName(move)
  // No partition is made or dropped meanwhile.
  yield* gate("SELECT pg_advisory_lock(hashtextextended($1, 0))", [
    textParam(`${quoted(schema)}.days`),
  ])
  yield* announce(move)
  yield* onStep("announced")
  yield* Effect.sleep(wait)
  const tables = yield* readTables(move)
  yield* createCopy(move, tables, grants)
  yield* onStep("created")
  const published = qualified(schema, tables)
  yield* source.client.unsafe(
    `CREATE PUBLICATION ${name} FOR TABLE ${published} WITH (publish_via_partition_root = true)`,
  )
  yield* onStep("published")
  // A separate statement, because it waits for open transactions.
  yield* source.client.unsafe("SELECT FROM pg_create_logical_replication_slot($1, 'pgoutput')", [
    textParam(name),
  ])
  yield* onStep("slotted")
  yield* target.client.unsafe(
    `CREATE SUBSCRIPTION ${name} CONNECTION ${literal(source.replicationUrl)} PUBLICATION ${name}
     WITH (create_slot = false, synchronous_commit = off, disable_on_error = true)`,
  )
  yield* onStep("subscribed")
  yield* waitForCopy(move, name, observer.onProgress)
  yield* target.client.unsafe(`ANALYZE ${published}`)
  yield* catchUp(move, name)
  yield* switchOver(move, gate, name, observer)
  yield* complete(move, observer)
}, Effect.scoped)

/** An observer that ignores everything. */
export const silent: MoveObserver = { onStep: () => Effect.void, onProgress: () => {} }

/** The servers and the home that `moveCell` works with. */
export interface MoveSurroundings {
  readonly home: PgClient
  readonly homeSchema: string
  readonly servers: ReadonlyMap<string, MoveServer>
}

const find = (servers: ReadonlyMap<string, MoveServer>, name: string) => {
  const known = [...servers.keys()].join(", ")
  const found = servers.get(name)
  return found === undefined
    ? refuse(`There is no server ${name}. The servers are ${known}.`)
    : Effect.succeed(found)
}

const makeMove = Effect.fnUntraced(function* (
  { home, homeSchema, servers }: MoveSurroundings,
  number: number,
  from: string,
  to: string,
) {
  const move: CellMove = {
    number,
    schema: cellSchema(homeSchema, number),
    homeSchema,
    home,
    source: yield* find(servers, from),
    target: yield* find(servers, to),
  }
  return move
})

/** Removes what a cell's earlier move left at its former server. */
const tidy = Effect.fnUntraced(function* (
  surroundings: MoveSurroundings,
  number: number,
  { moved_from: from, server }: DirectoryRow,
) {
  if (from === null) return
  const { home, homeSchema, servers } = surroundings
  if (servers.has(from)) {
    const move = yield* makeMove(surroundings, number, from, server)
    yield* lockMove(move)
    return yield* removeFormer(move)
  }
  // The operator has removed the server, with everything on it.
  const target = yield* find(servers, server)
  const subscriptions = yield* target.client.unsafe<{ readonly name: string }>(
    `SELECT s.subname AS name FROM pg_subscription s JOIN pg_subscription_rel r ON r.srsubid = s.oid
     WHERE r.srrelid = to_regclass($1)`,
    [textParam(`${quoted(cellSchema(homeSchema, number))}.cells`)],
  )
  for (const { name } of subscriptions) yield* dropSubscription(target.client, name)
  yield* forget(home, homeSchema, number)
}, Effect.scoped)

/**
 * Moves a cell to a server. If an earlier run was interrupted, undoes it and begins again, or completes it if
 * it is decided. If this run fails, it leaves what it has done: see `cancelMove`.
 *
 * @returns whether there was anything to do
 */
export const moveCell = Effect.fnUntraced(function* (
  surroundings: MoveSurroundings,
  number: number,
  to: string,
  observer: MoveObserver = silent,
) {
  const { home, homeSchema, servers } = surroundings
  yield* find(servers, to)
  const before = yield* readDirectory(home, homeSchema, number)
  yield* tidy(surroundings, number, before)
  if (before.server === to && before.moving_to === null) return before.moved_from !== null
  const move = yield* makeMove(surroundings, number, before.server, to)
  const gate = yield* lockMove(move)
  const { moving_to, server, wait } = yield* readDirectory(home, homeSchema, number)
  if (server !== before.server) return yield* refuse("Another process has moved the cell.")
  if (moving_to !== null && moving_to !== to)
    return yield* refuse(
      `The cell ${number} moves to ${moving_to}. Repeat that move, or cancel it: tenure cells move ${number} ${moving_to} --cancel.`,
    )
  const state = yield* readState(move)
  const next = decideMove(state)
  if (next === "refuse") return yield* refuse(describeState(move, state))
  if (next === "complete") yield* complete(move, observer)
  else {
    // Also without a copy, because a run may have died after dropping it.
    yield* undo(move)
    yield* begin(move, gate, wait, observer)
  }
  return true
}, Effect.scoped)

/**
 * Undoes a move that is not decided.
 *
 * @returns whether there was anything to undo
 */
export const cancelMove = Effect.fnUntraced(function* (
  surroundings: MoveSurroundings,
  number: number,
  to: string,
) {
  const { home, homeSchema, servers } = surroundings
  yield* find(servers, to)
  const { moving_to, server } = yield* readDirectory(home, homeSchema, number)
  if (moving_to !== to) {
    if (server === to) return yield* refuse(`The cell ${number} is on ${to} already.`)
    return moving_to === null
      ? false
      : yield* refuse(`The cell ${number} moves to ${moving_to}, not to ${to}.`)
  }
  const move = yield* makeMove(surroundings, number, server, to)
  yield* lockMove(move)
  const state = yield* readState(move)
  switch (decideMove(state)) {
    case "begin":
    case "undo":
      yield* undo(move)
      yield* retract(move)
      return true
    case "complete":
      return yield* refuse(
        `The move is decided: tenure cells move ${number} ${to} completes it. Then move the cell back.`,
      )
    case "refuse":
      return yield* refuse(describeState(move, state))
  }
}, Effect.scoped)
