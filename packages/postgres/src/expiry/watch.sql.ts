import type { Millis } from "@tenure/core/Units"
import { integers } from "../connection/parameters.ts"
import { type Integer, millisOf } from "../connection/results.ts"

/**
 * Has end dates watched, for reminders of `$1` seconds, longest first. If there is one among them that was none
 * before, a pass goes through all memberships, once all transactions are over that may not know of it. So it does
 * if they are watched since a time that is in the future: the clock was ahead, and has looked at some too early.
 * Returns one row, or none if another process has been faster.
 */
export const watch = (schema: string): string => `
  WITH changed AS (
    INSERT INTO ${schema}.expiry AS x (since, leads, longest)
    VALUES (statement_timestamp(), $1, ($1::integer[])[1] * interval '1 second')
    ON CONFLICT (is_only) DO UPDATE
    SET since = least(x.since, excluded.since), leads = excluded.leads,
        longest = greatest(x.longest, excluded.longest)
    WHERE x.leads <> excluded.leads OR x.since > excluded.since
    RETURNING since
  ),
  begun AS (
    INSERT INTO ${schema}.expiry_passes (after_project, last_project, begun_in)
    SELECT 0, 9223372036854775807, pg_current_xact_id() FROM changed
    WHERE NOT EXISTS (SELECT FROM ${schema}.expiry x WHERE $1 <@ x.leads AND x.since <= statement_timestamp())
  )
  SELECT ${millisOf("since")} AS since
  FROM (SELECT since FROM changed UNION ALL SELECT since FROM ${schema}.expiry) w LIMIT 1
`

/** The parameters of `watch`. */
export const watchParams = (leads: ReadonlyArray<Millis>) => [
  integers(leads.map((lead) => lead / 1000)),
]

/** The row that it returns. */
export interface WatchedRow {
  readonly since: Integer
}
