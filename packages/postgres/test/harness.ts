/** Stores on a schema of the tests, emptied for each test. */

import { PgClient } from "@effect/sql-pg"
import { Setting } from "@tenure/core/internal"
import { Outbox } from "@tenure/core/store"
import { type TransportRequest, WebhookTransport } from "@tenure/core/transport"
import type { StoreHarness } from "@tenure/testing/conformance"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, inject } from "vitest"
import { type Server, makeServer } from "../src/connection/executor.ts"
import { postgresLayer, postgresOptions } from "../src/index.ts"
import { quoted } from "../src/sql/clauses.ts"
import { makeAllStores } from "../src/stores.ts"
import { statementsToPass } from "./passing-time.ts"

/** The URL of another database of the server of the tests. */
export const urlOf = (database: string): string => {
  const url = new URL(inject("databaseUrl"))
  url.pathname = database
  return url.href
}

/** A client for the server of the tests. */
export const clientLayer = (options: Partial<PgClient.PgPoolConfig> = {}) =>
  PgClient.layer({ url: Redacted.make(inject("databaseUrl")), maxConnections: 10, ...options })

const tables = [
  "deliveries",
  "finished_deliveries",
  "delivery_quarters",
  "delivery_minutes",
  "dispatchers",
  "events",
  "webhooks",
  "api_key_projects",
  "api_keys",
  "audit",
  "memberships",
  "projects",
  "expiry_settings",
  "expiry_passes",
  "erasures",
  "rate_limit_buckets",
  "idempotency_keys",
  "tickets",
]

/** Builds a layer once for all tests of a file: opening a database takes longer than most tests. */
export const shared = <A, E>(built: Layer.Layer<A, E>): Layer.Layer<A, E> => {
  const runtime = ManagedRuntime.make(built)
  afterAll(() => runtime.dispose())
  return Layer.effectContext(runtime.contextEffect)
}

/** Returns a function that runs statements on a client. */
export const executeBy =
  (client: ReturnType<typeof clientLayer>) =>
  (...statements: ReadonlyArray<string>): Effect.Effect<void> =>
    Effect.gen(function* () {
      for (const statement of statements) yield* sql(statement)
    }).pipe(Effect.provide(client), Effect.orDie)

/** Runs statements on a new connection to the database of the tests. */
export const execute = executeBy(clientLayer({ maxConnections: 1 }))

/**
 * Makes a new database for the tests of a file, and removes it after them. `VACUUM` keeps no rows there for transactions of
 * other files. Returns the options of its clients.
 */
export const ownDatabase = (name: string) => {
  const dropping = `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`
  beforeAll(() => Effect.runPromise(execute(dropping, `CREATE DATABASE ${name}`)))
  afterAll(() => Effect.runPromise(execute(dropping)))
  return { url: Redacted.make(urlOf(name)) }
}

/** Runs a statement on the client of the test. */
export const sql = <Row extends object>(text: string, params: ReadonlyArray<unknown> = []) =>
  PgClient.PgClient.use((client) => client.unsafe<Row>(text, params))

/** Claims what is due, up to a number of deliveries, even of one webhook. */
export const claimUpTo = (most: number) =>
  Effect.flatMap(Outbox, (outbox) =>
    outbox.claim({
      limit: most,
      failing: most,
      perWebhook: { least: most, most },
      perProject: 10 * most,
      ahead: new Map(),
      leaseMillis: 60_000,
    }),
  )

/** Claims what is due, up to ten deliveries. */
export const claimAll = claimUpTo(10)

/** A transport to receivers that answer 204, which records the requests. */
export const recordingTransport = () => {
  const sent: Array<TransportRequest> = []
  const transport = Layer.succeed(WebhookTransport, {
    sendsHttpToNames: false,
    send: (request) =>
      Effect.sync(() => {
        sent.push(request)
        return { status: 204, retryAfter: undefined, body: "" }
      }),
  })
  return { sent, transport }
}

/** One statement that runs others, so that they take one round trip. */
const together = (statements: ReadonlyArray<string>): string =>
  `DO $$ BEGIN ${statements.join("; ")}; END $$`

/**
 * One statement that empties all tables. The stores of the file may delete rows at the same time, in another order: when it
 * loses a deadlock, it has undone everything, and starts again.
 */
const emptyTables = (schema: string): string =>
  together([
    `LOOP BEGIN ${tables.map((table) => `DELETE FROM ${schema}.${table};`).join(" ")} EXIT;
     EXCEPTION WHEN deadlock_detected THEN NULL; END; END LOOP`,
  ])

/** Removes a schema that an earlier run or test has left. */
export const dropped = (schema: string): Effect.Effect<void> =>
  execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)

/**
 * Prepares a schema for each test of a file whose stores migrate: drops what is left of an earlier run, and empties what
 * the first test has migrated, which takes a tenth of the time of a migration.
 */
export const emptied = (schema: string): Effect.Effect<void> => {
  let isMigrated = false
  return Effect.suspend(() => {
    if (isMigrated) return execute(emptyTables(schema))
    isMigrated = true
    return dropped(schema)
  })
}

/** The connections of a file's stores. */
class FileServer extends Context.Service<FileServer, Server>()("test/FileServer") {}

/**
 * Makes new stores for each test on connections that last for the file, because opening them, and compiling their
 * functions, takes longer than most tests. The schema is migrated already.
 */
export const renewed = (schema: string, client: ReturnType<typeof clientLayer>) => {
  const server = Layer.effect(
    FileServer,
    Effect.flatMap(PgClient.PgClient, (opened) => makeServer(opened, 10, undefined)),
  )
  const settings = Setting.decode(postgresOptions, { schema })
  return Layer.provideMerge(
    Layer.effectContext(
      Effect.gen(function* () {
        return yield* makeAllStores(yield* FileServer, quoted(schema), yield* settings)
      }),
    ),
    shared(Layer.provideMerge(server, client)),
  )
}

/** The client of the stores, whether they migrate, and how the tests reach the same database. */
interface As {
  readonly stores: ReturnType<typeof clientLayer>
  readonly migrate: boolean
  readonly run?: typeof execute
}

/** Stores on a schema that only the tests of one file use. */
export const harnessOn = (
  schema: string,
  { migrate, run = execute, stores }: As,
): StoreHarness<PgClient.PgClient> & { readonly empty: Effect.Effect<void> } => {
  const empty = run(emptyTables(schema))
  return {
    empty,
    layer: Layer.provideMerge(
      Layer.effectDiscard(empty),
      Layer.provideMerge(postgresLayer({ schema, migrate }), stores),
    ),
    transaction: (work) => PgClient.PgClient.use((client) => client.withTransaction(work)),
    advance: (millis) => run(together(statementsToPass(schema, millis))),
  }
}
