-- Epochs of the feed, and its pages.

-- Returns what numbers transactions: the database with this table, and its server's timeline, which changes
-- when a standby is promoted or a backup is restored to an earlier time.
-- A session remembers its database, because finding it takes longer than looking for events.
CREATE FUNCTION tenure.current_history(OUT history text, OUT timeline integer) LANGUAGE plpgsql STABLE
AS $$
BEGIN
  history := current_setting('tenure_feed.database', true);
  IF history IS NULL OR history = '' THEN
    SELECT set_config('tenure_feed.database', c.system_identifier || ' ' || d.oid, false) INTO history
    FROM pg_control_system() c, pg_database d WHERE d.datname = current_database();
  END IF;
  history := history || ' ' || 'tenure.events'::regclass::oid;
  timeline := ('x' || substr(pg_walfile_name('0/1000000'), 1, 8))::bit(32)::integer;
END $$;

-- Begins an epoch of the feed if the database has another history than the stored one, and resets everything
-- that is compared by transaction numbers. Returns whether the stored state is now current; if not, a
-- transaction is in the way, or another process begins the epoch.
-- Events are in the next epoch from the first moment of a timeline, because their default includes the
-- timeline. For another database, the default has to change, under a lock that waits for all transactions
-- that have stored events: so earlier epochs are complete. If such a transaction stays open, this holds up
-- others for only a fifth of the time.
CREATE FUNCTION tenure.begin_epoch() RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '50ms'
AS $$
DECLARE
  here record;
  known tenure.feed_state;
  next_epoch integer;
  begun xid8;
BEGIN
  -- Overrides whatever the caller has set.
  PERFORM set_config('tenure_feed.database', '', false);
  SELECT * INTO here FROM tenure.current_history();
  SELECT * INTO known FROM tenure.feed_state;
  IF known.history = here.history AND known.timeline = here.timeline THEN RETURN true; END IF;
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tenure.epoch', 0)) THEN RETURN false; END IF;
  -- Another process may have begun it.
  SELECT * INTO known FROM tenure.feed_state;
  IF known.history = here.history AND known.timeline = here.timeline THEN RETURN true; END IF;
  BEGIN
    IF known.history = here.history AND known.timeline < here.timeline THEN
      -- Only a prepared transaction outlives a timeline.
      IF EXISTS (
        SELECT FROM pg_locks l
        WHERE l.pid IS NULL AND l.locktype = 'relation' AND l.relation = 'tenure.events'::regclass
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
      ) THEN RETURN false; END IF;
      next_epoch := known.epoch + here.timeline - known.timeline;
    ELSE
      next_epoch := coalesce(known.epoch + greatest(1, here.timeline - known.timeline), 1);
      EXECUTE format($default$
        ALTER TABLE ONLY tenure.events ALTER COLUMN epoch SET DEFAULT %1$s + CASE
          WHEN ('x' || substr(pg_walfile_name('0/1000000'), 1, 8))::bit(32)::integer < %2$s THEN 1
          ELSE ('x' || substr(pg_walfile_name('0/1000000'), 1, 8))::bit(32)::integer - %2$s
        END
      $default$, next_epoch, here.timeline);
    END IF;
    INSERT INTO tenure.feed_state (epoch, history, timeline)
    VALUES (next_epoch, here.history, here.timeline)
    ON CONFLICT (is_only) DO UPDATE
    SET epoch = excluded.epoch, identity = excluded.identity, history = excluded.history,
        timeline = excluded.timeline, open_from = NULL, closed_in = NULL;
    IF known.epoch IS NULL THEN RETURN true; END IF;
    INSERT INTO tenure.past_epochs (epoch, identity) VALUES (known.epoch, known.identity);
    begun := pg_current_xact_id();
    DELETE FROM tenure.late_events;
    UPDATE tenure.deleted_projects SET deleted_in = begun;
    UPDATE tenure.erasures SET begun_in = begun;
    UPDATE tenure.expiry_passes SET begun_in = begun WHERE begun_in IS NOT NULL;
    UPDATE tenure.bulk_extensions SET made_in = begun WHERE state <> 'settled';
    RETURN true;
  EXCEPTION WHEN lock_not_available THEN
    -- The epoch lock keeps other processes from waiting meanwhile, because statements would wait behind them.
    PERFORM pg_sleep(0.2);
    RETURN false;
  END;
END $$;

SELECT tenure.begin_epoch();

-- Returns the identity that cursors name beside an epoch.
CREATE FUNCTION tenure.identity_of(of_epoch integer) RETURNS text LANGUAGE sql STABLE
AS $$
  SELECT coalesce(
    (SELECT p.identity FROM tenure.past_epochs p WHERE p.epoch >= of_epoch ORDER BY p.epoch LIMIT 1),
    (SELECT s.identity FROM tenure.feed_state s)
  )
$$;

