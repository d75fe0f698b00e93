/** How long to wait for a database before it is suspected, from how long it took before. */

import * as Net from "node:net"
import type { Duplex } from "node:stream"
import type { PgClientConfig } from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { observeGauge } from "@tenure/core/internal"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import { textParam } from "../sql/values.ts"
import { isRefusedSetting } from "./errors.ts"

/** What is known of the way to the database, in milliseconds. */
export interface RoundTripTime {
  /** How long a statement takes that costs the server nothing. */
  readonly roundTrip: number | undefined
  /** How long it takes to open a connection: several round trips, and the check of the password. */
  readonly opening: number | undefined
}

/** Before the first measurement. */
export const unknownRoundTrip: RoundTripTime = { roundTrip: undefined, opening: undefined }

/** The longest that a connection may take to open, and the database to answer on it. */
export const maxTimeoutMillis = 8000

const between = (least: number, millis: number): number =>
  Math.min(maxTimeoutMillis, Math.max(least, millis))

/** Rises at once, so that a slower way is not taken for an outage, and falls by and by. */
const follow = (known: number | undefined, measured: number): number =>
  known === undefined || measured > known ? measured : (known + measured) / 2

/** What is known after a measurement. */
export const updateRoundTrip = (
  known: RoundTripTime,
  measured: Partial<RoundTripTime>,
): RoundTripTime => ({
  roundTrip:
    measured.roundTrip === undefined
      ? known.roundTrip
      : follow(known.roundTrip, measured.roundTrip),
  opening: measured.opening === undefined ? known.opening : follow(known.opening, measured.opening),
})

/** What is known after any statement: a round trip takes no longer than that. */
export const capRoundTrip = (known: RoundTripTime, millis: number): RoundTripTime =>
  known.roundTrip === undefined || known.roundTrip <= millis
    ? known
    : { ...known, roundTrip: millis }

/** After how long without an answer a statement is overdue, which is a reason to ask the database. */
export const overdueAfterMillis = ({ roundTrip = 0 }: RoundTripTime): number =>
  between(500, 3 * roundTrip)

/** How long the answer to a question may take on an open connection. */
export const answerTimeoutMillis = ({ roundTrip = maxTimeoutMillis }: RoundTripTime): number =>
  between(250, 3 * roundTrip)

/** How long a connection may take to open. */
export const openTimeoutMillis = ({ opening = maxTimeoutMillis }: RoundTripTime): number =>
  between(1000, 3 * opening)

/** Where the server of a configuration is. */

/** A host and port, or the path of a Unix socket, as `net.connect` takes them. */
type Address = { readonly host: string; readonly port: number } | { readonly path: string }

const parse = ({ url }: PgClientConfig): URL | undefined =>
  url === undefined ? undefined : (URL.parse(Redacted.value(url)) ?? undefined)

const hostOf = (url: URL | undefined): string =>
  url?.searchParams.get("host") ??
  (decodeURIComponent(url?.hostname ?? "").replace(/^\[(.*)\]$/, "$1") || "localhost")

const portOf = (url: URL | undefined): number =>
  Number(url?.searchParams.get("port") ?? (url?.port || 5432))

/** Returns the address, by the rules of the driver: fields precede the URL, and its query the rest. */
const addressOf = (config: PgClientConfig): Address => {
  const url = parse(config)
  const host = config.host ?? hostOf(url)
  const port = config.port ?? portOf(url)
  if (config.path !== undefined) return { path: config.path }
  return host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }
}

/** What holds for all statements of a session. */
export interface SessionTimeouts {
  /** How long a statement waits for a lock, as PostgreSQL prints it, for example `"200ms"`. */
  readonly lockTimeout: string
}

/** For statements that others wait behind. */
export const failOnLockTimeouts: SessionTimeouts = { lockTimeout: "200ms" }

/** For statements that have met a lock, for as long as a client can be expected to wait. */
export const waitForLockTimeouts: SessionTimeouts = { lockTimeout: "5s" }

