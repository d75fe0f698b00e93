/**
 * Migration 1: the order of the ends of memberships.
 *
 * An index on the end date itself would make each extension write to it, and a bulk extension changes no
 * membership. So the index has a lower bound of the date, which an extension leaves where it is. Whoever lists
 * the ends and finds that a membership ends later sets the bound.
 *
 * The index is written to only for projects whose ends have been listed: it makes imports dearer by a quarter.
 */

import { createTakeSeq, effectiveEndDateSql } from "../sql/clauses.ts"
import { nilUuid } from "../sql/values.ts"

/**
 * Creates the function `add_ticket`, which adds a ticket unless its key has the maximum of live tickets. Returns one
 * row if it was added.
 *
 * It is a function so that it counts after taking the lock: other transactions may have added tickets meanwhile.
 */
const createAddTicket = (schema: string): string => `
  CREATE FUNCTION ${schema}.add_ticket(
    new_digest text, of_key text, of_digest text, of_projects text[], life interval, most integer
  ) RETURNS SETOF integer LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('${schema}.tickets ' || of_key, 0));
    IF most <= (
      SELECT count(*) FROM (
        SELECT FROM ${schema}.tickets t WHERE t.key_id = of_key AND (
      t.expires_at > clock_timestamp()
      AND t.expires_at <= clock_timestamp() + t.life + interval '1 second'
    ) LIMIT most
      ) living
    ) THEN RETURN; END IF;
    INSERT INTO ${schema}.tickets (digest, key_id, key_digest, projects, life, expires_at)
    VALUES (new_digest, of_key, of_digest, of_projects, life, clock_timestamp() + life);
    RETURN NEXT 1;
  END $$
`

/** The column of a project. */
const endsPlace = `
    -- Members up to this user id have a place in the order of ends, and new ones get one. NULL if nobody has listed
    -- the ends yet. A colon comes after all user ids.
    ends_to       text COLLATE "C"`

/** The columns of a membership. */
const endsColumns = `
    -- The bulk_seq of the project when ends_from was set; NULL without a place. If it is smaller than the current
    -- one, the membership does not end before the date of the last bulk extension.
    ends_seq  bigint,
    -- Otherwise it does not end before this time: the first day of the year 10000 if it has ended.
    ends_from timestamptz`

/** Creates the index. */
const createEnds = (schema: string): string => `
  CREATE INDEX memberships_ends ON ${schema}.memberships (project_number, ends_seq, ends_from, user_id)
  WHERE ends_seq IS NOT NULL
`

/**
 * Creates the function `effective_end_date`, and the table `floors`: the bulk extensions of a project that left later dates as they were, since the
 * last one that set all dates. Each has an earlier date than the one before, because those that a later one
 * covers are removed. So of those that are newer than a membership's own date, the first has the latest date.
 */
const createFloors = (schema: string): ReadonlyArray<string> => [
  `
  CREATE TABLE ${schema}.floors (
    project_number bigint NOT NULL REFERENCES ${schema}.projects (number) ON DELETE CASCADE,
    -- The seq of the extension.
    seq            bigint NOT NULL,
    end_date       timestamptz NOT NULL,
    PRIMARY KEY (project_number, seq),
    UNIQUE (project_number, end_date)
  )
  `,
  // The one place in SQL that says the rule, as `effectiveEndDate` does in core. The planner puts it into the statements
  // that call it, because its body is one expression without subqueries. The floor is the argument that is used
  // once, so a subquery may look it up, and does so only for members with a date from a bulk extension.
  `
  CREATE FUNCTION ${schema}.effective_end_date(
    -- The date of the last change of the membership alone, and its seq.
    own_date timestamptz, own_seq bigint,
    -- Of the project.
    bulk_seq bigint, set_seq bigint, set_date timestamptz,
    -- The date of the first floor after own_seq, if there is one.
    floor timestamptz
  ) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN own_seq >= bulk_seq THEN own_date
           ELSE greatest(CASE WHEN own_seq >= set_seq THEN own_date ELSE set_date END, floor) END
  $$
  `,
  // Functions, and volatile, so that they read what was committed before the lock on the project was theirs:
  // the statement that calls them may have begun earlier.
  `
  CREATE FUNCTION ${schema}.remove_floors(of_project bigint, until timestamptz) RETURNS bigint
  LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    removed bigint;
  BEGIN
    DELETE FROM ${schema}.floors WHERE project_number = of_project AND end_date <= until;
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
  END $$
  `,
  `
  CREATE FUNCTION ${schema}.floor_after(of_project bigint, after_seq bigint) RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE AS $$
  BEGIN
    RETURN (
      SELECT f.end_date FROM ${schema}.floors f
      WHERE f.project_number = of_project AND f.seq > after_seq ORDER BY f.seq LIMIT 1
    );
  END $$
  `,
]

/**
 * Migration 1: what announces the ends of memberships.
 *
 * An alarm is a lower bound of the time at which a membership has something to announce. Whoever looks sets
 * the next one, so extensions leave an alarm that is there.
 */
const createExpiry = (schema: string): ReadonlyArray<string> => [
  // At most one row, from the first process on that announces ends.
  `
  CREATE TABLE ${schema}.expiry (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    -- What ended before is not announced.
    since   timestamptz NOT NULL,
    -- The longest reminder of all processes so far: an alarm is so long before the end date, or earlier.
    longest interval NOT NULL,
    -- The reminders of the process that has started last, in seconds, longest first, and 0 for the end itself.
    leads   integer[] NOT NULL
  )
  `,
  // Memberships that are to have alarms of their own: those of a project, or all.
  `
  CREATE TABLE ${schema}.expiry_passes (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The last membership that has its alarm, and the last project of the pass.
    after_project bigint NOT NULL,
    after_user    text COLLATE "C" NOT NULL DEFAULT '',
    last_project  bigint NOT NULL,
    -- The pass waits for all transactions that are older than this one.
    begun_in      xid8
  )
  `,
  `CREATE INDEX memberships_alarm ON ${schema}.memberships (alarm_at) WHERE alarm_at IS NOT NULL`,
  // For projects to take turns, while more members of one are due than can be looked at in a step.
  `
  CREATE INDEX memberships_alarm_by_project
  ON ${schema}.memberships (project_number, alarm_at) WHERE alarm_at IS NOT NULL
  `,
  `CREATE INDEX projects_alarm ON ${schema}.projects (alarm_at) WHERE alarm_at IS NOT NULL`,
]

// The most rows that are moved between a day and the default partition, which others wait for.
const mostMoved = 5000

/**
 * Creates the function `first_id`: the first id that a UUIDv7 of a time in UTC can have. The ids of a day
 * are a range.
 */
