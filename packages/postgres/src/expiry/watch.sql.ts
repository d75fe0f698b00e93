import { float } from "../connection/parameters.ts"
import { type Integer, millisOf } from "../connection/results.ts"

/**
 * Has end dates watched, for reminders of up to `$1` milliseconds. If that is longer than before, a pass
 * goes through all memberships, once all transactions are over that may not know of it. Returns one row,
 * or none if another process has been faster.
 */
export const watch = (schema: string): string => `
  WITH raised AS (
    INSERT INTO ${schema}.expiry AS x (since, longest)
    VALUES (statement_timestamp(), $1::double precision * interval '1 millisecond')
    ON CONFLICT (is_only) DO UPDATE SET longest = excluded.longest WHERE x.longest < excluded.longest
    RETURNING since
  ),
  begun AS (
    INSERT INTO ${schema}.expiry_passes (after_project, last_project, begun_in)
    SELECT 0, 9223372036854775807, pg_current_xact_id() FROM raised
  )
  SELECT ${millisOf("since")} AS since
  FROM (SELECT since FROM raised UNION ALL SELECT since FROM ${schema}.expiry) w LIMIT 1
`

/** The parameters of `watch`. */
export const watchParams = (longest: number) => [float(longest)]

/** The row that it returns. */
export interface WatchedRow {
  readonly since: Integer
}
