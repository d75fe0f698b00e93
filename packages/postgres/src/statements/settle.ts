/**
 * Records attempts and what becomes of their deliveries: one element of each array for each. Gives
 * the positions, from 1, of those whose claim still holds.
 *
 * `$4` is what becomes of a delivery: `delivered`, `later`, `failed`, `gone` or `released`.
 */
export const settle = (schema: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::bigint[])
    WITH ORDINALITY AS a (event_id, webhook_id, lease, outcome, attempt, delay_millis, n)
    -- Everybody locks in the same order.
    ORDER BY event_id, webhook_id
  ),
  settled AS (
    UPDATE ${schema}.deliveries d
    SET state = CASE
          WHEN a.outcome = 'delivered' THEN 'delivered'
          WHEN a.outcome IN ('failed', 'gone') OR w.disabled_at IS NOT NULL THEN 'failed'
          WHEN a.outcome = 'released' THEN 'ready'
          ELSE 'later'
        END,
        due_at = clock_timestamp() + a.delay_millis * interval '1 millisecond',
        attempts = CASE WHEN a.attempt IS NULL THEN d.attempts
                   ELSE d.attempts || a.attempt::jsonb END,
        claims = CASE WHEN a.outcome = 'released' THEN d.claims - 1 ELSE d.claims END,
        lease = NULL
    FROM asked a
    -- A webhook that was deleted has no deliveries left to settle.
    JOIN ${schema}.webhooks w ON w.id = a.webhook_id
    WHERE d.event_id = a.event_id AND d.webhook_id = a.webhook_id
      AND d.state = 'leased' AND d.lease = a.lease AND d.due_at > clock_timestamp()
    RETURNING a.n, a.outcome, a.webhook_id
  ),
  gone AS (
    UPDATE ${schema}.webhooks w SET disabled_at = clock_timestamp()
    WHERE w.id IN (SELECT webhook_id FROM settled WHERE outcome = 'gone')
      AND w.disabled_at IS NULL
  ),
  given_up AS (
    UPDATE ${schema}.deliveries d SET state = 'failed'
    WHERE d.webhook_id IN (SELECT webhook_id FROM settled WHERE outcome = 'gone')
      AND d.state IN ('ready', 'later')
      AND (d.event_id, d.webhook_id) NOT IN (SELECT event_id, webhook_id FROM asked)
  )
  SELECT n::integer FROM settled
`
