// The most rows that are moved between a day and the default partition, which others wait for.
const mostMoved = 5000

/**
 * Creates the function `first_id`: the first id that a UUIDv7 of a time in UTC can have. The ids of a day
 * are a range.
 */
export const createFirstId = (schema: string): string => `
  CREATE FUNCTION ${schema}.first_id(at timestamp) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0')
            || repeat('0', 20))::uuid
  $$
`

/**
 * Makes a function run as the owner, who changes tables on behalf of roles that own nothing. Whoever waits
 * behind that waits for a moment only: if somebody else holds a lock, there is a next time.
 */
export const asOwner = `
  SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  SET lock_timeout = '50ms'
  SET enable_hashjoin = off SET enable_mergejoin = off`

/** Whether nobody else creates or drops partitions until the transaction ends. */
export const getsLock = (schema: string): string =>
  `pg_try_advisory_xact_lock(hashtextextended('${schema}.days', 0))`

/** Returns the days that have partitions of events, oldest first. */
export const listDays = (schema: string): string => `
      SELECT to_date(right(c.relname, 8), 'YYYYMMDD')
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = '${schema}.events'::regclass AND c.relname ~ '^events_[0-9]{8}$'
      ORDER BY 1`

/** Has transactions noted that store an event in a partition, but not events that move there. */
export const noteLate = (schema: string, partition: string): string => `
        CREATE OR REPLACE TRIGGER late AFTER INSERT ON ${partition}
        FOR EACH ROW WHEN (NEW.xid = pg_current_xact_id()) EXECUTE FUNCTION ${schema}.note_late()`

/** Statements that create the partition of a table for the day `day`, with the ids in `key`. */
const createPartition = (schema: string, table: string, key: string): string => `
      name := '${schema}.${table}' || to_char(day, '_YYYYMMDD');
      EXECUTE 'CREATE TABLE ' || name || ' (LIKE ${schema}.${table} INCLUDING ALL)';
      -- An event may have come before the partition of its day.
      EXECUTE format(
        'WITH moved AS (
           DELETE FROM ${schema}.${table}_default WHERE ${key} >= %1$L AND ${key} < %2$L RETURNING *
         ) INSERT INTO ' || name || ' SELECT * FROM moved', first, after);
      EXECUTE format(
        'ALTER TABLE ${schema}.${table} ATTACH PARTITION ' || name
        || ' FOR VALUES FROM (%L) TO (%L)', first, after);`

/**
 * Creates the function `create_day`, which creates the partitions of a day, and returns whether it did. A day
 * with many rows in the default partition stays there.
 */
export const createDay = (schema: string): string => `
  CREATE FUNCTION ${schema}.create_day(day date) RETURNS boolean LANGUAGE plpgsql
  AS $$
  DECLARE
    first CONSTANT uuid := ${schema}.first_id(day);
    after CONSTANT uuid := ${schema}.first_id(day + 1);
    name text;
  BEGIN
    IF to_regclass('${schema}.events' || to_char(day, '_YYYYMMDD')) IS NOT NULL THEN
      RETURN false;
    END IF;
    LOCK TABLE ${schema}.events_default, ${schema}.ended_deliveries_default
    IN ACCESS EXCLUSIVE MODE;
    IF EXISTS (
      SELECT FROM ${schema}.events_default WHERE id >= first AND id < after OFFSET ${mostMoved}
    ) OR EXISTS (
      SELECT FROM ${schema}.ended_deliveries_default
      WHERE event_id >= first AND event_id < after OFFSET ${mostMoved}
    ) THEN
      RETURN false;
    END IF;${createPartition(schema, "events", "id")}
      -- The clock may have been far ahead before.
      IF EXISTS (SELECT FROM ${schema}.closed_days c WHERE first < c.open_from) THEN
        EXECUTE '${noteLate(schema, "' || name || '")}';
      END IF;${createPartition(schema, "ended_deliveries", "event_id")}
    RETURN true;
  END $$
`

/** Creates the function `create_days`, which creates the partitions of today and of the next two days. */
export const createDays = (schema: string): string => `
  CREATE FUNCTION ${schema}.create_days() RETURNS SETOF date LANGUAGE plpgsql ${asOwner}
  AS $$
  DECLARE
    today CONSTANT date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
  BEGIN
    IF NOT ${getsLock(schema)} THEN RETURN; END IF;
    RETURN QUERY
      SELECT today + n FROM generate_series(0, 2) n WHERE ${schema}.create_day(today + n);
  EXCEPTION WHEN lock_not_available THEN RETURN;
  END $$
`

/**
 * Creates the function `drop_day`, which drops the oldest day that has been over for longer than `kept`,
 * and returns it. Events that open or failed deliveries need move to the default partition; a day with
 * too many of them stays until they are fewer.
 */
export const createDropDay = (schema: string): string => `
  CREATE FUNCTION ${schema}.drop_day(kept interval) RETURNS SETOF date LANGUAGE plpgsql ${asOwner}
  AS $$
  DECLARE
    day date;
    first uuid;
    after uuid;
    suffix text;
  BEGIN
    IF NOT has_table_privilege(session_user, '${schema}.events', 'DELETE') THEN
      RAISE insufficient_privilege USING MESSAGE = 'permission denied to delete events';
    END IF;
    IF NOT ${getsLock(schema)} THEN RETURN; END IF;
    FOR day IN ${listDays(schema)}
    LOOP
      EXIT WHEN day + 1 > (clock_timestamp() AT TIME ZONE 'UTC') - kept;
      first := ${schema}.first_id(day);
      after := ${schema}.first_id(day + 1);
      suffix := to_char(day, '_YYYYMMDD');
      CONTINUE WHEN EXISTS (
        SELECT FROM ${schema}.deliveries WHERE event_id >= first AND event_id < after
        OFFSET ${mostMoved}
      );
      -- Nobody starts a delivery of the day again from now on.
      LOCK TABLE ONLY ${schema}.events, ONLY ${schema}.ended_deliveries IN ACCESS EXCLUSIVE MODE;
      EXECUTE 'ALTER TABLE ${schema}.events DETACH PARTITION ${schema}.events' || suffix;
      EXECUTE format(
        'INSERT INTO ${schema}.events SELECT * FROM ${schema}.events' || suffix
        || ' WHERE id IN (
               SELECT event_id FROM ${schema}.deliveries WHERE event_id >= %L AND event_id < %L
             )', first, after);
      EXECUTE 'DROP TABLE ${schema}.events' || suffix || ', ${schema}.ended_deliveries' || suffix;
      RETURN NEXT day;
      RETURN;
    END LOOP;
  EXCEPTION WHEN lock_not_available THEN RETURN;
  END $$
`
