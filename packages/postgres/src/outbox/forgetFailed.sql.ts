/**
 * Deletes up to 1000 failed deliveries of events older than `$1` days. Returns one row for each.
 *
 * Only an id that is a UUIDv7 says how old its event is.
 */
export const forgetFailed = (schema: string): string => `
  WITH old AS MATERIALIZED (
    SELECT d.event_id, d.webhook_id FROM ${schema}.deliveries d
    WHERE d.event_id < ${schema}.first_id(
        (statement_timestamp() AT TIME ZONE 'UTC') - $1::double precision * interval '1 day'
      )
      AND d.state = 'failed' AND substr(d.event_id::text, 15, 1) = '7'
    ORDER BY d.event_id
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
  )
  DELETE FROM ${schema}.deliveries d USING old
  WHERE d.event_id = old.event_id AND d.webhook_id = old.webhook_id
  RETURNING d.event_id
`
