/** Operations for commands that maintain a database: open, migrate and copy it, move cells, and rewrite secrets. */

import { readFile } from "node:fs/promises"
import { PgClient } from "@effect/sql-pg"
import { parseKeyring } from "@tenure/core"
import { Setting, keyringFormat, TaggedError } from "@tenure/core/internal"
import { InvalidInput } from "@tenure/core/store"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { isSqlError } from "effect/sql/SqlError"
import {
  type ServerOptions,
  prepareHome,
  readCells,
  requireServers,
  serverOptions,
} from "../cells.ts"
import { cellSchema } from "../connection/cells.ts"
import { explain, isAbsent } from "../connection/errors.ts"
import { toClientConfig } from "../connection/url.ts"
import { postgresOptions, rewriteSecrets } from "../index.ts"
import { applyMigrations, pendingMigrations } from "../schema/migrate.ts"
import { quoted } from "../sql/clauses.ts"
import { type CopyProgress, copyDatabase } from "./copy-database.ts"

export {
  type CellState,
  type PlannedMove,
  planRebalance,
  runCancelMove,
  runListCells,
  runMoveCell,
} from "./cells.ts"
export { type ServerOptions } from "../cells.ts"
export { type CopyProgress } from "./copy-database.ts"
export { MoveRefused } from "./move-checks.ts"
export { type MoveObserver, type MoveStep, silent } from "./move-cell.ts"
export { type MoveProgress } from "./replication.ts"

/** The functions from `@tenure/embedded`, which is only installed where a folder is used. */
interface Embedded {
  readonly client: (options: { readonly path: string }) => Layer.Layer<PgClient.PgClient, unknown>
}

/** Imports `@tenure/embedded`. */
export type Load = () => Promise<Embedded>

/** A folder needs a package that is not installed. */
class PackageMissing extends TaggedError("PackageMissing")<{ readonly message: string }> {}

const embedded = "@tenure/embedded"

/** Describes an error in one line. */
export const messageOf = (error: unknown): string => {
  if (isSqlError(error)) return explain(error)
  return error instanceof Error ? error.message : String(error)
}

const isNotInstalled = (fault: unknown): boolean =>
  Predicate.hasProperty(fault, "code") &&
  fault.code === "ERR_MODULE_NOT_FOUND" &&
  messageOf(fault).includes(`'${embedded}'`)

const openFolder = (path: string, load: Load) =>
  Layer.unwrap(
    Effect.tryPromise({
      try: async () => (await load()).client({ path }),
      catch: (cause) =>
        isNotInstalled(cause)
          ? new PackageMissing({ message: `file:${path} needs tenure/embedded` })
          : cause,
    }),
  )

const openServer = (url: string, name: string) =>
  Layer.unwrap(
    Effect.map(toClientConfig(url, name), (config) =>
      PgClient.layer({ ...config, maxConnections: 1 }),
    ),
  )

/**
 * Opens a database.
 *
 * @param url - a server's URL, or `file:` and a folder's path
 * @param name - the name for the URL in error messages
 */
export const openDatabase = (
  url: string,
  name: string,
  load: Load,
): Layer.Layer<PgClient.PgClient, unknown> =>
  url.startsWith("file:") ? openFolder(url.slice("file:".length), load) : openServer(url, name)

const quotedSchema = (schema: string | undefined) =>
  Effect.map(Setting.decode(postgresOptions, { schema }), (settings) => quoted(settings.schema))

/**
 * Brings a schema's tables up to date, and returns the numbers of the applied migrations.
 *
 * @param which - `"existing"` if missing tables must not be created, because they may have moved
 */
export const runMigrate = Effect.fnUntraced(function* (
  schema: string | undefined,
  which: "all" | "existing",
) {
  return yield* applyMigrations(yield* PgClient.PgClient, yield* quotedSchema(schema), which)
})

/** Returns the numbers of pending migrations. Changes nothing. */
export const runPending = Effect.fnUntraced(function* (schema: string | undefined) {
  return yield* pendingMigrations(yield* PgClient.PgClient, yield* quotedSchema(schema))
})

/** The database's time, in milliseconds since the epoch. */
export const databaseTime = Effect.gen(function* () {
  const client = yield* PgClient.PgClient
  const [row] = yield* client<{
    readonly now: number
  }>`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`
  return row?.now ?? Number.NaN
})

/**
 * Copies everything from one database to another, whose tables must be empty, as a whole or not at all. Later
 * changes at the source are not copied; nothing else may write to the target.
 *
 * @returns the number of rows in each table
 */
export const runCopyDatabase = (
  from: PgClient.PgClient,
  to: PgClient.PgClient,
  schema: string | undefined,
  onProgress: (progress: CopyProgress) => void,
): Effect.Effect<ReadonlyMap<string, number>, unknown> =>
  Effect.flatMap(quotedSchema(schema), (name) => copyDatabase(from, to, name, onProgress))

const servers = Setting.list(serverOptions)

