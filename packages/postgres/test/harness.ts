/** Stores on a schema of their own, emptied for each test. */

import { PgClient } from "@effect/sql-pg"
import { layer } from "@tenure/postgres"
import type { StoreHarness } from "@tenure/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { inject } from "vitest"

/** A client of the tests' server. */
export const clientLayer = (options: Partial<PgClient.PgPoolConfig> = {}) =>
  PgClient.layer({ url: Redacted.make(inject("databaseUrl")), maxConnections: 10, ...options })

const tables = [
  "deliveries",
  "events",
  "webhooks",
  "api_key_projects",
  "api_keys",
  "audit",
  "memberships",
  "projects",
  "buckets",
]

/** Runs SQL on a connection of its own. */
export const execute = (...statements: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    for (const statement of statements) yield* sql.unsafe(statement)
  }).pipe(Effect.provide(clientLayer({ maxConnections: 1 })), Effect.orDie)

/** Stores in a schema, of which the tests of one file are in sole possession. */
export const harnessOn = (schema: string): StoreHarness => {
  const empty = Layer.effectDiscard(
    execute(...tables.map((table) => `DELETE FROM ${schema}.${table}`)),
  )
  return {
    layer: Layer.provideMerge(empty, Layer.provide(layer({ schema }), clientLayer())),
    // Time passes where everything that is kept has happened earlier.
    advance: (millis) =>
      execute(
        `UPDATE ${schema}.buckets SET tat = tat - ${1000 * millis}`,
        `UPDATE ${schema}.webhooks SET held_until = held_until - ${millis} * interval '1 millisecond'`,
        `UPDATE ${schema}.deliveries SET due_at = due_at - ${millis} * interval '1 millisecond'`,
      ),
  }
}
