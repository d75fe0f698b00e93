/**
 * Creates the function that claims deliveries, as it is since the first migration: a later one
 * replaces it.
 *
 * It is a function because it has to see what others have claimed just before: each of its
 * statements has a snapshot of its own, taken after the lock. Only one claims at a time; several at
 * once could not tell how many attempts a webhook has in flight.
 *
 * Webhooks that have something ready are gone through in the order of their ids, as far as `lanes`
 * of which something can be taken, going on after the one that was looked at last; of each, one
 * delivery is taken before any other webhook's second. Gives a row for each claim, or one without an
 * event if there is none, with the milliseconds until there may be one.
 */
export const createClaim = (schema: string): string => `
  CREATE OR REPLACE FUNCTION ${schema}.claim(
    asked integer, per_webhook integer, lease_millis integer, last_webhook uuid, lanes integer
  ) RETURNS TABLE (
    event_id uuid, body text, project_id text, webhook_id uuid, url text, secrets text[],
    signing_key text, failures integer, failing_since timestamptz, claims integer, lease bigint,
    looked_at uuid, due_in double precision
  ) LANGUAGE plpgsql AS $$
  #variable_conflict use_column
  DECLARE
    now timestamptz;
    nobody CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
    next uuid := last_webhook;
    busy uuid[];
    seen uuid[] := '{}';
    steps integer := 0;
    most_steps CONSTANT integer := 16 * lanes;
    is_second_half boolean := false;
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('${schema}.claim', 0));
    -- What a crash of the server undoes here is claimed again.
    PERFORM set_config('synchronous_commit', 'off', true);
    now := clock_timestamp();

    -- Retries that are due, and deliveries whose lease has passed.
    UPDATE ${schema}.deliveries d SET state = 'ready', lease = NULL
    FROM (
      SELECT e.event_id, e.webhook_id FROM ${schema}.deliveries e
      WHERE (e.state = 'later' OR e.state = 'leased') AND e.due_at <= now
      ORDER BY e.due_at LIMIT 1000
      FOR UPDATE SKIP LOCKED
    ) due
    WHERE d.event_id = due.event_id AND d.webhook_id = due.webhook_id;

    -- Webhooks that may have no more attempts in flight, or are left alone.
    busy := ARRAY(
      SELECT d.webhook_id FROM ${schema}.deliveries d WHERE d.state = 'leased'
      GROUP BY d.webhook_id HAVING count(*) >= per_webhook
      UNION ALL
      SELECT w.id FROM ${schema}.webhooks w WHERE w.held_until > now
    );

    -- From one webhook to the next in the index, past the last one on to the first.
    WHILE cardinality(seen) < lanes AND steps < most_steps LOOP
      steps := steps + 1;
      next := (SELECT d.webhook_id FROM ${schema}.deliveries d
               WHERE d.state = 'ready' AND d.webhook_id > next
               ORDER BY d.webhook_id LIMIT 1);
      EXIT WHEN is_second_half AND (next IS NULL OR next > last_webhook);
      IF next IS NULL THEN
        is_second_half := true;
        next := nobody;
      ELSIF next <> ALL (busy) THEN
        seen := seen || next;
      END IF;
    END LOOP;

    -- Deliveries to a webhook that is gone or disabled have ended: of each some at a time.
    UPDATE ${schema}.deliveries d SET state = over.state
    FROM unnest(seen) s (id)
    LEFT JOIN ${schema}.webhooks w ON w.id = s.id
    CROSS JOIN LATERAL (
      SELECT e.event_id, CASE WHEN w.id IS NULL THEN 'cancelled' ELSE 'failed' END AS state
      FROM ${schema}.deliveries e
      WHERE e.webhook_id = s.id AND e.state = 'ready'
      ORDER BY e.due_at, e.position LIMIT 1000
    ) over
    WHERE (w.id IS NULL OR w.disabled_at IS NOT NULL)
      AND d.webhook_id = s.id AND d.event_id = over.event_id AND d.state = 'ready';

    RETURN QUERY
    WITH picked AS MATERIALIZED (
      SELECT p.event_id, p.webhook_id, p.turn, s.n, w.project_id, w.url, w.failures, w.failing_since,
             CASE WHEN w.previous_until > now THEN ARRAY[w.secret, w.previous_secret]
             ELSE ARRAY[w.secret] END AS secrets, w.signing_key
      FROM unnest(seen) WITH ORDINALITY s (id, n)
      JOIN ${schema}.webhooks w ON w.id = s.id AND w.disabled_at IS NULL
      CROSS JOIN LATERAL (
        SELECT count(*) AS leased FROM ${schema}.deliveries d
        WHERE d.webhook_id = s.id AND d.state = 'leased'
      ) l
      CROSS JOIN LATERAL (
        SELECT r.event_id, r.webhook_id, row_number() OVER (ORDER BY r.due_at, r.position) AS turn
        FROM (
          SELECT d.event_id, d.webhook_id, d.due_at, d.position FROM ${schema}.deliveries d
          WHERE d.webhook_id = s.id AND d.state = 'ready'
          ORDER BY d.due_at, d.position
          LIMIT greatest(0, per_webhook - l.leased)
        ) r
      ) p
      ORDER BY p.turn, s.n
      LIMIT asked
    ), claimed AS (
      UPDATE ${schema}.deliveries d
      SET state = 'leased', due_at = now + lease_millis * interval '1 millisecond',
          claims = d.claims + 1, lease = nextval('${schema}.leases')
      FROM picked p
      WHERE d.event_id = p.event_id AND d.webhook_id = p.webhook_id
      RETURNING d.event_id, d.webhook_id, d.claims, d.lease
    )
    SELECT c.event_id, e.body, p.project_id, c.webhook_id, p.url, p.secrets, p.signing_key,
           p.failures, p.failing_since, c.claims, c.lease, coalesce(next, nobody),
           0::double precision
    FROM claimed c
    JOIN picked p ON p.event_id = c.event_id AND p.webhook_id = c.webhook_id
    JOIN ${schema}.events e ON e.id = c.event_id
    ORDER BY p.turn, p.n;

    IF NOT FOUND THEN
      RETURN QUERY SELECT NULL::uuid, NULL::text, NULL::text, NULL::uuid, NULL::text,
        NULL::text[], NULL::text, NULL::integer, NULL::timestamptz, NULL::integer, NULL::bigint,
        coalesce(next, nobody),
        CASE WHEN cardinality(seen) = lanes OR steps = most_steps THEN 0
        ELSE extract(epoch FROM least(
          (SELECT min(d.due_at) FROM ${schema}.deliveries d
           WHERE d.state = 'later' OR d.state = 'leased'),
          (SELECT min(w.held_until) FROM ${schema}.webhooks w WHERE w.held_until > now)
        ) - now) * 1000
        END::double precision;
    END IF;
  END $$
`
