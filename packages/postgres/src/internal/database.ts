/** The database as the stores see it: statements in, rows or `StoreUnavailable` out. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schedule from "effect/Schedule"
import type { SqlError } from "effect/sql/SqlError"
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

const isConflict = ({ reason }: SqlError): boolean =>
  reason._tag === "DeadlockError" ||
  reason._tag === "SerializationError" ||
  reason._tag === "UniqueViolation"

// Whoever loses a race tries again, a little later than the others who lost it.
const again = Schedule.exponential("2 millis").pipe(Schedule.jittered)
const conflictRetries = 8

/** Makes access to the tables of one schema. */
export const make = Effect.fnUntraced(function* (client: PgClient, schema: string) {
  const sql = client.withoutTransforms()
  const health = yield* Health.make(sql.unsafe("SELECT 1"))

  const unavailable = (error: SqlError): Effect.Effect<never, StoreUnavailable> => {
    if (isFault(error)) return Effect.die(error)
    health.suspect()
    return Effect.fail(new StoreUnavailable({ cause: error }))
  }

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

  const join: Database["join"] = <Row extends object>(
    text: string,
    params: ReadonlyArray<unknown>,
  ) =>
    Effect.flatMap(isJoined, (joined) =>
      joined
        ? Effect.catchTag(sql.unsafe<Row>(text, params), "SqlError", unavailable)
        : query<Row>(text, params),
    )

  const database: Database = { schema, query, join, isJoined, afterCommit: client.afterCommit }
  return database
})
