/**
 * Creates the function `claim`, which claims deliveries. A later migration replaces it.
 *
 * It is a function so that each of its statements takes its own snapshot after the lock and sees
 * what others have just claimed. Only one claim runs at a time, because concurrent claims could not
 * count the attempts that a webhook has in flight.
 *
 * It visits webhooks with ready deliveries in the order of their ids, starting after `last_webhook`,
 * until it has found `lanes` webhooks that can take another attempt. Among these, the next delivery is
 * always one of the project with the fewest attempts in flight, and of its webhook with the fewest;
 * chance decides between equals. `mostInProject` says how many a webhook may have. Returns one row
 * for each claim. If there are no claims, returns one row without an event, which says in how many
 * milliseconds to look again.
 */
export const createClaim = (schema: string): string => `
  CREATE OR REPLACE FUNCTION ${schema}.claim(
    asked integer, per_webhook integer, per_project integer, lease_millis integer, last_webhook uuid,
    lanes integer
  ) RETURNS TABLE (
    event_id uuid, body text, project_id text, webhook_id uuid, url text, secrets text[],
    signing_key text, failures integer, failing_since timestamptz, claims integer, lease bigint,
    looked_at uuid, due_in double precision
  ) LANGUAGE plpgsql AS $$
  #variable_conflict use_column
  DECLARE
    now timestamptz;
    no_webhook CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
    next uuid := last_webhook;
    -- As keys of an object, which are found by bisection.
    busy jsonb;
    seen uuid[] := '{}';
    steps integer := 0;
    most_steps CONSTANT integer := 16 * lanes;
    is_second_half boolean := false;
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('${schema}.claim', 0));
    -- A claim that is lost in a crash of the server is made again.
    PERFORM set_config('synchronous_commit', 'off', true);
    now := clock_timestamp();

    -- Make ready the retries that are due and the deliveries whose lease has expired.
    UPDATE ${schema}.deliveries d SET state = 'ready', lease = NULL
    FROM (
      SELECT e.event_id, e.webhook_id FROM ${schema}.deliveries e
      WHERE (e.state = 'later' OR e.state = 'leased') AND e.due_at <= now
      ORDER BY e.due_at LIMIT 1000
      FOR UPDATE SKIP LOCKED
    ) due
    WHERE d.event_id = due.event_id AND d.webhook_id = due.webhook_id;

    -- Find webhooks that have too many attempts in flight, or whose project has, or that are on hold.
    WITH flying AS MATERIALIZED (
      SELECT * FROM ${schema}.in_flight
    ), too_many AS (
      SELECT f.webhook_id FROM flying f
      WHERE f.is_failing OR f.attempts >= ceil(per_webhook * (per_project - f.of_project) / per_project)
      UNION
      SELECT w.id FROM ${schema}.webhooks w
      WHERE w.project_id IN (SELECT f.project_id FROM flying f WHERE f.of_project >= per_project)
      UNION
      SELECT w.id FROM ${schema}.webhooks w WHERE w.held_until > now
    )
    SELECT coalesce(jsonb_object_agg(m.webhook_id, NULL), '{}') INTO busy FROM too_many m;

    -- Step from webhook to webhook in the index, and from the last one back to the first.
    WHILE cardinality(seen) < lanes AND steps < most_steps LOOP
      steps := steps + 1;
      next := (SELECT d.webhook_id FROM ${schema}.deliveries d
               WHERE d.state = 'ready' AND d.webhook_id > next
               ORDER BY d.webhook_id LIMIT 1);
      EXIT WHEN is_second_half AND (next IS NULL OR next > last_webhook);
      IF next IS NULL THEN
        is_second_half := true;
        next := no_webhook;
      ELSIF NOT busy ? next::text THEN
        seen := seen || next;
      END IF;
    END LOOP;

    -- End deliveries to webhooks that are deleted or disabled, up to 1000 for each.
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
    WITH flying AS MATERIALIZED (
      SELECT * FROM ${schema}.in_flight
    ), lane AS MATERIALIZED (
      SELECT w.*, random() AS chance, coalesce(f.attempts, 0) AS attempts,
             CASE WHEN w.failures > 0 THEN 1 ELSE per_webhook END - coalesce(f.attempts, 0) AS room
      FROM unnest(seen) s (id)
      JOIN ${schema}.webhooks w ON w.id = s.id AND w.disabled_at IS NULL
      LEFT JOIN flying f ON f.webhook_id = s.id
    ), candidates AS MATERIALIZED (
      SELECT r.*, w.project_id, w.url, w.failures, w.failing_since, w.chance,
             CASE WHEN w.previous_until > now THEN ARRAY[w.secret, w.previous_secret]
             ELSE ARRAY[w.secret] END AS secrets, w.signing_key,
             w.attempts + r.n AS nth, coalesce(p.of_project, 0) + row_number() OVER (
               PARTITION BY w.project_id ORDER BY w.attempts + r.n, w.chance
             ) AS turn
      FROM lane w
      LEFT JOIN (SELECT DISTINCT f.project_id, f.of_project FROM flying f) p
        ON p.project_id = w.project_id
      CROSS JOIN LATERAL (
        SELECT o.event_id, o.webhook_id, row_number() OVER (ORDER BY o.due_at, o.position) AS n
        FROM (
          SELECT d.event_id, d.webhook_id, d.due_at, d.position FROM ${schema}.deliveries d
          WHERE d.webhook_id = w.id AND d.state = 'ready'
          ORDER BY d.due_at, d.position
          LIMIT greatest(0, w.room)
        ) o
      ) r
    ), picked AS MATERIALIZED (
      SELECT * FROM candidates
      WHERE nth <= ceil(per_webhook * (per_project - turn + 1) / per_project)
      ORDER BY turn, chance LIMIT asked
    ), claimed AS (
      UPDATE ${schema}.deliveries d
      SET state = 'leased', due_at = now + lease_millis * interval '1 millisecond',
          claims = d.claims + 1, lease = nextval('${schema}.leases')
      FROM picked p
      WHERE d.event_id = p.event_id AND d.webhook_id = p.webhook_id
      RETURNING d.event_id, d.webhook_id, d.claims, d.lease
    )
    SELECT c.event_id, e.body, p.project_id, c.webhook_id, p.url, p.secrets, p.signing_key,
           p.failures, p.failing_since, c.claims, c.lease, coalesce(next, no_webhook),
           0::double precision
    FROM claimed c
    JOIN picked p ON p.event_id = c.event_id AND p.webhook_id = c.webhook_id
    JOIN ${schema}.events e ON e.id = c.event_id
    ORDER BY p.turn, p.chance;

    IF NOT FOUND THEN
      RETURN QUERY SELECT NULL::uuid, NULL::text, NULL::text, NULL::uuid, NULL::text,
        NULL::text[], NULL::text, NULL::integer, NULL::timestamptz, NULL::integer, NULL::bigint,
        coalesce(next, no_webhook),
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
