/** A transaction that the host has opened with a library of its own. */

import { type Connection, NoTransaction } from "@tenure/core/Transactions"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as SqlConnection from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import { fromHost } from "../connection/sqlErrors.ts"
import { plain } from "./plain.ts"

/** The transaction of the host. */
export interface HostTransaction {
  /** Runs statements in it. The first one dies with `NoTransaction` if none is open. */
  readonly connection: SqlConnection.Connection
  /** Runs work. What it has changed is undone if it fails, so that the transaction can go on. */
  readonly savepoint: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError, R>
  /** Its id, once a statement has run in it. */
  readonly id: () => string | undefined
}

/** The transaction in which an effect runs, if the host has opened it with a library of its own. */
export const HostTransaction = Context.Reference<HostTransaction | undefined>(
  "@tenure/postgres/HostTransaction",
  { defaultValue: () => undefined },
)

const findId = "SELECT pg_current_xact_id_if_assigned()::text AS id"
const assignId = "SELECT pg_current_xact_id()::text AS id"

interface IdRow {
  readonly id: string | null
}

/** Makes the transaction that is open on a connection. */
export const make = (host: Connection): HostTransaction => {
  let id: string | undefined

  function query<Row extends object>(
    sql: string,
    params?: ReadonlyArray<unknown>,
  ): Effect.Effect<ReadonlyArray<Row>, SqlError>
  function query(sql: string, params: ReadonlyArray<unknown> = []) {
    return Effect.map(
      Effect.tryPromise({ try: () => host.query(...plain(sql, params)), catch: fromHost }),
      ({ rows }) => rows,
    )
  }

  const idBy = (sql: string) => Effect.map(query<IdRow>(sql), ([row]) => row?.id ?? undefined)

  /** Without a transaction, each statement has its own, to which no id was assigned before. */
  const identify = Effect.gen(function* () {
    const known = yield* idBy(findId)
    id = known ?? (yield* idBy(assignId))
    if (known !== undefined || (yield* idBy(findId)) === id) return
    id = undefined
    yield* Effect.die(new NoTransaction())
  })

  const run = (sql: string, params: ReadonlyArray<unknown>) =>
    Effect.suspend(() =>
      id === undefined ? Effect.andThen(identify, query(sql, params)) : query(sql, params),
    )

  const execute: SqlConnection.Connection["execute"] = (sql, params, transform) =>
    Effect.map(run(sql, params), (rows) => transform?.(rows) ?? rows)

  const executeValues: SqlConnection.Connection["executeValues"] = (sql, params) =>
    Effect.map(run(sql, params), (rows) => rows.map((row) => Object.values(row)))

  const savepoint: HostTransaction["savepoint"] = (work) =>
    Effect.andThen(
      run("SAVEPOINT tenure", []),
      Effect.onExit(work, (exit) =>
        Effect.andThen(
          Exit.isSuccess(exit) ? Effect.void : run("ROLLBACK TO SAVEPOINT tenure", []),
          run("RELEASE SAVEPOINT tenure", []),
        ),
      ),
    )

  return {
    id: () => id,
    savepoint,
    connection: {
      execute,
      executeUnprepared: execute,
      executeRaw: run,
      executeValues,
      executeValuesUnprepared: executeValues,
      executeStream: (...statement) => Stream.fromIterableEffect(execute(...statement)),
    },
  }
}
