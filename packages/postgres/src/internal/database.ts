/** The database as the stores see it: statements in, rows or `StoreUnavailable` out. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schedule from "effect/Schedule"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import * as Health from "./health.ts"

type Rows<Row> = Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>

/** Runs statements. Failures that are faults of the statement are defects. */
export interface Database {
  /** The schema's name, quoted. */
  readonly schema: string
  /** Runs a statement in a transaction of its own, whatever the caller is in. */
  readonly query: <Row extends object>(sql: string, params: ReadonlyArray<unknown>) => Rows<Row>
  /** Runs a statement in the host's transaction if the caller is in one. */
  readonly join: <Row extends object>(sql: string, params: ReadonlyArray<unknown>) => Rows<Row>
  /** Runs a statement or a transaction of the host's own, in its transaction if it is in one. */
  readonly run: <A, E, R>(
    work: Effect.Effect<A, E, R>,
  ) => Effect.Effect<A, Exclude<E, SqlError> | StoreUnavailable, R>
  /** Whether the caller is in a transaction of the host's. */
  readonly isJoined: Effect.Effect<boolean>
  /** Runs an effect when the host's transaction has committed; at once if there is none. */
  readonly afterCommit: (effect: Effect.Effect<void>) => Effect.Effect<void>
}

/** The SQLSTATE of an error, where the server gave one. */
const sqlStateOf = ({ reason }: SqlError): string | undefined =>
  Predicate.hasProperty(reason.cause, "code") && typeof reason.cause.code === "string"
    ? reason.cause.code
    : undefined

// Classes of SQLSTATE that blame the statement or its parameters, not the server.
const faultClasses = new Set(["0A", "21", "22", "23", "42"])

const isFault = (error: SqlError): boolean =>
  faultClasses.has((sqlStateOf(error) ?? "").slice(0, 2))

const isLostRace = ({ reason }: SqlError): boolean =>
  reason._tag === "DeadlockError" || reason._tag === "SerializationError"

/** Whether a statement of Tenure's has lost a race: none of them breaks uniqueness by itself. */
const isConflict = (error: SqlError): boolean =>
  isLostRace(error) || error.reason._tag === "UniqueViolation"

/** Whether an error is the work's own, and not the database's. */
const isOwn = <E>(error: E): error is Exclude<E, SqlError> => !isSqlError(error)

// Whoever loses a race tries again, a little later than the others who lost it.
const again = Schedule.exponential("2 millis").pipe(Schedule.jittered)
const conflictRetries = 8

/** Whether a server that refuses a connection is at work: it has too many of them. */
const isCrowded = (error: SqlError): boolean => sqlStateOf(error)?.startsWith("53") === true

/** Connects and asks something, apart from the pool, in which others may wait for one another. */
const probe = (client: PgClient): Effect.Effect<unknown, SqlError> =>
  Effect.scoped(
    Effect.flatMap(PgConnection.make(client.config), (connection) =>
      connection.query("SELECT 1", []),
    ),
  ).pipe(Effect.catchIf(isCrowded, () => Effect.void))

/** Makes access to the tables of one schema. */
export const make = Effect.fnUntraced(function* (client: PgClient, schema: string) {
  const sql = client.withoutTransforms()
  const health = yield* Health.make(probe(client))

  const unavailable = (error: unknown): Effect.Effect<never, StoreUnavailable> => {
    if (!isSqlError(error) || isFault(error)) return Effect.die(error)
    if (error.reason._tag !== "LockTimeoutError") health.suspect()
    return Effect.fail(new StoreUnavailable({ cause: error }))
  }

  const toFailure = <E>(error: E): Effect.Effect<never, Exclude<E, SqlError> | StoreUnavailable> =>
    isOwn(error) ? Effect.fail(error) : unavailable(error)

  const query: Database["query"] = <Row extends object>(
    text: string,
    params: ReadonlyArray<unknown>,
  ) =>
    health
      .guard(
        Effect.retry(sql.unsafe<Row>(text, params), {
          while: isConflict,
          times: conflictRetries,
          schedule: again,
        }),
      )
      .pipe(Effect.catchTag("SqlError", unavailable))

  const isJoined = Effect.map(Effect.serviceOption(client.transactionService), Option.isSome)

  /** Runs a statement with the caller's context, and so in its transaction. */
  const inTransaction = <Row extends object>(text: string, params: ReadonlyArray<unknown>) =>
    Effect.flatMap(Effect.context(), (context) =>
      health.guard(Effect.provideContext(sql.unsafe<Row>(text, params), context)),
    ).pipe(Effect.catchTag("SqlError", unavailable))

  const join: Database["join"] = <Row extends object>(
    text: string,
    params: ReadonlyArray<unknown>,
  ) =>
    Effect.flatMap(isJoined, (joined) =>
      joined ? inTransaction<Row>(text, params) : query<Row>(text, params),
    )

  const run: Database["run"] = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
    const provided = Effect.provideContext(work, yield* Effect.context<R>())
    // What came earlier in the host's transaction is lost as well, and cannot be run again here.
    const attempts = (yield* isJoined)
      ? provided
      : Effect.retry(provided, {
          while: (error) => isSqlError(error) && isLostRace(error),
          times: conflictRetries,
          schedule: again,
        })
    return yield* health.guard(
      attempts.pipe(
        Effect.catch(toFailure),
        // Where a connection breaks within a transaction, its rollback dies of that.
        Effect.catchDefect(unavailable),
      ),
    )
  })

  const database: Database = {
    schema,
    query,
    join,
    run,
    isJoined,
    afterCommit: client.afterCommit,
  }
  return database
})
