/** What commands that look after a database need: to open it, and what they do with it. */

import { PgClient } from "@effect/sql-pg"
import * as Setting from "@tenure/core/Setting"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import { isSqlError } from "effect/sql/SqlError"
import { explain } from "../connection/DatabaseUnusable.ts"
import { toConfig } from "../connection/DatabaseUrl.ts"
import { options } from "../index.ts"
import * as Migrations from "../migrations/migrate.ts"
import * as Moving from "../moving/move.ts"
import * as MovingProject from "../moving/moveProject.ts"

export type { Progress } from "../moving/move.ts"

/** What is needed of the package `@tenure/embedded`, which only those who have a folder install. */
interface Embedded {
  readonly client: (options: { readonly path: string }) => Layer.Layer<PgClient.PgClient, unknown>
}

/** Imports `@tenure/embedded`. */
export type Load = () => Promise<Embedded>

/** A folder needs a package that is not installed. */
class PackageMissing extends Data.TaggedError("PackageMissing")<{ readonly message: string }> {}

const embedded = "@tenure/embedded"

/** Says what is wrong, in one line. */
export const messageOf = (error: unknown): string => {
  if (isSqlError(error)) return explain(error)
  return error instanceof Error ? error.message : String(error)
}

const isAbsent = (fault: unknown): boolean =>
  Predicate.hasProperty(fault, "code") &&
  fault.code === "ERR_MODULE_NOT_FOUND" &&
  messageOf(fault).includes(`'${embedded}'`)

const openFolder = (path: string, load: Load) =>
  Layer.unwrap(
    Effect.tryPromise({
      try: async () => (await load()).client({ path }),
      catch: (cause) =>
        isAbsent(cause)
          ? new PackageMissing({ message: `file:${path} needs the package ${embedded}` })
          : cause,
    }),
  )

const openServer = (url: string, name: string) =>
  Layer.unwrap(
    Effect.map(toConfig(url, name), (config) => PgClient.layer({ ...config, maxConnections: 1 })),
  )

/**
 * Opens a database.
 *
 * @param url - that of a server, or `file:` and the path of a folder
 * @param name - what errors in the URL call it
 */
export const open = (
  url: string,
  name: string,
  load: Load,
): Layer.Layer<PgClient.PgClient, unknown> =>
  url.startsWith("file:") ? openFolder(url.slice("file:".length), load) : openServer(url, name)

const quotedSchema = (schema: string | undefined) =>
  Effect.map(Setting.read(options, { schema }), (settings) => `"${settings.schema}"`)

/** Returns the numbers of the migrations that are not applied yet. Changes nothing. */
export const pending = Effect.fnUntraced(function* (schema: string | undefined) {
  return yield* Migrations.pending(yield* PgClient.PgClient, yield* quotedSchema(schema))
})

/** The time of the database, in milliseconds since the epoch. */
export const now = Effect.gen(function* () {
  const client = yield* PgClient.PgClient
  const [row] = yield* client<{
    readonly now: number
  }>`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`
  return row?.now ?? Number.NaN
})

/**
 * Copies everything from one database to another one, whose tables must be empty, as a whole or not at
 * all. What changes at the source in the meantime is not copied; nothing else may write to the target.
 *
 * @returns the number of rows of each table
 */
export const move = (
  from: PgClient.PgClient,
  to: PgClient.PgClient,
  schema: string | undefined,
  onProgress: (progress: Moving.Progress) => void,
): Effect.Effect<ReadonlyMap<string, number>, unknown> =>
  Effect.flatMap(quotedSchema(schema), (name) => Moving.move(from, to, name, onProgress))

/** A move of a project between two databases whose tables have the same schema. */
export interface ProjectMove extends Omit<MovingProject.Move, "schema"> {
  readonly schema: string | undefined
}

/**
 * Moves a project from one database to another, or goes on with a move that has stopped. If anything fails,
 * nothing is lost: repeat it, or cancel it.
 */
export const moveProject = (asked: ProjectMove): Effect.Effect<void, unknown> =>
  Effect.flatMap(quotedSchema(asked.schema), (schema) =>
    MovingProject.moveProject({ ...asked, schema }),
  )

/** Goes back to the beginning of a move that has stopped before the project was found at the target. */
export const cancelMove = (asked: ProjectMove): Effect.Effect<void, unknown> =>
  Effect.flatMap(quotedSchema(asked.schema), (schema) =>
    MovingProject.cancelMove({ ...asked, schema }),
  )
