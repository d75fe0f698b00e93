/** Whether the database runs in this process. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import {
  type IdempotencyConflict,
  type IdempotencyKey,
  type ProjectId,
  type ProjectNotFound,
  type ReplayedResponse,
  StoreUnavailable,
} from "@tenure/core/store"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { type SqlError, isSqlError } from "effect/sql/SqlError"
import { type Connection, failOnLockTimeouts, waitForLockTimeouts } from "./connection.ts"
import { makeConnections } from "./connections.ts"
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
 * Whether the database runs in this process, as that of `@tenure/embedded` does. Then it answers for as
 * long as the process lives, and no other process has to be told of anything. Default: `false`.
 */
export const InProcess = Context.Reference<boolean>("@tenure/postgres/InProcess", {
  defaultValue: () => false,
})

/** Runs statements: SQL in, rows or `StoreUnavailable` out. */

// How long a caller waits for a statement: its turn, a connection and the answer.
const limitMillis = 10_000

/** The same for a statement that may take long, and for work of the host. */
export const longLimitMillis = 30_000

// The same for a statement that meets a lock.
const lockLimitMillis = 5000

/** How a statement runs outside of the host's transactions. */
export interface ExecuteOptions {
  /** Whose statement it is. No owner holds more than half of the connections. */
  readonly owner?: string | undefined
  /** Whether it fails when it meets a lock, rather than wait for it. */
  readonly isBrief?: boolean
  /** Whether it may take half a minute. */
  readonly isLong?: boolean
  /** Whether it fails while its schema moves to another server, rather than wait until that is over. */
  readonly failsInMove?: boolean
}

type Execute = <Row extends object>(
  sql: string,
  params: ReadonlyArray<unknown>,
  manner?: ExecuteOptions,
) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>

/** Runs statements against the tables of one schema. An error in a statement is a defect. */
export interface Executor {
  /** The name of the schema, quoted. */
  readonly schema: string
  /** Runs a statement in the host's open transaction. Without one, the statement has its own. */
  readonly execute: Execute
  /** Runs a statement in its own transaction, even if the host has one open. */
  readonly executeApart: Execute
  /** Fails if the database does not answer, refuses changes or has no room for them. */
  readonly ping: Effect.Effect<void, StoreUnavailable>
  /** Whether the host has a transaction open. */
  readonly isInTransaction: Effect.Effect<boolean>
  /**
   * Runs an effect after the host's transaction commits, or immediately outside a transaction. Not at
   * all, if the host has opened the transaction with a library of its own.
   */
  readonly afterCommit: (effect: Effect.Effect<void>) => Effect.Effect<void>
  /** Runs work so that the host's open transaction, if there is one, can go on after the work fails. */
  readonly recoverably: <A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E | StoreUnavailable>
}

/** An executor that runs statements of the host, too. */
interface HostExecutor extends Executor, Pick<Database["Service"], "run" | "atomically"> {}

// After a statement that failed for lack of room, the database is asked this often whether it has room again.
const tryChangeMillis = 1000

/** Takes as much room as a change, by a function of the migrations. */
const tryChange = (schema: string): string => `SELECT ${schema}.try_change()`

// Jitter keeps transactions that collided once from colliding again.
const retryLostRaces = {
  times: 8,
  schedule: Schedule.exponential("2 millis").pipe(Schedule.jittered),
}

/** The owner of statements that read a project. They do not wait behind those that meet locks. */
export const readsOf = (projectId: string): string => `reads of ${projectId}`

/** Whether an error comes from the host's work rather than from the database. */
const isOwn = <E>(error: E): error is Exclude<E, SqlError> => !isSqlError(error)

/** Whether work of the host, or a statement of Tenure in it, lost a race. */
const hasLostRace = (error: unknown): boolean =>
  error instanceof StoreUnavailable
    ? hasLostRace(error.cause)
    : isSqlError(error) && isLostRace(error)

const hasMetLock = (error: unknown): boolean => isSqlError(error) && isLockTimeout(error)

const isTimeout = (error: unknown): boolean =>
  error instanceof StoreUnavailable && error.cause === "timeout"

