-- Events and ended deliveries have a partition for each day, so that old ones are dropped instead of deleted
-- row by row.

-- Returns the first id that a UUIDv7 at a time (in UTC) can have. So a day's ids are a range.
CREATE FUNCTION tenure.first_id(at timestamp) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0')
          || repeat('0', 20))::uuid
$$;

-- Creates a day's partitions, and returns whether it did. If a day has many rows in the default partition,
-- they stay there, because others wait while rows move.
CREATE FUNCTION tenure.create_day(day date) RETURNS boolean LANGUAGE plpgsql
AS $$
DECLARE
  first CONSTANT uuid := tenure.first_id(day);
  after CONSTANT uuid := tenure.first_id(day + 1);
  name text;
  parent text;
  event text;
BEGIN
  IF to_regclass('tenure.events' || to_char(day, '_YYYYMMDD')) IS NOT NULL THEN
    RETURN false;
  END IF;
  LOCK TABLE tenure.events_default, tenure.finished_deliveries_default, tenure.delivered_runs_default
  IN ACCESS EXCLUSIVE MODE;
  IF EXISTS (
    SELECT FROM tenure.events_default WHERE id >= first AND id < after OFFSET 5000
  ) OR EXISTS (
    SELECT FROM tenure.finished_deliveries_default
    WHERE event_id >= first AND event_id < after OFFSET 5000
  ) OR EXISTS (
    SELECT FROM tenure.delivered_runs_default
    WHERE first_event >= first AND first_event < after OFFSET 5000
  ) THEN
    RETURN false;
  END IF;
  name := 'tenure.events' || to_char(day, '_YYYYMMDD');
  EXECUTE 'CREATE TABLE ' || name || ' (LIKE tenure.events INCLUDING ALL)';
  -- An event may have come before the partition of its day.
  EXECUTE format(
    'WITH moved AS (
       DELETE FROM tenure.events_default WHERE id >= %1$L AND id < %2$L RETURNING *
     ) INSERT INTO ' || name || ' SELECT * FROM moved', first, after);
  EXECUTE format(
    'ALTER TABLE tenure.events ATTACH PARTITION ' || name
    || ' FOR VALUES FROM (%L) TO (%L)', first, after);
  -- The clock may have been far ahead before.
  IF EXISTS (SELECT FROM tenure.feed_state s WHERE first < s.open_from) THEN
    EXECUTE '
      CREATE OR REPLACE TRIGGER late AFTER INSERT ON ' || name || '
      FOR EACH ROW WHEN (NEW.xid = pg_current_xact_id()) EXECUTE FUNCTION tenure.note_late()';
  END IF;
  FOREACH parent IN ARRAY ARRAY['finished_deliveries', 'delivered_runs'] LOOP
    name := 'tenure.' || parent || to_char(day, '_YYYYMMDD');
    event := CASE parent WHEN 'finished_deliveries' THEN 'event_id' ELSE 'first_event' END;
    EXECUTE 'CREATE TABLE ' || name || ' (LIKE tenure.' || parent || ' INCLUDING ALL)';
    -- An event may have come before the partition of its day.
    EXECUTE format(
      'WITH moved AS (
         DELETE FROM tenure.' || parent || '_default WHERE %1$I >= %2$L AND %1$I < %3$L RETURNING *
       ) INSERT INTO ' || name || ' SELECT * FROM moved', event, first, after);
    EXECUTE format(
      'ALTER TABLE tenure.' || parent || ' ATTACH PARTITION ' || name
      || ' FOR VALUES FROM (%L) TO (%L)', first, after);
  END LOOP;
  RETURN true;
END $$;

-- Creates the partitions for today and the next two days, and returns the days.
CREATE FUNCTION tenure.create_days() RETURNS SETOF date LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '50ms'
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  today CONSTANT date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tenure.days', 0)) THEN RETURN; END IF;
  RETURN QUERY
    SELECT today + n FROM generate_series(0, 2) n WHERE tenure.create_day(today + n);
EXCEPTION WHEN lock_not_available THEN RETURN;
END $$;

-- Drops the oldest day that has been over for longer than `kept`, and returns it. Events that open or failed
-- deliveries need move to the default partition; if there are too many, the day stays until there are fewer.
CREATE FUNCTION tenure.drop_day(kept interval) RETURNS SETOF date LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '50ms'
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  day date;
  first uuid;
  after uuid;
  suffix text;
