/** Stores on PostgreSQL: all storage ports, their options, and what hosts call. */

import * as PgClient from "@effect/sql-pg/PgClient"
import { Setting, encryptionLayer, keyringOption } from "@tenure/core/internal"
import type { InvalidInput, Store, StorePorts, Transactions } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlError } from "effect/sql/SqlError"
import { needsServers, openCells, readCells, serverOptions } from "./cells.ts"
import type { Database } from "./connection/database.ts"
import { type DatabaseUnusable, fromSqlError } from "./connection/errors.ts"
import { makeServer } from "./connection/executor.ts"
import { databaseUrlOption, placeOf } from "./connection/url.ts"
import { retentionOptions } from "./retention.ts"
import { type Rewritten, rewriteAllSecrets } from "./rewrite-secrets.ts"
import { type SchemaMismatch, applyMigrations, checkSchema } from "./schema/migrate.ts"
import { quoted } from "./sql/clauses.ts"
import { clientConfig, makeAllStores } from "./stores.ts"

export { serverOptions } from "./cells.ts"
export { DatabaseUnusable } from "./connection/errors.ts"
export { InProcess } from "./connection/executor.ts"
export { Database } from "./connection/database.ts"
export { SchemaMismatch } from "./schema/migrate.ts"
export { type Rewritten } from "./rewrite-secrets.ts"

const schemaName = Setting.string("1 to 48 letters, digits and _, the first not a digit", (name) =>
  /^[A-Za-z_][A-Za-z0-9_]{0,47}$/.test(name),
)

const migrateOptions = Setting.object({
  /** The schema that holds the tables. Default: `"tenure"`. */
  schema: Setting.withDefault(schemaName, "tenure"),
})

/** Options for the stores. */
export const postgresOptions = Setting.object({
  ...migrateOptions.fields,
  /** Whether to create the tables and bring them up to date at the start. If not, only checks them. Default: `true`. */
  migrate: Setting.withDefault(Setting.boolean, true),
  ...retentionOptions.fields,
  /**
   * The number of connections for statements. A quarter of them serves statements that wait for
   * locks. Two more listen for notifications and ask whether the database answers. Default: `10`.
   */
  maxConnections: Setting.withDefault(Setting.integer({ least: 2, most: 1000 }), 10),
  /**
   * The URL to listen for notifications at, past a pooler. By default, Tenure does not listen through a
   * pooler, and looks for deliveries once a second.
   */
  listenUrl: Setting.optional(databaseUrlOption),
})

// Declarations lose the comments of fields that other modules define, so these come first.
type Documented = Setting.InputOf<typeof retentionOptions>

/** The options that a host passes. */
export interface PostgresOptions extends Documented, Setting.InputOf<typeof postgresOptions> {}

/** Options for stores that open their own connections. */
export const connectionOptions = Setting.object({
  /**
   * The URL of the database, for example `postgres://user:password@host:5432/database`. Connections to
   * other machines are encrypted, unless its parameter `sslmode` is `disable`.
   */
  url: databaseUrlOption,
  ...postgresOptions.fields,
})

/** The options that a host passes. */
export interface ConnectionOptions
  extends PostgresOptions, Setting.InputOf<typeof connectionOptions> {}

const { listenUrl: _, ...ofEach } = postgresOptions.fields

/** Options for stores on several servers. */
const serversOptions = Setting.object({
  /** The servers. The first is the home: it also has what belongs to no project, such as API keys. */
  servers: Setting.list(serverOptions),
  /** How many cells to make if there are none yet. Their number stays; they can move to more servers. */
  cells: Setting.optional(Setting.integer({ most: 1000 })),
  ...ofEach,
})

/** The options that a host passes for several servers. */
export interface ServersOptions extends Documented, Setting.InputOf<typeof serversOptions> {}

const hasServers = (given: ConnectionOptions | ServersOptions): given is ServersOptions =>
  typeof given === "object" && given !== null && "servers" in given

/**
 * Creates the tables, or brings them up to date. Several processes may call it at the same time.
 *
 * Returns the numbers of the migrations that it applied. Fails with `SchemaMismatch` if a newer Tenure has
 * changed the tables so that this one cannot use them, with `SqlError` if a statement fails, and with
 * `InvalidInput` if the schema name is invalid.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Redacted from "effect/Redacted"
 * import { PgClient } from "@effect/sql-pg"
 * import { migrate } from "tenure/postgres"
 *
 * const client = PgClient.layer({ url: Redacted.make("postgres://owner@localhost/app") })
 * const applied = await Effect.runPromise(Effect.provide(migrate(), client))
 * ```
 */
export const migrate = (
  given: Setting.InputOf<typeof migrateOptions> = {},
): Effect.Effect<
  ReadonlyArray<number>,
  InvalidInput | SqlError | SchemaMismatch,
  PgClient.PgClient
> =>
  Effect.gen(function* () {
    const { schema } = yield* Setting.decode(migrateOptions, given)
    return yield* applyMigrations(yield* PgClient.PgClient, quoted(schema))
  })

const rewriteOptions = Setting.object({
  ...migrateOptions.fields,
  /** The keys, as in the option `webhooks.encryption`. */
  encryption: keyringOption,
})

