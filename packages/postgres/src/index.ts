/** Every storage port of Tenure on PostgreSQL. */

import * as PgClient from "@effect/sql-pg/PgClient"
import { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import * as Encryption from "@tenure/core/Encryption"
import { FeedStore } from "@tenure/core/FeedStore"
import { InvalidInput } from "@tenure/core/InvalidInput"
import * as Keyring from "@tenure/core/Keyring"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { Outbox } from "@tenure/core/Outbox"
import { ProjectDirectory } from "@tenure/core/ProjectDirectory"
import { RateLimitStore } from "@tenure/core/RateLimitStore"
import * as Setting from "@tenure/core/Setting"
import * as Shards from "@tenure/core/Shards"
import type { Stores } from "@tenure/core/Tenure"
import { TicketStore } from "@tenure/core/TicketStore"
import { Transactions } from "@tenure/core/Transactions"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlError } from "effect/sql/SqlError"
import { type DatabaseUnusable, fromSqlError } from "./connection/DatabaseUnusable.ts"
import * as DatabaseUrl from "./connection/DatabaseUrl.ts"
import * as Executor from "./connection/Executor.ts"
import { Database } from "./Database.ts"
import * as Directory from "./directory/projectDirectory.ts"
import * as Feed from "./feed/feedStore.ts"
import * as Answers from "./idempotency/Answers.ts"
import * as ApiKeys from "./keys/apiKeyStore.ts"
import * as RateLimits from "./limits/rateLimitStore.ts"
import * as Memberships from "./memberships/membershipStore.ts"
import * as Migrations from "./migrations/migrate.ts"
import * as Notifications from "./outbox/Notifications.ts"
import * as PostgresOutbox from "./outbox/outbox.ts"
import * as Retention from "./outbox/Retention.ts"
import * as Tickets from "./tickets/ticketStore.ts"
import * as HostTransactions from "./transactions/transactions.ts"
import { type Rewritten, rewriteSecrets as rewriteAll } from "./webhooks/rewriteSecrets.ts"
import * as Webhooks from "./webhooks/webhookStore.ts"

export { DatabaseUnusable } from "./connection/DatabaseUnusable.ts"
export { InProcess } from "./connection/InProcess.ts"
export { Database } from "./Database.ts"
export { SchemaMismatch } from "./migrations/migrate.ts"
export type { Rewritten } from "./webhooks/rewriteSecrets.ts"

const schemaName = Setting.text("1 to 48 letters, digits and _, the first not a digit", (name) =>
  /^[A-Za-z_][A-Za-z0-9_]{0,47}$/.test(name),
)

const migrateOptions = Setting.struct({
  /** The schema that holds the tables. Default: `"tenure"`. */
  schema: Setting.withDefault(schemaName, "tenure"),
})

/** The options of the stores. */
export const options = Setting.struct({
  ...migrateOptions.fields,
  /**
   * Whether to create the tables and bring them up to date at the start. If not, only checks them.
   * Default: `true`.
   */
  migrate: Setting.withDefault(Setting.flag, true),
  ...Retention.options.fields,
  /**
   * The number of connections for statements. A quarter of them serves statements that wait for
   * locks. Two more listen for notifications and ask whether the database answers. Default: `10`.
   */
  maxConnections: Setting.withDefault(Setting.count({ least: 2, most: 1000 }), 10),
  /**
   * Where to listen for notifications if a pooler is between Tenure and the database: a URL that leads
   * past it. By default, Tenure does not listen through a pooler, and looks for deliveries once a
   * second.
   */
  listenUrl: Setting.optional(DatabaseUrl.setting),
})

/** The options that a host passes. */
export interface Options extends Setting.Input<typeof options> {}

/** The options of stores that open their own connections. */
export const connectionOptions = Setting.struct({
  /**
   * The URL of the database, for example `postgres://user:password@host:5432/database`. Connections to
   * other machines are encrypted, unless its parameter `sslmode` is `disable`.
   */
  url: DatabaseUrl.setting,
  ...options.fields,
})

/** The options that a host passes. */
export interface ConnectionOptions extends Setting.Input<typeof connectionOptions> {}

const quoted = (schema: string): string => `"${schema}"`