/** A server, and Tenure's own connections to it. Executors of several schemas can share them. */
export interface Server {
  readonly client: PgClient
  readonly health: Health
  /** For statements that meet no lock. */
  readonly quickLane: ConnectionPool
  /** For statements that wait for a lock. */
  readonly waitingLane: ConnectionPool
  /** Opens a connection that serves nothing else. */
  readonly connect: Effect.Effect<Connection, SqlError>
  /** Leaves the connections to a server that refuses changes. */
  readonly leaveReadOnly: () => void
  /** Identifies its database. */
  readonly identity: Effect.Effect<string, StoreUnavailable>
}

/**
 * Makes the connections to a server, for as long as the scope is open. They have the configuration of the client, so
 * that the pool of the host is the host's. They open when they are needed.
 *
 * @param maxConnections - the number of connections, at least two
 * @param name - what metrics call the server, if it is one of several
 */
export const makeServer = Effect.fnUntraced(function* (
  client: PgClient,
  maxConnections: number,
  name: string | undefined,
) {
  const connections = makeConnections(client.config, yield* InProcess)
  const health = yield* makeHealth(connections)
  const waiting = Math.max(1, Math.floor(maxConnections / 4))
  const quickLane = yield* makeConnectionPool(
    connections,
    failOnLockTimeouts,
    Math.max(1, maxConnections - waiting),
  )
  const waitingLane = yield* makeConnectionPool(connections, waitForLockTimeouts, waiting)
  yield* observePool([quickLane, waitingLane], maxConnections, name)
  const server: Server = {
    client,
    identity: yield* Effect.cachedWithTTL(
      health.guard(quickLane.run<IdentityRow>("", findIdentity, []), limitMillis).pipe(
        Effect.mapError((cause) => new StoreUnavailable({ cause })),
        Effect.map(([row]) => row?.identity ?? ""),
      ),
      (exit) => (Exit.isSuccess(exit) ? "Infinity" : 0),
    ),
    health,
    quickLane,
    waitingLane,
    connect: connections.open(failOnLockTimeouts, maxTimeoutMillis),
    leaveReadOnly: connections.leaveReadOnly,
  }
  return server
})

/**
 * Makes the executor of one schema. A statement that meets a lock gives its place to others, and waits for the lock in
 * a lane apart.
 *
 * @param schema - the name of the schema, quoted
 * @param mayMove - whether the schema may have moved to another server: then statements fail with `StoreUnavailable`
 *   because it is absent, which is a defect otherwise
 */
