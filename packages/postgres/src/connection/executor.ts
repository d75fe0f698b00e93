/** Runs statements on PostgreSQL: SQL and parameters in, rows or `StoreUnavailable` out. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import { StoreUnavailable } from "@tenure/core/store"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { type SqlError, isSqlError } from "effect/sql/SqlError"
import { type Connection, failOnLockTimeouts, waitForLockTimeouts } from "./connection.ts"
import { makeConnections } from "./connections.ts"
import type { Database } from "./database.ts"
import {
  isAbsent,
  isConflict,
  isFault,
  isLockTimeout,
  isLostRace,
  isReadOnlyRefusal,
  lacksResources,
} from "./errors.ts"
import { type Health, makeHealth } from "./health.ts"
import { HostTransaction, type IdentityRow, findIdentity, toNamedRows } from "./host-transaction.ts"
import { type ConnectionPool, makeConnectionPool, observePool } from "./pool.ts"
import { maxTimeoutMillis } from "./round-trip.ts"

/**
 * Whether the database runs in this process, as with `@tenure/embedded`. It then responds for as long as the
 * process lives, and no other process needs notifications. Default: `false`.
 */
export const InProcess = Context.Reference<boolean>("@tenure/postgres/InProcess", {
  defaultValue: () => false,
})

// How long a caller waits for a statement, including its turn and a connection.
const limitMillis = 10_000

/** The limit for a long statement, and for work of the host. */
export const longLimitMillis = 30_000

// The limit for a statement that meets a lock.
const lockLimitMillis = 5000

/** How a statement runs outside the host's transactions. */
export interface ExecuteOptions {
  /** The owner of the statement. No owner holds more than half of the connections. */
  readonly owner?: string | undefined
  /** Whether it fails when it meets a lock instead of waiting. */
  readonly isBrief?: boolean
  /** Whether it may take 30 seconds. */
  readonly isLong?: boolean
  /** Whether it fails while its schema moves to another server instead of waiting. */
  readonly failsInMove?: boolean
}

type Execute = <Row extends object>(
  sql: string,
  params: ReadonlyArray<unknown>,
  options?: ExecuteOptions,
) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>

/** Runs statements against the tables in one schema. An error in a statement is a defect. */
export interface Executor {
  /** The name of the schema, quoted. */
  readonly schema: string
  /** Runs a statement in the host's open transaction. Without one, the statement has its own. */
  readonly execute: Execute
  /** Runs a statement in its own transaction, even if the host has one open. */
  readonly executeApart: Execute
  /** Fails if the database does not respond, refuses changes or has no room for them. */
  readonly ping: Effect.Effect<void, StoreUnavailable>
  /** Whether the host has a transaction open. */
  readonly isInTransaction: Effect.Effect<boolean>
  /**
   * Runs an effect after the host's transaction commits, or immediately outside a transaction. If the host
   * has opened the transaction with its own library, the effect does not run, because the commit is not
   * visible here.
   */
  readonly afterCommit: (effect: Effect.Effect<void>) => Effect.Effect<void>
  /** Runs work so that an open transaction of the host stays usable if the work fails. */
  readonly recoverably: <A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E | StoreUnavailable>
}

/** An executor that also runs the host's statements. */
interface HostExecutor extends Executor, Pick<Database["Service"], "run" | "atomically"> {}

// After a statement failed for lack of room, the database is checked this often until it has room again.
const tryChangeMillis = 1000

/** Takes as much room as a change, with a function from the migrations. */
const tryChange = (schema: string): string => `SELECT ${schema}.try_change()`

// Jitter keeps transactions that have collided from colliding again.
const retryLostRaces = {
  times: 8,
  schedule: Schedule.exponential("2 millis").pipe(Schedule.jittered),
}

/** The owner for reads in a project, so that they do not wait behind changes that meet locks. */
export const readsOf = (projectId: string): string => `reads of ${projectId}`

/** Whether an error comes from the host's work, not from the database. */
const isOwn = <E>(error: E): error is Exclude<E, SqlError> => !isSqlError(error)

/** Whether the host's work, or a statement of Tenure in it, lost a race. */
const hasLostRace = (error: unknown): boolean =>
  error instanceof StoreUnavailable
    ? hasLostRace(error.cause)
    : isSqlError(error) && isLostRace(error)