const createFirstId = (schema: string): string => `
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
const asOwner = `
  SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  SET lock_timeout = '50ms'
  SET enable_hashjoin = off SET enable_mergejoin = off`

/** Whether nobody else creates or drops partitions until the transaction ends. */
const getsLock = (schema: string): string =>
  `pg_try_advisory_xact_lock(hashtextextended('${schema}.days', 0))`

/** Returns the days that have partitions of events, oldest first. */
const listDays = (schema: string): string => `
      SELECT to_date(right(c.relname, 8), 'YYYYMMDD')
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = '${schema}.events'::regclass AND c.relname ~ '^events_[0-9]{8}$'
      ORDER BY 1`

/** Has transactions noted that store an event in a partition, but not events that move there. */
const noteLate = (schema: string, partition: string): string => `
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
const createDay = (schema: string): string => `
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
const createDays = (schema: string): string => `
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
const createDropDay = (schema: string): string => `
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

/**
 * Migration 1: the audit trail, in parts that can be dropped whole.
 *
 * The ids of a part are a range, and the sequence of the ids jumps to the first of them when the part
 * begins. So the order of ids is the order in which rows were written, in whichever part they are.
 */

/** Creates the table `audit` and its ids. */
const createAudit = (schema: string): ReadonlyArray<string> => [
  // Without a cache, so that all connections continue behind a jump.
  `CREATE SEQUENCE ${schema}.audit_ids CACHE 1`,
  `
  CREATE TABLE ${schema}.audit (
    id         bigint NOT NULL DEFAULT nextval('${schema}.audit_ids'),
    -- 0 for what belongs to no project.
    project_number bigint NOT NULL,
    -- The round of the seq of the change. It puts an extension that a bulk extension overrode before that,
    -- whichever of them was recorded first.
    seq        bigint NOT NULL,
    -- NULL for a change of all memberships of the project, of somebody who was erased, or of something
    -- else: of the webhook, the API key or the project \`subject\`.
    user_id    text COLLATE "C",
    subject    text,
    action     text NOT NULL CHECK (action IN (
                 'granted', 'imported', 'extended', 'bulk_extended', 'bulk_lengthened', 'ended', 'expiring', 'expired', 'person_erased', 'project_created', 'project_deleted',
                 'webhook_created', 'webhook_deleted', 'webhook_enabled', 'webhook_disabled',
                 'secret_rotated', 'secret_shown', 'data_shown', 'signing_key_added', 'key_issued', 'key_opened', 'key_revoked'
               )),
    from_date  timestamptz,
    to_date    timestamptz,
    at         timestamptz NOT NULL,
    request_id text,
    key_id     text,
    reason     text,
    PRIMARY KEY (project_number, seq, id)
  ) PARTITION BY RANGE (id)
  `,
  `CREATE INDEX audit_of_user ON ${schema}.audit (project_number, user_id, seq, id)`,
  `
  CREATE INDEX audit_of_all_users ON ${schema}.audit (project_number, seq, id)
  WHERE action IN ('bulk_extended', 'bulk_lengthened')
  `,
  // Finds out that there are none.
  `
  CREATE INDEX audit_of_shorter ON ${schema}.audit (project_number, seq, id)
  WHERE action = 'bulk_lengthened'
  `,
  createFirstAuditId(schema),
  createAuditPart(schema),
  createAuditParts(schema),
  createBeginAudit(schema),
  createDropAudit(schema),
  // The only part, as long as rows are kept forever.
  `SELECT ${schema}.create_audit_part(today), setval('${schema}.audit_ids', ${schema}.first_audit_id(today))
   FROM (SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS today) t`,
]

/** Creates the function `first_audit_id`: the first id of the part that begins on a day. */
const createFirstAuditId = (schema: string): string => `
  CREATE FUNCTION ${schema}.first_audit_id(day date) RETURNS bigint LANGUAGE sql IMMUTABLE
  AS $$ SELECT (day - date '1970-01-01')::bigint << 40 $$
`

/**
 * Creates the function `create_audit_part`, which creates the part that begins on a day. It is written
 * through `audit` alone, so that a role without the right to change that cannot change the parts either.
 */
const createAuditPart = (schema: string): string => `
  CREATE FUNCTION ${schema}.create_audit_part(day date) RETURNS void LANGUAGE plpgsql
  AS $$
  DECLARE
    name CONSTANT text := '${schema}.audit' || to_char(day, '_YYYYMMDD');
    role text;
  BEGIN
    EXECUTE 'CREATE TABLE ' || name || ' (LIKE ${schema}.audit INCLUDING ALL)';
    FOR role IN
      SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
      FROM pg_class c, aclexplode(c.relacl) a
      WHERE c.oid = name::regclass AND a.grantee <> c.relowner
    LOOP
      EXECUTE 'REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON ' || name || ' FROM ' || role;
    END LOOP;
    EXECUTE format(
      'ALTER TABLE ${schema}.audit ATTACH PARTITION ' || name || ' FOR VALUES FROM (%s) TO (%s)',
      ${schema}.first_audit_id(day), ${schema}.first_audit_id(day + 1));
  END $$
`

/** Creates the view `audit_parts`: for each part, when it has begun, and the next one. */
const createAuditParts = (schema: string): string => `
  CREATE VIEW ${schema}.audit_parts AS
  SELECT c.relname AS name, d.day, lead(d.day) OVER (ORDER BY d.day) AS next_day
  FROM pg_inherits i
  JOIN pg_class c ON c.oid = i.inhrelid
  CROSS JOIN LATERAL (SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day) d
  WHERE i.inhparent = '${schema}.audit'::regclass
`

/**
 * Creates the function `begin_audit`, which begins a part if the newest one has covered a day, or a
 * thirtieth of the time that rows are kept: whatever reads rows of all parts has to open each. Returns
 * the day after each of two steps. In the first one, the part is created, and in the second one, the
 * sequence jumps to it, which no rollback could undo. Nobody writes meanwhile, because a statement that
 * has begun before knows nothing of the part.
 */
const createBeginAudit = (schema: string): string => `
  CREATE FUNCTION ${schema}.begin_audit(kept interval) RETURNS SETOF date LANGUAGE plpgsql ${asOwner}
  AS $$
  DECLARE
    today CONSTANT date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    newest date;
    unused name;
  BEGIN
    IF NOT ${getsLock(schema)} THEN RETURN; END IF;
    SELECT max(p.day) INTO newest
    FROM ${schema}.audit_parts p, ${schema}.audit_ids s
    WHERE ${schema}.first_audit_id(p.day) <= s.last_value;
    IF newest + greatest(interval '1 day', kept / 30) > today THEN RETURN; END IF;
    IF EXISTS (SELECT FROM ${schema}.audit_parts p WHERE p.day = today) THEN
      LOCK TABLE ONLY ${schema}.audit IN SHARE ROW EXCLUSIVE MODE;
      PERFORM setval('${schema}.audit_ids', ${schema}.first_audit_id(today));
    ELSE
      -- A part of an earlier day that has not begun would tell a wrong end of the one before it.
      FOR unused IN SELECT p.name FROM ${schema}.audit_parts p WHERE p.day > newest LOOP
        EXECUTE format('DROP TABLE ${schema}.%I', unused);
      END LOOP;
      PERFORM ${schema}.create_audit_part(today);
    END IF;
    RETURN NEXT today;
  EXCEPTION WHEN lock_not_available THEN RETURN;
  END $$
`