/**
 * Encrypts all webhook secrets and signing keys with the current key, even if they are encrypted with another
 * one; or decrypts all, if there is no current key. It can run again at any time, for example after an
 * interruption, and beside servers with the same keys.
 *
 * @param given.encryption - the keys, as in the option `webhooks.encryption`
 * @returns how many webhooks it changed, and which secrets it could not read and did not change. Fails with
 *   `SqlError` if a statement fails, and with `InvalidInput` if an option is invalid.
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Redacted from "effect/Redacted"
 * import { PgClient } from "@effect/sql-pg"
 * import { rewriteSecrets } from "tenure/postgres"
 *
 * declare const keys: Record<string, Uint8Array>
 * const client = PgClient.layer({ url: Redacted.make("postgres://owner@localhost/app") })
 * const encryption = { current: "k2", keys }
 * const { changed, problems } = await Effect.runPromise(
 *   Effect.provide(rewriteSecrets({ encryption }), client),
 * )
 * ```
 */
export const rewriteSecrets = (
  given: Setting.InputOf<typeof rewriteOptions>,
): Effect.Effect<Rewritten, InvalidInput | SqlError, PgClient.PgClient> =>
  Effect.gen(function* () {
    const { encryption, schema } = yield* Setting.decode(rewriteOptions, given)
    return yield* rewriteAllSecrets(yield* PgClient.PgClient, quoted(schema)).pipe(
      Effect.provide(encryptionLayer({ encryption })),
    )
  })

type Failure = InvalidInput | DatabaseUnusable | SchemaMismatch

/**
 * Makes all stores on the database client of an Effect host, and `Database` for the host's own stores.
 *
 * An operation inside that client's transaction (`sql.withTransaction`) commits and rolls back with it. Fails
 * with `SchemaMismatch` if the tables have an unsupported version, with `DatabaseUnusable` if a connection or
 * a statement fails, and with `InvalidInput` if an option is invalid.
 *
 * @example
 * ```ts
 * import * as Layer from "effect/Layer"
 * import * as Redacted from "effect/Redacted"
 * import { PgClient } from "@effect/sql-pg"
 * import { postgresLayer } from "tenure/postgres"
 * import { tenureLayer } from "tenure/effect"
 *
 * const Client = PgClient.layer({ url: Redacted.make("postgres://localhost/app") })
 * export const TenureLive = tenureLayer().pipe(Layer.provide(postgresLayer()), Layer.provideMerge(Client))
 * ```
 */
export const postgresLayer = (
  given: PostgresOptions = {},
): Layer.Layer<StorePorts | Database | Transactions, Failure, PgClient.PgClient> =>
  Layer.unwrap(
    Effect.map(Setting.decode(postgresOptions, given), (settings) => onClient(settings)),
  ).pipe(Layer.catchTag("SqlError", (error) => unusable(error)))

const unusable = (error: SqlError, place?: string) =>
  Layer.effectContext(Effect.fail(fromSqlError(error, place)))

const onClient = (settings: Setting.OutputOf<typeof postgresOptions>) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const client = yield* PgClient.PgClient
      const schema = quoted(settings.schema)
      // Traces show requests, but the client makes a span for each statement.
      const prepare = settings.migrate ? applyMigrations : checkSchema
      yield* Effect.withTracerEnabled(prepare(client, schema), false)
      const places = yield* Effect.withTracerEnabled(readCells(client, schema), false)
      if (places.length > 0) return yield* needsServers(settings.schema, places)
      const server = yield* makeServer(client, settings.maxConnections, undefined)
      return yield* makeAllStores(server, schema, settings)
    }),
  )

/** Makes all stores in one database, with their own connections. */
const onServer = ({ url, ...settings }: Setting.OutputOf<typeof connectionOptions>) =>
  Layer.unwrap(
    Effect.map(clientConfig(url), (config) =>
      Layer.provide(onClient(settings), PgClient.layer(config)),
    ),
  ).pipe(Layer.catchTag("SqlError", (error) => unusable(error, placeOf(url))))

/**
 * Keeps everything in a PostgreSQL database, with its own connections. `createTenure` rejects with
 * `DatabaseUnusable` if the database cannot be used, with `SchemaMismatch` if the tables have an unsupported
 * version, and with `InvalidInput` if an option is invalid.
 *
 * Given several servers, keeps projects in cells, which are schemas: `tenure_0`, `tenure_1` and so on. A hash
 * of the project id selects the cell. The first server also has what belongs to no project: API keys, tickets
 * and limits. There is no `Database` then. A server other than the first that is down at the start is tried
 * again once a second, and requests for its projects get a 503 response until then.
 *
 * @example
 * ```ts
 * import { createTenure } from "tenure"
 * import { postgres } from "tenure/postgres"
 *
 * const tenure = await createTenure({ stores: postgres({ url: "postgres://localhost/app" }) })
 * ```
 *
 * @example
 * ```ts
 * import { createTenure } from "tenure"
 * import { postgres } from "tenure/postgres"
 *
 * const tenure = await createTenure({
 *   stores: postgres({
 *     servers: [
 *       { name: "db1", url: "postgres://db1/app" },
 *       { name: "db2", url: "postgres://db2/app" },
 *     ],
 *     cells: 16,
 *   }),
 * })
 * ```
 */
export const postgres = (given: ConnectionOptions | ServersOptions): Store<Failure> =>
  hasServers(given)
    ? Layer.effectContext(Effect.flatMap(Setting.decode(serversOptions, given), openCells)).pipe(
        Layer.catchTag("SqlError", (error) => unusable(error)),
      )
    : Layer.unwrap(
        Effect.map(Setting.decode(connectionOptions, given), (settings) => onServer(settings)),
      )