const hasMetLock = (error: unknown): boolean => isSqlError(error) && isLockTimeout(error)

const isTimeout = (error: unknown): boolean =>
  error instanceof StoreUnavailable && error.cause === "timeout"

/** A server, and Tenure's own connections to it, which executors for several schemas can share. */
export interface Server {
  readonly client: PgClient
  readonly health: Health
  /** The pool for statements that meet no lock. */
  readonly quickPool: ConnectionPool
  /** The pool for statements that wait for a lock. */
  readonly waitingPool: ConnectionPool
  /** Opens a connection that serves nothing else. */
  readonly connect: Effect.Effect<Connection, SqlError>
  /** Drops the connections to a server that refuses changes. */
  readonly leaveReadOnly: () => void
  /** Identifies its database. */
  readonly identity: Effect.Effect<string, StoreUnavailable>
}

/**
 * Makes the connections to a server, for as long as the scope is open. They have the client's configuration,
 * but the host's pool stays untouched. They open on demand.
 *
 * @param maxConnections - the number of connections, at least two
 * @param name - the server's name in metrics, if there are several
 */
export const makeServer = Effect.fnUntraced(function* (
  client: PgClient,
  maxConnections: number,
  name: string | undefined,
) {
  const connections = makeConnections(client.config, yield* InProcess)
  const health = yield* makeHealth(connections)
  const waiting = Math.max(1, Math.floor(maxConnections / 4))
  const quickPool = yield* makeConnectionPool(
    connections,
    failOnLockTimeouts,
    Math.max(1, maxConnections - waiting),
  )
  const waitingPool = yield* makeConnectionPool(connections, waitForLockTimeouts, waiting)
  yield* observePool([quickPool, waitingPool], maxConnections, name)
  const server: Server = {
    client,
    identity: yield* Effect.cachedWithTTL(
      health.guard(quickPool.run<IdentityRow>("", findIdentity, []), limitMillis).pipe(
        Effect.mapError((cause) => new StoreUnavailable({ cause })),
        Effect.map(([row]) => row?.identity ?? ""),
      ),
      (exit) => (Exit.isSuccess(exit) ? "Infinity" : 0),
    ),
    health,
    quickPool,
    waitingPool,
    connect: connections.open(failOnLockTimeouts, maxTimeoutMillis),
    leaveReadOnly: connections.leaveReadOnly,
  }
  return server
})

/**
 * Makes the executor for one schema. A statement that meets a lock gives up its connection, and waits for the
 * lock in a separate pool.
 *
 * @param schema - the name of the schema, quoted
 * @param mayMove - whether the schema may have moved to another server: then a statement fails with
 *   `StoreUnavailable` if the schema is absent, which is a defect otherwise
 */
