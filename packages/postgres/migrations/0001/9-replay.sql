-- Sends many of a project's events to one of its webhooks again: events from `since` on, ordered by epoch,
-- transaction and id, whose kind is in `kinds`. The kind is `missed` without a delivery, or the delivery's
-- state. Same rule as `replayKindOf` in core. Without `only_types`, the webhook's own types count.
-- It reads up to `most_read` events after `after_id`, up to and including `until_id`, and sends up to `most`.
-- Without these ids, it reads from the beginning, up to the event that is now the last one.
-- Returns one row if the webhook exists: whether it is disabled; how many events are sent; and where to
-- continue, unless all were read. `replayed` is NULL if the webhook is disabled, or if one of the two events
-- is gone.
-- A function, because its statements see what others have sent, delivered and settled before it has the lock.
-- They look up each delivery by its key. A connection plans them once, perhaps for empty tables: joins, or
-- conditions that match a partial index, could then read all the webhook's deliveries for each event.
CREATE FUNCTION tenure.replay(
  of_project bigint, to_webhook uuid, since timestamptz, only_types text[], kinds text[],
  after_id uuid, until_id uuid, most_read integer, most integer, is_dry_run boolean
) RETURNS TABLE (is_disabled boolean, replayed integer, next_id uuid, last_id uuid)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  -- Earlier days are not read.
  first CONSTANT uuid := tenure.first_id(greatest(since, 'epoch') AT TIME ZONE 'UTC');
  now timestamptz;
  is_off boolean;
  is_ordered boolean;
  taken_types text[];
  after_epoch integer := 0;
  after_xid xid8 := '0';
  until_epoch integer;
  until_xid xid8;
  -- The last event that this call reads.
  end_epoch integer;
  end_xid xid8;
  end_id uuid;
  missed_ids uuid[];
  failed_ids uuid[];
  delivered_ids uuid[];
  -- For each delivery in a run: the run's first event, and the delivery's place.
  run_ids uuid[];
  run_places integer[];
  found_last uuid;
  found_count integer;
  changed_count integer;
