/** Stores on a schema of the tests, emptied for each test. */

import { PgClient } from "@effect/sql-pg"
import { layer } from "@tenure/postgres"
import type { StoreHarness } from "@tenure/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { inject } from "vitest"

/** A client for the server of the tests. */
export const clientLayer = (options: Partial<PgClient.PgPoolConfig> = {}) =>
  PgClient.layer({ url: Redacted.make(inject("databaseUrl")), maxConnections: 10, ...options })

const tables = [
  "deliveries",
  "ended_deliveries",
  "dispatchers",
  "events",
  "webhooks",
  "api_key_projects",
  "api_keys",
  "audit",
  "memberships",
  "projects",
  "buckets",
]

/** Runs statements on a new connection. */
export const execute = (...statements: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    for (const statement of statements) yield* sql.unsafe(statement)
  }).pipe(Effect.provide(clientLayer({ maxConnections: 1 })), Effect.orDie)

/** Stores on a schema that only the tests of one file use. */
export const harnessOn = (schema: string): StoreHarness<PgClient.PgClient> => {
  const empty = Layer.effectDiscard(
    execute(...tables.map((table) => `DELETE FROM ${schema}.${table}`)),
  )
  return {
    layer: Layer.provideMerge(empty, Layer.provideMerge(layer({ schema }), clientLayer())),
    transaction: (work) => PgClient.PgClient.use((sql) => sql.withTransaction(work)),
    // Moving all stored times into the past has the same effect as time passing.
    advance: (millis) =>
      execute(
        `UPDATE ${schema}.buckets SET tat = tat - ${1000 * millis}`,
        `UPDATE ${schema}.webhooks SET held_until = held_until - ${millis} * interval '1 millisecond'`,
        `UPDATE ${schema}.deliveries SET due_at = due_at - ${millis} * interval '1 millisecond'`,
      ),
  }
}