/** The prefix in URLs that name a file with several servers, for programs that are configured from outside. */
const scheme = "servers:"

/** The path of the file that a URL names, if it names one. */
export const serversFile = (given: string): string | undefined =>
  given.startsWith(scheme) && given.length > scheme.length ? given.slice(scheme.length) : undefined

/** Reads a file. Errors contain nothing from it, because it may have passwords. */
const parse = (path: string) =>
  Effect.tryPromise({
    try: async (): Promise<unknown> => JSON.parse(await readFile(path, "utf8")),
    catch: (fault) =>
      new InvalidInput({
        field: path,
        problem: fault instanceof SyntaxError ? "must be JSON" : "cannot be read",
      }),
  })

/**
 * Reads the servers in a file, a JSON array of `serverOptions`.
 *
 * Fails with `InvalidInput` if the file cannot be read, or an entry is invalid.
 */
export const readServers = Effect.fnUntraced(function* (path: string) {
  const given = yield* parse(path)
  return yield* Effect.fromResult(servers.read(given, path))
})

/** A schema with Tenure's tables: the home of several servers, or a cell. */
export interface PlacedSchema {
  /** The schema's name. */
  readonly name: string
  /** The URL of the schema's database. */
  readonly url: string
}

/**
 * Opens several servers, until the scope closes.
 *
 * @returns their names and clients, the home first
 */
const openServers = (all: ReadonlyArray<ServerOptions>) =>
  Effect.forEach(all, ({ name, url }) =>
    Effect.map(Layer.build(openServer(url, name)), (built) => ({
      name,
      url,
      client: Context.get(built, PgClient.PgClient),
    })),
  )

/**
 * Brings the home up to date, and makes the cells if there are none.
 *
 * @param count - how many cells to make; `undefined` if there are cells already
 */
export const runMakeCells = Effect.fnUntraced(function* (
  all: ReadonlyArray<ServerOptions>,
  schema: string | undefined,
  count: number | undefined,
) {
  const { schema: name } = yield* Setting.decode(postgresOptions, { schema })
  return yield* prepareHome(yield* openServers(all), { schema: name, cells: count, migrate: true })
}, Effect.scoped)

/** Returns the schemas with tables on several servers: the home, and the cells. */
export const runListSchemas = Effect.fnUntraced(function* (
  all: ReadonlyArray<ServerOptions>,
  schema: string | undefined,
) {
  const { schema: home } = yield* Setting.decode(postgresOptions, { schema })
  const [first] = yield* openServers(all.slice(0, 1))
  // Without tables, there are no cells yet.
  const places =
    first === undefined
      ? []
      : yield* Effect.catchIf(readCells(first.client, quoted(home)), isAbsent, () =>
          Effect.succeed([]),
        )
  const urls = new Map(all.map(({ name, url }) => [name, url]))
  yield* requireServers(places, urls)
  const placed: ReadonlyArray<PlacedSchema> = [
    { name: home, url: all[0]?.url ?? "" },
    ...places.map(({ number, server }) => ({
      name: cellSchema(home, number),
      url: urls.get(server) ?? "",
    })),
  ]
  return placed
}, Effect.scoped)

/** Which way secrets are rewritten. */
export type Direction = "encrypt" | "decrypt"

/** Some secrets could not be rewritten. The message names their webhooks. */
class SecretsLeft extends TaggedError("SecretsLeft")<{ readonly message: string }> {}

const variable = "TENURE_ENCRYPTION_KEY"

const invalid = (expected: string) =>
  new InvalidInput({ field: variable, problem: `must ${expected}` })

/** Reads the keys in `TENURE_ENCRYPTION_KEY`; `undefined` if it is not set. */
export const readKeyring = Effect.gen(function* () {
  const text = yield* Effect.orDie(Config.option(Config.String(variable)))
  if (Option.isNone(text)) return undefined
  return parseKeyring(text.value) ?? (yield* invalid(`be ${keyringFormat}`))
})

const beginnings = { encrypt: "the key that encrypts", decrypt: '"plain"' } as const

/** Reads the keys. Servers have the same keys, and must not write secrets the other way. */
const keysTo = Effect.fnUntraced(function* (direction: Direction) {
  const found = (yield* readKeyring) ?? (yield* invalid(`be ${keyringFormat}`))
  if ((found.current === undefined) === (direction === "encrypt"))
    return yield* invalid(`begin with ${beginnings[direction]}`)
  return found
})

/** Rewrites all webhook secrets with the keys from the environment, and returns how many. */
export const runRewriteSecrets = Effect.fnUntraced(function* (
  schema: string | undefined,
  direction: Direction,
) {
  const encryption = yield* keysTo(direction)
  const { changed, problems } = yield* rewriteSecrets({ schema, encryption })
  if (problems.length > 0) {
    const message = `${problems.join("; ")}. Rewritten: ${changed}. Failed: ${problems.length}.`
    return yield* new SecretsLeft({ message })
  }
  return changed
})
