/**
 * Transactions that the host opened with its own library, and statements for its connections.
 *
 * The driver there does not know the types of parameters, so the statement names the types, and the values
 * are in a form that every driver passes on unchanged.
 */

import * as PgTypes from "@effect/sql-pg/PgTypes"
import { type Connection, NoTransaction, type Param } from "@tenure/core/store"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as SqlConnection from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import { fromHost } from "./errors.ts"

const { OID } = PgTypes

const typeNames: ReadonlyMap<number, string> = new Map([
  [OID.text, "text"],
  [OID.textArray, "text[]"],
  [OID.uuid, "uuid"],
  [OID.uuidArray, "uuid[]"],
  [OID.bool, "boolean"],
  [OID.int4, "integer"],
])

const scalar = (value: unknown): Param => {
  if (value === null || value === undefined) return null
  return typeof value === "number" || typeof value === "boolean" ? value : String(value)
}

const elementOf = (element: Param): string =>
  element === null ? "NULL" : `"${String(element).replaceAll(/["\\]/g, "\\$&")}"`

const plainValue = (param: unknown): Param => {
  const value = PgTypes.isParameter(param) ? param.value : param
  return Array.isArray(value)
    ? `{${value.map((element) => elementOf(scalar(element))).join()}}`
    : scalar(value)
}

/** Writes parameter types into a statement, and returns the plain values. */
const toPlainParams = (
  sql: string,
  params: ReadonlyArray<unknown>,
): readonly [statement: string, params: Array<Param>] => {
  const typed = sql.replaceAll(/\$(\d+)/g, (placeholder, position) => {
    const param = params[Number(position) - 1]
    const type = PgTypes.isParameter(param) ? typeNames.get(param.oid) : undefined
    return type === undefined ? placeholder : `${placeholder}::${type}`
  })
  return [typed, params.map(plainValue)]
}

const snakeCase = (name: string): string =>
  name
    .replaceAll(/([a-z])([A-Z])/g, "$1_$2")
    .replaceAll("-", "_")
    .toLowerCase()

/** Restores the column names in rows: some hosts convert them to camel case. */
export function toNamedRows<Row extends object>(rows: ReadonlyArray<Row>): ReadonlyArray<Row>
export function toNamedRows(rows: ReadonlyArray<object>): ReadonlyArray<object> {
  return rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [snakeCase(name), value])),
  )
}

/** A transaction that the host has opened with its own library. */
export interface HostTransaction {
  /** Runs statements in the transaction. The first one dies with `NoTransaction` if none is open. */
  readonly connection: SqlConnection.Connection
  /** Runs work. If it fails, its changes are undone, so that the transaction stays usable. */
  readonly savepoint: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError, R>
  /** The transaction's id, once a statement has run in it. */
  readonly id: () => string | undefined
  /** Identifies the transaction's database. */
  readonly database: Effect.Effect<string, SqlError>
}

/** The transaction in which an effect runs, if the host has opened it with its own library. */
export const HostTransaction = Context.Reference<HostTransaction | undefined>(
  "@tenure/postgres/HostTransaction",
  { defaultValue: () => undefined },
)

const findId = "SELECT pg_current_xact_id_if_assigned()::text AS id"
const assignId = "SELECT pg_current_xact_id()::text AS id"

/** Returns the identity of the database. */
export const findIdentity = `
  SELECT (SELECT c.system_identifier FROM pg_control_system() c) || ' ' ||
         (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()) AS identity
`

/** The row that `findIdentity` returns. */
export interface IdentityRow {
  readonly identity: string
}

interface IdRow {
  readonly id: string | null
}

/** Makes the transaction that is open on a connection. */
export const makeHostTransaction = (host: Connection): HostTransaction => {
  let id: string | undefined
  let database: string | undefined

  function query<Row extends object>(
    sql: string,
    params?: ReadonlyArray<unknown>,
  ): Effect.Effect<ReadonlyArray<Row>, SqlError>
  function query(sql: string, params: ReadonlyArray<unknown> = []) {
    return Effect.map(
      Effect.tryPromise({ try: () => host.query(...toPlainParams(sql, params)), catch: fromHost }),
      ({ rows }) => rows,
    )
  }

  const idBy = (sql: string) => Effect.map(query<IdRow>(sql), ([row]) => row?.id ?? undefined)

  /**
   * Reads or assigns the transaction's id. Without a transaction, each statement has its own, so an id that
   * was just assigned is gone in the next one.
   */
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
    database: Effect.suspend(() =>
      database === undefined
        ? Effect.map(query<IdentityRow>(findIdentity), ([row]) => (database = row?.identity ?? ""))
        : Effect.succeed(database),
    ),
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
