/** Every storage port of Tenure in a folder: PostgreSQL in this process, without a server. */

import * as PgClient from "@effect/sql-pg/PgClient"
import type { InvalidInput } from "@tenure/core/InvalidInput"
import * as Setting from "@tenure/core/Setting"
import type { Stores } from "@tenure/core/Tenure"
import * as Postgres from "@tenure/postgres"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlClient } from "effect/sql/SqlClient"
import * as Engine from "./Engine.ts"
import * as Folder from "./Folder.ts"
import * as Sessions from "./Sessions.ts"
import * as Upkeep from "./Upkeep.ts"

export { hasDatabase } from "./Files.ts"
export { FolderUnusable } from "./Folder.ts"

/** The options of the database. */
export const clientOptions = Setting.struct({
  /** The folder that has the database. It is created if it does not exist. */
  path: Setting.text("the path of a folder", (path) => path !== ""),
  /**
   * Whether what has been committed outlives a power cut, as on a server. Without it, changes are faster,
   * and outlive the process alone: a power cut may damage the database. Default: `true`.
   */
  durable: Setting.withDefault(Setting.flag, true),
})

/** The options that a host passes. */
export interface ClientOptions extends Setting.Input<typeof clientOptions> {}

const { auditRetention, eventRetention, failedRetention, idempotencyRetention, schema } =
  Postgres.options.fields

const storeOptions = Setting.struct({
  schema,
  eventRetention,
  failedRetention,
  auditRetention,
  idempotencyRetention,
})

/** The options of the stores, which those of `@tenure/postgres` explain. */
export const options = Setting.struct({ ...clientOptions.fields, ...storeOptions.fields })

/** The options that a host passes. */
export interface Options extends Setting.Input<typeof options> {}

// How soon a process that has nothing to write notices that the folder is not its own any more.
const checkInterval = "1 second"

/** Checks now and then whether the files are still this process's, until they are not. */
const watch = ({ checkFiles }: Engine.Engine, { closeIfStopped }: Sessions.Sessions) =>
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
}: Setting.Output<typeof clientOptions>) {
  const unusable = (cause: unknown) => Folder.unusable(given, cause)
  const folder = yield* Effect.acquireRelease(
    Effect.tryPromise({ try: () => Folder.acquire(given), catch: unusable }),
    ({ release }) => Effect.sync(release),
  )
  const engine = yield* Effect.acquireRelease(
    Effect.tryPromise({ try: () => Engine.open(folder, durable), catch: unusable }),
    ({ close }) => Effect.promise(close),
  )
  const sessions = Sessions.make(engine)
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
 * import { Tenure } from "tenure"
 * import { client } from "tenure/embedded"
 * import { layer } from "tenure/postgres"
 *
 * const Client = client({ path: "./data" })
 * export const TenureLive = Tenure.layer().pipe(Layer.provide(layer()), Layer.provideMerge(Client))
 * ```
 */
export const client = (
  given: ClientOptions,
): Layer.Layer<PgClient.PgClient | SqlClient, InvalidInput | Folder.FolderUnusable> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const settings = yield* Setting.read(clientOptions, given)
      const sessions = yield* openSessions(settings)
      const onSessions = PgClient.layer({
        username: "postgres",
        stream: sessions.open,
        maxConnections: 1,
      }).pipe(
        Layer.catchTag("SqlError", (error) =>
          Layer.effectContext(Effect.fail(Folder.unusable(settings.path, error))),
        ),
      )
      return Layer.effectDiscard(Effect.flatMap(PgClient.PgClient, Upkeep.start)).pipe(
        Layer.provideMerge(onSessions),
        Layer.merge(Layer.succeed(Postgres.InProcess, true)),
      )
    }),
  )

type Failure =
  | InvalidInput
  | Folder.FolderUnusable
  | Postgres.DatabaseUnusable
  | Postgres.SchemaMismatch

/**
 * Makes all stores, in the database of a folder. Fails as `client` does, and with `SchemaMismatch` if a
 * newer version of Tenure has made the tables.
 *
 * @example
 * ```ts
 * import { Tenure } from "tenure"
 * import { embedded } from "tenure/embedded"
 *
 * const tenure = await Tenure.make({ stores: embedded({ path: "./data" }) })
 * ```
 */
export const embedded = (given: Options): Layer.Layer<Stores, Failure> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { durable, path, ...settings } = yield* Setting.read(options, given)
      // One connection for statements, and one that waits for locks, which nobody holds.
      return Postgres.layer({ ...settings, maxConnections: 2 }).pipe(
        Layer.provide(client({ durable, path })),
      )
    }),
  )