/**
 * Creates the function `drop_audit`, which drops the oldest part if all of it is older than `kept`, and
 * returns its day. A part is written until some time of the day on which the next one begins.
 */
const createDropAudit = (schema: string): string => `
  CREATE FUNCTION ${schema}.drop_audit(kept interval) RETURNS SETOF date LANGUAGE plpgsql ${asOwner}
  AS $$
  DECLARE
    oldest record;
  BEGIN
    IF NOT has_table_privilege(session_user, '${schema}.audit', 'DELETE') THEN
      RAISE insufficient_privilege USING MESSAGE = 'permission denied to delete audit rows';
    END IF;
    IF NOT ${getsLock(schema)} THEN RETURN; END IF;
    SELECT * INTO oldest FROM ${schema}.audit_parts ORDER BY day LIMIT 1;
    IF oldest.next_day + 1 <= (clock_timestamp() AT TIME ZONE 'UTC') - kept
       AND ${schema}.first_audit_id(oldest.next_day) <= (SELECT last_value FROM ${schema}.audit_ids) THEN
      EXECUTE format('DROP TABLE ${schema}.%I', oldest.name);
      RETURN NEXT oldest.day;
    END IF;
  EXCEPTION WHEN lock_not_available THEN RETURN;
  END $$
`

/**
 * Migration 1: which days the feed need not look into.
 *
 * A day that is over is closed: whoever stores an event there all the same leaves a row in `late_events`. So
 * a reader whose cursor has seen the closing, and every row of `late_events`, has seen all events of closed
 * days. Neither clocks nor ids take part in that, and transactions may last for days.
 */

/** Creates the tables `closed_days` and `late_events`, and what writes them. */
const createClosedDays = (schema: string): ReadonlyArray<string> => [
  // At most one row: days before open_from were closed when the transaction closed_in ended. After a crash,
  // and in a copy of the database, there is none, and days are closed anew.
  `
  CREATE UNLOGGED TABLE ${schema}.closed_days (
    open_from uuid NOT NULL,
    closed_in xid8 NOT NULL DEFAULT pg_current_xact_id()
  )
  `,
  // The transactions that have stored an event in a closed day, or in none.
  `CREATE TABLE ${schema}.late_events (xid xid8 PRIMARY KEY DEFAULT pg_current_xact_id())`,
  `
  CREATE FUNCTION ${schema}.note_late() RETURNS trigger LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$
  BEGIN
    INSERT INTO ${schema}.late_events DEFAULT VALUES ON CONFLICT DO NOTHING;
    RETURN NULL;
  END $$
  `,
  noteLate(schema, `${schema}.events_default`),
  createCloseDays(schema),
]

/**
 * Creates the function `close_days`, which closes the days that are over, and returns them. It stops at a day
 * in which an open or a prepared transaction has stored an event: the lock of that keeps the trigger away.
 */
const createCloseDays = (schema: string): string => `
  CREATE FUNCTION ${schema}.close_days() RETURNS SETOF date LANGUAGE plpgsql ${asOwner}
  AS $$
  DECLARE
    today CONSTANT date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    day date;
    last date;
  BEGIN
    IF NOT ${getsLock(schema)} THEN RETURN; END IF;
    FOR day IN ${listDays(schema)}
    LOOP
      EXIT WHEN day >= today;
      CONTINUE WHEN EXISTS (
        SELECT FROM ${schema}.closed_days c WHERE ${schema}.first_id(day) < c.open_from
      );
      BEGIN
        EXECUTE '${noteLate(schema, `${schema}.events' || to_char(day, '_YYYYMMDD') || '`)}';
      EXCEPTION WHEN lock_not_available THEN EXIT;
      END;
      last := day;
      RETURN NEXT day;
    END LOOP;
    IF last IS NULL THEN RETURN; END IF;
    -- Whoever sees this transaction sees these, too.
    DELETE FROM ${schema}.late_events;
    DELETE FROM ${schema}.closed_days;
    INSERT INTO ${schema}.closed_days (open_from) VALUES (${schema}.first_id(last + 1));
  END $$
`

// The concurrency of a webhook `w` within the bounds that are asked for.
const concurrency = "greatest(least_per_webhook, least(w.concurrency, most_per_webhook))"

// What `mostInProject` of the core returns, if `claimed` deliveries of the project are claimed.
const mostInProject = (claimed: string): string =>
  `(concurrency * (per_project - ${claimed}) + per_project - 1) / per_project`

const isPicked = "(p.is_chosen OR p.is_ahead) AND p.place <= asked"

// The most bytes of the texts of a claim. Longer rows would not fit into a message of the protocol.
const mostBytes = 8 * 1024 * 1024

// The most webhooks that a claim looks at, which bounds its duration.
const mostWebhooks = 512

/**
 * Creates the function `claim`, which claims deliveries. A later migration replaces it.
 *
 * It is a function so that each of its statements takes its own snapshot after the lock and sees
 * what others have just claimed. Only one claim runs at a time, because concurrent claims could not
 * count the attempts that a webhook has in flight. Its statements are planned once for a connection,
 * for tables of any size: joins follow indexes.
 *
 * First, it releases the claims of dispatchers that are gone, and those of `claimer` itself after
 * `last_lease`, the last one that it knows of.
 *
 * It looks at `first_webhooks`, and steps through the webhooks with ready deliveries in the order of
 * their ids, after `last_webhook`.
 * Among those that can take another attempt, the next delivery is always one of the project with the
 * fewest attempts in flight, and of its webhook with the fewest; chance decides between equals.
 * `mostInProject` says how many a webhook may have. Then come those that may be claimed ahead, which wait
 * in the process: those of `ahead_webhooks`, unless another dispatcher has claims of the webhook, which
 * bounds the attempts in flight in all processes. Returns one row for each claim, without the texts if
 * they are too long or the event is missing, or one row without an event. `due_in` says in how many
 * milliseconds to look again, if it is known. The first row has in `kept_back` the webhooks of which a
 * limit has kept back deliveries that are ready.
 */
