/** Every storage port of Tenure on PostgreSQL. */

import * as PgClient from "@effect/sql-pg/PgClient"
import { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import { InvalidInput } from "@tenure/core/InvalidInput"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { Outbox } from "@tenure/core/Outbox"
import { RateLimitStore } from "@tenure/core/RateLimitStore"
import * as Setting from "@tenure/core/Setting"
import type { Stores } from "@tenure/core/Tenure"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { SqlError } from "effect/sql/SqlError"
import { Database } from "./Database.ts"
import * as ApiKeys from "./internal/apiKeyStore.ts"
import * as Access from "./internal/database.ts"
import { regularly } from "./internal/housekeeping.ts"
import * as Memberships from "./internal/membershipStore.ts"
import * as Migrations from "./internal/migrate.ts"
import * as Nudge from "./internal/nudge.ts"
import * as PostgresOutbox from "./internal/outbox.ts"
import { days } from "./internal/parameters.ts"
import * as RateLimits from "./internal/rateLimitStore.ts"
import * as Webhooks from "./internal/webhookStore.ts"
import { forgetEvents } from "./statements/retention.ts"

export { Database } from "./Database.ts"
export { SchemaMismatch } from "./internal/migrate.ts"

/** Options of the stores. */
export interface Options {
  /** The schema that holds the tables: letters, digits and `_`; `tenure` by default. */
  readonly schema?: string | undefined
  /**
   * Whether the tables are created and brought up to date at the start; `true` by default. If not,
   * they are only checked.
   */
  readonly migrate?: boolean | undefined
  /**
   * How long events and their deliveries are kept after the deliveries have ended; `"30 days"` by
   * default. The audit trail is kept for good.
   */
  readonly retention?: Duration.Input | undefined
}

/** Options of stores with connections of their own. */
export interface ConnectionOptions extends Options {
  /** Such as `postgres://user:password@host:5432/database`. */
  readonly url: string
  /** Connections at the same time; 10 by default. Another one listens for news of deliveries. */
  readonly maxConnections?: number | undefined
}

type Failure = InvalidInput | SqlError | Migrations.SchemaMismatch

const quoted = (schema: string): Effect.Effect<string, InvalidInput> =>
  /^[A-Za-z_][A-Za-z0-9_]{0,47}$/.test(schema)
    ? Effect.succeed(`"${schema}"`)
    : Effect.fail(
        new InvalidInput({
          field: "schema",
          message: "schema: expected 1 to 48 letters, digits and _, the first no digit",
        }),
      )

const connectionRange = { least: 1, most: 1000 }

// The error does not show the URL, which may hold a password.
const checkUrl = (url: string): Effect.Effect<string, InvalidInput> =>
  /^postgres(ql)?:\/\/./.test(url)
    ? Effect.succeed(url)
    : Effect.fail(
        new InvalidInput({ field: "url", message: "url: expected postgres://host/database" }),
      )

/**
 * Creates the tables, or brings them up to date; gives the numbers of the migrations that were
 * applied. Several processes may do so at once. Fails with `SchemaMismatch` where a newer version of
 * the code has been there.
 */
export const migrate = (
  options: Pick<Options, "schema"> = {},
): Effect.Effect<ReadonlyArray<number>, Failure, PgClient.PgClient> =>
  Effect.gen(function* () {
    const client = yield* PgClient.PgClient
    return yield* Migrations.migrate(client, yield* quoted(options.schema ?? "tenure"))
  })

/**
 * The stores of an Effect host, on the client that it has already. An operation that is called
 * inside its `sql.withTransaction` commits and rolls back with it. `Database` is for stores of the
 * host's own, on the same client.
 */
export const layer = (
  options: Options = {},
): Layer.Layer<Stores | Database, Failure, PgClient.PgClient> =>
  Layer.effectContext(
    Effect.gen(function* () {
      yield* Setting.known("", options, { migrate: true, retention: true, schema: true })
      const client = yield* PgClient.PgClient
      const schema = yield* quoted(options.schema ?? "tenure")
      const migrates = yield* Setting.flag("migrate", options.migrate ?? true)
      yield* migrates ? Migrations.migrate(client, schema) : Migrations.check(client, schema)
      const database = yield* Access.make(client, schema)
      const retention = yield* Setting.millis("retention", options.retention ?? "30 days")
      const forget = database.query(forgetEvents(schema), [days(retention)])
      yield* regularly("10 minutes", forget)
      const nudge = yield* Nudge.make(client, database, `${schema}.deliveries`)
      return Context.make(MembershipStore, yield* Memberships.make(database, nudge)).pipe(
        Context.add(WebhookStore, Webhooks.make(database, nudge)),
        Context.add(ApiKeyStore, ApiKeys.make(database)),
        Context.add(Outbox, yield* PostgresOutbox.make(database, nudge)),
        Context.add(RateLimitStore, yield* RateLimits.make(database)),
        Context.add(Database, { run: database.run }),
      )
    }),
  )

/**
 * Makes all stores, with connections of their own.
 *
 * @example
 * ```ts
 * import * as Tenure from "@tenure/core/Tenure"
 * import { postgres } from "@tenure/postgres"
 *
 * const tenure = await Tenure.make({ stores: postgres({ url: "postgres://localhost/app" }) })
 * ```
 */
export const postgres = ({
  maxConnections = 10,
  url,
  ...options
}: ConnectionOptions): Layer.Layer<Stores, Failure> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const client = PgClient.layer({
        url: Redacted.make(yield* checkUrl(url)),
        maxConnections: yield* Setting.count("maxConnections", maxConnections, connectionRange),
        connectTimeout: "2 seconds",
        applicationName: "tenure",
        // What the statements are written for, whatever the database's default is.
        startupParameters: { default_transaction_isolation: "read committed" },
      })
      return Layer.provide(layer(options), client)
    }),
  )
