-- Claims: limits on attempts, rates, lanes, and the function `claim`.

-- A webhook's concurrency within bounds. Same rule as `clampConcurrency` in core.
CREATE FUNCTION tenure.clamp_concurrency(concurrency integer, least_per_webhook integer, most_per_webhook integer)
RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT greatest(least_per_webhook, least(concurrency, most_per_webhook))
$$;

-- How many deliveries to a webhook may be claimed at a time: the closer its project is to its limit, the
-- fewer. Same rule as `maxAttemptsOfWebhook` in core.
CREATE FUNCTION tenure.max_attempts_of_webhook(concurrency integer, per_project integer, claimed bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT greatest(0, (concurrency * (per_project - claimed) + per_project - 1) / per_project)
$$;

-- The token bucket for a webhook's rate, in microseconds: the time in which one token comes back, and the
-- time in which an empty bucket fills. NULL without a rate. Same rule as `webhookRatePolicy` in core.
CREATE FUNCTION tenure.rate_increment(rate integer)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ((999999 + rate) / rate)::bigint
$$;

CREATE FUNCTION tenure.rate_span(rate integer)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT greatest(1, rate / 4) * tenure.rate_increment(rate)
$$;

-- When the bucket is full. It is full already if nothing is stored. Same rule as `currentTat` in core.
CREATE FUNCTION tenure.rate_full_at(rate integer, stored bigint, now bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT least(greatest(stored, now), now + tenure.rate_span(rate))
$$;

-- The whole tokens in the bucket. Same rule as `remainingTokens` in core.
CREATE FUNCTION tenure.rate_tokens(rate integer, stored bigint, now bigint)
RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (
    (tenure.rate_span(rate) - (tenure.rate_full_at(rate, stored, now) - now)) / tenure.rate_increment(rate)
  )::integer
$$;

-- The time until the next token comes back after all whole ones were taken.
CREATE FUNCTION tenure.next_rate_token_in(rate integer, stored bigint, now bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT tenure.rate_increment(rate)
    - (tenure.rate_span(rate) - (tenure.rate_full_at(rate, stored, now) - now)) % tenure.rate_increment(rate)
$$;

-- The whole tokens for a webhook with a rate. Not inlined, so that statements open the table only for such
-- webhooks.
CREATE FUNCTION tenure.rate_tokens_of(of_webhook uuid, rate integer, now bigint)
RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN tenure.rate_tokens(rate, (
    SELECT b.full_at FROM tenure.rate_limit_buckets b WHERE b.id = 'webhook:' || of_webhook
  ), now);
END $$;

-- A webhook's lane, from 1: there are sixteen, each a range of ids.
CREATE FUNCTION tenure.lane_of(webhook_id uuid)
RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT 1 + get_byte(uuid_send(webhook_id), 0) / 16
$$;

-- The lowest id in a lane.
CREATE FUNCTION tenure.start_of_lane(lane integer)
RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (to_hex(lane - 1) || repeat('0', 31))::uuid
$$;

-- Locks lanes for a claim by the dispatcher `claimer`, until its transaction ends. Returns for each lane
-- whether it is locked. Dispatchers own equal shares of the lanes, so that their claims run at the same time.
-- A claim also locks the lanes of owners that have claimed nothing for 0.2 seconds: these are idle, full or
-- gone. All claims lock lanes in the same order, which avoids deadlocks.
CREATE FUNCTION tenure.lock_lanes(claimer uuid) RETURNS boolean[] LANGUAGE plpgsql AS $$
BEGIN
  RETURN (
    WITH known AS MATERIALIZED (
      SELECT array_agg(d.id ORDER BY d.id) AS ids,
             -- A time in the future is from before the clock was set back.
             array_agg(abs(extract(epoch FROM clock_timestamp() - d.busy_at)) < 0.2 ORDER BY d.id) AS are_busy
      FROM tenure.dispatchers d
    )
    SELECT array_agg(
      CASE WHEN k.ids[o.place] = claimer THEN pg_advisory_xact_lock(o.key) IS NOT NULL
           WHEN k.are_busy[o.place] THEN false
           ELSE pg_try_advisory_xact_lock(o.key) END
    )
    FROM known k
    CROSS JOIN generate_series(0, 15) lane
    CROSS JOIN LATERAL (
      SELECT hashtextextended('tenure.claim', lane) AS key, 1 + lane * cardinality(k.ids) / 16 AS place
    ) o
  );
END $$;

-- The positions of all claimed deliveries. A statement with `position NOT IN (SELECT tenure.leased())` reads
-- them once, into a hash table. A function, because dead rows in the table would make the planner expect so
-- many that the hash table takes milliseconds, or is not used.
CREATE FUNCTION tenure.leased() RETURNS SETOF bigint LANGUAGE plpgsql STABLE ROWS 500 AS $$
BEGIN
  RETURN QUERY SELECT p.position FROM tenure.leases l CROSS JOIN LATERAL unnest(l.positions) AS p (position);
END $$;

-- A webhook's deliveries that are due and not claimed, in the order in which they are claimed. Without
-- settings of its own, so that the planner inlines it.
CREATE FUNCTION tenure.due_of(of_webhook uuid, most integer) RETURNS TABLE (
  event_id uuid, "position" bigint, next_attempt_at timestamptz, is_replay boolean, member bigint, claim_count integer
) LANGUAGE sql STABLE AS $$
  SELECT d.* FROM (
    (
      SELECT f.event_id, f.position, f.next_attempt_at, f.is_replay, f.member, f.claim_count FROM tenure.deliveries f
      WHERE f.webhook_id = of_webhook AND f.state = 'fresh' AND f.position NOT IN (SELECT tenure.leased())
      ORDER BY f.position LIMIT most
    ) UNION ALL (
      SELECT r.event_id, r.position, r.next_attempt_at, r.is_replay, r.member, r.claim_count FROM tenure.deliveries r
      WHERE r.webhook_id = of_webhook AND r.state = 'ready' AND r.position NOT IN (SELECT tenure.leased())
      ORDER BY r.is_replay, r.next_attempt_at, r.position LIMIT most
    )
  ) d
  ORDER BY d.is_replay, d.next_attempt_at, d.position LIMIT most
$$;

-- The next webhook with deliveries that are due and not claimed.
CREATE FUNCTION tenure.next_due_webhook(after uuid) RETURNS TABLE (webhook_id uuid) LANGUAGE sql STABLE AS $$
  SELECT least(
    (
      SELECT d.webhook_id FROM tenure.deliveries d
      WHERE d.state = 'fresh' AND d.webhook_id > after AND d.position NOT IN (SELECT tenure.leased())
      ORDER BY d.webhook_id LIMIT 1
    ), (
      SELECT d.webhook_id FROM tenure.deliveries d
      WHERE d.state = 'ready' AND d.webhook_id > after AND d.position NOT IN (SELECT tenure.leased())
      ORDER BY d.webhook_id LIMIT 1
    )
  )
  -- Computes the value once, however often a statement mentions it.
  OFFSET 0
$$;

-- Claims deliveries. A function, because each of its statements takes its own snapshot after the locks, and
-- sees what others have just claimed. In each lane, one claim runs at a time: concurrent ones could not count
-- a webhook's attempts in flight. A connection plans its statements once, for tables of any size, so joins
-- follow indexes.
-- A claim writes a lease for each webhook, and nothing to the deliveries, which are read beside all leases.
-- First it ends expired leases, the leases of gone dispatchers, and leases of `claimer` itself after
-- `last_lease`, the last one it knows.
-- In the lanes that it locks, it visits `first_webhooks`, and steps through the webhooks with ready
-- deliveries ordered by id, after `last_webhook`. Among those with room for another attempt, the next
-- delivery is always from the project with the fewest attempts in flight, and there from the webhook with the
-- fewest; chance decides between equals. Then come deliveries that may be prefetched and wait in the process:
-- for `ahead_webhooks`, unless another dispatcher has claims for the webhook, which bounds the attempts in
-- flight in all processes.
-- A delivery to a webhook with a rate takes a token. Buckets change only while the webhook's lane is locked.
-- Returns one row for each claim, without the texts if they are too long or the event is missing; or one row
-- without an event. `due_in` is the time in milliseconds until the next claim may find more, if known. The
-- first row has in `kept_back` the webhooks whose ready deliveries a limit has kept back. A row without an
-- event has in `has_others` whether there are other dispatchers.
CREATE FUNCTION tenure.claim(
  claimer uuid, last_lease bigint, asked integer, asked_failing integer,
  least_per_webhook integer, most_per_webhook integer, per_project integer,
  ahead_webhooks uuid[], most_ahead integer[], lease_millis integer, last_webhook uuid, first_webhooks uuid[]
) RETURNS TABLE (
  event_id uuid, body text, project_id text, webhook_id uuid, url text, secrets text[],
  signing_key text, headers text, failures integer, failing_since timestamptz, claim_count integer, lease bigint,
  "position" bigint, has_member boolean, concurrency integer, looked_at uuid, due_in double precision,
  kept_back uuid[], has_others boolean
) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  now timestamptz;
  now_micros bigint;
  -- One second ahead, because small clock corrections make little difference.
  soon timestamptz;
  lease_length CONSTANT interval := lease_millis * interval '1 millisecond';
  no_webhook CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
  -- For each lane, whether it is locked, and where the next locked one begins, if there is one.
  is_locked boolean[];
  are_all_locked boolean;
  next_locked uuid[] := '{}';
  most_steps integer := 128;
  room bigint;
  steps integer;
  next uuid;
  wait double precision;
  gone_ids uuid[];
  closed_ids uuid[];
  -- These have one element for each webhook that can take another attempt.
  lane_ids uuid[];
  lane_attempts bigint[];
  lane_of_project bigint[];
  lane_ahead integer[];
  -- Webhooks with a rate that have room, or wait for a token.
  rated_ids uuid[];
  -- Webhooks with ready deliveries but no room, and webhooks with both.
  full_ids uuid[];
  ready_ids uuid[];
  -- Webhooks with room that are or were ordered, and those among them with deliveries that have to wait for
  -- others.
  ordered_ids uuid[];
  waiting_ids uuid[] := '{}';
  is_partial boolean;
BEGIN
  -- If a server crash loses a claim, it is made again.
  PERFORM set_config('synchronous_commit', 'off', true);
  IF NOT EXISTS (SELECT FROM tenure.dispatchers d WHERE d.id = claimer) THEN
    INSERT INTO tenure.dispatchers (id, seen_at, since) VALUES (claimer, clock_timestamp(), clock_timestamp())
    ON CONFLICT DO NOTHING;
  END IF;
  is_locked := tenure.lock_lanes(claimer);
  are_all_locked := true = ALL (is_locked);
  IF NOT are_all_locked THEN
    FOR lane IN REVERSE 15..1 LOOP
      next_locked[lane] := CASE WHEN is_locked[lane + 1] THEN tenure.start_of_lane(lane + 1)
                           ELSE next_locked[lane + 1] END;
    END LOOP;
  END IF;
  now := clock_timestamp();
  now_micros := (extract(epoch FROM now) * 1000000)::bigint;
  soon := now + interval '1 second';

  SELECT array_agg(g.id) INTO gone_ids
  FROM tenure.dispatchers_gone g WHERE g.noticed_by = claimer;
  IF gone_ids IS NOT NULL THEN
    -- A dispatcher that claims meanwhile has locked its row, or waits until this transaction ends.
    SELECT array_agg(l.id) INTO gone_ids
    FROM (
      SELECT d.id FROM tenure.dispatchers d
      WHERE d.id = ANY (gone_ids)
        AND (tenure.is_silent(d.seen_at, d.is_quiet) OR tenure.gone_in(d.seen_at, d.session, d.server_started_at) <= 0)
      FOR UPDATE SKIP LOCKED
    ) l;
  END IF;

  -- Most claims find none of these.
  IF EXISTS (
    SELECT FROM tenure.leases l
    WHERE l.until <= now OR l.until > now + 2 * lease_length OR l.dispatcher = ANY (gone_ids)
      OR l.dispatcher = claimer AND l.id > last_lease
  ) THEN
    -- The response to an earlier claim was lost on its way, so that nobody makes these attempts.
    DELETE FROM tenure.leases l WHERE l.dispatcher = claimer AND l.id > last_lease;

    -- End expired leases, and the leases of gone dispatchers: the deliveries are claimed again.
    WITH ended AS (
      DELETE FROM tenure.leases l
      USING (
        SELECT o.webhook_id, o.id FROM tenure.leases o
        WHERE o.until <= now OR o.dispatcher = ANY (gone_ids)
        FOR UPDATE SKIP LOCKED
      ) over
      WHERE l.webhook_id = over.webhook_id AND l.id = over.id
      RETURNING l.webhook_id, l.positions
    )
    UPDATE tenure.deliveries d SET claim_count = d.claim_count + 1
    FROM (
      SELECT o.event_id, o.webhook_id
      FROM ended e
      CROSS JOIN LATERAL unnest(e.positions) AS p (position)
      CROSS JOIN LATERAL (
        SELECT f.event_id FROM tenure.deliveries f
        WHERE f.state = 'fresh' AND f.webhook_id = e.webhook_id AND f.position = p.position
        UNION ALL
        SELECT r.event_id FROM tenure.deliveries r
        WHERE r.state IN ('ready', 'blocked', 'later') AND r.webhook_id = e.webhook_id AND r.position = p.position
      ) k
      JOIN tenure.deliveries o ON o.event_id = k.event_id AND o.webhook_id = e.webhook_id
      FOR UPDATE OF o SKIP LOCKED
    ) left_over
    WHERE d.event_id = left_over.event_id AND d.webhook_id = left_over.webhook_id;

    -- The clock was set back since these began. They begin again, because their attempts may go on.
    UPDATE tenure.leases l SET until = now + lease_length
    FROM (
      SELECT o.webhook_id, o.id FROM tenure.leases o
      WHERE o.until > now + 2 * lease_length
      FOR UPDATE SKIP LOCKED
    ) late
    WHERE l.webhook_id = late.webhook_id AND l.id = late.id;
  END IF;

  IF gone_ids IS NOT NULL THEN
    -- Locked leases are left to the next claim, which has to know that their dispatcher is gone.
    DELETE FROM tenure.dispatchers d
    WHERE d.id = ANY (gone_ids) AND NOT EXISTS (SELECT FROM tenure.leases l WHERE l.dispatcher = d.id);
  END IF;

  IF EXISTS (SELECT FROM tenure.deliveries e WHERE e.state = 'later' AND e.next_attempt_at <= now)
    OR EXISTS (SELECT FROM tenure.deliveries e WHERE e.state = 'later' AND e.attempted_at > soon) THEN
    -- Make due retries ready.
    UPDATE tenure.deliveries d SET state = 'ready'
    FROM (
      SELECT e.event_id, e.webhook_id FROM tenure.deliveries e
      WHERE e.state = 'later' AND e.next_attempt_at <= now
      ORDER BY e.next_attempt_at LIMIT 1000
      FOR UPDATE SKIP LOCKED
    ) due
    WHERE d.event_id = due.event_id AND d.webhook_id = due.webhook_id;

    -- The clock was set back since these attempts failed, so that they would wait too long.
    UPDATE tenure.deliveries d SET state = 'ready', next_attempt_at = now
    FROM (
      SELECT e.event_id, e.webhook_id FROM tenure.deliveries e
      WHERE e.state = 'later' AND e.attempted_at > soon
      ORDER BY e.attempted_at DESC LIMIT 1000
      FOR UPDATE SKIP LOCKED
    ) late
    WHERE d.event_id = late.event_id AND d.webhook_id = late.webhook_id;
  END IF;

  LOOP
    WITH RECURSIVE walk (id, is_met, is_second_half, step) AS (
      SELECT last_webhook, false, false, 0
      UNION ALL
      -- From webhook to webhook in the index, from an unlocked lane to the next locked one, and from the last
      -- webhook back to the first.
      SELECT coalesce(n.id, no_webhook), n.is_met IS TRUE, w.is_second_half OR n.id IS NULL, w.step + 1
      FROM walk w
      LEFT JOIN LATERAL (
        SELECT CASE WHEN is_locked[tenure.lane_of(r.id)] THEN r.id ELSE next_locked[tenure.lane_of(r.id)] END AS id,
               is_locked[tenure.lane_of(r.id)] AS is_met
        FROM tenure.next_due_webhook(w.id) AS r (id)
      ) n ON true
      WHERE w.step < most_steps
        AND NOT (w.is_second_half AND (n.id IS NULL OR n.id > last_webhook))
    ), met AS (
      -- All webhooks' attempts in flight, and a step for webhooks on the way.
      SELECT m.id, max(m.step) AS step, sum(m.attempt) AS attempts, max(m.most_ahead) AS most_ahead,
             coalesce(sum(m.attempt) FILTER (WHERE m.dispatcher = claimer), 0) AS own_attempts,
             coalesce(bool_or(m.dispatcher <> claimer), false) AS is_elsewhere
      FROM (
        SELECT w.id, w.step, 0 AS attempt, NULL::uuid AS dispatcher, NULL::integer AS most_ahead
        FROM walk w WHERE w.is_met
        UNION ALL
        SELECT f.id, 0, 0, NULL, NULL FROM unnest(first_webhooks) f (id) WHERE is_locked[tenure.lane_of(f.id)]
        UNION ALL
        SELECT a.id, NULL, 0, NULL, a.most FROM unnest(ahead_webhooks, most_ahead) a (id, most)
        UNION ALL
        SELECT l.webhook_id, NULL, cardinality(l.positions), l.dispatcher, NULL FROM tenure.leases l
      ) m
      GROUP BY m.id
    ), counted AS (
      SELECT m.*, w.paused_until > now AND (w.paused_since > soon) IS NOT TRUE
                      OR w.disabled_by = 'request' AS is_held,
             w.failures > 0 AS is_failing, w.ordered IS NOT NULL AS is_ordered,
             w.id IS NOT NULL AND w.disabled_by IS DISTINCT FROM 'failures' AS is_open, w.rate,
             w.rate IS NOT NULL AND tenure.rate_tokens_of(w.id, w.rate, now_micros) = 0 AS is_waiting,
             tenure.clamp_concurrency(w.concurrency, least_per_webhook, most_per_webhook) AS concurrency,
             -- Prefetched deliveries do not count.
             sum(least(m.own_attempts, tenure.clamp_concurrency(w.concurrency, least_per_webhook, most_per_webhook)))
               OVER (PARTITION BY w.project_number)::bigint
               AS of_project
      FROM met m LEFT JOIN tenure.webhooks w ON w.id = m.id
    ), weighed AS (
      SELECT *, is_open AND is_held IS NOT TRUE AND NOT is_waiting AS is_free,
             CASE WHEN is_failing OR is_elsewhere OR rate IS NOT NULL OR 2 * of_project > per_project THEN 0
             ELSE coalesce(most_ahead, 0) END AS ahead
      FROM counted WHERE step IS NOT NULL
    ), judged AS (
      SELECT *, ahead > 0 OR of_project < per_project
                AND attempts < CASE WHEN is_failing THEN least(1, asked_failing)
                               ELSE tenure.max_attempts_of_webhook(concurrency, per_project, of_project)
                               END AS has_room
      FROM weighed
    )
    SELECT array_agg(id) FILTER (WHERE NOT is_open), array_agg(id) FILTER (WHERE is_free AND has_room),
           array_agg(attempts) FILTER (WHERE is_free AND has_room),
           array_agg(of_project) FILTER (WHERE is_free AND has_room),
           array_agg(ahead) FILTER (WHERE is_free AND has_room),
           array_agg(id) FILTER (
             WHERE rate IS NOT NULL AND is_open AND is_held IS NOT TRUE AND (is_waiting OR has_room)
           ),
           coalesce(array_agg(id) FILTER (WHERE is_free AND NOT has_room AND step > 0), '{}'),
           coalesce(array_agg(id) FILTER (WHERE is_free AND has_room AND step > 0), '{}'),
           array_agg(id) FILTER (WHERE is_free AND has_room AND is_ordered),
           sum(CASE WHEN is_failing THEN 1 ELSE greatest(0, concurrency - attempts) END) FILTER (WHERE is_free AND has_room),
           (SELECT max(w.step) FROM walk w), (SELECT w.id FROM walk w ORDER BY w.step DESC LIMIT 1)
    INTO closed_ids, lane_ids, lane_attempts, lane_of_project, lane_ahead, rated_ids, full_ids, ready_ids,
         ordered_ids, room, steps, next
    FROM judged;
    -- Each step costs, so it takes many only if few webhooks have room.
    EXIT WHEN steps < most_steps OR most_steps = 512 OR room >= asked;
    most_steps := 512;
  END LOOP;

  IF closed_ids IS NOT NULL THEN
    -- End deliveries to webhooks that are deleted, or disabled because of failures, up to 1000 for each.
    WITH over AS MATERIALIZED (
      SELECT r.event_id, s.id AS webhook_id, w.id IS NULL AS is_deleted
      FROM unnest(closed_ids) s (id)
      LEFT JOIN tenure.webhooks w ON w.id = s.id
      CROSS JOIN LATERAL (
        -- Ready ones come last, because they make the next claim visit the webhook again.
        (
          SELECT e.event_id FROM tenure.deliveries e
          WHERE e.webhook_id = s.id AND e.state = 'blocked' LIMIT 1000
        ) UNION ALL (
          SELECT e.event_id FROM tenure.due_of(s.id, 1000) e
        )
        LIMIT 1000
      ) r
    ), failed AS (
      UPDATE tenure.deliveries d SET state = 'failed' FROM over o
      WHERE NOT o.is_deleted AND d.webhook_id = o.webhook_id AND d.event_id = o.event_id
        AND d.state IN ('fresh', 'ready', 'blocked')
    ), cancelled AS (
      DELETE FROM tenure.deliveries d USING over o
      WHERE o.is_deleted AND d.webhook_id = o.webhook_id AND d.event_id = o.event_id
        AND d.state IN ('fresh', 'ready', 'blocked')
      RETURNING d.*
    )
    INSERT INTO tenure.finished_deliveries
      (event_id, webhook_id, position, state, attempted_at, attempts)
    SELECT c.event_id, c.webhook_id, c.position, 'cancelled', c.attempted_at, c.attempts FROM cancelled c;
  END IF;

  wait := CASE WHEN steps = most_steps OR closed_ids IS NOT NULL THEN 0
          ELSE 1000 * extract(epoch FROM least(
            (SELECT min(d.next_attempt_at) FROM tenure.deliveries d WHERE d.state = 'later'),
            (SELECT min(l.until) FROM tenure.leases l),
            (SELECT min(w.paused_until) FROM tenure.webhooks w
             WHERE w.paused_until > now)
          ) - now) END;

  IF NOT are_all_locked AND lane_ids IS NULL AND EXISTS (
    SELECT FROM generate_series(1, 16) lane
    CROSS JOIN tenure.next_due_webhook(tenure.start_of_lane(lane)) AS r (webhook_id)
    WHERE NOT is_locked[lane] AND tenure.lane_of(r.webhook_id) = lane
  ) THEN
    -- The other lanes' owners may be full: then a claim here can lock their lanes in 0.2 seconds.
    wait := least(wait, 200);
  END IF;

  IF ordered_ids IS NOT NULL THEN
    SELECT b.webhook_ids, b.is_partial INTO waiting_ids, is_partial FROM tenure.block_deliveries(ordered_ids) b;
    wait := CASE WHEN is_partial THEN 0 ELSE wait END;
  END IF;

  IF rated_ids IS NOT NULL THEN
    -- Otherwise these buckets would be empty until the clock reaches the time at which it was set back.
    UPDATE tenure.rate_limit_buckets b
    SET full_at = now_micros + tenure.rate_span(w.rate)
    FROM tenure.webhooks w
    WHERE w.id = ANY (rated_ids) AND b.id = 'webhook:' || w.id AND b.full_at > now_micros + tenure.rate_span(w.rate);
    -- When the next token comes, even if there are some, but fewer than ready deliveries. A webhook with more
    -- tokens than `most_per_webhook` is limited by its concurrency instead.
    wait := least(wait, (
      SELECT min(tenure.next_rate_token_in(w.rate, b.full_at, now_micros)) / 1000.0
      FROM tenure.webhooks w
      LEFT JOIN tenure.rate_limit_buckets b ON b.id = 'webhook:' || w.id
      WHERE w.id = ANY (rated_ids)
        AND tenure.rate_tokens(w.rate, b.full_at, now_micros) <= most_per_webhook AND EXISTS (
          SELECT FROM tenure.due_of(w.id, 1 + tenure.rate_tokens(w.rate, b.full_at, now_micros))
          OFFSET tenure.rate_tokens(w.rate, b.full_at, now_micros)
        )
    ));
  END IF;

  IF lane_ids IS NOT NULL THEN
    -- Its last report may be 5 seconds old, but others have to see this sign of life together with the
    -- claims.
    UPDATE tenure.dispatchers d
    SET busy_at = now, seen_at = clock_timestamp(), since = tenure.reporting_since(d.seen_at, d.since), is_quiet = false
    WHERE d.id = claimer AND abs(extract(epoch FROM now - d.busy_at)) > 0.05;
    RETURN QUERY
    WITH lane AS MATERIALIZED (
      SELECT w.id, w.project_number, w.failures > 0 AS is_failing, w.ordered IS NOT NULL AS is_ordered,
             l.attempts, l.of_project, l.ahead,
             CASE WHEN w.rate IS NOT NULL THEN tenure.rate_tokens_of(w.id, w.rate, now_micros) END AS tokens,
             tenure.clamp_concurrency(w.concurrency, least_per_webhook, most_per_webhook) AS concurrency,
             random() AS chance, nextval('tenure.lease_ids') AS lease
      FROM unnest(lane_ids, lane_attempts, lane_of_project, lane_ahead)
        l (id, attempts, of_project, ahead)
      JOIN tenure.webhooks w ON w.id = l.id
      -- It may just have been disabled.
      WHERE w.disabled_at IS NULL
    ), candidates AS MATERIALIZED (
      SELECT r.event_id, r.position, r.member, r.claim_count, l.id, l.is_failing, l.is_ordered, l.chance, l.lease, l.concurrency,
             l.ahead, l.attempts + r.n AS nth, r.n <= l.room AS fits, l.of_project + count(*) FILTER (WHERE r.n <= l.room) OVER (
               PARTITION BY l.project_number ORDER BY l.attempts + r.n, l.chance
               ROWS UNBOUNDED PRECEDING
             ) AS turn
      FROM (
        SELECT *, least(tokens, CASE WHEN is_failing THEN 1 ELSE greatest(0, concurrency - attempts) END) AS room
        FROM lane
      ) l
      CROSS JOIN LATERAL (
        SELECT o.event_id, o.position, o.member, o.claim_count,
               row_number() OVER (ORDER BY o.is_replay, o.next_attempt_at, o.position) AS n
        FROM (
          SELECT d.*
          FROM tenure.due_of(l.id, CASE WHEN l.is_ordered THEN 128 ELSE l.room::integer + l.ahead + 1 END) d
          WHERE d.member IS NULL
            OR (l.id, d.member) NOT IN (SELECT c.webhook_id, c.member FROM tenure.claimed_members() c)
               AND tenure.lowest_before(l.id, d.member, d.position) IS NULL
          ORDER BY d.is_replay, d.next_attempt_at, d.position
          -- One more than allowed shows whether any are kept back, unless they wait for a token.
          LIMIT least(tokens, l.room + l.ahead + 1)
        ) o
      ) r
    ), allowed AS (
      SELECT *, fits AND turn <= per_project
                AND (is_failing OR nth <=
                  tenure.max_attempts_of_webhook(concurrency, per_project, turn - 1)
                ) AS is_allowed
      FROM candidates
    ), chosen AS (
      SELECT *, is_allowed AND (NOT is_failing OR asked_failing >= row_number() OVER (
                  PARTITION BY is_allowed, is_failing ORDER BY turn, chance
                )) AS is_chosen,
             NOT is_allowed
             AND ahead >= row_number() OVER (PARTITION BY id, is_allowed ORDER BY nth) AS is_ahead
      FROM allowed
    ), placed AS MATERIALIZED (
      SELECT *, row_number() OVER (
               ORDER BY is_chosen DESC, is_ahead DESC, turn, nth, chance
             ) AS place
      FROM chosen
    ), taken AS MATERIALIZED (
      SELECT * FROM placed WHERE (is_chosen OR is_ahead) AND place <= asked
    ), claimed AS (
      INSERT INTO tenure.leases (webhook_id, id, dispatcher, until, positions, members)
      SELECT t.id, t.lease, claimer, now + lease_length, array_agg(t.position ORDER BY t.place),
             array_agg(t.member ORDER BY t.place) FILTER (WHERE t.is_ordered)
      FROM taken t GROUP BY t.id, t.lease
    )
    SELECT k.event_id, t.body, p.id, k.id, t.url, t.secrets, t.signing_key, t.headers,
           w.failures, w.failing_since, k.claim_count + 1, k.lease, k.position, k.member IS NOT NULL, k.concurrency, next,
           least(wait, lease_millis),
           CASE WHEN k.place = 1 THEN
             full_ids || waiting_ids || ARRAY(
               SELECT DISTINCT p.id FROM placed p
               WHERE NOT ((p.is_chosen OR p.is_ahead) AND p.place <= asked)
             )
           END, NULL::boolean
    FROM taken k
    JOIN tenure.webhooks w ON w.id = k.id
    JOIN tenure.projects p ON p.number = w.project_number
    LEFT JOIN LATERAL (
      SELECT e.body, w.url, w.signing_key, w.headers,
             CASE WHEN w.previous_until > now THEN ARRAY[w.secret, w.previous_secret]
             ELSE ARRAY[w.secret] END AS secrets
      FROM tenure.events e
      WHERE e.id = k.event_id
        -- Lengths are known without reading the texts.
        AND octet_length(e.body)::bigint + octet_length(w.url) + octet_length(w.secret)
            + coalesce(octet_length(w.previous_secret), 0)
            + coalesce(octet_length(w.signing_key), 0)
            + coalesce(octet_length(w.headers), 0) <= 8388608
    ) t ON true
    ORDER BY k.place;
    IF FOUND THEN
      IF rated_ids IS NOT NULL THEN
        INSERT INTO tenure.rate_limit_buckets (id, full_at)
        SELECT 'webhook:' || w.id,
               tenure.rate_full_at(w.rate, b.full_at, now_micros) + c.taken * tenure.rate_increment(w.rate)
        FROM (
          -- The claims made in this call.
          SELECT l.webhook_id, cardinality(l.positions) AS taken FROM tenure.leases l
          WHERE l.dispatcher = claimer AND l.id > last_lease
        ) c
        JOIN tenure.webhooks w ON w.id = c.webhook_id AND w.rate IS NOT NULL
        LEFT JOIN tenure.rate_limit_buckets b ON b.id = 'webhook:' || w.id
        ON CONFLICT (id) DO UPDATE SET full_at = excluded.full_at;
      END IF;
      RETURN;
    END IF;
  END IF;

  RETURN QUERY SELECT NULL::uuid, NULL::text, NULL::text, NULL::uuid, NULL::text,
    NULL::text[], NULL::text, NULL::text, NULL::integer, NULL::timestamptz, NULL::integer, NULL::bigint,
    NULL::bigint, NULL::boolean, NULL::integer, next, wait, full_ids || ready_ids,
    EXISTS (SELECT FROM tenure.dispatchers d WHERE d.id <> claimer);
END $$;