// The longest that a statement may take. The process that sent it has long given up.
const statementTimeout = "30s"

/** The settings of a session, as parameters of its start. */
const settings = ({ lockTimeout }: SessionTimeouts) => ({
  // The isolation level that the statements need, whatever the default of the database is.
  default_transaction_isolation: "read committed",
  lock_timeout: lockTimeout,
  statement_timeout: statementTimeout,
  // The server closes the sessions of a process that the network has lost.
  tcp_user_timeout: "10s",
  tcp_keepalives_idle: "10",
})

/** Returns the server's process, and one of the settings. */
const inspectSession =
  "SELECT pg_backend_pid() AS process_id, current_setting('lock_timeout') AS lock_timeout"

/** The row of `inspect`. */
interface InspectRow {
  readonly process_id: number
  readonly lock_timeout: string
}

/** Starts a transaction. */
const beginTransaction = "BEGIN ISOLATION LEVEL READ COMMITTED"

/** Applies the terms to the transaction. */
const setSessionTimeouts = `
  SELECT set_config('lock_timeout', $1::text, true),
         set_config('statement_timeout', '${statementTimeout}', true)
`

/** One connection to the database. */

// The longest that the system waits before it asks a silent peer for a sign of life.
const keepAliveMillis = 5000

// How long a server has to answer our goodbye.
const goodbyeMillis = 1000

/** Runs a statement. */
interface Run {
  <Row extends object>(
    sql: string,
    params: ReadonlyArray<unknown>,
  ): Effect.Effect<ReadonlyArray<Row>, SqlError>
}

/** A connection. */
export interface Connection {
  readonly run: Run
  /** The session of the driver, to listen on. */
  readonly session: PgConnection.PgConnection
  /** The id of the server's process, or `undefined` if a pooler is in between, or there is no server. */
  readonly processId: number | undefined
  /** How many bytes have arrived. */
  readonly bytesRead: () => number
  readonly isOpen: () => boolean
  /** Says goodbye. Waits for nothing. */
  readonly close: () => void
  /** Closes the connection as if the network had. The statement in flight fails. */
  readonly destroy: () => void
}

/** A session, and the socket below it. */
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