const createClaim = (schema: string): string => `
  CREATE OR REPLACE FUNCTION ${schema}.claim(
    claimer uuid, last_lease bigint, asked integer, asked_failing integer,
    least_per_webhook integer, most_per_webhook integer, per_project integer,
    ahead_webhooks uuid[], most_ahead integer[], lease_millis integer, last_webhook uuid, first_webhooks uuid[]
  ) RETURNS TABLE (
    event_id uuid, body text, project_id text, webhook_id uuid, url text, secrets text[],
    signing_key text, failures integer, failing_since timestamptz, claims integer, lease bigint,
    concurrency integer, looked_at uuid, due_in double precision, kept_back uuid[]
  ) LANGUAGE plpgsql
  SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off
  SET jit = off
  AS $$
  #variable_conflict use_column
  DECLARE
    now timestamptz;
    -- A clock that is corrected by less than a second makes little difference.
    soon timestamptz;
    lease_length CONSTANT interval := lease_millis * interval '1 millisecond';
    no_webhook CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
    steps integer;
    next uuid;
    wait double precision;
    gone_ids uuid[];
    closed_ids uuid[];
    -- One element for each webhook that can take another attempt.
    lane_ids uuid[];
    lane_attempts bigint[];
    lane_of_project bigint[];
    lane_ahead integer[];
    -- Webhooks with ready deliveries and no room, and those with both.
    full_ids uuid[];
    ready_ids uuid[];
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('${schema}.claim', 0));
    -- A claim that is lost in a crash of the server is made again.
    PERFORM set_config('synchronous_commit', 'off', true);
    now := clock_timestamp();
    soon := now + interval '1 second';

    IF NOT EXISTS (SELECT FROM ${schema}.dispatchers d WHERE d.id = claimer) THEN
      INSERT INTO ${schema}.dispatchers (id, seen_at, since) VALUES (claimer, now, now);
    END IF;
    SELECT array_agg(g.id) INTO gone_ids
    FROM ${schema}.dispatchers_gone g WHERE g.noticed_by = claimer;
    IF gone_ids IS NOT NULL THEN
      UPDATE ${schema}.deliveries d
      SET state = 'ready', due_at = now, lease = NULL, dispatcher = NULL
      FROM (
        SELECT e.event_id, e.webhook_id FROM ${schema}.deliveries e
        WHERE e.state = 'leased' AND e.dispatcher = ANY (gone_ids)
        FOR UPDATE SKIP LOCKED
      ) left_over
      WHERE d.event_id = left_over.event_id AND d.webhook_id = left_over.webhook_id;
      DELETE FROM ${schema}.dispatchers d WHERE d.id = ANY (gone_ids);
    END IF;

    -- The answer to an earlier claim was lost on its way: nobody makes these attempts.
    UPDATE ${schema}.deliveries d
    SET state = 'ready', due_at = now, lease = NULL, dispatcher = NULL, claims = d.claims - 1
    WHERE d.state = 'leased' AND d.dispatcher = claimer AND d.lease > last_lease;

    -- Make ready the retries that are due and the deliveries whose lease has expired.
    UPDATE ${schema}.deliveries d SET state = 'ready', lease = NULL, dispatcher = NULL
    FROM (
      SELECT e.event_id, e.webhook_id FROM ${schema}.deliveries e
      WHERE (e.state = 'later' OR e.state = 'leased') AND e.due_at <= now
      ORDER BY e.due_at LIMIT 1000
      FOR UPDATE SKIP LOCKED
    ) due
    WHERE d.event_id = due.event_id AND d.webhook_id = due.webhook_id;

    -- The clock was set back since these attempts failed: by its time, they would wait too long.
    UPDATE ${schema}.deliveries d SET state = 'ready', due_at = now
    FROM (
      SELECT e.event_id, e.webhook_id FROM ${schema}.deliveries e
      WHERE e.state = 'later' AND e.waits_since > soon
      ORDER BY e.waits_since DESC LIMIT 1000
      FOR UPDATE SKIP LOCKED
    ) late
    WHERE d.event_id = late.event_id AND d.webhook_id = late.webhook_id;
    -- The same for leases, of which there are few. These begin again, because their attempts may go on.
    UPDATE ${schema}.deliveries d SET due_at = now + lease_length
    FROM (
      SELECT e.event_id, e.webhook_id FROM ${schema}.deliveries e
      WHERE e.state = 'leased' AND e.due_at > now + 2 * lease_length
      FOR UPDATE SKIP LOCKED
    ) late
    WHERE d.event_id = late.event_id AND d.webhook_id = late.webhook_id;

    WITH RECURSIVE walk (id, is_second_half, step) AS (
      SELECT last_webhook, false, 0
      UNION ALL
      -- From webhook to webhook in the index, and from the last one back to the first.
      SELECT coalesce(n.id, no_webhook), w.is_second_half OR n.id IS NULL, w.step + 1
      FROM walk w
      LEFT JOIN LATERAL (
        SELECT d.webhook_id AS id FROM ${schema}.deliveries d
        WHERE d.state = 'ready' AND d.webhook_id > w.id
        ORDER BY d.webhook_id LIMIT 1
      ) n ON true
      WHERE w.step < ${mostWebhooks}
        AND NOT (w.is_second_half AND (n.id IS NULL OR n.id > last_webhook))
    ), met AS (
      -- The attempts in flight of all webhooks, and a step for those on the way.
      SELECT m.id, max(m.step) AS step, sum(m.attempt) AS attempts, max(m.most_ahead) AS most_ahead,
             coalesce(bool_or(m.dispatcher <> claimer), false) AS is_elsewhere
      FROM (
        SELECT w.id, w.step, 0 AS attempt, NULL::uuid AS dispatcher, NULL::integer AS most_ahead
        FROM walk w WHERE w.step > 0 AND w.id <> no_webhook
        UNION ALL
        SELECT f.id, 0, 0, NULL, NULL FROM unnest(first_webhooks) f (id)
        UNION ALL
        SELECT a.id, NULL, 0, NULL, a.most FROM unnest(ahead_webhooks, most_ahead) a (id, most)
        UNION ALL
        SELECT d.webhook_id, NULL, 1, d.dispatcher, NULL
        FROM ${schema}.deliveries d WHERE d.state = 'leased'
      ) m
      GROUP BY m.id
    ), counted AS (
      SELECT m.*, w.held_until = 'infinity'
                      OR w.held_until > now AND (w.held_since > soon) IS NOT TRUE AS is_held,
             w.failures > 0 AS is_failing,
             w.id IS NOT NULL AND w.disabled_at IS NULL AS is_open, ${concurrency} AS concurrency,
             -- What was claimed ahead does not count.
             sum(least(m.attempts, ${concurrency})) OVER (PARTITION BY w.project_number)::bigint
               AS of_project
      FROM met m LEFT JOIN ${schema}.webhooks w ON w.id = m.id
    ), weighed AS (
      SELECT *, is_open AND is_held IS NOT TRUE AS is_free,
             CASE WHEN is_failing OR is_elsewhere OR 2 * of_project > per_project THEN 0
             ELSE coalesce(most_ahead, 0) END AS ahead
      FROM counted WHERE step IS NOT NULL
    ), judged AS (
      SELECT *, ahead > 0 OR of_project < per_project
                AND attempts < CASE WHEN is_failing THEN least(1, asked_failing)
                               ELSE ${mostInProject("of_project")} END AS has_room
      FROM weighed
    )
    SELECT array_agg(id) FILTER (WHERE NOT is_open), array_agg(id) FILTER (WHERE is_free AND has_room),
           array_agg(attempts) FILTER (WHERE is_free AND has_room),
           array_agg(of_project) FILTER (WHERE is_free AND has_room),
           array_agg(ahead) FILTER (WHERE is_free AND has_room),
           coalesce(array_agg(id) FILTER (WHERE is_free AND NOT has_room AND step > 0), '{}'),
           coalesce(array_agg(id) FILTER (WHERE is_free AND has_room AND step > 0), '{}'),
           (SELECT max(w.step) FROM walk w), (SELECT w.id FROM walk w ORDER BY w.step DESC LIMIT 1)
    INTO closed_ids, lane_ids, lane_attempts, lane_of_project, lane_ahead, full_ids, ready_ids,
         steps, next
    FROM judged;

    IF closed_ids IS NOT NULL THEN
      -- End deliveries to webhooks that are deleted or disabled, up to 1000 for each.
      WITH over AS MATERIALIZED (
        SELECT r.event_id, s.id AS webhook_id, w.id IS NULL AS is_deleted
        FROM unnest(closed_ids) s (id)
        LEFT JOIN ${schema}.webhooks w ON w.id = s.id
        CROSS JOIN LATERAL (
          SELECT e.event_id FROM ${schema}.deliveries e
          WHERE e.webhook_id = s.id AND e.state = 'ready'
          ORDER BY e.due_at, e.position LIMIT 1000
        ) r
      ), failed AS (
        UPDATE ${schema}.deliveries d SET state = 'failed' FROM over o
        WHERE NOT o.is_deleted AND d.webhook_id = o.webhook_id AND d.event_id = o.event_id
          AND d.state = 'ready'
      ), cancelled AS (
        DELETE FROM ${schema}.deliveries d USING over o
        WHERE o.is_deleted AND d.webhook_id = o.webhook_id AND d.event_id = o.event_id
          AND d.state = 'ready'
        RETURNING d.*
      )
      INSERT INTO ${schema}.ended_deliveries
        (event_id, webhook_id, position, state, due_at, claims, attempts)
      SELECT c.event_id, c.webhook_id, c.position, 'cancelled', c.due_at, c.claims,
             c.attempts
      FROM cancelled c;
    END IF;

    wait := CASE WHEN steps = ${mostWebhooks} OR closed_ids IS NOT NULL THEN 0
            ELSE 1000 * extract(epoch FROM least(
              (SELECT min(d.due_at) FROM ${schema}.deliveries d
               WHERE d.state = 'later' OR d.state = 'leased'),
              (SELECT min(w.held_until) FROM ${schema}.webhooks w WHERE w.held_until > now AND w.held_until < 'infinity')
            ) - now) END;

    IF lane_ids IS NOT NULL THEN
      RETURN QUERY
      WITH lane AS MATERIALIZED (
        SELECT w.id, w.project_number, w.failures > 0 AS is_failing, l.attempts, l.of_project, l.ahead,
               ${concurrency} AS concurrency, random() AS chance
        FROM unnest(lane_ids, lane_attempts, lane_of_project, lane_ahead)
          l (id, attempts, of_project, ahead)
        JOIN ${schema}.webhooks w ON w.id = l.id
        -- Its project may just have been parked, and has no name then.
        WHERE (w.held_until = 'infinity') IS NOT TRUE
      ), candidates AS MATERIALIZED (
        SELECT r.event_id, l.id, l.is_failing, l.chance, l.concurrency, l.ahead, l.attempts + r.n AS nth,
               r.n <= l.room AS fits, l.of_project + count(*) FILTER (WHERE r.n <= l.room) OVER (
                 PARTITION BY l.project_number ORDER BY l.attempts + r.n, l.chance
                 ROWS UNBOUNDED PRECEDING
               ) AS turn
        FROM (
          SELECT *, CASE WHEN is_failing THEN 1 ELSE greatest(0, concurrency - attempts) END AS room
          FROM lane
        ) l
        CROSS JOIN LATERAL (
          SELECT o.event_id, row_number() OVER (ORDER BY o.due_at, o.position) AS n
          FROM (
            SELECT d.event_id, d.due_at, d.position FROM ${schema}.deliveries d
            WHERE d.webhook_id = l.id AND d.state = 'ready'
            ORDER BY d.due_at, d.position
            -- One more than it may have tells whether any are kept back.
            LIMIT l.room + l.ahead + 1
          ) o
        ) r
      ), allowed AS (
        SELECT *, fits AND turn <= per_project
                  AND (is_failing OR nth <= ${mostInProject("(turn - 1)")}) AS is_allowed
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
      ), claimed AS (
        UPDATE ${schema}.deliveries d
        SET state = 'leased', due_at = now + lease_length,
            claims = d.claims + 1, lease = nextval('${schema}.leases'), dispatcher = claimer
        FROM placed p
        WHERE ${isPicked} AND d.event_id = p.event_id AND d.webhook_id = p.id
        RETURNING d.event_id, d.webhook_id, d.claims, d.lease, p.concurrency, p.place
      )
      SELECT c.event_id, t.body, p.id, c.webhook_id, t.url, t.secrets, t.signing_key,
             w.failures, w.failing_since, c.claims, c.lease, c.concurrency, next,
             least(wait, lease_millis),
             CASE WHEN c.place = 1 THEN
               full_ids || ARRAY(SELECT DISTINCT p.id FROM placed p WHERE NOT (${isPicked}))
             END
      FROM claimed c
      JOIN ${schema}.webhooks w ON w.id = c.webhook_id
      JOIN ${schema}.projects p ON p.number = w.project_number
      LEFT JOIN LATERAL (
        SELECT e.body, w.url, w.signing_key,
               CASE WHEN w.previous_until > now THEN ARRAY[w.secret, w.previous_secret]
               ELSE ARRAY[w.secret] END AS secrets
        FROM ${schema}.events e
        WHERE e.id = c.event_id
          -- Lengths are known without reading the texts.
          AND octet_length(e.body)::bigint + octet_length(w.url) + octet_length(w.secret)
              + coalesce(octet_length(w.previous_secret), 0)
              + coalesce(octet_length(w.signing_key), 0) <= ${mostBytes}
      ) t ON true
      ORDER BY c.place;
      IF FOUND THEN RETURN; END IF;
    END IF;

    RETURN QUERY SELECT NULL::uuid, NULL::text, NULL::text, NULL::uuid, NULL::text,
      NULL::text[], NULL::text, NULL::integer, NULL::timestamptz, NULL::integer, NULL::bigint,
      NULL::integer, next, wait, full_ids || ready_ids;
  END $$
`