BEGIN
  IF NOT has_table_privilege(session_user, 'tenure.events', 'DELETE') THEN
    RAISE insufficient_privilege USING MESSAGE = 'permission denied to delete events';
  END IF;
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tenure.days', 0)) THEN RETURN; END IF;
  FOR day IN
    SELECT to_date(right(c.relname, 8), 'YYYYMMDD')
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'tenure.events'::regclass AND c.relname ~ '^events_[0-9]{8}$'
    ORDER BY 1
  LOOP
    EXIT WHEN day + 1 > (clock_timestamp() AT TIME ZONE 'UTC') - kept;
    first := tenure.first_id(day);
    after := tenure.first_id(day + 1);
    suffix := to_char(day, '_YYYYMMDD');
    CONTINUE WHEN EXISTS (
      SELECT FROM tenure.deliveries WHERE event_id >= first AND event_id < after
      OFFSET 5000
    );
    -- From now on, no delivery from this day can be started again.
    LOCK TABLE ONLY tenure.events, ONLY tenure.finished_deliveries, ONLY tenure.delivered_runs IN ACCESS EXCLUSIVE MODE;
    EXECUTE 'ALTER TABLE tenure.events DETACH PARTITION tenure.events' || suffix;
    EXECUTE format(
      'INSERT INTO tenure.events SELECT * FROM tenure.events' || suffix
      || ' WHERE id IN (
             SELECT event_id FROM tenure.deliveries WHERE event_id >= %L AND event_id < %L
           )', first, after);
    EXECUTE 'DROP TABLE tenure.events' || suffix || ', tenure.finished_deliveries' || suffix
            || ', tenure.delivered_runs' || suffix;
    RETURN NEXT day;
    RETURN;
  END LOOP;
EXCEPTION WHEN lock_not_available THEN RETURN;
END $$;

-- The feed's state, in one row.
CREATE TABLE tenure.feed_state (
  is_only   boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  epoch     integer NOT NULL,
  -- Cursors name it beside the epoch, whose number can be the same in two copies of a database.
  identity  text NOT NULL DEFAULT left(replace(gen_random_uuid()::text, '-', ''), 12),
  -- Where this epoch's transactions get their numbers: see `current_history`.
  history   text NOT NULL,
  timeline  integer NOT NULL,
  -- The days that a reader can skip. A past day is closed: if an event is stored there all the same, there is
  -- a row in `late_events`. So if a reader's cursor has seen the closing and every row in `late_events`, it
  -- has seen all events in closed days. This depends on neither clocks nor ids, and transactions may last for
  -- days. Days before `open_from` were closed when the transaction `closed_in` ended. NULL if none was closed
  -- in this epoch.
  open_from uuid,
  closed_in xid8
);

-- The identities of earlier epochs. An epoch without one never was current, and has the identity of the next.
CREATE TABLE tenure.past_epochs (epoch integer PRIMARY KEY, identity text NOT NULL);

-- Transactions that stored an event in a closed day, or in no day's partition.
CREATE TABLE tenure.late_events (xid xid8 PRIMARY KEY DEFAULT pg_current_xact_id());

CREATE FUNCTION tenure.note_late() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  INSERT INTO tenure.late_events DEFAULT VALUES ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

-- Events that move to the default partition are not late.
CREATE TRIGGER late AFTER INSERT ON tenure.events_default
FOR EACH ROW WHEN (NEW.xid = pg_current_xact_id()) EXECUTE FUNCTION tenure.note_late();

-- Closes past days, and returns them. It stops at a day in which an open or prepared transaction has stored
-- an event, because its lock keeps the trigger away.
CREATE FUNCTION tenure.close_days() RETURNS SETOF date LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '50ms'
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  today CONSTANT date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
  day date;
  last date;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tenure.days', 0)) THEN RETURN; END IF;
  FOR day IN
    SELECT to_date(right(c.relname, 8), 'YYYYMMDD')
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'tenure.events'::regclass AND c.relname ~ '^events_[0-9]{8}$'
    ORDER BY 1
  LOOP
    EXIT WHEN day >= today;
    CONTINUE WHEN EXISTS (
      SELECT FROM tenure.feed_state s WHERE tenure.first_id(day) < s.open_from
    );
    BEGIN
      EXECUTE '
        CREATE OR REPLACE TRIGGER late AFTER INSERT ON tenure.events' || to_char(day, '_YYYYMMDD') || '
      FOR EACH ROW WHEN (NEW.xid = pg_current_xact_id()) EXECUTE FUNCTION tenure.note_late()';
    EXCEPTION WHEN lock_not_available THEN EXIT;
    END;
    last := day;
    RETURN NEXT day;
  END LOOP;
  IF last IS NULL THEN RETURN; END IF;
  -- A reader that sees this transaction has also seen these.
  DELETE FROM tenure.late_events;
  UPDATE tenure.feed_state SET open_from = tenure.first_id(last + 1), closed_in = pg_current_xact_id();
END $$;

SELECT tenure.create_days();