export const makeExecutor = (
  { client, health, leaveReadOnly, quickPool, waitingPool }: Server,
  schema: string,
  mayMove = false,
): HostExecutor => {
  const sql = client.withoutTransforms()
  const isInTransaction = Effect.map(Effect.serviceOption(client.transactionService), Option.isSome)

  // The error of the latest statement that lacked room, until a change has room again.
  let lack: StoreUnavailable | undefined
  let triedAt = -Infinity

  const toUnavailable = (error: unknown): Effect.Effect<never, StoreUnavailable> => {
    if (error instanceof StoreUnavailable) return Effect.fail(error)
    if (error === "crowded") return Effect.fail(new StoreUnavailable({ cause: error }))
    if (mayMove && isAbsent(error)) return Effect.fail(new StoreUnavailable({ cause: error }))
    if (!isSqlError(error) || isFault(error)) return Effect.die(error)
    if (!isLockTimeout(error)) health.suspect()
    const unavailable = new StoreUnavailable({ cause: error })
    if (lacksResources(error)) lack = unavailable
    return Effect.fail(unavailable)
  }

  const toFailure = <E>(error: E): Effect.Effect<never, Exclude<E, SqlError> | StoreUnavailable> =>
    isOwn(error) ? Effect.fail(error) : toUnavailable(error)

  const executeApart: Execute = <Row extends object>(
    text: string,
    params: ReadonlyArray<unknown>,
    { isBrief = false, isLong = false, owner = "" }: ExecuteOptions = {},
  ) => {
    const runIn = (pool: ConnectionPool, millis: number) => {
      const statement = pool.run<Row>(owner, text, params)
      // The address may lead to another server than when the connection was opened.
      const anywhere = Effect.catchIf(
        statement,
        (error) => isSqlError(error) && isReadOnlyRefusal(error),
        () => Effect.andThen(Effect.sync(leaveReadOnly), statement),
      )
      return health.guard(
        Effect.retry(anywhere, {
          ...retryLostRaces,
          while: (error) => isSqlError(error) && isConflict(error),
        }),
        millis,
      )
    }
    return Effect.suspend(() => {
      const began = performance.now()
      const quick = runIn(quickPool, isLong ? longLimitMillis : limitMillis)
      if (isBrief) return quick
      return Effect.catchIf(quick, hasMetLock, (error) => {
        const limit = isLong ? longLimitMillis : lockLimitMillis
        const millis = limit - (performance.now() - began)
        if (millis <= 0) return Effect.fail(error)
        return Effect.mapError(runIn(waitingPool, millis), (later) =>
          isTimeout(later) ? error : later,
        )
      })
    }).pipe(Effect.catch(toUnavailable))
  }

  /** Runs work on a connection from the client, in the caller's context, which may hold a transaction. */
  const guard = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.flatMap(Effect.context<R>(), (context) =>
      health.guard(Effect.provideContext(work, context), longLimitMillis),
    )

  const executeInTransaction = <Row extends object>(text: string, params: ReadonlyArray<unknown>) =>
    Effect.flatMap(HostTransaction, (transaction) => {
      const statement = sql.unsafe<Row>(text, params)
      // Connections from other libraries have their own timeouts.
      return transaction === undefined ? guard(statement) : Effect.map(statement, toNamedRows)
    }).pipe(Effect.catchTag("SqlError", toUnavailable))

  const execute: Execute = <Row extends object>(
    text: string,
    params: ReadonlyArray<unknown>,
    options?: ExecuteOptions,
  ) =>
    Effect.flatMap(isInTransaction, (isJoined) =>
      isJoined ? executeInTransaction<Row>(text, params) : executeApart<Row>(text, params, options),
    )

  const run: HostExecutor["run"] = Effect.fnUntraced(function* <A, E, R>(
    work: Effect.Effect<A, E, R>,
  ) {
    // In an open transaction, a lost race also undoes steps that cannot be repeated from here.
    const attempts = (yield* isInTransaction)
      ? work
      : Effect.retry(work, {
          ...retryLostRaces,
          while: hasLostRace,
        })
    const checked = attempts.pipe(
      Effect.catch(toFailure),
      // If a connection breaks in a transaction, the rollback fails with a defect.
      Effect.catchDefect(toUnavailable),
    )
    return yield* (yield* HostTransaction) === undefined ? guard(checked) : checked
  })

  const atomically: HostExecutor["atomically"] = (work) =>
    Effect.flatMap(HostTransaction, (transaction) =>
      run(transaction === undefined ? client.withTransaction(work) : transaction.savepoint(work)),
    )

  const recoverably: Executor["recoverably"] = <A, E>(work: Effect.Effect<A, E>) =>
    Effect.flatMap(isInTransaction, (isJoined): Effect.Effect<A, E | StoreUnavailable> =>
      isJoined ? atomically(work) : work,
    )

  const afterCommit: Executor["afterCommit"] = (effect) =>
    Effect.flatMap(HostTransaction, (transaction) =>
      transaction === undefined ? client.afterCommit(effect) : Effect.void,
    )

  /** Fails while changes have no room. Checks at most once a second, however many callers ask. */
  const checkRoom = Effect.suspend(() => {
    if (lack === undefined) return Effect.void
    if (performance.now() - triedAt < tryChangeMillis) return Effect.fail(lack)
    triedAt = performance.now()
    return Effect.map(executeApart(tryChange(schema), []), () => {
      lack = undefined
    })
  })

  const ping = Effect.flatMap(health.isReadOnly, (isReadOnly) =>
    isReadOnly
      ? Effect.fail(new StoreUnavailable({ cause: "the database is read-only" }))
      : checkRoom,
  )

  return {
    schema,
    ping,
    execute,
    executeApart,
    run,
    isInTransaction,
    atomically,
    recoverably,
    afterCommit,
  }
}