/**
 * What tells the history of a database from others: the cluster, its time line, which a promotion or a
 * restore to an earlier time begins, the database, and the table, which a restore makes anew.
 */
const epoch = (schema: string): string => `
  substr(md5(concat_ws(' ',
    (SELECT c.system_identifier FROM pg_control_system() c),
    substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
    (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()),
    '${schema}.events'::regclass::oid
  )), 1, 12)`

// Rows that were restored from a dump may have numbers that this cluster has not used yet.
const isOwn = "xid < pg_snapshot_xmax(pg_current_snapshot())"

// Conditions on an xid: the transactions that the snapshot `base` does not see.
const begunSince = `xid >= pg_snapshot_xmax(base) AND ${isOwn}`
const runningThen = "xid = ANY (ARRAY(SELECT pg_snapshot_xip(base)))"

// The events of a project that the snapshot `base` does not see, as far as a condition on their
// transactions finds them in the index, up to the limit.
const unseen = (schema: string, transactions: string): string => `
        (
          SELECT e.xid, e.id, e.type, e.at, e.body FROM ${schema}.events e
          WHERE e.project_number = p.number AND e.id >= open_from AND ${transactions}
            AND (last_xid IS NULL
                 OR (e.xid, e.id) > (last_xid, last_id) AND pg_visible_in_snapshot(e.xid, until))
          ORDER BY e.xid, e.id LIMIT most_events
        )`