/**
 * Creates the tables, or brings them up to date. Several processes may call it at the same time.
 *
 * Returns the numbers of the migrations that it applied. Fails with `SchemaMismatch` if a newer version
 * of Tenure has changed the tables so that this one cannot use them, with `SqlError` if a statement fails, and with `InvalidInput` if
 * the name of the schema is invalid.
 *
 * @example
 * ```ts
 * import { PgClient } from "@effect/sql-pg"
 * import * as Effect from "effect/Effect"
 * import * as Redacted from "effect/Redacted"
 * import { migrate } from "tenure/postgres"
 *
 * const client = PgClient.layer({ url: Redacted.make("postgres://owner@localhost/app") })
 * const applied = await Effect.runPromise(Effect.provide(migrate(), client))
 * ```
 */
export const migrate = (
  given: Setting.Input<typeof migrateOptions> = {},
): Effect.Effect<
  ReadonlyArray<number>,
  InvalidInput | SqlError | Migrations.SchemaMismatch,
  PgClient.PgClient
> =>
  Effect.gen(function* () {
    const { schema } = yield* Setting.read(migrateOptions, given)
    return yield* Migrations.migrate(yield* PgClient.PgClient, quoted(schema))
  })

const rewriteOptions = Setting.struct({
  ...migrateOptions.fields,
  encryption: Keyring.setting,
})

/**
 * Encrypts the secrets and signing keys of all webhooks with the current key, also those that are
 * encrypted with another one; or decrypts all of them, if there is no current key. It can run again at
 * any time, after an interruption too, and beside servers that have the same keys.
 *
 * @param given.encryption - the keys, as in the option `webhooks.encryption`
 * @returns how many webhooks it changed, and which secrets it could not read and left as they are. Fails
 *   with `SqlError` if a statement fails, and with `InvalidInput` if an option is invalid.
 * @example
 * ```ts
 * import { PgClient } from "@effect/sql-pg"
 * import * as Effect from "effect/Effect"
 * import * as Redacted from "effect/Redacted"
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
  given: Setting.Input<typeof rewriteOptions>,
): Effect.Effect<Rewritten, InvalidInput | SqlError, PgClient.PgClient> =>
  Effect.gen(function* () {
    const { encryption, schema } = yield* Setting.read(rewriteOptions, given)
    return yield* rewriteAll(yield* PgClient.PgClient, quoted(schema)).pipe(
      Effect.provide(Encryption.layer({ encryption })),
    )
  })

type Failure = InvalidInput | DatabaseUnusable | Migrations.SchemaMismatch

/**
 * Makes all stores on the database client of an Effect host, and `Database` for the host's own stores.
 *
 * An operation inside a transaction of that client (`sql.withTransaction`) commits and rolls back with
 * it. Fails with `SchemaMismatch` if the version of the tables is not supported, with
 * `DatabaseUnusable` if a connection or a statement fails, and with `InvalidInput` if an option is
 * invalid.
 *
 * @example
 * ```ts
 * import { PgClient } from "@effect/sql-pg"
 * import * as Layer from "effect/Layer"
 * import * as Redacted from "effect/Redacted"
 * import { Tenure } from "tenure"
 * import { layer } from "tenure/postgres"
 *
 * const Client = PgClient.layer({ url: Redacted.make("postgres://localhost/app") })
 * export const TenureLive = Tenure.layer().pipe(Layer.provide(layer()), Layer.provideMerge(Client))
 * ```
 */
export const layer = (
  given: Options = {},
): Layer.Layer<Stores | Database | Transactions, Failure, PgClient.PgClient> =>
  Layer.unwrap(Effect.map(Setting.read(options, given), (settings) => onClient(settings))).pipe(
    Layer.catchTag("SqlError", unusable),
  )

const unusable = (error: SqlError) => Layer.effectContext(Effect.fail(fromSqlError(error)))

