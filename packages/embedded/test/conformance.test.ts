import { PgClient } from "@effect/sql-pg"
import { postgresLayer } from "@tenure/postgres"
import { type StoreHarness, ports, storeSuite } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll } from "vitest"
import { client } from "../src/index.ts"
import { folderWithDatabase } from "./folders.ts"

const path = await folderWithDatabase()
const scope = Effect.runSync(Scope.make())
const opened = Layer.buildWithScope(client({ path, durable: false }), scope)
// One database for all tests: each takes seconds to create.
const shared = Effect.runSync(Effect.cached(Effect.orDie(opened)))

beforeAll(() => Effect.runPromise(shared))
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const database = Layer.effectContext(shared)

const execute = (...statements: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    for (const statement of statements) yield* sql.unsafe(statement)
  }).pipe(Effect.provide(database), Effect.orDie)

const empty = execute(`
  DO $$
  DECLARE
    name text;
  BEGIN
    -- In any order.
    SET LOCAL session_replication_role = replica;
    FOR name IN
      SELECT oid::regclass FROM pg_class
      WHERE relnamespace = 'tenure'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
        AND relname <> 'migrations'
    LOOP
      EXECUTE 'DELETE FROM ' || name;
    END LOOP;
  END $$
`)

const stores = Layer.provideMerge(postgresLayer(), database)

const storesOnce = Layer.effectContext(
  Effect.runSync(Effect.cached(Effect.orDie(Layer.buildWithScope(stores, scope)))),
)

const harness: StoreHarness<PgClient.PgClient> = {
  layer: Layer.provideMerge(Layer.effectDiscard(empty), stores),
  transaction: (work) => PgClient.PgClient.use((sql) => sql.withTransaction(work)),
  hasOneTransaction: true,
  // Moving all stored times into the past has the same effect as time passing.
  advance: (millis) =>
    execute(
      `UPDATE tenure.rate_limit_buckets SET full_at = full_at - ${1000 * millis}, burst_full_at = burst_full_at - ${1000 * millis}`,
      `UPDATE tenure.webhooks SET paused_until = paused_until - ${millis} * interval '1 millisecond', paused_since = paused_since - ${millis} * interval '1 millisecond'`,
      `UPDATE tenure.deliveries SET next_attempt_at = next_attempt_at - ${millis} * interval '1 millisecond', attempted_at = attempted_at - ${millis} * interval '1 millisecond'`,
      `UPDATE tenure.finished_deliveries SET attempted_at = attempted_at - ${millis} * interval '1 millisecond'`,
      `UPDATE tenure.delivery_minutes SET at = at - ${Math.floor(millis / 60_000)} * interval '1 minute'`,
      `UPDATE tenure.delivery_quarters SET at = at - ${Math.floor(millis / 900_000)} * interval '15 minutes'`,
      `UPDATE tenure.tickets SET expires_at = expires_at - ${millis} * interval '1 millisecond'`,
      `UPDATE tenure.memberships SET end_date = end_date - ${millis} * interval '1 millisecond', date_set_at = date_set_at - ${millis} * interval '1 millisecond',
         next_check_at = next_check_at - ${millis} * interval '1 millisecond', ending_lower_bound = ending_lower_bound - ${millis} * interval '1 millisecond',
         announced_end = announced_end - ${millis} * interval '1 millisecond'`,
      `UPDATE tenure.projects SET bulk_changed_at = bulk_changed_at - ${millis} * interval '1 millisecond', next_check_at = next_check_at - ${millis} * interval '1 millisecond'`,
      `UPDATE tenure.bulk_extensions SET at = at - ${millis} * interval '1 millisecond', date_set_at = date_set_at - ${millis} * interval '1 millisecond', date_reset_at = date_reset_at - ${millis} * interval '1 millisecond', end_date = end_date - ${millis} * interval '1 millisecond', minimum = minimum - ${millis} * interval '1 millisecond', own_minimum = own_minimum - ${millis} * interval '1 millisecond'`,
      `UPDATE tenure.expiry_settings SET since = since - ${millis} * interval '1 millisecond'`,
    ),
}

// It has the statements of PostgreSQL, which are tried more often there.
const isThorough = process.env["THOROUGH"] === "1"
const runs = isThorough ? 20 : 5

// An outbox remembers what it has claimed. Those of the other ports remember nothing.
if (isThorough) storeSuite("embedded", { ...harness, runs, ports: ["Outbox"] })
storeSuite("embedded, opened once", {
  ...harness,
  layer: Layer.provideMerge(Layer.effectDiscard(empty), storesOnce),
  runs,
  ports: ports.filter((port) => port !== "Outbox"),
})
