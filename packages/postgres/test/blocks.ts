/** How much a statement reads. */

import { PgClient } from "@effect/sql-pg"
import * as Effect from "effect/Effect"

/** A plan as PostgreSQL reports it. */
interface Explained {
  readonly "QUERY PLAN": ReadonlyArray<{
    readonly Plan: Readonly<Record<"Shared Hit Blocks" | "Shared Read Blocks", number>>
  }>
}

const blocksReadOnce = Effect.fnUntraced(function* (sql: string, params: ReadonlyArray<unknown>) {
  const client = yield* PgClient.PgClient
  const explained = yield* client
    .withTransaction(
      Effect.gen(function* () {
        const rows = yield* client.unsafe<Explained>(
          `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${sql}`,
          params,
        )
        return yield* Effect.fail(rows)
      }),
    )
    .pipe(Effect.flip)
  if (!Array.isArray(explained)) return yield* Effect.fail(explained)
  const plan = explained[0]?.["QUERY PLAN"][0]?.Plan
  return (plan?.["Shared Hit Blocks"] ?? NaN) + (plan?.["Shared Read Blocks"] ?? NaN)
})

/**
 * Runs a statement, undoes it, and returns how many blocks it has read: the minimum in several runs. The first time,
 * and after other sessions have changed tables, functions also plan their statements, for which they read the catalog.
 */
export const blocksReadBy = (sql: string, params: ReadonlyArray<unknown>) =>
  Effect.map(Effect.replicateEffect(blocksReadOnce(sql, params), 5), (blocks) =>
    Math.min(...blocks),
  )