-- Returns some projects' next events in an epoch that the snapshot `base` does not see: events from
-- transactions with numbers from its end on, and from those that were running. It returns up to
-- `most_events`, and none after `most_bytes`. If `last_xid` is not NULL, it returns those after the event
-- `last_id` in this transaction that the snapshot `until` sees.
-- Every row has the current epoch, the epoch that was read and its identity, the statement's snapshot, how
-- many events it found within `most_events`, and a transaction `used` whose number is not used again after a
-- database crash; if `most_events` is 0, the row is about the current epoch, in which no event is later than
-- `used`. If the epoch is over, `next_epoch` is the next one with events in the projects, or the current one.
-- The epoch 0 is before the first with events.
-- Without an event, the only row has nothing else. If none of the projects exists, there is no row. If an
-- epoch has to begin, the row has no current one.
-- If `base` has seen everything before `open_from`, it reads only the days from there on: see `feed_state`. A
-- function, because a connection plans it once: planning takes longer than reading a month's partitions.
CREATE FUNCTION tenure.read_feed(
  projects text[], of_epoch integer, base pg_snapshot, until pg_snapshot, last_xid xid8, last_id uuid,
  most_events integer, most_bytes integer
) RETURNS TABLE (
  current_epoch integer, epoch integer, identity text, next_epoch integer, next_identity text,
  snapshot text, read_at timestamptz, found integer, used text,
  xid text, id uuid, project_id text, type text, at timestamptz, body text
) LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  open_from uuid;
  used xid8;
  end_xid xid8 := '18446744073709551615';
BEGIN
  SELECT s.identity, s.closed_in, CASE WHEN s.history = h.history AND s.timeline = h.timeline THEN s.epoch END, CASE
    WHEN of_epoch = s.epoch AND pg_visible_in_snapshot(s.closed_in, base)
      AND NOT EXISTS (
        SELECT FROM tenure.late_events
        WHERE xid >= pg_snapshot_xmax(base) AND xid < pg_snapshot_xmax(pg_current_snapshot())
      )
      AND NOT EXISTS (SELECT FROM tenure.late_events WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(base))))
    THEN s.open_from
  END INTO identity, used, current_epoch, open_from
  FROM tenure.feed_state s, tenure.current_history() h;
  open_from := coalesce(open_from, '00000000-0000-0000-0000-000000000000');
  IF current_epoch IS NULL THEN
    most_events := 0;
  ELSIF most_events = 0 THEN
    of_epoch := current_epoch;
    used := greatest(used, (
      SELECT n.xid FROM tenure.projects p
      CROSS JOIN LATERAL (
        SELECT e.xid FROM tenure.events e
        WHERE e.project_number = p.number AND e.epoch = current_epoch
          AND xid < pg_snapshot_xmax(pg_current_snapshot())
        ORDER BY e.xid DESC, e.id DESC LIMIT 1
      ) n
      WHERE p.id = ANY (projects) ORDER BY n.xid DESC LIMIT 1
    ));
  ELSE
    WHILE of_epoch < current_epoch LOOP
      next_epoch := coalesce((
        SELECT n.epoch FROM tenure.projects p
        CROSS JOIN LATERAL (
          SELECT e.epoch FROM tenure.events e
          WHERE e.project_number = p.number AND e.epoch > of_epoch AND e.epoch < current_epoch
          ORDER BY e.epoch LIMIT 1
        ) n
        WHERE p.id = ANY (projects) ORDER BY n.epoch LIMIT 1
      ), current_epoch);
      EXIT WHEN of_epoch > 0;
      of_epoch := next_epoch;
    END LOOP;
  END IF;
  IF of_epoch = current_epoch THEN
    next_epoch := NULL;
    end_xid := pg_snapshot_xmax(pg_current_snapshot());
  ELSE
    identity := tenure.identity_of(of_epoch);
    next_identity := tenure.identity_of(next_epoch);
  END IF;
  RETURN QUERY
  WITH existing AS MATERIALIZED (
    SELECT p.id, p.number FROM tenure.projects p WHERE p.id = ANY (projects)
  ),
  events AS MATERIALIZED (
    SELECT n.xid, n.id, p.id AS project_id, n.type, n.at, n.body
    FROM existing p
    CROSS JOIN LATERAL (

      (
        SELECT e.xid, e.id, e.type, e.at, e.body FROM tenure.events e
        WHERE e.project_number = p.number AND e.epoch = of_epoch AND e.id >= open_from
          AND xid >= pg_snapshot_xmax(base) AND xid < end_xid
          AND (last_xid IS NULL
               OR (e.xid, e.id) > (last_xid, last_id) AND pg_visible_in_snapshot(e.xid, until))
        ORDER BY e.xid, e.id LIMIT most_events
      )
      UNION ALL

      (
        SELECT e.xid, e.id, e.type, e.at, e.body FROM tenure.events e
        WHERE e.project_number = p.number AND e.epoch = of_epoch AND e.id >= open_from
          AND xid = ANY (ARRAY(SELECT pg_snapshot_xip(base)))
          AND (last_xid IS NULL
               OR (e.xid, e.id) > (last_xid, last_id) AND pg_visible_in_snapshot(e.xid, until))
        ORDER BY e.xid, e.id LIMIT most_events
      )
    ) n
    ORDER BY n.xid, n.id LIMIT most_events
  ),
  measured AS (
    SELECT e.*, sum(octet_length(e.body)) OVER (ORDER BY e.xid, e.id) - octet_length(e.body) AS bytes
    FROM events e
  )
  SELECT current_epoch, of_epoch, identity, next_epoch, next_identity, pg_current_snapshot()::text, statement_timestamp(),
         (SELECT count(*) FROM events)::integer, used::text,
         m.xid::text, m.id, m.project_id, m.type, m.at, m.body
  FROM (SELECT FROM existing LIMIT 1) any_project
  LEFT JOIN measured m ON m.bytes < most_bytes
  ORDER BY m.xid, m.id;
END $$;
