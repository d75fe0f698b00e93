/** Commands on a database rather than a server. Only they load this module. */

import { resolve } from "node:path"
import { PgClient } from "@effect/sql-pg/PgClient"
import {
  type CellState,
  type PlacedSchema,
  type PlannedMove,
  type ServerOptions,
  databaseTime,
  messageOf,
  openDatabase,
  planRebalance,
  readServers,
  runCancelMove,
  runCopyDatabase,
  runListCells,
  runListSchemas,
  runMakeCells,
  runMigrate,
  runMoveCell,
  runPending,
  runRewriteSecrets,
  serversFile,
  silent,
} from "@tenure/postgres/ops/upkeep"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isSqlError } from "effect/sql/SqlError"
import { Failure, operationFailed, usageFailure } from "../support/failure.ts"
import { folderPath, requireDatabase } from "../support/in-process.ts"
import { makeProgress } from "../support/progress.ts"

const unavailable = (message: string): Failure => new Failure({ kind: "unavailable", message })

/**
 * Explains why a step failed. The first statement opens the connection, so a connection error may be
 * temporary.
 */
const explainDatabaseFailure = (fault: unknown): Failure => {
  if (fault instanceof Failure) return fault
  const message = messageOf(fault)
  if (isSqlError(fault) && fault.reason._tag === "ConnectionError") return unavailable(message)
  const tag = fault instanceof Error && "_tag" in fault ? fault._tag : undefined
  if (tag === "DatabaseUnusable") return unavailable(message)
  return tag === "InvalidInput" ? usageFailure(message) : operationFailed(message)
}

const requireOne = (url: string) =>
  serversFile(url) === undefined
    ? Effect.void
    : Effect.fail(usageFailure("This takes one database: give the URL of one of the servers."))

/** Opens a database until the scope closes, and creates it if it is in a folder. */
const connectOrCreate = Effect.fnUntraced(function* (url: string) {
  yield* requireOne(url)
  return yield* openDatabase(url, "the URL of the database", () => import("@tenure/embedded")).pipe(
    Layer.build,
    Effect.map(Context.get(PgClient)),
    Effect.mapError((fault) => {
      const failure = explainDatabaseFailure(fault)
      return failure.kind === "usage" ? failure : unavailable(failure.message)
    }),
  )
})

/** Opens an existing database until the scope closes. */
const connectDatabase = (url: string) => Effect.andThen(requireDatabase(url), connectOrCreate(url))

/** Work in addition to the migrations. */
interface Given {
  readonly dryRun: boolean
  readonly encrypt: boolean
  readonly decrypt: boolean
}

/** A database's changes, made or planned. */
export interface Migrated {
  readonly applied: boolean
  /** Migration numbers. */
  readonly migrations: ReadonlyArray<number>
  readonly rewritten_secrets?: number
}

/**
 * Applies migrations, or lists pending ones, and rewrites secrets.
 *
 * @param which - `"existing"` for a cell, because it may have moved to another server meanwhile
 */
export const migrateDatabase = Effect.fnUntraced(function* (
  url: string,
  schema: string | undefined,
  { decrypt, dryRun, encrypt }: Given,
  which: "all" | "existing" = "all",
) {
  const client = yield* (dryRun ? connectDatabase : connectOrCreate)(url)
  return yield* Effect.gen(function* (): Effect.fn.Return<Migrated, unknown, PgClient> {
    if (dryRun) return { applied: false, migrations: yield* runPending(schema) }
    const migrations = yield* runMigrate(schema, which)
    if (!encrypt && !decrypt) return { applied: true, migrations }
    const rewritten_secrets = yield* runRewriteSecrets(schema, encrypt ? "encrypt" : "decrypt")
    return { applied: true, migrations, rewritten_secrets }
  }).pipe(Effect.provideService(PgClient, client), Effect.mapError(explainDatabaseFailure))
}, Effect.scoped)

/** Reads the servers from a file URL, if it is one. */
export const serversOf = (
  url: string,
): Effect.Effect<ReadonlyArray<ServerOptions> | undefined, Failure> => {
  const path = serversFile(url)
  return path === undefined
    ? Effect.succeed(undefined)
    : Effect.mapError(readServers(path), explainDatabaseFailure)
}

