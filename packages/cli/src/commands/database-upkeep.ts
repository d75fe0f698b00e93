/** Commands that need a database, not a server. Loaded only by them. */

import { resolve } from "node:path"
import { PgClient } from "@effect/sql-pg/PgClient"
import { migrate as migrateAll } from "@tenure/postgres"
import {
  databaseConfigPath,
  databaseTime,
  messageOf,
  openDatabase,
  readDatabases,
  runCancelMove,
  runCopyDatabase,
  runMoveProject,
  runPending,
  runRewriteSecrets,
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

/** A step failed. What is wrong with a connection, which the first statement opens, may pass. */
export const explainDatabaseFailure = (fault: unknown): Failure => {
  if (fault instanceof Failure) return fault
  const message = messageOf(fault)
  if (isSqlError(fault) && fault.reason._tag === "ConnectionError") return unavailable(message)
  return fault instanceof Error && "_tag" in fault && fault._tag === "InvalidInput"
    ? usageFailure(message)
    : operationFailed(message)
}

const requireOne = (url: string) =>
  databaseConfigPath(url) === undefined
    ? Effect.void
    : Effect.fail(
        usageFailure("This takes one database: give the URL of one of those in the file."),
      )

/** Opens a database until the scope closes, and creates it if it is in a folder. */
export const connectOrCreate = Effect.fnUntraced(function* (url: string) {
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

/** Opens a database that exists, until the scope closes. */
export const connectDatabase = (url: string) =>
  Effect.andThen(requireDatabase(url), connectOrCreate(url))

/** What `tenure migrate`, `export` and `import` do. */

/** What to do beside the migrations. */
interface Given {
  readonly dryRun: boolean
  readonly encrypt: boolean
  readonly decrypt: boolean
}

/** What has become of a database, or would become of it. */
export interface Migrated {
  readonly applied: boolean
  /** The numbers of the migrations. */
  readonly migrations: ReadonlyArray<number>
  readonly rewritten_secrets?: number
}

/** Applies migrations, or tells which ones would be applied, and rewrites secrets. */
export const migrateDatabase = Effect.fnUntraced(function* (
  url: string,
  schema: string | undefined,
  { decrypt, dryRun, encrypt }: Given,
) {
  const client = yield* (dryRun ? connectDatabase : connectOrCreate)(url)
  return yield* Effect.gen(function* (): Effect.fn.Return<Migrated, unknown, PgClient> {
    if (dryRun) return { applied: false, migrations: yield* runPending(schema) }
    const migrations = yield* migrateAll({ schema })
    if (!encrypt && !decrypt) return { applied: true, migrations }
    const rewritten_secrets = yield* runRewriteSecrets(schema, encrypt ? "encrypt" : "decrypt")
    return { applied: true, migrations, rewritten_secrets }
  }).pipe(Effect.provideService(PgClient, client), Effect.mapError(explainDatabaseFailure))
}, Effect.scoped)

/** One of several databases. */
interface Named {
  readonly name: string
  readonly url: string
}

/** The several databases that a URL names, if it is that of a file. */
export const databasesOf = (
  url: string,
): Effect.Effect<ReadonlyArray<Named> | undefined, Failure> => {
  const path = databaseConfigPath(url)
  return path === undefined
    ? Effect.succeed(undefined)
    : Effect.mapError(readDatabases(path), explainDatabaseFailure)
}

/**
 * Looks at a database.
 *
 * @returns the migrations that are not applied, and how much later it is there, in milliseconds
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

/** Copies everything from one database to another, and returns the number of rows of each table. */
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

/** A move of a project. */
interface ProjectMove {
  readonly from: string
  readonly to: string
  readonly schema: string | undefined
  readonly project: string
  readonly isCancelled: boolean
}

/** Moves a project from one database to another, or cancels a move that has stopped. */
export const moveToDatabase = Effect.fnUntraced(function* ({
  from,
  isCancelled,
  project: projectId,
  schema,
  to,
}: ProjectMove) {
  yield* requireOther(from, to)
  const source = yield* connectDatabase(from)
  const target = yield* connectDatabase(to)
  const display = makeProgress(process.stderr, "rows")
  const start = yield* Clock.currentTimeMillis
  const clock = yield* Clock.Clock
  const run = isCancelled ? runCancelMove : runMoveProject
  yield* run({
    source,
    target,
    schema,
    projectId,
    onProgress: ({ of, rows: done }) =>
      display.show({ done, of, items: done, millis: clock.currentTimeMillisUnsafe() - start }),
  }).pipe(Effect.ensuring(Effect.sync(display.end)), Effect.mapError(explainDatabaseFailure))
}, Effect.scoped)
