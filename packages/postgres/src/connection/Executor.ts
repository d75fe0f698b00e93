/** Runs statements: SQL in, rows or `StoreUnavailable` out. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Database } from "../Database.ts"
import * as Health from "./Health.ts"
import { ping as pingSql } from "./ping.sql.ts"
import { isConflict, isCrowded, isFault, isLockTimeout, isLostRace } from "./sqlErrors.ts"

type Execute = <Row extends object>(
  sql: string,
  params: ReadonlyArray<unknown>,
) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>

/** Runs statements against the tables of one schema. An error in a statement is a defect. */
export interface Executor {
  /** The name of the schema, quoted. */
  readonly schema: string
  /** Runs a statement in the host's open transaction, or in its own if there is none. */
  readonly execute: Execute
  /** Runs a statement in its own transaction, even if the host has one open. */
  readonly executeApart: Execute
  /** Fails if the database does not answer or refuses changes. */
  readonly ping: Effect.Effect<void, StoreUnavailable>
  /** Runs a statement or transaction of the host, as `Database.run` does. */
  readonly run: Database["Service"]["run"]
  /** Whether the host has a transaction open. */
  readonly isInTransaction: Effect.Effect<boolean>
  /** Runs an effect once the host's transaction has committed, or at once if there is none. */
  readonly afterCommit: (effect: Effect.Effect<void>) => Effect.Effect<void>
}

// Jitter keeps transactions that collided once from colliding again.
const retryLostRaces = {
  times: 8,
  schedule: Schedule.exponential("2 millis").pipe(Schedule.jittered),
}

/** Whether an error comes from the host's work rather than from the database. */
const isOwn = <E>(error: E): error is Exclude<E, SqlError> => !isSqlError(error)

/** Runs a query on a new connection, because those of the pool may all be waiting for locks. */
const probe = (client: PgClient): Effect.Effect<unknown, SqlError> =>
  Effect.scoped(
    Effect.flatMap(PgConnection.make(client.config), (connection) =>
      connection.query("SELECT 1", []),
    ),
  ).pipe(
    // A server that has too many connections is up.
    Effect.catchIf(isCrowded, () => Effect.void),
  )

/**
 * Makes the executor of one schema.
 *
 * @param schema - the name of the schema, quoted
 */
export const make = Effect.fnUntraced(function* (client: PgClient, schema: string) {
  const sql = client.withoutTransforms()
  const health = yield* Health.make(probe(client))
  const isInTransaction = Effect.map(Effect.serviceOption(client.transactionService), Option.isSome)

  const toUnavailable = (error: unknown): Effect.Effect<never, StoreUnavailable> => {
    if (!isSqlError(error) || isFault(error)) return Effect.die(error)
    if (!isLockTimeout(error)) health.suspect()
    return Effect.fail(new StoreUnavailable({ cause: error }))
  }

  const toFailure = <E>(error: E): Effect.Effect<never, Exclude<E, SqlError> | StoreUnavailable> =>
    isOwn(error) ? Effect.fail(error) : toUnavailable(error)

  const executeApart: Execute = <Row extends object>(
    text: string,
    params: ReadonlyArray<unknown>,
  ) => {
    const statement = sql.unsafe<Row>(text, params)
    const retried = Effect.retry(statement, { ...retryLostRaces, while: isConflict })
    return Effect.catchTag(health.guard(retried), "SqlError", toUnavailable)
  }

  /** Runs a statement in the caller's context, which holds the open transaction. */
  const executeInTransaction = <Row extends object>(text: string, params: ReadonlyArray<unknown>) =>
    Effect.flatMap(Effect.context(), (context) =>
      health.guard(Effect.provideContext(sql.unsafe<Row>(text, params), context)),
    ).pipe(Effect.catchTag("SqlError", toUnavailable))

  const execute: Execute = <Row extends object>(text: string, params: ReadonlyArray<unknown>) =>
    Effect.flatMap(isInTransaction, (isJoined) =>
      isJoined ? executeInTransaction<Row>(text, params) : executeApart<Row>(text, params),
    )

  const run: Executor["run"] = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
    const provided = Effect.provideContext(work, yield* Effect.context<R>())
    // Inside an open transaction a lost race also undoes steps that cannot be repeated from here.
    const attempts = (yield* isInTransaction)
      ? provided
      : Effect.retry(provided, {
          ...retryLostRaces,
          while: (error) => isSqlError(error) && isLostRace(error),
        })
    return yield* health.guard(
      attempts.pipe(
        Effect.catch(toFailure),
        // If a connection breaks in a transaction, the rollback fails with a defect.
        Effect.catchDefect(toUnavailable),
      ),
    )
  })

  const ping = Effect.gen(function* () {
    const [row] = yield* executeApart<{ readonly read_only: boolean }>(pingSql, [])
    if (row?.read_only !== false) {
      return yield* new StoreUnavailable({ cause: "the database is read-only" })
    }
  })

  const executor: Executor = {
    schema,
    ping,
    execute,
    executeApart,
    run,
    isInTransaction,
    afterCommit: client.afterCommit,
  }
  return executor
})