/** Opens a session on a socket of our own, because the driver's cannot be closed from outside. */
const link = Effect.fnUntraced(function* (config: PgClientConfig, millis: number) {
  const scope = yield* Scope.make()
  let socket: Duplex | undefined
  const session = yield* PgConnection.make({
    ...config,
    multiplex: false,
    connectTimeout: millis,
    // The driver asks for further sockets to cancel statements.
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

/** Ends a session. The process may end before the server answers. */
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

/** Runs statements whose terms the session knows, and prepares them unless told otherwise. */
function runOn(session: PgConnection.PgConnection, prepare?: boolean): Run
function runOn(session: PgConnection.PgConnection, prepare?: boolean) {
  return (sql: string, params: ReadonlyArray<unknown>) =>
    Effect.map(session.query(sql, params, prepare), ({ rows }) => rows)
}

/** Runs each statement in a transaction which sets the terms, because the next is another session's. */
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

/** Destroys what gives no answer in time. */
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
 * Opens a connection that leads straight to the server. Returns `undefined` if a pooler is in between,
 * which does not pass the terms on.
 */
const openDirect = Effect.fnUntraced(function* (
  config: PgClientConfig,
  terms: SessionTimeouts,
  millis: number,
) {
  const startupParameters = { ...config.startupParameters, ...settings(terms) }
  // The client of the host may not prepare statements, because it must work through poolers, too.
  const linked = yield* link({ ...config, prepare: true, startupParameters }, millis)
  const { processId } = linked.session
  const connection = connectionOn(linked, runOn(linked.session), processId)
  // A pooler would keep a prepared one.
  const question = runOn(linked.session, false)<InspectRow>(inspectSession, [])
  const [row] = yield* within(millis, connection, question).pipe(
    Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : Effect.sync(connection.destroy))),
  )
  if (row?.process_id === processId && row.lock_timeout === terms.lockTimeout) return connection
  connection.close()
  return undefined
})

/** Opens a connection to a database in this process, where no statement waits for the lock of another. */
const openInProcess = Effect.fnUntraced(function* (config: PgClientConfig, millis: number) {
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

/** All connections of one process, apart from those of the host. */

/** A connection with a statement in flight. */
export interface BusyConnections {
  readonly connection: Connection
  /** When the statement was sent. */
  readonly since: number
}

/** Opens connections, and knows what they do. */
export interface Connections {
  /** Opens a connection. Fails if that takes longer. */
  readonly open: (terms: SessionTimeouts, millis: number) => Effect.Effect<Connection, SqlError>
  /** Marks a connection as busy for the duration of a statement. */
  readonly send: <A, E>(
    connection: Connection,
    statement: Effect.Effect<A, E>,
  ) => Effect.Effect<A, E>
  /** Whether a pooler is in between. */
  readonly isPooled: () => boolean
  /** Whether the database runs in this process. */
  readonly isInProcess: boolean
  /** The connections with a statement in flight. */
  readonly busy: () => ReadonlyArray<BusyConnections>
  /** How many statements have been answered. */
  readonly answered: () => number
  /** How long the way to the database takes. */
  readonly latency: () => RoundTripTime
  readonly learn: (measured: Partial<RoundTripTime>) => void
  /** Destroys the connections without a statement in flight. */
  readonly destroyIdle: () => void
  /**
   * Leaves a server that refuses changes, because the address may lead to another one by now: destroys idle
   * connections, and the others after their statement. Does nothing within a second after the last time, and returns
   * whether it did.
   */
  readonly leaveReadOnly: () => boolean
  readonly destroyAll: () => void
  /** Closes all connections, those too that are about to open. */
  readonly close: () => void
}

// A database can be read-only for long. Then one new connection a second is enough to notice a change.
const leavePauseMillis = 1000

/** Makes the connections of a configuration. */
export const makeConnections = (config: PgClientConfig, isInProcess: boolean): Connections => {
  const all = new Set<Connection>()
  const sent = new Map<Connection, number>()
  // Those to destroy after their statement.
  const left = new WeakSet<Connection>()
  let leftAt = -Infinity
  let latency = unknownRoundTrip
  let answered = 0
  let isPooled = false
  let isClosed = false

  const openAny = Effect.fnUntraced(function* (terms: SessionTimeouts, millis: number) {
    if (isInProcess) return yield* openInProcess(config, millis)
    if (!isPooled) {
      const direct = yield* openDirect(config, terms, millis).pipe(
        Effect.catchIf(isRefusedSetting, () => Effect.undefined),
      )
      if (direct !== undefined) return direct
      isPooled = true
    }
    return yield* openPooled(config, terms, millis)
  })

  const forgetClosed = (): void => {
    for (const connection of all) if (!connection.isOpen()) all.delete(connection)
  }

  const destroyIdle = (): void => {
    for (const connection of all) if (!sent.has(connection)) connection.destroy()
  }

  return {
    open: (terms, millis) =>
      // Once it is open, it is known, so that it can be closed.
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const began = performance.now()
          // A connection that does not open in time would have taken longer: next time it may.
          const connection = yield* Effect.ensuring(
            restore(openAny(terms, millis)),
            Effect.sync(() => {
              latency = updateRoundTrip(latency, { opening: performance.now() - began })
            }),
          )
          forgetClosed()
          all.add(connection)
          if (isClosed) connection.close()
          return connection
        }),
      ),

    send: (connection, statement) =>
      Effect.suspend(() => {
        const since = performance.now()
        sent.set(connection, since)
        return Effect.onExit(statement, (exit) =>
          Effect.sync(() => {
            sent.delete(connection)
            if (left.has(connection)) connection.destroy()
            if (exit._tag === "Failure") return
            answered++
            latency = capRoundTrip(latency, performance.now() - since)
          }),
        )
      }),

    isPooled: () => isPooled,
    isInProcess,
    busy: () => [...sent].map(([connection, since]) => ({ connection, since })),
    answered: () => answered,
    latency: () => latency,
    learn: (measured) => {
      latency = updateRoundTrip(latency, measured)
    },

    destroyIdle,
    leaveReadOnly: () => {
      const now = performance.now()
      if (now - leftAt < leavePauseMillis) return false
      leftAt = now
      for (const connection of sent.keys()) left.add(connection)
      destroyIdle()
      return true
    },
    destroyAll: () => {
      for (const connection of all) connection.destroy()
    },
    close: () => {
      isClosed = true
      for (const connection of all) connection.close()
    },
  }
}

/**
 * A number of places, shared fairly: no owner holds more than half of them, and owners that wait take
 * turns. So whatever one project does, the others get on.
 */

// More callers than this wait for more than a client can be expected to.
const mostWaiting = 10_000

/** Places that effects run in. */
export interface FairSemaphore {
  /** Runs an effect in a place, when it is the owner's turn. Fails if too many wait. */
  readonly take: <A, E, R>(
    owner: string,
    effect: Effect.Effect<A, E, R>,
  ) => Effect.Effect<A, E | "crowded", R>
  /** How many places are taken. */
  readonly taken: () => number
  /** How many callers wait. */
  readonly waiting: () => number
}

interface Owner {
  held: number
  readonly waiting: Array<() => void>
}

/** Makes places. */
export const makeFairSemaphore = (places: number): FairSemaphore => {
  const mostHeld = Math.ceil(places / 2)
  // In the order of their turns.
  const owners = new Map<string, Owner>()
  let free = places
  let waiting = 0

  const ownerOf = (name: string): Owner => {
    const owner = owners.get(name) ?? { held: 0, waiting: [] }
    owners.set(name, owner)
    return owner
  }

  const hold = (owner: Owner): void => {
    owner.held++
    free--
  }

  /** Admits waiting statements while places are free, one owner after the other. */
  const admit = (): void => {
    for (const [name, owner] of owners) {
      if (free === 0 || waiting === 0) return
      const admitted = owner.held < mostHeld ? owner.waiting.shift() : undefined
      if (admitted === undefined) continue
      waiting--
      hold(owner)
      // Behind the others: the loop comes here again after them.
      owners.delete(name)
      owners.set(name, owner)
      admitted()
    }
  }

  const forgetIdle = (name: string, owner: Owner): void => {
    if (owner.held === 0 && owner.waiting.length === 0) owners.delete(name)
  }

  const release = (name: string, owner: Owner): void => {
    owner.held--
    free++
    forgetIdle(name, owner)
    admit()
  }

  const wait = (name: string, owner: Owner): Effect.Effect<void> =>
    Effect.callback((resume) => {
      let isAdmitted = false
      const admitted = (): void => {
        isAdmitted = true
        resume(Effect.void)
      }
      owner.waiting.push(admitted)
      waiting++
      return Effect.sync(() => {
        // The place may have come at the moment of the interruption.
        if (isAdmitted) return release(name, owner)
        owner.waiting.splice(owner.waiting.indexOf(admitted), 1)
        waiting--
        forgetIdle(name, owner)
      })
    })

  const enter = (name: string, owner: Owner): Effect.Effect<void, "crowded"> => {
    if (free > 0 && owner.held < mostHeld) return Effect.sync(() => hold(owner))
    return waiting < mostWaiting ? wait(name, owner) : Effect.fail("crowded")
  }

  return {
    take: (name, effect) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.suspend(() => {
          const owner = ownerOf(name)
          return Effect.flatMap(restore(enter(name, owner)), () =>
            Effect.ensuring(
              restore(effect),
              Effect.sync(() => release(name, owner)),
            ),
          )
        }),
      ),
    taken: () => places - free,
    waiting: () => waiting,
  }
}