BEGIN
  IF NOT is_dry_run THEN
    -- A snapshot from before the lock would not show what others have sent since then.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
      RAISE feature_not_supported USING MESSAGE = 'events are replayed at the isolation level READ COMMITTED';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('tenure.replay ' || to_webhook, 0));
  END IF;
  now := clock_timestamp();

  SELECT w.disabled_at IS NOT NULL, w.ordered, coalesce(only_types, w.event_types)
  INTO is_off, is_ordered, taken_types
  FROM tenure.webhooks w WHERE w.id = to_webhook AND w.project_number = of_project;
  IF NOT FOUND THEN RETURN; END IF;

  IF until_id IS NULL THEN
    after_id := '00000000-0000-0000-0000-000000000000';
    SELECT e.epoch, e.xid, e.id INTO until_epoch, until_xid, until_id FROM tenure.events e
    WHERE e.project_number = of_project AND e.id >= first
    ORDER BY e.epoch DESC, e.xid DESC, e.id DESC LIMIT 1;
  ELSE
    SELECT a.epoch, a.xid, u.epoch, u.xid INTO after_epoch, after_xid, until_epoch, until_xid
    FROM tenure.events a, tenure.events u
    WHERE a.id = after_id AND a.project_number = of_project
      AND u.id = until_id AND u.project_number = of_project;
  END IF;
  IF is_off OR after_xid IS NULL THEN
    RETURN QUERY SELECT is_off, NULL::integer, NULL::uuid, NULL::uuid;
    RETURN;
  END IF;
  SELECT e.epoch, e.xid, e.id INTO end_epoch, end_xid, end_id FROM tenure.events e
  WHERE e.project_number = of_project AND e.id >= first
    AND (e.epoch, e.xid, e.id) > (after_epoch, after_xid, after_id)
    AND (e.epoch, e.xid, e.id) < (until_epoch, until_xid, until_id)
  ORDER BY e.epoch, e.xid, e.id OFFSET most_read - 1 LIMIT 1;
  IF NOT FOUND THEN
    end_epoch := until_epoch;
    end_xid := until_xid;
    end_id := until_id;
  END IF;

  SELECT array_agg(c.id ORDER BY c.epoch, c.xid, c.id) FILTER (WHERE c.kind = 'missed'),
         array_agg(c.id) FILTER (WHERE c.kind = 'failed'),
         array_agg(c.id ORDER BY c.id) FILTER (WHERE c.kind = 'delivered' AND c.run_id IS NULL),
         array_agg(c.run_id ORDER BY c.id) FILTER (WHERE c.run_id IS NOT NULL),
         array_agg(c.place ORDER BY c.id) FILTER (WHERE c.run_id IS NOT NULL),
         (array_agg(c.id ORDER BY c.epoch DESC, c.xid DESC, c.id DESC))[1], count(*)
  INTO missed_ids, failed_ids, delivered_ids, run_ids, run_places, found_last, found_count
  FROM (
    SELECT e.id, e.epoch, e.xid, k.kind, k.run_id, k.place
    FROM tenure.events e
    CROSS JOIN LATERAL (
      SELECT coalesce(
        s.kind,
        CASE WHEN r.first_event IS NOT NULL THEN 'delivered'
             WHEN NOT (e.type IN ('webhook.disabled', 'webhook.failing')
                       AND e.body::json -> 'data' ->> 'webhook_id' = to_webhook::text)
        THEN 'missed' END
      ) AS kind, r.first_event AS run_id, array_position(r.event_ids, e.id) AS place
      FROM (
        SELECT coalesce(
          (SELECT d.state FROM tenure.deliveries d WHERE d.event_id = e.id AND d.webhook_id = to_webhook),
          (SELECT f.state FROM tenure.finished_deliveries f WHERE f.event_id = e.id AND f.webhook_id = to_webhook)
        ) AS kind
        OFFSET 0
      ) s
      LEFT JOIN LATERAL (
        SELECT o.first_event, o.event_ids FROM tenure.delivered_runs o
        WHERE s.kind IS NULL AND o.project_number = of_project AND o.webhook_id = to_webhook
          AND o.first_event BETWEEN tenure.run_start(e.id) AND e.id AND e.id = ANY (o.event_ids)
      ) r ON true
      OFFSET 0
    ) k
    WHERE e.project_number = of_project AND e.id >= first AND e.at >= since
      AND (e.epoch, e.xid, e.id) > (after_epoch, after_xid, after_id)
      AND (e.epoch, e.xid, e.id) <= (end_epoch, end_xid, end_id)
      AND (taken_types IS NULL OR e.type = ANY (taken_types)) AND e.type <> 'webhook.ping'
      AND k.kind = ANY (kinds)
    ORDER BY e.epoch, e.xid, e.id LIMIT most
  ) c;
  IF found_count = most THEN end_id := found_last; END IF;

  IF NOT is_dry_run THEN
    INSERT INTO tenure.deliveries (event_id, webhook_id, state, next_attempt_at, is_replay, member)
    SELECT m.id, to_webhook, 'ready', now, true,
           CASE WHEN is_ordered THEN (SELECT tenure.member_of(e.body) FROM tenure.events e WHERE e.id = m.id) END
    FROM unnest(missed_ids) WITH ORDINALITY m (id, n) ORDER BY m.n;
    GET DIAGNOSTICS found_count = ROW_COUNT;

    UPDATE tenure.deliveries d
    SET state = 'ready', next_attempt_at = now, claim_count = 0, is_replay = true,
        member = CASE WHEN is_ordered THEN (SELECT tenure.member_of(e.body) FROM tenure.events e WHERE e.id = d.event_id) END
    WHERE d.event_id = ANY (failed_ids) AND d.webhook_id = to_webhook
      AND d.state NOT IN ('fresh', 'ready', 'later', 'blocked');
    GET DIAGNOSTICS changed_count = ROW_COUNT;
    found_count := found_count + changed_count;

    WITH taken AS (
      DELETE FROM tenure.finished_deliveries d
      WHERE d.event_id = ANY (delivered_ids) AND d.webhook_id = to_webhook AND d.state <> 'cancelled'
        -- Other days are not read.
        AND d.event_id BETWEEN delivered_ids[1] AND delivered_ids[cardinality(delivered_ids)]
      RETURNING d.event_id, d.position, d.attempted_at, d.attempts
    )
    -- They keep their places in the list.
    INSERT INTO tenure.deliveries
      (event_id, webhook_id, position, state, next_attempt_at, attempted_at, attempts, is_replay, member)
    OVERRIDING SYSTEM VALUE
    SELECT t.event_id, to_webhook, t.position, 'ready', now, t.attempted_at, t.attempts, true,
           CASE WHEN is_ordered THEN (SELECT tenure.member_of(e.body) FROM tenure.events e WHERE e.id = t.event_id) END
    FROM taken t;
    GET DIAGNOSTICS changed_count = ROW_COUNT;
    found_count := found_count + changed_count;

    IF run_ids IS NOT NULL THEN
      -- All statements lock runs in the same order, which avoids deadlocks. The next statement sees their
      -- current rows.
      PERFORM FROM tenure.delivered_runs r
      WHERE r.project_number = of_project AND r.webhook_id = to_webhook AND r.first_event = ANY (run_ids)
      ORDER BY r.first_event FOR UPDATE;

      WITH taken AS MATERIALIZED (
        SELECT r.first_event, k.place, r.event_ids[k.place] AS event_id, r.positions[k.place] AS position, r.attempted_at,
               tenure.record_of(r.starts[k.place], r.durations[k.place],
                 CASE WHEN r.event_ids[k.place] = ANY (r.erased_ids) THEN tenure.without_body(r.result) ELSE r.result END)
                 AS attempt
        FROM unnest(run_ids, run_places) k (first_event, place)
        JOIN tenure.delivered_runs r ON r.project_number = of_project AND r.webhook_id = to_webhook
          AND r.first_event = k.first_event
        WHERE r.event_ids[k.place] IS NOT NULL
      ), left_over AS (
        UPDATE tenure.delivered_runs r
        SET (event_ids, last_position, result) = (SELECT l.* FROM tenure.rest_of(r, k.places, r.erased_ids) l)
        FROM (SELECT t.first_event, array_agg(t.place) AS places FROM taken t GROUP BY t.first_event) k
        WHERE r.project_number = of_project AND r.webhook_id = to_webhook AND r.first_event = k.first_event
      )
      INSERT INTO tenure.deliveries
        (event_id, webhook_id, position, state, next_attempt_at, attempted_at, attempts, is_replay, member)
      OVERRIDING SYSTEM VALUE
      SELECT t.event_id, to_webhook, t.position, 'ready', now, t.attempted_at, jsonb_build_array(t.attempt), true,
             CASE WHEN is_ordered THEN (SELECT tenure.member_of(e.body) FROM tenure.events e WHERE e.id = t.event_id) END
      FROM taken t;
      GET DIAGNOSTICS changed_count = ROW_COUNT;
      found_count := found_count + changed_count;
    END IF;
  END IF;

  RETURN QUERY SELECT false, found_count, nullif(end_id, until_id), CASE WHEN end_id <> until_id THEN until_id END;
