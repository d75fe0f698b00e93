/** What a server's background processes do, which a database in this process does not have. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"

const intervalMillis = 60_000

// How much of the log a start after a crash may have to replay, in bytes.
const mostLog = 64 * 1024 * 1024

const logSize = `
  SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::float8 AS bytes
  FROM pg_control_checkpoint()
`

// By the rules of autovacuum.
const untidy = `
  SELECT c.oid::regclass::text AS name
  FROM pg_class c LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
  WHERE c.relkind IN ('r', 'm')
    AND (s.n_dead_tup > 50 + 0.1 * greatest(c.reltuples, 0)
         OR s.n_mod_since_analyze > 50 + 0.1 * greatest(c.reltuples, 0)
         OR age(c.relfrozenxid) > current_setting('autovacuum_freeze_max_age')::integer)
`

/** Makes the log shorter where it has become long, and reclaims the space of rows that are gone. */
export const tidy = Effect.fnUntraced(function* (client: PgClient) {
  const sql = client.withoutTransforms()
  const tables = yield* sql.unsafe<{ readonly name: string }>(untidy)
  // Each by itself, so that others have their turns in between.
  for (const { name } of tables) yield* sql.unsafe(`VACUUM (ANALYZE) ${name}`)
  const [log] = yield* sql.unsafe<{ readonly bytes: number }>(logSize)
  if (log !== undefined && log.bytes > mostLog) yield* sql.unsafe("CHECKPOINT")
})

/** Tidies now and then, until the scope closes. */
export const start = (client: PgClient) =>
  tidy(client).pipe(
    Effect.catchCause((cause) => Effect.logWarning("Upkeep failed and will be retried", cause)),
    Effect.delay(intervalMillis),
    Effect.forever,
    Effect.forkScoped,
  )
