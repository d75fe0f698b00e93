/** Runs statements: SQL in, rows or `StoreUnavailable` out. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Database } from "../Database.ts"
import { HostTransaction } from "../transactions/HostTransaction.ts"
import { named } from "../transactions/plain.ts"
import type { Connection } from "./Connection.ts"
import * as Connections from "./Connections.ts"
import * as Health from "./Health.ts"
import { InProcess } from "./InProcess.ts"
import * as Lane from "./Lane.ts"
import * as Patience from "./Patience.ts"
import * as PoolMetrics from "./poolMetrics.ts"
import { brief, patient } from "./session.sql.ts"
import { isConflict, isFault, isLockTimeout, isLostRace } from "./sqlErrors.ts"

// How long a caller waits for a statement: its turn, a connection and the answer.
const limitMillis = 10_000

// The same for a statement that writes many rows, and for work of the host.
const longLimitMillis = 30_000

// The same for a statement that meets a lock.
const lockLimitMillis = 5000

/** How a statement runs outside of the host's transactions. */
export interface Manner {
  /** Whose statement it is. No owner holds more than half of the connections. */
  readonly owner?: string | undefined
  /** Whether it fails when it meets a lock, rather than wait for it. */
  readonly isBrief?: boolean
  /** Whether it may take half a minute. */
  readonly isLong?: boolean
}

type Execute = <Row extends object>(
  sql: string,
  params: ReadonlyArray<unknown>,
  manner?: Manner,
) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>

/** Runs statements against the tables of one schema. An error in a statement is a defect. */
export interface Executor {
  /** The name of the schema, quoted. */
  readonly schema: string
  /** Runs a statement in the host's open transaction. Without one, the statement has its own. */
  readonly execute: Execute
  /** Runs a statement in its own transaction, even if the host has one open. */
  readonly executeApart: Execute
  /** Fails if the database does not answer or refuses changes. */
  readonly ping: Effect.Effect<void, StoreUnavailable>
  /** Runs a statement or transaction of the host, as `Database.run` does. */
  readonly run: Database["Service"]["run"]
  /** Whether the host has a transaction open. */
  readonly isInTransaction: Effect.Effect<boolean>
  /**
   * Runs an effect after the host's transaction commits, or immediately outside a transaction. Not at
   * all, if the host has opened the transaction with a library of its own.
   */
  readonly afterCommit: (effect: Effect.Effect<void>) => Effect.Effect<void>
  /** Runs work in one transaction, as `Database.atomically` does. */
  readonly atomically: Database["Service"]["atomically"]
  /** Runs work so that the host's open transaction, if there is one, can go on after the work fails. */
  readonly recoverably: <A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E | StoreUnavailable>
  /** Opens a connection that serves nothing else. */
  readonly connect: Effect.Effect<Connection, SqlError>
}

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

/**
 * Makes the executor of one schema.
 *
 * Statements run on connections of Tenure's own, with the configuration of the client, so that the
 * pool of the host is the host's. A statement that meets a lock gives its place to others, and waits
 * for the lock in a lane apart.
 *
 * @param schema - the name of the schema, quoted
 * @param maxConnections - the number of connections, at least two
 * @param name - what metrics call the database, if it is one of several
 */
export const make = Effect.fnUntraced(function* (
  client: PgClient,
  schema: string,
  maxConnections: number,
  name: string | undefined,
) {
  const sql = client.withoutTransforms()
  const connections = Connections.make(client.config, yield* InProcess)
  const health = yield* Health.make(connections)
  const waiting = Math.max(1, Math.floor(maxConnections / 4))
  const quickLane = yield* Lane.make(connections, brief, Math.max(1, maxConnections - waiting))
  const waitingLane = yield* Lane.make(connections, patient, waiting)
  yield* PoolMetrics.watch([quickLane, waitingLane], maxConnections, name)
  const isInTransaction = Effect.map(Effect.serviceOption(client.transactionService), Option.isSome)

  const toUnavailable = (error: unknown): Effect.Effect<never, StoreUnavailable> => {
    if (error instanceof StoreUnavailable) return Effect.fail(error)
    if (error === "crowded") return Effect.fail(new StoreUnavailable({ cause: error }))
    if (!isSqlError(error) || isFault(error)) return Effect.die(error)
    if (!isLockTimeout(error)) health.suspect()
    return Effect.fail(new StoreUnavailable({ cause: error }))
  }

  const toFailure = <E>(error: E): Effect.Effect<never, Exclude<E, SqlError> | StoreUnavailable> =>
    isOwn(error) ? Effect.fail(error) : toUnavailable(error)

  const executeApart: Execute = <Row extends object>(
    text: string,
    params: ReadonlyArray<unknown>,
    { isBrief = false, isLong = false, owner = "" }: Manner = {},
  ) => {
    const runIn = (lane: Lane.Lane, millis: number) =>
      health.guard(
        Effect.retry(lane.run<Row>(owner, text, params), {
          ...retryLostRaces,
          while: (error) => isSqlError(error) && isConflict(error),
        }),
        millis,
      )
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
      return transaction === undefined ? guard(statement) : Effect.map(statement, named)
    }).pipe(Effect.catchTag("SqlError", toUnavailable))

  const execute: Execute = <Row extends object>(
    text: string,
    params: ReadonlyArray<unknown>,
    manner?: Manner,
  ) =>
    Effect.flatMap(isInTransaction, (isJoined) =>
      isJoined ? executeInTransaction<Row>(text, params) : executeApart<Row>(text, params, manner),
    )

  const run: Executor["run"] = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
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

  const atomically: Executor["atomically"] = (work) =>
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

  const ping = Effect.flatMap(health.isReadOnly, (isReadOnly) =>
    isReadOnly
      ? Effect.fail(new StoreUnavailable({ cause: "the database is read-only" }))
      : Effect.void,
  )

  const executor: Executor = {
    schema,
    ping,
    execute,
    executeApart,
    run,
    isInTransaction,
    atomically,
    recoverably,
    afterCommit,
    connect: connections.open(brief, Patience.mostMillis),
  }
  return executor
})