/** Migrates the home schema on several servers, and makes the cells if there are none. */
export const makeCells = (
  servers: ReadonlyArray<ServerOptions>,
  schema: string | undefined,
  count: number | undefined,
): Effect.Effect<void, Failure> =>
  Effect.asVoid(Effect.mapError(runMakeCells(servers, schema, count), explainDatabaseFailure))

/** Returns the schemas on several servers: the home, and the cells. */
export const schemasOf = (
  servers: ReadonlyArray<ServerOptions>,
  schema: string | undefined,
): Effect.Effect<ReadonlyArray<PlacedSchema>, Failure> =>
  Effect.mapError(runListSchemas(servers, schema), explainDatabaseFailure)

/** Returns the cells on several servers. */
export const listCells = (
  servers: ReadonlyArray<ServerOptions>,
  schema: string | undefined,
): Effect.Effect<ReadonlyArray<CellState>, Failure> =>
  Effect.mapError(runListCells(servers, schema), explainDatabaseFailure)

/** Plans the moves to distribute cells evenly among servers. */
export const planCells = (
  servers: ReadonlyArray<ServerOptions>,
  schema: string | undefined,
): Effect.Effect<ReadonlyArray<PlannedMove>, Failure> =>
  Effect.map(listCells(servers, schema), (cells) =>
    planRebalance(
      cells,
      servers.map(({ name }) => name),
    ),
  )

const kilobytes = (bytes: number): number => Math.round(bytes / 1024)

/** Moves a cell, and shows progress. Returns whether there was anything to do. */
export const moveCell = Effect.fnUntraced(function* (
  servers: ReadonlyArray<ServerOptions>,
  schema: string | undefined,
  number: number,
  to: string,
) {
  const display = makeProgress(process.stderr, "kB")
  const start = yield* Clock.currentTimeMillis
  const clock = yield* Clock.Clock
  return yield* runMoveCell(servers, schema, number, to, {
    ...silent,
    onProgress: ({ allBytes, bytes }) =>
      display.show({
        done: kilobytes(bytes),
        of: kilobytes(allBytes),
        items: kilobytes(bytes),
        millis: clock.currentTimeMillisUnsafe() - start,
      }),
  }).pipe(Effect.ensuring(Effect.sync(display.end)), Effect.mapError(explainDatabaseFailure))
})

/** Undoes an undecided move. Returns whether there was anything to undo. */
export const cancelCell = (
  servers: ReadonlyArray<ServerOptions>,
  schema: string | undefined,
  number: number,
  to: string,
): Effect.Effect<boolean, Failure> =>
  Effect.mapError(runCancelMove(servers, schema, number, to), explainDatabaseFailure)

/**
 * Inspects a database.
 *
 * @returns the pending migrations, and how many milliseconds its clock is ahead
 */
export const inspectDatabase = Effect.fnUntraced(function* (
  url: string,
  schema: string | undefined,
) {
  const client = yield* connectDatabase(url)
  return yield* Effect.gen(function* () {
    const pending = yield* runPending(schema)
    const skew = (yield* databaseTime) - (yield* Clock.currentTimeMillis)
    return { pending, skew }
  }).pipe(Effect.provideService(PgClient, client), Effect.mapError(explainDatabaseFailure))
}, Effect.scoped)

/** Names a database: the same folder has several paths. */
const nameOf = (url: string): string => {
  const path = folderPath(url)
  return path === undefined ? url : resolve(path)
}

const requireOther = (from: string, to: string) =>
  nameOf(from) === nameOf(to)
    ? Effect.fail(usageFailure("The source and the target are the same database."))
    : Effect.void

/** Copies one database to another, and returns each table's row count. */
export const copyToDatabase = Effect.fnUntraced(function* (
  from: string,
  to: string,
  schema: string | undefined,
) {
  yield* requireOther(from, to)
  const source = yield* connectDatabase(from)
  const target = yield* connectOrCreate(to)
  const display = makeProgress(process.stderr, "rows")
  const start = yield* Clock.currentTimeMillis
  const clock = yield* Clock.Clock
  const rows = yield* runCopyDatabase(source, target, schema, ({ of, rows: done }) =>
    display.show({ done, of, items: done, millis: clock.currentTimeMillisUnsafe() - start }),
  ).pipe(Effect.ensuring(Effect.sync(display.end)), Effect.mapError(explainDatabaseFailure))
  return Object.fromEntries(rows)
}, Effect.scoped)
