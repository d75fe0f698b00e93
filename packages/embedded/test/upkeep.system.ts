/** Upkeep reclaims space, and shortens the log. */

import { PgClient } from "@effect/sql-pg"
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { describe, expect } from "vitest"
import { vacuumAndAnalyze } from "../src/engine.ts"
import { client } from "../src/index.ts"
import { folderWithDatabase } from "./folders.ts"

const path = await folderWithDatabase()

describe("upkeep", () => {
  it.live("reclaims the space of rows that are gone, and shortens the log", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* sql`CREATE TABLE numbers AS SELECT n FROM generate_series(1, 300000) n`
      yield* sql`UPDATE numbers SET n = n + 1`
      yield* sql`DELETE FROM numbers`
      const before = yield* sql`SELECT redo_lsn::text FROM pg_control_checkpoint()`
      // Statistics are counted after a second.
      yield* sql`SELECT pg_stat_force_next_flush()`
      yield* vacuumAndAnalyze(sql)
      expect(yield* sql`SELECT pg_relation_size('numbers')::integer AS bytes`).toEqual([
        { bytes: 0 },
      ])
      expect(yield* sql`SELECT redo_lsn::text FROM pg_control_checkpoint()`).not.toEqual(before)
    }).pipe(Effect.provide(client({ path, durable: false }))),
  )
})
