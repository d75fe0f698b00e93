/** All storage ports in a folder: PostgreSQL in this process, without a server. */

import * as PgClient from "@effect/sql-pg/PgClient"
import { Setting } from "@tenure/core/internal"
import type { InvalidInput, Store } from "@tenure/core/store"
import {
  type DatabaseUnusable,
  InProcess,
  type PostgresOptions,
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

/** Options for the database. */
const clientOptions = Setting.object({
  /** The database's folder. It is created if it does not exist. */
  path: Setting.string("the path of a folder", (path) => path !== ""),
  /**
   * Whether commits survive a power cut, as on a server. Without it, changes are faster and survive
   * only the process: a power cut may damage the database. Default: `true`.
   */
  durable: Setting.withDefault(Setting.boolean, true),
})

/** The options as a host passes them. */
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

/** Options for the stores, described in `@tenure/postgres`. */
export const embeddedOptions = Setting.object({ ...clientOptions.fields, ...storeOptions.fields })

/** The options as a host passes them. */
export interface EmbeddedOptions
  extends ClientOptions, Pick<PostgresOptions, keyof Setting.InputOf<typeof storeOptions>> {}

// How soon an idle process notices that it has lost the folder.
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
 * Opens a folder's database while the layer lives: a client for an Effect host's own tables, and for
 * `postgresLayer`. It has one connection, so a transaction has the database for itself.
 *
 * Fails with `FolderUnusable` if another process holds the folder or it cannot be used, and with
 * `InvalidInput` if an option is invalid.
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
 * Creates all stores in a folder's database. Fails as `client` does, and with `SchemaMismatch` if a
 * newer version of Tenure created the tables.
 * @example
 * ```ts
 * import { createTenure } from "tenure"
 * import { embedded } from "tenure/embedded"
 *
 * const tenure = await createTenure({ stores: embedded({ path: "./data" }) })
 * ```
 */
export const embedded = (given: EmbeddedOptions): Store<Failure> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { durable, path, ...settings } = yield* Setting.decode(embeddedOptions, given)
      // One connection for statements, and one to wait for locks, held by nobody.
      return postgresLayer({ ...settings, maxConnections: 2 }).pipe(
        Layer.provide(client({ durable, path })),
      )
    }),
  )
