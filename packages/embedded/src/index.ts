/** Every storage port of Tenure in a folder: PostgreSQL in this process, without a server. */

import * as PgClient from "@effect/sql-pg/PgClient"
import { Setting } from "@tenure/core/internal"
import type { InvalidInput, StorePorts } from "@tenure/core/store"
import {
  type DatabaseUnusable,
  InProcess,
  type SchemaMismatch,
  postgresLayer,
  postgresOptions,
} from "@tenure/postgres"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlClient } from "effect/sql/SqlClient"
import { type Engine, openEngine, startMaintenance } from "./engine.ts"
import { type FolderUnusable, folderUnusable, lockFolder } from "./folder.ts"
import { type Sessions, makeSessions } from "./protocol.ts"

export { hasDatabase } from "./folder.ts"
export { FolderUnusable } from "./folder.ts"

/** The options of the database. */
export const clientOptions = Setting.object({
  /** The folder that has the database. It is created if it does not exist. */
  path: Setting.string("the path of a folder", (path) => path !== ""),
  /**
   * Whether what has been committed outlives a power cut, as on a server. Without it, changes are faster,
   * and outlive the process alone: a power cut may damage the database. Default: `true`.
   */
  durable: Setting.withDefault(Setting.boolean, true),
})

/** The options that a host passes. */
export interface ClientOptions extends Setting.InputOf<typeof clientOptions> {}

const { auditRetention, eventRetention, failedRetention, idempotencyRetention, schema } =
  postgresOptions.fields

const storeOptions = Setting.object({
  schema,
  eventRetention,
  failedRetention,
  auditRetention,
  idempotencyRetention,
})

/** The options of the stores, which those of `@tenure/postgres` explain. */
export const embeddedOptions = Setting.object({ ...clientOptions.fields, ...storeOptions.fields })

/** The options that a host passes. */
export interface EmbeddedOptions extends Setting.InputOf<typeof embeddedOptions> {}

// How soon a process that has nothing to write notices that the folder is not its own any more.
const checkInterval = "1 second"

/** Checks now and then whether the files are still this process's, until they are not. */
const watch = ({ checkFiles }: Engine, { closeIfStopped }: Sessions) =>
  Effect.try({ try: checkFiles, catch: (fault) => fault }).pipe(
    Effect.delay(checkInterval),
    Effect.forever,
    Effect.tapError((fault) => Effect.logError("The database has stopped", Cause.fail(fault))),
    Effect.ensuring(Effect.sync(closeIfStopped)),
    Effect.ignore,
    Effect.forkScoped,
  )

const openSessions = Effect.fnUntraced(function* ({
  durable,
  path: given,
}: Setting.OutputOf<typeof clientOptions>) {
  const unusable = (cause: unknown) => folderUnusable(given, cause)
  const folder = yield* Effect.acquireRelease(
    Effect.tryPromise({ try: () => lockFolder(given), catch: unusable }),
    ({ release }) => Effect.sync(release),
  )
  const engine = yield* Effect.acquireRelease(
    Effect.tryPromise({ try: () => openEngine(folder, durable), catch: unusable }),
    ({ close }) => Effect.promise(close),
  )
  const sessions = makeSessions(engine)
  yield* watch(engine, sessions)
  return sessions
})

/**
 * Opens the database of a folder, for as long as the layer lives: a client for the tables of an Effect
 * host, and for `layer` of `@tenure/postgres`. It has one connection, so that a transaction has the
 * database for itself.
 *
 * Fails with `FolderUnusable` if the folder is another process's, or cannot be used, and with
 * `InvalidInput` if an option is invalid.
 *
 * @example
 * ```ts
 * import * as Layer from "effect/Layer"
 * import { client } from "tenure/embedded"
 * import { postgresLayer } from "tenure/postgres"
 * import { tenureLayer } from "tenure/effect"
 *
 * const Client = client({ path: "./data" })
 * export const TenureLive = tenureLayer().pipe(Layer.provide(postgresLayer()), Layer.provideMerge(Client))
 * ```
 */
export const client = (
  given: ClientOptions,
): Layer.Layer<PgClient.PgClient | SqlClient, InvalidInput | FolderUnusable> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const settings = yield* Setting.decode(clientOptions, given)
      const sessions = yield* openSessions(settings)
      const onSessions = PgClient.layer({
        username: "postgres",
        stream: sessions.open,
        maxConnections: 1,
      }).pipe(
        Layer.catchTag("SqlError", (error) =>
          Layer.effectContext(Effect.fail(folderUnusable(settings.path, error))),
        ),
      )
      return Layer.effectDiscard(Effect.flatMap(PgClient.PgClient, startMaintenance)).pipe(
        Layer.provideMerge(onSessions),
        Layer.merge(Layer.succeed(InProcess, true)),
      )
    }),
  )

type Failure = InvalidInput | FolderUnusable | DatabaseUnusable | SchemaMismatch

/**
 * Makes all stores, in the database of a folder. Fails as `client` does, and with `SchemaMismatch` if a
 * newer version of Tenure has made the tables.
 *
 * @example
 * ```ts
 * import { createTenure } from "tenure"
 * import { embedded } from "tenure/embedded"
 *
 * const tenure = await createTenure({ stores: embedded({ path: "./data" }) })
 * ```
 */
export const embedded = (given: EmbeddedOptions): Layer.Layer<StorePorts, Failure> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { durable, path, ...settings } = yield* Setting.decode(embeddedOptions, given)
      // One connection for statements, and one that waits for locks, which nobody holds.
      return postgresLayer({ ...settings, maxConnections: 2 }).pipe(
        Layer.provide(client({ durable, path })),
      )
    }),
  )
