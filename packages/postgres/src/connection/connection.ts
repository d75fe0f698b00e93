/** One connection to the database: its socket, the settings of its session, and a pooler in between. */

import * as Net from "node:net"
import type { Duplex } from "node:stream"
import type { PgClientConfig } from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import { textParam } from "../sql/values.ts"

/** A host and port, or the path of a Unix socket, as `net.connect` takes them. */
type Address = { readonly host: string; readonly port: number } | { readonly path: string }

const parse = ({ url }: PgClientConfig): URL | undefined =>
  url === undefined ? undefined : (URL.parse(Redacted.value(url)) ?? undefined)

const hostOf = (url: URL | undefined): string =>
  url?.searchParams.get("host") ??
  (decodeURIComponent(url?.hostname ?? "").replace(/^\[(.*)\]$/, "$1") || "localhost")

const portOf = (url: URL | undefined): number =>
  Number(url?.searchParams.get("port") ?? (url?.port || 5432))

/** Returns the address by the driver's rules: fields take precedence over the URL, and its query over the rest. */
const addressOf = (config: PgClientConfig): Address => {
  const url = parse(config)
  const host = config.host ?? hostOf(url)
  const port = config.port ?? portOf(url)
  if (config.path !== undefined) return { path: config.path }
  return host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }
}

/** Timeouts that apply to all statements in a session. */
export interface SessionTimeouts {
  /** How long a statement waits for a lock, as PostgreSQL prints it, for example `"200ms"`. */
  readonly lockTimeout: string
}

/** Timeouts for statements that others wait behind. */
export const failOnLockTimeouts: SessionTimeouts = { lockTimeout: "200ms" }

/** Timeouts for statements that have met a lock: as long as a client can be expected to wait. */
export const waitForLockTimeouts: SessionTimeouts = { lockTimeout: "5s" }

// The longest time that a statement may take. The process that sent it has long given up by then.
const statementTimeout = "30s"

/** Session settings, as startup parameters. */
const settings = ({ lockTimeout }: SessionTimeouts) => ({
  // The statements need this level, whatever the database's default is.
  default_transaction_isolation: "read committed",
  lock_timeout: lockTimeout,
  statement_timeout: statementTimeout,
  // The server closes sessions whose process has vanished from the network.
  tcp_user_timeout: "10s",
  tcp_keepalives_idle: "10",
})

/** Returns the server process and one of the settings, to find out whether a pooler is in between. */
const inspectSession =
  "SELECT pg_backend_pid() AS process_id, current_setting('lock_timeout') AS lock_timeout"

/** The row that `inspectSession` returns. */
interface InspectRow {
  readonly process_id: number
  readonly lock_timeout: string
}

const beginTransaction = "BEGIN ISOLATION LEVEL READ COMMITTED"

/** Applies the timeouts to the transaction. */
const setSessionTimeouts = `
  SELECT set_config('lock_timeout', $1::text, true),
         set_config('statement_timeout', '${statementTimeout}', true)
`

// How long the system waits before it probes a silent peer.
const keepAliveMillis = 5000

// How long a server has to respond to the end of a session.
const goodbyeMillis = 1000

/** Runs a statement and returns its rows. */
interface Run {
  <Row extends object>(
    sql: string,
    params: ReadonlyArray<unknown>,
  ): Effect.Effect<ReadonlyArray<Row>, SqlError>
}

/** A connection to the database. */
export interface Connection {
  readonly run: Run
  /** The driver's session, to listen on. */
  readonly session: PgConnection.PgConnection
  /** The server process's id, or `undefined` behind a pooler or without a server. */
  readonly processId: number | undefined
  /** How many bytes have arrived. */
  readonly bytesRead: () => number
  readonly isOpen: () => boolean
  /** Ends the session without waiting for the server. */
  readonly close: () => void
  /** Closes the connection as a broken network would. A statement in flight fails. */
  readonly destroy: () => void
}

/** A session and its socket. */
interface Link {
  readonly session: PgConnection.PgConnection
  readonly socket: Duplex
  readonly scope: Scope.Closeable
}

const openSocket = (config: PgClientConfig): Duplex =>
  config.stream?.() ??
  Net.connect({
    ...addressOf(config),
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveMillis,
  })