/**
 * Creates the function `read_feed`, which returns the next events of some projects that the snapshot
 * `base` does not see: those of transactions with numbers from its end on, and of those that were
 * running. It returns up to `most_events`, and none after `most_bytes`. If `last_xid` is not NULL, it
 * returns those after the event `last_id` of this transaction that the snapshot `until` sees.
 *
 * Every row has the snapshot of the statement, how many events it has found within `most_events`, and a
 * transaction `used` whose number no other gets after a crash of the database; if `most_events` is 0, no
 * event is of a later one. If there is no event, the only row has nothing else. There is no row if none of the projects exists. A
 * later migration replaces the function.
 *
 * It looks only into the days from `open_from` on if `base` has seen everything of those before: see
 * `migration0001ClosedDays.ts`.
 *
 * It is a function so that it is planned once for a connection: planning takes longer than looking into
 * the partitions of a month.
 */
const createReadFeed = (schema: string): string => `
  CREATE FUNCTION ${schema}.read_feed(
    projects text[], base pg_snapshot, until pg_snapshot, last_xid xid8, last_id uuid,
    most_events integer, most_bytes integer
  ) RETURNS TABLE (
    snapshot text, read_at timestamptz, epoch text, found integer, used text,
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
  BEGIN
    SELECT c.closed_in, CASE
      WHEN pg_visible_in_snapshot(c.closed_in, base)
        AND NOT EXISTS (SELECT FROM ${schema}.late_events WHERE ${begunSince})
        AND NOT EXISTS (SELECT FROM ${schema}.late_events WHERE ${runningThen})
      THEN c.open_from
    END INTO used, open_from FROM ${schema}.closed_days c;
    open_from := coalesce(open_from, '${nilUuid}');
    IF most_events = 0 THEN
      used := greatest(used, (
        SELECT n.xid FROM ${schema}.projects p
        CROSS JOIN LATERAL (
          SELECT e.xid FROM ${schema}.events e WHERE e.project_number = p.number AND ${isOwn}
          ORDER BY e.xid DESC, e.id DESC LIMIT 1
        ) n
        WHERE p.id = ANY (projects) ORDER BY n.xid DESC LIMIT 1
      ));
    END IF;
    RETURN QUERY
    WITH existing AS MATERIALIZED (
      SELECT p.id, p.number FROM ${schema}.projects p WHERE p.id = ANY (projects)
    ),
    events AS MATERIALIZED (
      SELECT n.xid, n.id, p.id AS project_id, n.type, n.at, n.body
      FROM existing p
      CROSS JOIN LATERAL (
        ${unseen(schema, begunSince)}
        UNION ALL
        ${unseen(schema, runningThen)}
      ) n
      ORDER BY n.xid, n.id LIMIT most_events
    ),
    measured AS (
      SELECT e.*, sum(octet_length(e.body)) OVER (ORDER BY e.xid, e.id) - octet_length(e.body) AS bytes
      FROM events e
    )
    SELECT pg_current_snapshot()::text, statement_timestamp(), ${epoch(schema)},
           (SELECT count(*) FROM events)::integer, used::text,
           m.xid::text, m.id, m.project_id, m.type, m.at, m.body
    FROM (SELECT FROM existing LIMIT 1) any_project
    LEFT JOIN measured m ON m.bytes < most_bytes
    ORDER BY m.xid, m.id;
  END $$
`

/** Migration 1: what is left of projects that were deleted, and of persons who are erased, until housekeeping removes it. */

/** Creates the table `erasures`. */
const createErasures = (schema: string): string => `
  CREATE TABLE ${schema}.erasures (
    project_number bigint NOT NULL REFERENCES ${schema}.projects (number) ON DELETE CASCADE,
    user_id        text COLLATE "C" NOT NULL,
    at             timestamptz NOT NULL,
    -- An earlier transaction may have published events of the person that were not seen yet.
    begun_in       xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (project_number, user_id)
  )
`

/** Creates the table `deleted_projects`. */
const createDeletedProjects = (schema: string): string => `
  CREATE TABLE ${schema}.deleted_projects (
    number       bigint PRIMARY KEY,
    deleted_in   xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- The last event that housekeeping has looked at.
    events_after uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'
  )
`

/**
 * Creates the function `delete_project`, which deletes a project and its webhooks, sends the ids of these on
 * a channel, and leaves the rest to `forget_projects`: no other table names a project by its id. Returns one
 * row if the project existed.
 *
 * It is a function so that webhooks are read after the lock: one may have been added in the meantime.
 */
const createDeleteProject = (schema: string): string => `
  CREATE FUNCTION ${schema}.delete_project(deleted_id text, channel text) RETURNS SETOF bigint
  LANGUAGE plpgsql AS $$
  DECLARE
    deleted bigint;
    webhook uuid;
  BEGIN
    SELECT p.number INTO deleted FROM ${schema}.projects p WHERE p.id = deleted_id FOR UPDATE;
    IF deleted IS NULL THEN RETURN; END IF;
    FOR webhook IN DELETE FROM ${schema}.webhooks w WHERE w.project_number = deleted RETURNING w.id LOOP
      PERFORM pg_notify(channel, webhook::text);
    END LOOP;
    DELETE FROM ${schema}.projects p WHERE p.number = deleted;
    INSERT INTO ${schema}.deleted_projects (number) VALUES (deleted);
    RETURN NEXT deleted;
  END $$
`

/**
 * Creates the function `forget_projects`, which removes up to `most` rows of deleted projects from each table,
 * and looks at up to `most` events of all projects, in the order of their ids. Returns one row if there may be
 * more.
 *
 * It begins with a project when all transactions are over that may still write rows of it. Audit rows stay
 * where the caller may not delete them.
 */
