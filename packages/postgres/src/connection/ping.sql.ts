/**
 * Returns whether the database refuses changes, as a standby does, and which of the server's processes
 * `$1` are at work on a statement.
 */
export const ping = `
  SELECT current_setting('transaction_read_only')::boolean AS read_only,
         ARRAY(
           SELECT asked.id FROM unnest($1::integer[]) AS asked (id)
           CROSS JOIN pg_stat_get_activity(asked.id) AS activity
           WHERE activity.state IS DISTINCT FROM 'idle'
         ) AS working
`

/** The row of `ping`. */
export interface PingRow {
  readonly read_only: boolean
  readonly working: ReadonlyArray<number>
}
