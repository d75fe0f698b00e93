/**
 * Reports that the dispatcher `$1` is alive. Returns one row, with whether it has noticed that another
 * is gone, and with those of the webhooks `$2` that were removed.
 */
export const report = (schema: string): string => `
  -- A report that is lost in a crash of the server is made again.
  WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
  reported AS (
    INSERT INTO ${schema}.dispatchers AS d (id, seen_at, since)
    SELECT $1::uuid, clock_timestamp(), clock_timestamp() FROM quick
    ON CONFLICT (id) DO UPDATE
    SET seen_at = clock_timestamp(),
        -- Not across a pause, nor when the clock was set back: others had no time to report since then.
        since = CASE WHEN d.seen_at < clock_timestamp() - interval '1 second'
                       OR d.seen_at > clock_timestamp()
                THEN clock_timestamp() ELSE d.since END
  )
  SELECT EXISTS (
    SELECT FROM ${schema}.dispatchers_gone WHERE noticed_by = $1::uuid
  ) AS is_any_gone, ARRAY(
    SELECT held.id FROM unnest($2::uuid[]) AS held (id)
    -- Looks up each webhook by its id, however many there are.
    WHERE (SELECT w.id FROM ${schema}.webhooks w WHERE w.id = held.id) IS NULL
  ) AS removed
`

/** A row of `report`. */
export interface ReportRow {
  readonly is_any_gone: boolean
  readonly removed: ReadonlyArray<string>
}