/** Some connections on the same terms, opened as they are needed and shared fairly. */

// How long a connection is kept without use.
const idleMillis = 60_000

/** Runs statements on its connections. */
export interface ConnectionPool {
  readonly run: <Row extends object>(
    owner: string,
    sql: string,
    params: ReadonlyArray<unknown>,
  ) => Effect.Effect<ReadonlyArray<Row>, SqlError | "crowded">
  readonly use: () => PoolUse
}

/** How a lane is used at the moment. */
export interface PoolUse {
  /** The connections without a statement. */
  readonly idle: number
  /** The connections with a statement, or that open for one. */
  readonly used: number
  /** The statements that wait for a connection. */
  readonly waiting: number
}

interface Idle {
  readonly connection: Connection
  readonly since: number
}

/** Makes a lane that has up to `size` connections. */
export const makeConnectionPool = Effect.fnUntraced(function* (
  connections: Connections,
  terms: SessionTimeouts,
  size: number,
): Effect.fn.Return<ConnectionPool, never, Scope.Scope> {
  const turns = makeFairSemaphore(size)
  // The last one used is the first one taken, so that those without use can close.
  let idle: Array<Idle> = []

  const open = Effect.suspend(
    () => connections.open(terms, openTimeoutMillis(connections.latency())),
    // A connection can fall silent before it is open. The next one has more time.
  ).pipe(Effect.retry({ times: 1 }))

  const acquire = Effect.suspend(() => {
    for (let last = idle.pop(); last !== undefined; last = idle.pop()) {
      if (last.connection.isOpen()) return Effect.succeed(last.connection)
    }
    return open
  })

  const release = (connection: Connection, exit: Exit.Exit<unknown, unknown>): void => {
    // A statement that was interrupted may still be cancelled, and the next one in its place.
    if (Exit.hasInterrupts(exit)) connection.close()
    else if (connection.isOpen()) idle.push({ connection, since: performance.now() })
  }

  const onConnection = <A, E>(work: (connection: Connection) => Effect.Effect<A, E>) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(acquire), (connection) =>
        Effect.onExit(restore(connections.send(connection, work(connection))), (exit) =>
          Effect.sync(() => release(connection, exit)),
        ),
      ),
    )

  const closeUnused = (): void => {
    const now = performance.now()
    const unused = idle.filter(({ since }) => now - since > idleMillis)
    idle = idle.filter(({ since }) => now - since <= idleMillis)
    for (const { connection } of unused) connection.close()
  }

  yield* Effect.sync(closeUnused).pipe(
    Effect.delay(idleMillis / 4),
    Effect.forever,
    Effect.forkScoped,
  )

  return {
    run: (owner, sql, params) =>
      turns.take(
        owner,
        onConnection((connection) => connection.run(sql, params)),
      ),
    use: () => ({ idle: idle.length, used: turns.taken(), waiting: turns.waiting() }),
  }
})

/** Metrics of the connections that statements run on. */

/**
 * Shows how lanes are used until the scope is closed.
 *
 * @param most - how many connections they may have together
 * @param pool - what tells them from those to other databases; `undefined` if there are none
 */
export const observePool = Effect.fnUntraced(function* (
  lanes: ReadonlyArray<ConnectionPool>,
  most: number,
  pool: string | undefined,
) {
  const sum = (name: keyof PoolUse) => () =>
    lanes.reduce((total, lane) => total + lane.use()[name], 0)
  yield* observeGauge("db.client.connection.count", sum("idle"), "idle", pool)
  yield* observeGauge("db.client.connection.count", sum("used"), "used", pool)
  yield* observeGauge("db.client.connection.pending_requests", sum("waiting"), pool)
  yield* observeGauge("db.client.connection.max", () => most, pool)
})