export const makeExecutor = (
  { client, health, leaveReadOnly, quickLane, waitingLane }: Server,
  schema: string,
  mayMove = false,
): HostExecutor => {
  const sql = client.withoutTransforms()
  const isInTransaction = Effect.map(Effect.serviceOption(client.transactionService), Option.isSome)

  // Why the latest statement failed that lacked room, until a change has room again.
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
    const runIn = (lane: ConnectionPool, millis: number) => {
      const once = lane.run<Row>(owner, text, params)
      // The address may lead to another server than it did when the connection was opened.
      const anywhere = Effect.catchIf(
        once,
        (error) => isSqlError(error) && isReadOnlyRefusal(error),
        () => Effect.andThen(Effect.sync(leaveReadOnly), once),
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
      const quick = runIn(quickLane, isLong ? longLimitMillis : limitMillis)
      if (isBrief) return quick
      return Effect.catchIf(quick, hasMetLock, (error) => {
        const limit = isLong ? longLimitMillis : lockLimitMillis
        const millis = limit - (performance.now() - began)
        if (millis <= 0) return Effect.fail(error)
        return Effect.mapError(runIn(waitingLane, millis), (later) =>
          isTimeout(later) ? error : later,
        )
      })
    }).pipe(Effect.catch(toUnavailable))
  }

  /** Runs work on a connection of the client, in the caller's context, which may hold a transaction. */
  const guard = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.flatMap(Effect.context<R>(), (context) =>
      health.guard(Effect.provideContext(work, context), longLimitMillis),
    )

  const executeInTransaction = <Row extends object>(text: string, params: ReadonlyArray<unknown>) =>
    Effect.flatMap(HostTransaction, (transaction) => {
      const statement = sql.unsafe<Row>(text, params)
      // Other connections of the host have timeouts of their own.
      return transaction === undefined ? guard(statement) : Effect.map(statement, toNamedRows)
    }).pipe(Effect.catchTag("SqlError", toUnavailable))

  const execute: Execute = <Row extends object>(
    text: string,
    params: ReadonlyArray<unknown>,
    manner?: ExecuteOptions,
  ) =>
    Effect.flatMap(isInTransaction, (isJoined) =>
      isJoined ? executeInTransaction<Row>(text, params) : executeApart<Row>(text, params, manner),
    )

  const run: HostExecutor["run"] = Effect.fnUntraced(function* <A, E, R>(
    work: Effect.Effect<A, E, R>,
  ) {
    // Inside an open transaction a lost race also undoes steps that cannot be repeated from here.
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

  /** Fails while changes have no room. Takes room itself once a second at most, however many ask. */
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

/** Deletes rows that are no longer needed, a few at a time. */

/**
 * Runs a step in the background until the scope closes: first after the interval, then repeatedly
 * until it returns no rows, then after the next interval. Logs failures and continues.
 */
export const runPeriodically = (
  interval: Duration.Input,
  step: Effect.Effect<ReadonlyArray<unknown>, StoreUnavailable>,
): Effect.Effect<unknown, never, Scope.Scope> =>
  Effect.sleep(interval).pipe(
    Effect.andThen(
      // The pauses leave the database to other statements.
      Effect.repeat(step, {
        while: (rows) => rows.length > 0,
        schedule: Schedule.spaced("50 millis"),
      }),
    ),
    Effect.catchCause((cause) =>
      Effect.logWarning("Housekeeping failed and will be retried", cause),
    ),
    Effect.forever,
    Effect.forkScoped,
  )

/** The database, for a host's own stores. */

/**
 * The database that holds Tenure's tables, for stores that a host writes itself. For example, a
 * store that keeps memberships in a table of the host's.
 */
export class Database extends Context.Service<
  Database,
  {
    /**
     * Runs a statement or a transaction of the host's client, and keeps the promises of a port.
     *
     * Fails with `StoreUnavailable` if the database does not answer: within two seconds at first,
     * then at once until the database answers again. No call waits longer than 30 seconds. Errors in
     * a statement, such as a violated constraint, are defects. Work that loses a deadlock runs again
     * from its start, unless it runs inside an open transaction.
     *
     * @example
     * ```ts
     * import * as Effect from "effect/Effect"
     * import { Database } from "tenure/postgres"
     * import { PgClient } from "@effect/sql-pg"
     * import { type Event, Outbox } from "tenure/store"
     *
     * // Stores the row, the event and its deliveries, or none of them.
     * const pay = Effect.fn("pay")(function* (order: number, event: Event) {
     *   const sql = yield* PgClient.PgClient
     *   const database = yield* Database
     *   const outbox = yield* Outbox
     *   const paid = sql`UPDATE orders SET paid = true WHERE id = ${order}`
     *   yield* database.run(sql.withTransaction(Effect.andThen(paid, outbox.publish(event))))
     * })
     * ```
     */
    readonly run: <A, E, R>(
      work: Effect.Effect<A, E, R>,
    ) => Effect.Effect<A, Exclude<E, SqlError> | StoreUnavailable, R>

    /**
     * Runs work in one transaction, as `run` does: all that the stores change in it is committed
     * together, or nothing is.
     */
    readonly atomically: <A, E, R>(
      work: Effect.Effect<A, E, R>,
    ) => Effect.Effect<A, Exclude<E, SqlError> | StoreUnavailable, R>

    /**
     * Stores an idempotency key with its answer, for a change that publishes no event because it leaves all as
     * it is: in the open transaction, if there is one. Returns `Replayed` if the same request has stored it.
     */
    readonly keep: (
      once: IdempotencyKey,
      projectId: ProjectId,
    ) => Effect.Effect<
      ReplayedResponse | void,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >
  }
>()("@tenure/postgres/Database") {}