/** Opens a session on a socket that we create, because the driver's cannot be closed from outside. */
const link = Effect.fnUntraced(function* (config: PgClientConfig, millis: number) {
  const scope = yield* Scope.make()
  let socket: Duplex | undefined
  const session = yield* PgConnection.make({
    ...config,
    multiplex: false,
    connectTimeout: millis,
    // The driver requests more sockets to cancel statements.
    stream: () => {
      const opened = openSocket(config)
      socket ??= opened
      return opened
    },
  }).pipe(
    Scope.provide(scope),
    Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : Scope.close(scope, exit))),
  )
  if (socket === undefined) return yield* Effect.die("a session without a socket")
  const linked: Link = { session, socket, scope }
  return linked
})

const bytesReadOn = (socket: Duplex): number =>
  socket instanceof Net.Socket ? socket.bytesRead : 0

/** Ends a session. The process may exit before the server responds. */
const end = ({ scope, socket }: Link): void => {
  Effect.runSync(Scope.close(scope, Exit.void))
  if (socket instanceof Net.Socket) socket.unref()
  setTimeout(() => socket.destroy(), goodbyeMillis).unref()
}

const connectionOn = (linked: Link, run: Run, processId: number | undefined): Connection => ({
  run,
  session: linked.session,
  processId,
  bytesRead: () => bytesReadOn(linked.socket),
  isOpen: () => !linked.socket.destroyed && linked.socket.writable,
  close: () => end(linked),
  destroy: () => {
    linked.socket.destroy()
  },
})

/** Runs statements in a session that has the timeouts, and prepares them unless told otherwise. */
function runOn(session: PgConnection.PgConnection, prepare?: boolean): Run
function runOn(session: PgConnection.PgConnection, prepare?: boolean) {
  return (sql: string, params: ReadonlyArray<unknown>) =>
    Effect.map(session.query(sql, params, prepare), ({ rows }) => rows)
}

/**
 * Runs each statement in a transaction that sets the timeouts, because a pooler may use another session for
 * the next.
 */
function runApart({ session, socket }: Link, terms: SessionTimeouts): Run
function runApart({ session, socket }: Link, { lockTimeout }: SessionTimeouts) {
  const query = (sql: string, params: ReadonlyArray<unknown> = []) =>
    session.query(sql, params, false)
  const rollback = Effect.catchCause(query("ROLLBACK"), () => Effect.sync(() => socket.destroy()))
  return Effect.fnUntraced(function* (sql: string, params: ReadonlyArray<unknown>) {
    yield* query(beginTransaction)
    const statement = Effect.andThen(
      query(setSessionTimeouts, [textParam(lockTimeout)]),
      query(sql, params),
    )
    const { rows } = yield* Effect.tapError(statement, () => rollback)
    yield* query("COMMIT")
    return rows
  })
}

/** Destroys a connection that gives no response in time. */
export const within = <A, E, R>(
  millis: number,
  { destroy }: { readonly destroy: () => void },
  question: Effect.Effect<A, E, R>,
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const timer = setTimeout(destroy, millis)
    return Effect.ensuring(
      question,
      Effect.sync(() => clearTimeout(timer)),
    )
  })

/**
 * Opens a connection that leads straight to the server. Returns `undefined` behind a pooler, which does not
 * pass the timeouts on.
 */
export const openDirect = Effect.fnUntraced(function* (
  config: PgClientConfig,
  terms: SessionTimeouts,
  millis: number,
) {
  const startupParameters = { ...config.startupParameters, ...settings(terms) }
  // The host's client may have turned prepared statements off, to work through poolers.
  const linked = yield* link({ ...config, prepare: true, startupParameters }, millis)
  const { processId } = linked.session
  const connection = connectionOn(linked, runOn(linked.session), processId)
  // Not prepared, because a pooler would keep the prepared statement.
  const question = runOn(linked.session, false)<InspectRow>(inspectSession, [])
  const [row] = yield* within(millis, connection, question).pipe(
    Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : Effect.sync(connection.destroy))),
  )
  if (row?.process_id === processId && row.lock_timeout === terms.lockTimeout) return connection
  connection.close()
  return undefined
})

/** Opens a connection to a database in this process, where no statement waits for another's lock. */
export const openInProcess = Effect.fnUntraced(function* (config: PgClientConfig, millis: number) {
  const linked = yield* link(config, millis)
  return connectionOn(linked, runOn(linked.session), undefined)
})

/** Opens a connection through a pooler, which may give each transaction another session. */
export const openPooled = Effect.fnUntraced(function* (
  config: PgClientConfig,
  terms: SessionTimeouts,
  millis: number,
) {
  const linked = yield* link({ ...config, prepare: false }, millis)
  return connectionOn(linked, runApart(linked, terms), undefined)
})
