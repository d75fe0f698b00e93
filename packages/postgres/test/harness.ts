/** Stores on a test schema, emptied for each test. */

import { PgClient } from "@effect/sql-pg"
import { it } from "@effect/vitest"
import { Setting } from "@tenure/core/internal"
import {
  type EndDate,
  type EndingCursor,
  type EndingPage,
  MembershipStore,
  Outbox,
  type StorePorts,
  type Transactions,
} from "@tenure/core/store"
import { type TransportRequest, WebhookTransport } from "@tenure/core/transport"
import { Fixture, type StoreHarness } from "@tenure/testing/conformance"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { afterAll, beforeAll, expect, inject } from "vitest"
import type { Database } from "../src/connection/database.ts"
import { type Executor, type Server, makeExecutor, makeServer } from "../src/connection/executor.ts"
import { migrate, postgresLayer, postgresOptions } from "../src/index.ts"
import { quoted } from "../src/sql/clauses.ts"
import { makeAllStores } from "../src/stores.ts"
import { statementsToPass } from "./passing-time.ts"

const { change, in2027, context, p1, p2, u1, u2 } = Fixture

/** The URL for another database on the test server. */
export const urlOf = (database: string): string => {
  const url = new URL(inject("databaseUrl"))
  url.pathname = database
  return url.href
}

/** A client for the test server. */
export const clientLayer = (options: Partial<PgClient.PgPoolConfig> = {}) =>
  PgClient.layer({ url: Redacted.make(inject("databaseUrl")), maxConnections: 10, ...options })

/** Builds a layer once for a test file: opening a database takes longer than most tests. */
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

/** Runs statements on a new connection to the test database. */
export const execute = executeBy(clientLayer({ maxConnections: 1 }))

/**
 * Makes a new database for a test file, and removes it afterwards. `VACUUM` keeps no rows there for transactions in
 * other files. Returns the options for its clients.
 */
export const ownDatabase = (name: string) => {
  const dropping = `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`
  beforeAll(() => Effect.runPromise(execute(dropping, `CREATE DATABASE ${name}`)))
  afterAll(() => Effect.runPromise(execute(dropping)))
  return { url: Redacted.make(urlOf(name)) }
}

/** Runs a statement on the test's client. */
export const sql = <Row extends object>(text: string, params: ReadonlyArray<unknown> = []) =>
  PgClient.PgClient.use((client) => client.unsafe<Row>(text, params))

/** Runs work while a transaction is open that has done something first. The work is outside. */
export const during = <A, E, R, B, E2, R2>(
  first: Effect.Effect<B, E2, R2>,
  work: Effect.Effect<A, E, R>,
) =>
  Effect.gen(function* () {
    const client = yield* PgClient.PgClient
    const services = yield* Effect.context<R>()
    // A new fiber runs outside the transaction.
    const apart = Effect.promise(() => Effect.runPromiseWith(services)(work))
    return yield* client.withTransaction(Effect.andThen(first, apart))
  })

/** Runs steps in the same way. */
export const duringSteps = <Step extends Effect.Effect<unknown, unknown, unknown>, A, B, E2, R2>(
  first: Effect.Effect<B, E2, R2>,
  steps: () => Generator<Step, A, never>,
) => during(first, Effect.gen(steps))

/**
 * Waits until this many statements on a schema wait for locks. A store cancels a statement that meets one, and repeats it
 * so that it waits for longer than 300 ms.
 */
export const waitingOn = (schema: string, count = 1) =>
  Effect.repeat(
    sql(
      `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1::text
         AND clock_timestamp() - query_start > interval '300 milliseconds'`,
      [`%${quoted(schema)}%`],
    ),
    { until: (rows) => rows.length >= count, schedule: Schedule.spaced("10 millis") },
  )

/** Returns the values from a statement with one column. */
export const valuesOf = <Value>(text: string, params: ReadonlyArray<unknown> = []) =>
  Effect.map(sql<Readonly<Record<string, Value>>>(text, params), (rows) =>
    rows.flatMap((row) => Object.values(row)),
  )

/** Returns the value from a statement with one column and one row. */
export const valueOf = <Value>(text: string) =>
  Effect.map(valuesOf<Value>(text), ([value]) => value ?? expect.fail("there is no row"))

export const countRows = (table: string) =>
  valueOf<number>(`SELECT count(*)::integer FROM ${table}`)

/** An executor for a schema, with its own connections. */
export const executorOf = (schema: string) =>
  Effect.flatMap(PgClient.PgClient, (client) =>
    Effect.map(makeServer(client, 2, undefined), (server): Executor =>
      makeExecutor(server, quoted(schema)),
    ),
  )

/** Claims what is due, up to a number, even for one webhook. */
export const claimUpTo = (most: number, leaseMillis = 60_000) =>
  Effect.flatMap(Outbox, (outbox) =>
    outbox.claim({
      limit: most,
      failing: most,
      perWebhook: { least: most, most },
      perProject: 10 * most,
      ahead: new Map(),
      leaseMillis,
    }),
  )

