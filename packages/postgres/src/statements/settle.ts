import { publishing } from "./publish.ts"

/**
 * Records attempts and what becomes of their deliveries: one element of each array for each. Gives
 * the positions, from 1, of those whose claim still holds, and how many deliveries were made of
 * announcements.
 *
 * `$4` is what becomes of a delivery: `delivered`, `later`, `failed`, `disabled` or `released`; `$5`
 * the attempt; `$6` and `$7` how long the delivery has to wait, and how long its webhook is left
 * alone; the rest is the announcement of a webhook that is disabled.
 */
export const settle = (schema: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::bigint[],
                         $7::bigint[], $8::uuid[], $9::text[], $10::timestamptz[], $11::text[])
    WITH ORDINALITY
    AS a (delivered_id, webhook_id, lease, outcome, attempt, delay_millis, hold_millis, event_id,
          event_type, at, body, n)
    -- Everybody locks in the same order.
    ORDER BY delivered_id, webhook_id
  ),
  settled AS (
    UPDATE ${schema}.deliveries d
    SET state = CASE
          WHEN a.outcome = 'delivered' THEN 'delivered'
          WHEN a.outcome IN ('failed', 'disabled') OR w.disabled_at IS NOT NULL THEN 'failed'
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
    WHERE d.event_id = a.delivered_id AND d.webhook_id = a.webhook_id
      AND d.state = 'leased' AND d.lease = a.lease AND d.due_at > clock_timestamp()
    RETURNING a.*, w.project_id, w.disabled_at
  ),
  paced AS (
    UPDATE ${schema}.webhooks w
    SET failures = CASE WHEN s.succeeded THEN 0 ELSE w.failures + s.failed END,
        failing_since = CASE WHEN s.succeeded THEN NULL
                        ELSE coalesce(w.failing_since, clock_timestamp()) END,
        held_until = CASE WHEN s.succeeded THEN NULL
                     ELSE greatest(w.held_until, clock_timestamp() + s.hold) END,
        disabled_at = CASE WHEN s.disabled THEN coalesce(w.disabled_at, clock_timestamp())
                      ELSE w.disabled_at END
    FROM (
      SELECT webhook_id, bool_or(outcome = 'delivered') AS succeeded,
             bool_or(outcome = 'disabled') AS disabled,
             count(*) FILTER (WHERE outcome IN ('later', 'failed', 'disabled')) AS failed,
             max(hold_millis) * interval '1 millisecond' AS hold
      FROM settled GROUP BY webhook_id
    ) s
    WHERE w.id = s.webhook_id AND (s.failed > 0 OR s.succeeded AND w.failures > 0)
  ),
  announced AS (
    SELECT DISTINCT ON (webhook_id) * FROM settled
    WHERE outcome = 'disabled' AND disabled_at IS NULL
    ORDER BY webhook_id, n
  ),${publishing(schema, "announced", "w.id <> s.webhook_id")}
  SELECT n::integer, (SELECT count(*) FROM delivered)::integer AS deliveries FROM settled
`

/** Ends what waits for webhooks that are disabled. */
export const giveUp = (schema: string): string => `
  UPDATE ${schema}.deliveries d SET state = 'failed'
  FROM ${schema}.webhooks w
  WHERE w.id = ANY ($1::uuid[]) AND w.disabled_at IS NOT NULL AND d.webhook_id = w.id
    AND d.state IN ('ready', 'later')
`