const createForgetProjects = (schema: string): string => `
  CREATE FUNCTION ${schema}.forget_projects(most integer) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
  DECLARE
    gone bigint[];
    first uuid;
    last uuid;
    old uuid[];
    removed integer;
    rest integer := 0;
  BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('${schema}.deleted_projects', 0)) THEN RETURN; END IF;
    SELECT array_agg(d.number), (array_agg(d.events_after ORDER BY d.events_after))[1] INTO gone, first
    FROM ${schema}.deleted_projects d WHERE d.deleted_in < pg_snapshot_xmin(pg_current_snapshot());
    IF gone IS NULL THEN RETURN; END IF;

    DELETE FROM ${schema}.memberships m WHERE (m.project_number, m.user_id) IN (
      SELECT o.project_number, o.user_id FROM ${schema}.memberships o
      WHERE o.project_number = ANY (gone) LIMIT most
    );
    GET DIAGNOSTICS removed = ROW_COUNT;
    rest := rest + removed;

    DELETE FROM ${schema}.api_key_projects k WHERE (k.key_id, k.project_number) IN (
      SELECT o.key_id, o.project_number FROM ${schema}.api_key_projects o
      WHERE o.project_number = ANY (gone)
        -- One that has moved is still opened by its keys.
        AND NOT EXISTS (SELECT FROM ${schema}.elsewhere e WHERE e.number = o.project_number)
      LIMIT most
    );
    GET DIAGNOSTICS removed = ROW_COUNT;
    rest := rest + removed;

    IF has_table_privilege('${schema}.audit', 'DELETE') THEN
      DELETE FROM ${schema}.audit a WHERE (a.project_number, a.seq, a.id) IN (
        SELECT o.project_number, o.seq, o.id FROM ${schema}.audit o
        WHERE o.project_number = ANY (gone) LIMIT most
      );
      GET DIAGNOSTICS removed = ROW_COUNT;
      rest := rest + removed;
    END IF;

    SELECT array_agg(e.id) FILTER (WHERE e.project_number = ANY (gone)),
           (array_agg(e.id ORDER BY e.id DESC))[1], count(*)
    INTO old, last, removed
    FROM (
      SELECT o.id, o.project_number FROM ${schema}.events o WHERE o.id > first ORDER BY o.id LIMIT most
    ) e;
    DELETE FROM ${schema}.deliveries d WHERE d.event_id = ANY (old);
    DELETE FROM ${schema}.ended_deliveries d WHERE d.event_id = ANY (old);
    DELETE FROM ${schema}.events e WHERE e.id = ANY (old);
    IF removed = most THEN
      UPDATE ${schema}.deleted_projects d SET events_after = last
      WHERE d.number = ANY (gone) AND d.events_after < last;
    ELSIF rest = 0 THEN
      DELETE FROM ${schema}.deleted_projects d WHERE d.number = ANY (gone);
      RETURN;
    END IF;
    RETURN NEXT rest;
  END $$
`

/** Migration 1: the first tables. */