/** Claims what is due, up to ten deliveries. */
export const claimAll = claimUpTo(10)

/** Returns all pages in the first project's ending list. */
export const endingPages = Effect.fnUntraced(function* (before: EndDate, limit: number) {
  const store = yield* MembershipStore
  const pages: Array<EndingPage> = []
  let after: EndingCursor | undefined
  do {
    const page: EndingPage = yield* store.listEnding(p1, { before, after, limit })
    pages.push(page)
    after = page.next
  } while (after !== undefined)
  return pages
})

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

/**
 * One statement that empties all tables but those that describe the schema. The file's stores may delete rows at the
 * same time, in another order: when it loses a deadlock, it has undone everything, and starts again.
 */
const emptyTables = (schema: string): string => `
  DO $$ DECLARE name text; BEGIN
    LOOP BEGIN
      FOR name IN
        SELECT oid::regclass FROM pg_class
        WHERE relnamespace = '${schema}'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
          AND relname NOT IN ('migrations', 'cells', 'feed_state', 'past_epochs')
        ORDER BY relname COLLATE "C"
      LOOP EXECUTE 'DELETE FROM ' || name; END LOOP;
      EXIT;
    EXCEPTION WHEN deadlock_detected THEN NULL; END; END LOOP;
  END $$`

/** Removes a schema that an earlier run or test has left. */
export const dropped = (schema: string): Effect.Effect<void> =>
  execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)

/**
 * Prepares a schema for each test in a file whose stores migrate: drops what an earlier run has left, and empties what
 * the first test has migrated, which takes a tenth as long as a migration.
 */
export const emptied = (schema: string): Effect.Effect<void> => {
  let isMigrated = false
  return Effect.suspend(() => {
    if (isMigrated) return execute(emptyTables(schema))
    isMigrated = true
    return dropped(schema)
  })
}

/** The connections for a file's stores. */
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

/**
 * Makes a schema for a test file. Returns stores that are made anew for each test, what empties the tables, and how to
 * run other effects on the same client.
 */
export const ownSchema = (schema: string) => {
  const client = shared(clientLayer())
  const run = <A, E>(work: Effect.Effect<A, E, PgClient.PgClient>): Promise<A> =>
    Effect.runPromise(Effect.provide(work, client))
  beforeAll(() => run(Effect.andThen(dropped(schema), migrate({ schema }))))
  return { stores: renewed(schema, client), empty: sql(emptyTables(schema)), run }
}

/** What tests have. */
type Stores = StorePorts | Transactions | Database | PgClient.PgClient | Scope.Scope

export type Steps<Services = Stores, Given extends ReadonlyArray<unknown> = []> = (
  ...given: Given
) => Generator<Effect.Effect<unknown, unknown, Services>, unknown, never>

/** Makes two projects, each with two members, and returns the store. */
const twoProjects = Effect.gen(function* () {
  const store = yield* MembershipStore
  for (const projectId of [p1, p2]) {
    yield* store.createProject(projectId, context)
    for (const userId of [u1, u2])
      yield* store.grant({ ...change(projectId), userId, endDate: in2027 })
  }
  return store
})

/**
 * Makes a schema for a test file. Returns how to declare a test on it.
 *
 * @param prepare - makes what each test begins with, in empty tables, and returns what its steps get
 */
export const testsAfter = <Prepared>(
  schema: string,
  prepare: Effect.Effect<Prepared, unknown, Stores>,
) => {
  const { empty, stores } = ownSchema(schema)
  return (name: string, steps: Steps<Stores, [prepared: Prepared]>) =>
    it.live(name, () =>
      Effect.andThen(empty, prepare).pipe(
        Effect.flatMap((prepared) => Effect.gen(() => steps(prepared))),
        Effect.provide(stores),
      ),
    )
}

/** Makes a schema for a test file, whose tests begin with two projects, and get the membership store. */
export const testsOn = (schema: string) => testsAfter(schema, twoProjects)

/**
 * Stores on a schema that only one file uses.
 *
 * @param stores - the stores' client
 * @param run - reaches the same database
 */
export const harnessOn = (
  schema: string,
  stores: ReturnType<typeof clientLayer>,
  run: typeof execute,
): StoreHarness<PgClient.PgClient> & { readonly empty: Effect.Effect<void> } => {
  const empty = run(emptyTables(schema))
  return {
    empty,
    layer: Layer.provideMerge(
      Layer.effectDiscard(empty),
      Layer.provideMerge(postgresLayer({ schema, migrate: false }), stores),
    ),
    transaction: (work) => PgClient.PgClient.use((client) => client.withTransaction(work)),
    advance: (millis) => run(`DO $$ BEGIN ${statementsToPass(schema, millis).join("; ")}; END $$`),
  }
}
