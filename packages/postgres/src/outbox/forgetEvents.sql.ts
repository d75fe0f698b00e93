/**
 * Deletes up to 1000 events older than `$1` days that are in no day's partition, with their deliveries,
 * if none of these is open. Returns one row for each event.
 */
export const forgetEvents = (schema: string): string => `
  WITH old AS MATERIALIZED (
    SELECT e.id FROM ${schema}.events_default e
    -- A time that does not change during the statement, so that the index finds the old events.
    WHERE e.at < statement_timestamp() - $1::double precision * interval '1 day'
      AND NOT EXISTS (
        SELECT FROM ${schema}.deliveries d
        WHERE d.event_id = e.id AND d.state IN ('ready', 'later', 'leased')
      )
    ORDER BY e.at
    LIMIT 1000
  ),
  failed AS (
    DELETE FROM ${schema}.deliveries WHERE event_id IN (SELECT id FROM old)
  ),
  ended AS (
    DELETE FROM ${schema}.ended_deliveries_default WHERE event_id IN (SELECT id FROM old)
  )
  DELETE FROM ${schema}.events_default WHERE id IN (SELECT id FROM old)
  RETURNING id
`
