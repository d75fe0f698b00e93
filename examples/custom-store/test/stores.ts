/** Empty stores in their own database, on the test server. */

import { PgClient } from "@effect/sql-pg"
import { it } from "@effect/vitest"
import {
  type EndDateConflict,
  type IdempotencyConflict,
  type InvalidInput,
  type MembershipNotFound,
  MembershipStore,
  type ProjectNotFound,
  type StorePorts,
  type StoreUnavailable,
  WebhookStore,
} from "@tenure/core/store"
import { postgresLayer } from "@tenure/postgres"
import { Fixture, type StoreHarness } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, inject } from "vitest"
import * as Schema from "../src/schema.ts"
import * as SubscriptionStore from "../src/subscription-store.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const { change, in2027, in2028, context, p1, u1, u2, u3 } = Fixture

const clientOf = (url: string) => PgClient.layer({ url: Redacted.make(url) })

/** Creates a database for a file's tests, and drops it after them. Returns its URL. */
export const databaseOf = (name: string): string => {
  const execute = (...statements: ReadonlyArray<string>) =>
    Effect.forEach(statements, (one) => PgClient.PgClient.use((sql) => sql.unsafe(one))).pipe(
      Effect.provide(clientOf(inject("databaseUrl"))),
      Effect.runPromise,
    )
  const dropping = `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`
  beforeAll(() => execute(dropping, `CREATE DATABASE ${name}`))
  afterAll(() => execute(dropping))
  const url = new URL(inject("databaseUrl"))
  url.pathname = name
  return url.href
}

const tables = [
  "subscription_changes",
  "subscriptions",
  "accounts",
  "tenure.deliveries",
  "tenure.finished_deliveries",
  "tenure.delivered_runs",
  "tenure.events",
  "tenure.webhooks",
  "tenure.api_key_projects",
  "tenure.api_keys",
  "tenure.audit",
  "tenure.projects",
  "tenure.idempotency_keys",
]

// The stores delete rows now and then, too, in another order. When this loses a deadlock, it has undone everything, and
// starts again.
const emptying = `
  DO $$ BEGIN
    LOOP
      BEGIN
        ${tables.map((table) => `DELETE FROM ${table};`).join(" ")}
        EXIT;
      EXCEPTION WHEN deadlock_detected THEN
        NULL;
      END;
    END LOOP;
  END $$
`

const empty = Layer.effectDiscard(PgClient.PgClient.use((sql) => sql.unsafe(emptying)))

/** Empty stores, and their client. */
export const storesOn = (url: string) =>
  empty.pipe(
    Layer.provideMerge(SubscriptionStore.layer),
    Layer.provideMerge(postgresLayer()),
    Layer.provideMerge(Schema.layer),
    Layer.provideMerge(clientOf(url)),
  )

/** Stores opened once for a file, because opening takes longer than most tests, and emptied for each test. */
export const harnessOn = (url: string): StoreHarness<PgClient.PgClient> => {
  const opened = ManagedRuntime.make(storesOn(url))
  afterAll(() => opened.dispose())
  return {
    // They remember nothing.
    layer: Layer.provideMerge(empty, Layer.effectContext(opened.contextEffect)),
    // Moving all end dates into the past has the same effect as time passing.
    advance: (millis) =>
      Effect.promise(() =>
        opened.runPromise(
          PgClient.PgClient.use(
            (sql) =>
              sql`
              UPDATE subscriptions SET (paid_until, paused_at, resumes_at) = (
                SELECT paid_until - passed, paused_at - passed, resumes_at - passed
                FROM (SELECT ${millis} * interval '1 millisecond' AS passed) p
              )
            `,
          ),
        ),
      ),
    transaction: (work) => PgClient.PgClient.use((sql) => sql.withTransaction(work)),
    ports: ["MembershipStore"],
    // A subscription has only one date, and bulk extensions replace it.
    settlesAtOnce: true,
    announcesEnds: false,
  }
}

/** Returns a function to declare tests with two subscriptions and a webhook in an account. */
export const testOn =
  ({ layer }: Pick<StoreHarness<PgClient.PgClient>, "layer">) =>
  <A, E>(name: string, run: Effect.Effect<A, E, StorePorts | PgClient.PgClient>) =>
    it.live(name, () =>
      Effect.gen(function* () {
        const store = yield* MembershipStore
        yield* store.createProject(p1, context)
        yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
        yield* store.grant({ ...change(p1), userId: u2, endDate: in2027 })
        yield* (yield* WebhookStore).add(Fixture.makeWebhook(p1), 50, context)
        return yield* run
      }).pipe(Effect.provide(layer)),
    )

/** A change, as a store returns it. */
export type Change = Effect.Effect<
  unknown,
  | IdempotencyConflict
  | EndDateConflict
  | InvalidInput
  | MembershipNotFound
  | ProjectNotFound
  | StoreUnavailable
>

/** Returns one change for each kind. */
export const changesOf = (store: MembershipStore["Service"]): ReadonlyArray<Change> => [
  store.grant({ ...change(p1), userId: u1, endDate: in2028 }),
  store.grant({ ...change(p1), userId: u3, endDate: in2028 }),
  store.extend({ ...change(p1), userId: u1, endDate: in2028 }),
  store.extendAll({ ...change(p1), bulk: { endDate: in2028, mode: "set" } }),
  store.end({ ...change(p1), userId: u1 }),
]