END $$;

-- Cancels a webhook's waiting deliveries after `after_position`, up to `last_position`, whose events match: all
-- of `since`, `until`, `only_types` and `only_member`, if they are given. It leaves claimed ones. Same rule as
-- `isSelected` in core.
-- It reads up to `most` deliveries. Returns how many it has cancelled, where to continue, unless all were
-- read, and whether other deliveries of an ordered webhook are due now.
-- A function, because its statements see what others have claimed and settled before it has the locks: no
-- claim takes a delivery meanwhile, and settlements lock leases first, so that each unblocks the next delivery
-- among those that are left.
CREATE FUNCTION tenure.cancel_deliveries(
  of_webhook uuid, since timestamptz, until timestamptz, only_types text[], only_member bigint,
  after_position bigint, last_position bigint, most integer, is_dry_run boolean
) RETURNS TABLE (cancelled integer, next_position bigint, has_next boolean) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  read_count integer;
  read_to bigint;
  chosen_ids uuid[];
  waiting_members bigint[];
BEGIN
  IF NOT is_dry_run THEN
    PERFORM pg_advisory_xact_lock(hashtextextended('tenure.claim', tenure.lane_of(of_webhook) - 1));
    PERFORM FROM tenure.leases l WHERE l.webhook_id = of_webhook ORDER BY l.id FOR UPDATE;
  END IF;

  WITH page AS MATERIALIZED (
    SELECT o.* FROM (
      (
        SELECT f.event_id, f.position, f.member FROM tenure.deliveries f
        WHERE f.webhook_id = of_webhook AND f.state = 'fresh'
          AND f.position > after_position AND f.position <= last_position
        ORDER BY f.position LIMIT most
      ) UNION ALL (
        SELECT r.event_id, r.position, r.member FROM tenure.deliveries r
        WHERE r.webhook_id = of_webhook AND r.state IN ('ready', 'blocked', 'later')
          AND r.position > after_position AND r.position <= last_position
        ORDER BY r.position LIMIT most
      )
    ) o
    ORDER BY o.position LIMIT most
  ), chosen AS (
    SELECT o.event_id, o.member FROM page o
    CROSS JOIN LATERAL (SELECT e.type, e.at, e.body FROM tenure.events e WHERE e.id = o.event_id OFFSET 0) e
    WHERE o.position NOT IN (
        SELECT p.position FROM tenure.leases l CROSS JOIN LATERAL unnest(l.positions) AS p (position)
        WHERE l.webhook_id = of_webhook
      )
      AND (since IS NULL OR e.at >= since) AND (until IS NULL OR e.at < until)
      AND (only_types IS NULL OR e.type = ANY (only_types))
      AND (only_member IS NULL OR tenure.member_of(e.body) = only_member)
  )
  SELECT (SELECT count(*) FROM page), (SELECT max(p.position) FROM page p), coalesce(array_agg(c.event_id), '{}'),
         array_agg(DISTINCT c.member) FILTER (WHERE c.member IS NOT NULL)
  INTO read_count, read_to, chosen_ids, waiting_members FROM chosen c;

  cancelled := cardinality(chosen_ids);
  next_position := CASE WHEN read_count = most THEN read_to END;
  has_next := false;
  IF NOT is_dry_run AND cancelled > 0 THEN
    WITH taken AS (
      DELETE FROM tenure.deliveries d
      WHERE d.event_id = ANY (chosen_ids) AND d.webhook_id = of_webhook AND d.state || '' <> 'failed'
      RETURNING d.*
    )
    INSERT INTO tenure.finished_deliveries (event_id, webhook_id, position, state, attempted_at, attempts)
    SELECT t.event_id, t.webhook_id, t.position, 'cancelled', t.attempted_at, t.attempts FROM taken t;
    GET DIAGNOSTICS cancelled = ROW_COUNT;
    SELECT coalesce(bool_or(tenure.unblock_next(of_webhook, m.member)), false) INTO has_next
    FROM unnest(waiting_members) m (member) WHERE tenure.claimed_of(of_webhook, m.member) IS NULL;
  END IF;
  RETURN NEXT;
END $$;