export const migration0001 = (schema: string): ReadonlyArray<string> => [
  `
  CREATE TABLE ${schema}.projects (
    id            text COLLATE "C" PRIMARY KEY,
    -- What all other tables have in place of the id: a project that is created again after it was deleted
    -- has another number, and nothing of the earlier one.
    number        bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    -- The number of memberships and webhooks of the project.
    members       bigint NOT NULL DEFAULT 0,
    webhooks      integer NOT NULL DEFAULT 0,
    -- The seq of the last change of many memberships or, if that is greater, of the end of one.
    seq           bigint NOT NULL DEFAULT 0,
    -- The seq of the last bulk extension of either mode.
    bulk_seq      bigint NOT NULL DEFAULT 0,
    -- The date of the last one that set all memberships, and its seq. It applies to every membership with a
    -- smaller seq.
    bulk_end_date timestamptz,
    set_seq       bigint NOT NULL DEFAULT 0,
    -- The end date of the last bulk extension of either mode.
    last_bulk_end_date timestamptz,
    -- When to give alarms to the members who have a date of a bulk extension.
    alarm_at      timestamptz,
    ${endsPlace}
  ) WITH (fillfactor = 50)
  `,
  `
  CREATE TABLE ${schema}.memberships (
    project_number    bigint NOT NULL,
    user_id           text COLLATE "C" NOT NULL,
    end_date          timestamptz NOT NULL,
    -- The sequence of the change that set end_date: greater than those of earlier changes, also of all members.
    seq               bigint NOT NULL,
    -- The end date before the last change, for the statement that records the change.
    previous_end_date timestamptz,
    -- When to look whether something is to be announced.
    alarm_at          timestamptz,
    -- The end date of the last announcement, and how many seconds before it: 0 for the end itself.
    announced_end     timestamptz,
    announced_lead    integer,
    ${endsColumns},
    PRIMARY KEY (project_number, user_id)
  ) WITH (fillfactor = 60)
  `,
  // What API keys open besides: the projects that are in other databases, with numbers of the same sequence. One
  // that has moved away keeps its number.
  `
  CREATE TABLE ${schema}.elsewhere (
    id     text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL UNIQUE
           DEFAULT nextval(pg_get_serial_sequence('${schema}.projects', 'number'))
  )
  `,
  `
  CREATE VIEW ${schema}.known_projects AS
  SELECT id, number FROM ${schema}.projects
  -- Not those that are parked while they move.
  WHERE id > chr(31)
  UNION ALL
  SELECT id, number FROM ${schema}.elsewhere
  `,
  createTakeSeq(schema),
  ...createFloors(schema),
  ...createExpiry(schema),
  createEnds(schema),
  `
  CREATE VIEW ${schema}.memberships_current AS
  SELECT p.id AS project_id, m.user_id, ${effectiveEndDateSql(schema)} AS end_date
  FROM ${schema}.memberships m
  JOIN ${schema}.projects p ON p.number = m.project_number
  `,
  ...createAudit(schema),
  `
  CREATE TABLE ${schema}.api_keys (
    id           text PRIMARY KEY,
    position     bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    digest       text NOT NULL UNIQUE,
    role         text NOT NULL CHECK (role IN ('client', 'operator', 'admin')),
    name         text,
    -- Whether the key opens all projects, also those that api_key_projects does not have.
    opens_all    boolean NOT NULL,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz
  ) WITH (fillfactor = 70)
  `,
  `
  CREATE TABLE ${schema}.api_key_projects (
    key_id         text NOT NULL REFERENCES ${schema}.api_keys,
    project_number bigint NOT NULL,
    PRIMARY KEY (key_id, project_number)
  )
  `,
  `CREATE INDEX api_keys_of_project ON ${schema}.api_key_projects (project_number)`,
  `
  CREATE TABLE ${schema}.webhooks (
    id          uuid PRIMARY KEY,
    position    bigint GENERATED ALWAYS AS IDENTITY,
    project_number bigint NOT NULL,
    url         text NOT NULL,
    secret      text NOT NULL,
    -- The secret before the last rotation, which also signs until the time given.
    previous_secret text,
    previous_until  timestamptz,
    -- The Ed25519 key that signs in addition to the secret, if one was requested.
    signing_key text,
    -- The types of the events that the webhook receives; NULL for all types.
    event_types text[],
    created_at  timestamptz NOT NULL,
    disabled_at timestamptz,
    -- The number of failed attempts since the last success, and the time of the first.
    failures      integer NOT NULL DEFAULT 0,
    failing_since timestamptz,
    -- No attempt starts before this time, which counts from the other one.
    held_until    timestamptz,
    held_since    timestamptz,
    -- How many attempts may be in flight.
    concurrency   integer NOT NULL DEFAULT 4
  )
  `,
  `CREATE INDEX webhooks_held ON ${schema}.webhooks (held_until) WHERE held_until IS NOT NULL`,
  `CREATE INDEX webhooks_disabled ON ${schema}.webhooks (id) WHERE disabled_at IS NOT NULL`,
  `CREATE INDEX webhooks_of_project ON ${schema}.webhooks (project_number, position)`,
  `
  CREATE TABLE ${schema}.events (
    id             uuid PRIMARY KEY,
    project_number bigint NOT NULL,
    type           text NOT NULL,
    at             timestamptz NOT NULL,
    body           text NOT NULL,
    -- The transaction that stored the event. The feed follows the order in which these commit.
    xid            xid8 NOT NULL DEFAULT pg_current_xact_id()
  ) PARTITION BY RANGE (id)
  `,
  `CREATE INDEX events_feed ON ${schema}.events (project_number, xid, id)`,
  `CREATE TABLE ${schema}.events_default PARTITION OF ${schema}.events DEFAULT`,
  `CREATE INDEX events_by_age ON ${schema}.events_default (at)`,
  `
  CREATE TABLE ${schema}.dispatchers (
    id      uuid PRIMARY KEY,
    -- When it last reported that it is alive, and since when it has done so every second, by a clock that was
    -- not set back.
    seen_at timestamptz NOT NULL,
    since   timestamptz NOT NULL
  ) WITH (fillfactor = 50)
  `,
  // The silence of a dispatcher counts only while the one that notices it could report itself: if the
  // database stands still, all are silent. A report in the future was made before the clock was set back.
  `
  CREATE VIEW ${schema}.dispatchers_gone AS
  SELECT me.id AS noticed_by, other.id
  FROM ${schema}.dispatchers me
  JOIN ${schema}.dispatchers other ON other.id <> me.id
  WHERE abs(extract(epoch FROM me.seen_at - clock_timestamp())) < 1
    AND me.since < clock_timestamp() - interval '1.5 seconds'
    AND abs(extract(epoch FROM other.seen_at - clock_timestamp())) > 1.5
  `,
  `
  CREATE TABLE ${schema}.deliveries (
    event_id   uuid NOT NULL,
    webhook_id uuid NOT NULL,
    position   bigint GENERATED ALWAYS AS IDENTITY,
    state      text NOT NULL DEFAULT 'ready'
               CHECK (state IN ('ready', 'later', 'leased', 'failed')),
    -- The time of the next attempt, or of the end of the lease.
    due_at     timestamptz NOT NULL,
    -- When the last attempt failed: from then on, it waits until it is due.
    waits_since timestamptz,
    -- The claim, and the dispatcher that has it.
    lease      bigint,
    dispatcher uuid,
    claims     integer NOT NULL DEFAULT 0,
    attempts   jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (event_id, webhook_id)
    -- Most rows change and are deleted soon after they are inserted, so vacuum has to run often.
  ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01)
  `,
  `
  CREATE INDEX deliveries_open ON ${schema}.deliveries (webhook_id, position)
  WHERE state IN ('ready', 'later', 'leased')
  `,
  `
  CREATE INDEX deliveries_failed ON ${schema}.deliveries (webhook_id, position)
  WHERE state = 'failed'
  `,
  `
  CREATE INDEX deliveries_ready ON ${schema}.deliveries (webhook_id, due_at, position)
  WHERE state = 'ready'
  `,
  `
  CREATE INDEX deliveries_leased ON ${schema}.deliveries (dispatcher, lease, webhook_id)
  WHERE state = 'leased'
  `,
  `
  CREATE INDEX deliveries_due ON ${schema}.deliveries (due_at)
  WHERE state = 'later' OR state = 'leased'
  `,
  `CREATE INDEX deliveries_later ON ${schema}.deliveries (waits_since) WHERE state = 'later'`,
  // What was delivered or cancelled moves here, so that deliveries stays small, and can be dropped by
  // the day of its event.
  `
  CREATE TABLE ${schema}.ended_deliveries (
    event_id   uuid NOT NULL,
    webhook_id uuid NOT NULL,
    position   bigint NOT NULL,
    state      text NOT NULL CHECK (state IN ('delivered', 'cancelled')),
    due_at     timestamptz NOT NULL,
    claims     integer NOT NULL,
    attempts   jsonb NOT NULL,
    PRIMARY KEY (event_id, webhook_id)
  ) PARTITION BY RANGE (event_id)
  `,
  `
  CREATE INDEX ended_deliveries_by_webhook
  ON ${schema}.ended_deliveries (webhook_id, state, position)
  `,
  `
  CREATE TABLE ${schema}.ended_deliveries_default
  PARTITION OF ${schema}.ended_deliveries DEFAULT
  `,
  createFirstId(schema),
  createDay(schema),
  createDays(schema),
  createDropDay(schema),
  ...createClosedDays(schema),
  `SELECT ${schema}.create_days()`,
  `CREATE SEQUENCE ${schema}.leases`,
  createClaim(schema),
  createReadFeed(schema),
  createDeletedProjects(schema),
  createErasures(schema),
  createDeleteProject(schema),
  createForgetProjects(schema),
  `
  CREATE TABLE ${schema}.answers (
    owner       text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    -- The project with which the key is forgotten; 0 if there is none.
    project_number bigint NOT NULL,
    fingerprint text NOT NULL,
    answer      text NOT NULL,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- 0 if the request was answered here; the number of the project that has moved here with the key. So one
    -- request here has a key, and a project can be moved whatever keys it brings.
    moved_with  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, key, moved_with)
  )
  `,
  `CREATE INDEX answers_by_age ON ${schema}.answers (at)`,
  // A crash of the server empties unlogged tables, which only refills the buckets, and has pages ask for
  // other tickets.
  `
  CREATE UNLOGGED TABLE ${schema}.tickets (
    digest     text COLLATE "C" PRIMARY KEY,
    key_id     text COLLATE "C" NOT NULL,
    -- The digest of the API key; NULL if the host identified whose ticket it is.
    key_digest text,
    -- NULL for all projects.
    projects   text[],
    -- How long it lives from the beginning, and until when.
    life       interval NOT NULL,
    expires_at timestamptz NOT NULL
  )
  `,
  `CREATE INDEX tickets_of_key ON ${schema}.tickets (key_id, expires_at)`,
  createAddTicket(schema),
  `
  CREATE UNLOGGED TABLE ${schema}.buckets (
    key text COLLATE "C" PRIMARY KEY,
    tat bigint NOT NULL
  ) WITH (fillfactor = 70)
  `,
]