const onClient = (settings: Setting.Output<typeof options>, name?: string) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const client = yield* PgClient.PgClient
      const schema = quoted(settings.schema)
      const prepare = settings.migrate ? Migrations.migrate : Migrations.check
      // Traces are of requests: the client has a span for each statement.
      yield* Effect.withTracerEnabled(prepare(client, schema), false)
      const executor = yield* Executor.make(client, schema, settings.maxConnections, name)
      yield* Retention.start(client, executor, settings)
      const apart =
        settings.listenUrl === undefined
          ? undefined
          : yield* DatabaseUrl.toConfig(settings.listenUrl, "listenUrl")
      const listener = Notifications.listener(executor, apart)
      const notifications = yield* Notifications.make(executor, listener)
      const answers = Answers.make(executor)
      const memberships = yield* Memberships.make(executor, notifications, answers)
      return Context.make(MembershipStore, memberships).pipe(
        Context.add(WebhookStore, Webhooks.make(executor, notifications, answers)),
        Context.add(ApiKeyStore, yield* ApiKeys.make(executor, answers)),
        Context.add(Outbox, yield* PostgresOutbox.make(executor, notifications, answers)),
        Context.add(FeedStore, Feed.make(executor, settings.eventRetention)),
        Context.add(RateLimitStore, yield* RateLimits.make(executor)),
        Context.add(TicketStore, yield* Tickets.make(executor)),
        Context.add(ProjectDirectory, Directory.make(executor, answers)),
        Context.add(Transactions, yield* HostTransactions.make(client, executor)),
        Context.add(Database, {
          run: executor.run,
          atomically: executor.atomically,
          keep: answers.keep,
        }),
      )
    }),
  )

/** Makes all stores of one database, which has a name if there are several, with their own connections. */
const onServer = (given: Setting.Output<typeof connectionOptions>, name?: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { url, ...settings } = given
      // The client itself only migrates, and runs what is to be atomic.
      const client = PgClient.layer({
        ...(yield* DatabaseUrl.toConfig(url, "url")),
        maxConnections: 1,
        idleTimeout: "1 second",
        connectTimeout: "10 seconds",
        // A pooler would keep the statements.
        prepare: false,
      })
      return Layer.provide(onClient(settings, name), client)
    }),
  ).pipe(Layer.catchTag("SqlError", unusable))

/** The options of one of several databases. */
export const shardOptions = Setting.struct({
  ...Shards.options.fields,
  ...connectionOptions.fields,
})

/** One of several databases. */
export interface ShardOptions extends Setting.Input<typeof shardOptions> {}

const areSeveral = (
  given: ConnectionOptions | ReadonlyArray<ShardOptions>,
): given is ReadonlyArray<ShardOptions> => Array.isArray(given)

/** Whether a database cannot be used whoever waits: what is wrong is an option, or the version of the tables. */
const isForGood = (error: Failure): boolean => error._tag !== "DatabaseUnusable"

const onShards = (given: ReadonlyArray<ShardOptions>) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const all = yield* Setting.read(Setting.list(shardOptions), given)
      const [first, ...others] = all.map(({ name, projects, ...settings }) => ({
        name,
        projects,
        stores: onServer(settings, name),
      }))
      return first === undefined
        ? yield* new InvalidInput({ field: "options", problem: "must have at least one database" })
        : Shards.layer([first, ...others], isForGood)
    }),
  )

/**
 * Makes all stores, with their own connections to the database. Fails in the same way as `layer`. Its
 * type is that of `memory()`, but it provides `Database` and `Transactions` too:
 * `Effect.serviceOption(Database)` finds it.
 *
 * Given an array, spreads projects over several databases, as `Shards` describes: each entry names a
 * database and its projects, and the first also has API keys, tickets and limits. Then there is no
 * `Database`, and there are no `Transactions`. A database other than the first that is down at the start is
 * tried again once a second, and requests for its projects are answered 503 until then.
 *
 * @example
 * ```ts
 * import { Tenure } from "tenure"
 * import { postgres } from "tenure/postgres"
 *
 * const tenure = await Tenure.make({ stores: postgres({ url: "postgres://localhost/app" }) })
 * ```
 *
 * @example
 * ```ts
 * import { Tenure } from "tenure"
 * import { postgres } from "tenure/postgres"
 *
 * const tenure = await Tenure.make({
 *   stores: postgres([
 *     { name: "main", url: "postgres://db1/app", projects: "others" },
 *     { name: "large", url: "postgres://db2/app", projects: ["p1", "p2"] },
 *   ]),
 * })
 * ```
 */
export const postgres = (
  given: ConnectionOptions | ReadonlyArray<ShardOptions>,
): Layer.Layer<Stores, Failure> =>
  areSeveral(given)
    ? onShards(given)
    : Layer.unwrap(
        Effect.map(Setting.read(connectionOptions, given), (settings) => onServer(settings)),
      )
