-- The tables that hold what clients and hosts store, and their indexes.

CREATE TABLE tenure.projects (
  id                   text COLLATE "C" PRIMARY KEY,
  -- What all other tables have in place of the id: a project that is created again after it was deleted
  -- has another number, and nothing of the earlier one.
  number               bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  -- The number of memberships and webhooks of the project.
  membership_count     bigint NOT NULL DEFAULT 0,
  webhook_count        integer NOT NULL DEFAULT 0,
  -- The seq of the last change of many memberships or, if that is greater, of the end of one.
  seq                  bigint NOT NULL DEFAULT 0,
  -- The seq of the last bulk extension, also if it was undone: members with a greater one have their own date.
  bulk_seq             bigint NOT NULL DEFAULT 0,
  -- When a bulk extension was last made or undone, by the clock of the process or of the database: the earlier one.
  bulk_changed_at      timestamptz,
  -- When the first of those was made or undone, by the same clock, that no pass through the members has looked at.
  bulk_unseen_since    timestamptz,
  -- The seq of the newest bulk extension that is part of the members' own dates.
  settled_seq          bigint NOT NULL DEFAULT 0,
  -- When to give every member a next check: a bulk extension may end them then. '-infinity' for at once.
  next_check_at        timestamptz,
  -- Members up to this user id have a place in the order of ends, and new ones get one. NULL if nobody has listed
  -- the ends yet. U+007F comes after all user ids.
  ending_backfilled_to text COLLATE "C"
) WITH (fillfactor = 50);

CREATE TABLE tenure.memberships (
  project_number         bigint NOT NULL,
  user_id                text COLLATE "C" NOT NULL,
  end_date               timestamptz(3) NOT NULL,
  -- The seq of the change that set end_date: bulk extensions with a greater one apply to it.
  seq                    bigint NOT NULL,
  -- When end_date was set, by the clock of the database or, if that was ahead, of the process. The same date again
  -- leaves it as it is.
  date_set_at            timestamptz NOT NULL DEFAULT statement_timestamp(),
  -- The end date before the last change, for the statement that records the change.
  previous_end_date      timestamptz(3),
  -- When to look whether something is to be announced.
  next_check_at          timestamptz,
  -- The end date of the last announcement, and how many seconds before it: 0 for the end itself.
  announced_end          timestamptz(3),
  announced_lead_seconds integer,
  -- The seq of the last change that left end_date, an announcement or one of the metadata: greater than the one of the
  -- change before.
  dateless_seq           bigint,
  -- The project's bulk_seq when end_date was set, for the list by end dates; NULL without a place in it. If the
  -- membership was found to have ended, -1 less that.
  ending_generation      bigint,
  -- A time that end_date is not before; end_date itself if the membership was found to have ended.
  ending_lower_bound     timestamptz(3),
  -- A JSON object of texts by name, its names in order; NULL before there was one.
  metadata               text,
  PRIMARY KEY (project_number, user_id)
) WITH (fillfactor = 60);

-- The cells of several servers, in the schema that is their home. Without any, this schema has everything.
CREATE TABLE tenure.cells (
  number     integer PRIMARY KEY,
  -- The name of the server with the cell, and when it came there; NULL if it never moved.
  server     text NOT NULL,
  moved_at   timestamptz,
  -- The server that it moves to, and the one that still has its former tables.
  moving_to  text,
  moved_from text,
  CHECK (moving_to IS NULL OR moved_from IS NULL)
);

-- A row that has arrived at the target of a move tells that all earlier changes have.
CREATE TABLE tenure.move_markers (id uuid PRIMARY KEY);

-- The error of a statement whose schema is absent: processes look where the cell is.
CREATE FUNCTION tenure.refuse_change() RETURNS trigger LANGUAGE plpgsql
AS $$
BEGIN
  RAISE invalid_schema_name USING MESSAGE = 'the cell is still on another server';
END $$;

-- Refuses changes of a cell that is still being copied to this server. Those that are replicated fire no trigger.
CREATE FUNCTION tenure.close_cell() RETURNS void LANGUAGE plpgsql
AS $$
DECLARE
  changed regclass;
BEGIN
  FOR changed IN
    SELECT c.oid FROM pg_class c
    WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'tenure.cells'::regclass)
      AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
      -- Of partitions, statements name only these.
      AND (NOT c.relispartition OR c.relname ~ '_default$')
  LOOP
    EXECUTE format(
      'CREATE TRIGGER closed BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s
       FOR EACH STATEMENT EXECUTE FUNCTION tenure.refuse_change()', changed);
  END LOOP;
END $$;

-- Opens a cell whose former tables are gone. Every process may do so, again and again.
CREATE FUNCTION tenure.open_cell() RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '300ms'
AS $$
DECLARE
  closed regclass;
BEGIN
  FOR closed IN
    SELECT c.oid FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE t.tgname = 'closed' AND t.tgfoid = 'tenure.refuse_change'::regproc
    ORDER BY c.relname
  LOOP
    EXECUTE format('DROP TRIGGER IF EXISTS closed ON %s', closed);
  END LOOP;
  DELETE FROM tenure.move_markers;
  -- In the same transaction, because changes would count as those of the epoch before.
  IF NOT tenure.begin_epoch() THEN
    RAISE lock_not_available USING MESSAGE = 'transactions keep an epoch of the feed from its beginning';
  END IF;
END $$;

CREATE TABLE tenure.api_keys (
  id           text PRIMARY KEY,
  position     bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  digest       text NOT NULL UNIQUE,
  role         text NOT NULL CHECK (role IN ('client', 'operator', 'admin')),
  name         text,
  -- Whether the key opens all projects, also those that api_key_projects does not have.
  opens_all    boolean NOT NULL,
  created_at   timestamptz NOT NULL,
  expires_at   timestamptz(3),
  revoked_at   timestamptz,
  last_used_at timestamptz
) WITH (fillfactor = 70);

CREATE TABLE tenure.api_key_projects (
  key_id         text NOT NULL REFERENCES tenure.api_keys,
  project_number bigint NOT NULL,
  PRIMARY KEY (key_id, project_number)
);

CREATE INDEX api_keys_of_project ON tenure.api_key_projects (project_number);

CREATE TABLE tenure.webhooks (
  id              uuid PRIMARY KEY,
  position        bigint GENERATED ALWAYS AS IDENTITY,
  project_number  bigint NOT NULL,
  url             text NOT NULL,
  secret          text NOT NULL,
  -- The secret before the last rotation, which also signs until the time given.
  previous_secret text,
  previous_until  timestamptz,
  -- The Ed25519 key that signs in addition to the secret, if one was requested.
  signing_key     text,
  -- The types of the events that the webhook receives; NULL for all types.
  event_types     text[],
  description     text,
  -- The names of its own request headers, and the JSON of all, encrypted like a secret; NULL without any.
  header_names    text[],
  headers         text,
  -- Whether a member's events are sent one after another; NULL if it never was so. Of one that was, deliveries
  -- may still have a member.
  ordered         boolean,
  -- How many attempts start in a second at most; NULL without a limit. Its tokens are in rate_limit_buckets, so that a
  -- claim waits for no transaction that changes the webhook.
  rate            integer CHECK (rate > 0),
  created_at      timestamptz NOT NULL,
  -- Since when it is disabled, and by whom: what waits fails if it was disabled because of failures, and
  -- stays waiting if somebody asked for it.
  disabled_at     timestamptz,
  disabled_by     text CHECK (disabled_by IN ('failures', 'request')),
  -- The number of failed attempts since the last success, and the time of the first.
  failures        integer NOT NULL DEFAULT 0,
  failing_since   timestamptz,
  -- The share of the time until it is disabled that was announced, in percent; meaningless before the first failure.
  failing_percent smallint NOT NULL DEFAULT 0,
  -- No attempt starts before this time, which counts from the other one.
  paused_until    timestamptz,
  paused_since    timestamptz,
  -- How many attempts may be in flight.
  concurrency     integer NOT NULL DEFAULT 4,
  CHECK ((disabled_at IS NULL) = (disabled_by IS NULL)),
  CHECK ((header_names IS NULL) = (headers IS NULL))
);

CREATE INDEX webhooks_paused ON tenure.webhooks (paused_until) WHERE paused_until IS NOT NULL;

CREATE INDEX webhooks_disabled ON tenure.webhooks (disabled_at) WHERE disabled_by = 'failures';

CREATE INDEX webhooks_failing ON tenure.webhooks (failing_since)
WHERE failing_since IS NOT NULL AND disabled_at IS NULL;

CREATE INDEX webhooks_of_project ON tenure.webhooks (project_number, position);

CREATE TABLE tenure.events (
  id             uuid PRIMARY KEY,
  project_number bigint NOT NULL,
  at             timestamptz NOT NULL,
  -- The transaction that stored the event. The feed follows the order in which these commit.
  xid            xid8 NOT NULL DEFAULT pg_current_xact_id(),
  -- Transactions are compared within an epoch only. Its default is set by `begin_epoch`.
  epoch          integer NOT NULL,
  type           text NOT NULL,
  body           text NOT NULL
) PARTITION BY RANGE (id);

CREATE INDEX events_feed ON tenure.events (project_number, epoch, xid, id);

CREATE TABLE tenure.events_default PARTITION OF tenure.events DEFAULT;

CREATE INDEX events_by_age ON tenure.events_default (at);

CREATE TABLE tenure.dispatchers (
  id       uuid PRIMARY KEY,
  -- When it last reported that it is alive, and since when it has done so every second, by a clock that was
  -- not set back.
  seen_at  timestamptz NOT NULL,
  since    timestamptz NOT NULL,
  -- When it last claimed something.
  busy_at  timestamptz NOT NULL DEFAULT to_timestamp(0),
  -- Whether it has no claims and knows of no other: then it reports every 5 seconds.
  is_quiet boolean NOT NULL DEFAULT false,
  -- A session of its process that holds a lock, at its last report, and the start of the server that has it. NULL
  -- without one, as through a pooler.
  session           uuid,
  server_started_at timestamptz
) WITH (fillfactor = 50);

-- Since when a dispatcher that reports again has done so every second. Not across a pause, nor when the clock was set
-- back: others had no time to report since then.
CREATE FUNCTION tenure.reporting_since(seen_at timestamptz, since timestamptz) RETURNS timestamptz LANGUAGE sql AS $$
  SELECT CASE WHEN seen_at < clock_timestamp() - interval '1 second' OR seen_at > clock_timestamp()
         THEN clock_timestamp() ELSE since END
$$;

-- Whether a dispatcher has missed several reports. A report in the future was made before the clock was set back.
CREATE FUNCTION tenure.is_silent(seen_at timestamptz, is_quiet boolean) RETURNS boolean LANGUAGE sql AS $$
  SELECT abs(extract(epoch FROM seen_at - clock_timestamp())) > CASE WHEN is_quiet THEN 6.5 ELSE 1.5 END
$$;

-- Whether a session holds its lock, which the server releases when the session ends.
CREATE FUNCTION tenure.is_held(session uuid) RETURNS boolean LANGUAGE sql AS $$
  SELECT NOT pg_try_advisory_xact_lock_shared(hashtextextended(session::text, 0))
$$;

-- In how many seconds a dispatcher counts as gone because its session has ended, unless it reports until then: only its
-- connections may have been cut. NULL if the session goes on, or if it was the server that has ended.
CREATE FUNCTION tenure.gone_in(seen_at timestamptz, session uuid, server_started_at timestamptz)
RETURNS double precision LANGUAGE sql AS $$
  SELECT CASE WHEN server_started_at = pg_postmaster_start_time() AND NOT tenure.is_held(session)
         THEN 0.6 - abs(extract(epoch FROM seen_at - clock_timestamp())) END
$$;

-- The silence of a dispatcher counts only while the one that notices it could report itself: if the
-- database stands still, all are silent. The end of its session counts only for one whose own goes on: what has ended
-- all sessions has ended no process.
CREATE VIEW tenure.dispatchers_gone AS
SELECT me.id AS noticed_by, other.id
FROM tenure.dispatchers me
JOIN tenure.dispatchers other ON other.id <> me.id
WHERE abs(extract(epoch FROM me.seen_at - clock_timestamp())) < 1
    AND me.since < clock_timestamp() - interval '1.5 seconds'
    AND tenure.is_silent(other.seen_at, other.is_quiet)
  OR tenure.gone_in(other.seen_at, other.session, other.server_started_at) <= 0 AND tenure.is_held(me.session);

CREATE TABLE tenure.deliveries (
  event_id        uuid NOT NULL,
  webhook_id      uuid NOT NULL,
  position        bigint GENERATED ALWAYS AS IDENTITY,
  -- Fresh ones have waited since they were published, and ready ones are due again.
  state           text NOT NULL DEFAULT 'fresh'
                  CHECK (state IN ('fresh', 'ready', 'blocked', 'later', 'failed')),
  next_attempt_at timestamptz NOT NULL,
  -- When the last attempt was recorded, in whole milliseconds: from then on, it waits until it is due.
  attempted_at    timestamptz,
  -- How many of its claims have ended, but not those that were released.
  claim_count     integer NOT NULL DEFAULT 0,
  attempts        jsonb NOT NULL DEFAULT '[]',
  -- Whether it is one of many that were replayed together: all others of its webhook are claimed before it.
  is_replay       boolean NOT NULL DEFAULT false,
  -- Whom the event is about, as `member_of` says, if the webhook was ordered when it was published or replayed.
  member          bigint,
  PRIMARY KEY (event_id, webhook_id)
  -- Most rows are deleted soon after they are inserted, so vacuum has to run often.
) WITH (autovacuum_vacuum_scale_factor = 0.01);

CREATE INDEX deliveries_fresh ON tenure.deliveries (webhook_id, position)
WHERE state = 'fresh';

-- A fresh delivery has no entry in those that follow, unless it is ordered.
CREATE INDEX deliveries_open ON tenure.deliveries (webhook_id, position)
WHERE state IN ('ready', 'blocked', 'later');

CREATE INDEX deliveries_failed ON tenure.deliveries (webhook_id, position)
WHERE state = 'failed';

CREATE INDEX deliveries_ready ON tenure.deliveries (webhook_id, is_replay, next_attempt_at, position)
WHERE state = 'ready';

CREATE INDEX deliveries_due ON tenure.deliveries (next_attempt_at) WHERE state = 'later';

CREATE INDEX deliveries_later ON tenure.deliveries (attempted_at) WHERE state = 'later';

-- For the next attempt of a webhook, and for its latest ones. A delivery that was not attempted yet is in none of them.
CREATE INDEX deliveries_next ON tenure.deliveries (webhook_id, next_attempt_at)
WHERE state = 'later';

CREATE INDEX deliveries_open_attempted ON tenure.deliveries (webhook_id, attempted_at)
WHERE state IN ('ready', 'blocked', 'later') AND attempted_at IS NOT NULL;

-- The open deliveries of a member to an ordered webhook, in their order.
CREATE INDEX deliveries_of_member ON tenure.deliveries (webhook_id, member, position)
WHERE member IS NOT NULL AND state <> 'failed';

CREATE INDEX deliveries_failed_attempted ON tenure.deliveries (webhook_id, attempted_at)
WHERE state = 'failed' AND attempted_at IS NOT NULL;

CREATE SEQUENCE tenure.lease_ids;

-- What dispatchers have claimed: one row for the deliveries of a webhook that were claimed together, until all of them are
-- settled. Their own rows stay as they are meanwhile.
CREATE TABLE tenure.leases (
  webhook_id uuid NOT NULL,
  id         bigint NOT NULL,
  dispatcher uuid NOT NULL,
  until      timestamptz NOT NULL,
  -- The positions of the deliveries that are not settled, and the member of each if any of them has one.
  positions  bigint[] NOT NULL,
  members    bigint[],
  PRIMARY KEY (webhook_id, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);

-- The least id that can have been made in the same period as another, or so many periods later. Ids that are no
-- UUIDv7 have their own order, which does as well.
CREATE FUNCTION tenure.floor_of(id uuid, millis bigint, later integer DEFAULT 0)
RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (lpad(to_hex(least(
    (('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / millis + later) * millis, 281474976710655
  )), 12, '0') || repeat('0', 20))::uuid
$$;

-- The least event id in a run that may have an event.
CREATE FUNCTION tenure.run_start(event_id uuid) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT tenure.floor_of(event_id, 1024)
$$;

-- Deliveries whose first attempt went well: one row for those of a webhook that were recorded together, with the same
-- result. An event, and what comes before a position, is found in few rows: the events of a row are of the same 1024
-- milliseconds, of which a day has a whole number, and its positions of the same 8192.
CREATE TABLE tenure.delivered_runs (
  project_number bigint NOT NULL,
  webhook_id     uuid NOT NULL,
  -- The least of the events.
  first_event    uuid NOT NULL,
  -- No position is lower.
  first_position bigint NOT NULL,
  -- The highest position of those that are left; NULL if none is.
  last_position  bigint,
  -- When the attempts were recorded, in whole milliseconds.
  attempted_at   timestamptz NOT NULL,
  -- The result of the attempts as JSON; NULL once no delivery is left.
  result         text,
  -- The events of persons who were erased: the response to them is not shown any more.
  erased_ids     uuid[] NOT NULL DEFAULT '{}',
  -- One element of each array for each delivery. The event is NULL once it was replayed.
  event_ids      uuid[] NOT NULL,
  positions      bigint[] NOT NULL,
  -- When the attempts started, in milliseconds since the epoch, and how long they took, in milliseconds.
  starts         bigint[] NOT NULL,
  durations      double precision[] NOT NULL,
  PRIMARY KEY (project_number, webhook_id, first_event)
) PARTITION BY RANGE (first_event);

CREATE INDEX delivered_runs_by_position ON tenure.delivered_runs (webhook_id, last_position);

CREATE INDEX delivered_runs_by_attempt ON tenure.delivered_runs (webhook_id, attempted_at)
WHERE last_position IS NOT NULL;

CREATE TABLE tenure.delivered_runs_default PARTITION OF tenure.delivered_runs DEFAULT;

CREATE INDEX delivered_runs_of_event ON tenure.delivered_runs_default (first_event);

-- The record of an attempt, an `Attempt` of core.
CREATE FUNCTION tenure.record_of(start bigint, duration double precision, result text)
RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT jsonb_build_object('at', start, 'durationMillis', duration, 'result', result::jsonb)
$$;

-- A result without the response.
CREATE FUNCTION tenure.without_body(result text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN result::jsonb ? 'body' THEN jsonb_set(result::jsonb, '{body}', '""')::text ELSE result END
$$;

-- What is left of a run without the deliveries at some places, if some persons are erased. A response stays for as long
-- as a delivery shows it.
CREATE FUNCTION tenure.rest_of(
  run tenure.delivered_runs, places integer[], erased uuid[],
  OUT event_ids uuid[], OUT last_position bigint, OUT result text
) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_agg(e.id ORDER BY e.n), max(e.position) FILTER (WHERE e.id IS NOT NULL),
         CASE WHEN count(e.id) = 0 THEN NULL
              WHEN bool_and(e.id = ANY (erased)) FILTER (WHERE e.id IS NOT NULL) THEN tenure.without_body(run.result)
              ELSE run.result END
  FROM (
    SELECT CASE WHEN u.n <> ALL (places) THEN u.id END AS id, u.position, u.n
    FROM unnest(run.event_ids, run.positions) WITH ORDINALITY u (id, position, n)
  ) e
$$;

-- Returns the runs of a project that have an event. Steps from webhook to webhook, among the runs of the day.
CREATE FUNCTION tenure.runs_of(of_project bigint, of_event uuid) RETURNS SETOF tenure.delivered_runs
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = off
AS $$
DECLARE
  today CONSTANT uuid := tenure.floor_of(of_event, 86400000);
  tomorrow CONSTANT uuid := tenure.floor_of(of_event, 86400000, 1);
BEGIN
  RETURN QUERY
  WITH RECURSIVE receiver (id) AS (
    SELECT '00000000-0000-0000-0000-000000000000'::uuid
    UNION ALL
    SELECT n.webhook_id FROM receiver w CROSS JOIN LATERAL (
      SELECT r.webhook_id FROM tenure.delivered_runs r
      WHERE r.project_number = of_project AND r.webhook_id > w.id
        AND r.first_event >= today AND r.first_event < tomorrow
      ORDER BY r.project_number, r.webhook_id LIMIT 1
    ) n
  )
  SELECT r.* FROM receiver w
  JOIN tenure.delivered_runs r ON r.project_number = of_project AND r.webhook_id = w.id
    AND r.first_event BETWEEN tenure.run_start(of_event) AND of_event
  WHERE of_event = ANY (r.event_ids);
END $$;

-- What was delivered after another attempt, or was cancelled, moves here, so that deliveries stays small, and can be
-- dropped by the day of its event.
CREATE TABLE tenure.finished_deliveries (
  event_id        uuid NOT NULL,
  webhook_id      uuid NOT NULL,
  position        bigint NOT NULL,
  state           text NOT NULL CHECK (state IN ('delivered', 'cancelled')),
  -- When the last attempt was recorded, in whole milliseconds; NULL if it was cancelled before one.
  attempted_at    timestamptz,
  attempts        jsonb NOT NULL,
  PRIMARY KEY (event_id, webhook_id)
) PARTITION BY RANGE (event_id);

-- Each row is in one of the first two, and in at most one of the others.
CREATE INDEX deliveries_delivered ON tenure.finished_deliveries (webhook_id, position)
WHERE state = 'delivered';

CREATE INDEX deliveries_cancelled ON tenure.finished_deliveries (webhook_id, position)
WHERE state = 'cancelled';

CREATE INDEX deliveries_delivered_attempted ON tenure.finished_deliveries (webhook_id, attempted_at)
WHERE state = 'delivered';

CREATE INDEX deliveries_cancelled_attempted ON tenure.finished_deliveries (webhook_id, attempted_at)
WHERE state = 'cancelled' AND attempted_at IS NOT NULL;

CREATE TABLE tenure.finished_deliveries_default
PARTITION OF tenure.finished_deliveries DEFAULT;

-- How many attempts were made in each quarter of an hour for a webhook, and in each minute for a project, or for
-- all with the number 0. Processes add what they have counted every few seconds; housekeeping deletes old rows.
CREATE TABLE tenure.delivery_quarters (
  project_number bigint NOT NULL,
  webhook_id     uuid NOT NULL,
  at             timestamptz NOT NULL,
  delivered      integer NOT NULL,
  failed         integer NOT NULL,
  -- How many took how long: a histogram with the buckets of core.
  answer_times   integer[] NOT NULL,
  PRIMARY KEY (project_number, webhook_id, at)
) WITH (fillfactor = 50);

CREATE INDEX delivery_quarters_by_age ON tenure.delivery_quarters (at);

CREATE TABLE tenure.delivery_minutes (
  project_number bigint NOT NULL,
  at             timestamptz NOT NULL,
  delivered      integer NOT NULL,
  failed         integer NOT NULL,
  PRIMARY KEY (project_number, at)
) WITH (fillfactor = 50);

CREATE INDEX delivery_minutes_by_age ON tenure.delivery_minutes (at);

CREATE TABLE tenure.idempotency_keys (
  owner          text COLLATE "C" NOT NULL,
  key            text COLLATE "C" NOT NULL,
  -- The project with which the key is forgotten; 0 if there is none.
  project_number bigint NOT NULL,
  fingerprint    text NOT NULL,
  response       text NOT NULL,
  at             timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (owner, key)
);

CREATE INDEX idempotency_keys_by_age ON tenure.idempotency_keys (at);

-- Takes as much room as a change, and gives it back. Fails where changes do, for example because the disk is full.
CREATE FUNCTION tenure.try_change() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  INSERT INTO tenure.idempotency_keys (owner, key, project_number, fingerprint, response)
  SELECT '', gen_random_uuid()::text, 0, '', string_agg(md5(random()::text), '') FROM generate_series(1, 1000);
  RAISE EXCEPTION USING ERRCODE = 'TE000';
EXCEPTION WHEN SQLSTATE 'TE000' THEN
  NULL;
END $$;

-- A crash of the server empties unlogged tables, which only refills the buckets, and has pages ask for
-- other tickets.
CREATE UNLOGGED TABLE tenure.tickets (
  digest     text COLLATE "C" PRIMARY KEY,
  key_id     text COLLATE "C" NOT NULL,
  -- The digest of the API key; NULL if the host identified whose ticket it is.
  key_digest text,
  -- NULL for all projects.
  projects   text[],
  -- How long it lives from the beginning, and until when.
  life       interval NOT NULL,
  expires_at timestamptz NOT NULL
);

CREATE INDEX tickets_of_key ON tenure.tickets (key_id, expires_at);

-- Adds a ticket and returns a row, unless its key has the maximum of live tickets. A function, because
-- it has to count after it has the lock: other transactions may have added tickets meanwhile.
CREATE FUNCTION tenure.add_ticket(
  new_digest text, of_key text, of_digest text, of_projects text[], life interval, most integer
) RETURNS SETOF integer LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('tenure.tickets ' || of_key, 0));
  IF most <= (
    SELECT count(*) FROM (
      SELECT FROM tenure.tickets t
      WHERE t.key_id = of_key AND t.expires_at > clock_timestamp()
        AND t.expires_at <= clock_timestamp() + t.life + interval '1 second'
      LIMIT most
    ) living
  ) THEN RETURN; END IF;
  INSERT INTO tenure.tickets (digest, key_id, key_digest, projects, life, expires_at)
  VALUES (new_digest, of_key, of_digest, of_projects, life, clock_timestamp() + life);
  RETURN NEXT 1;
END $$;

CREATE UNLOGGED TABLE tenure.rate_limit_buckets (
  id      text COLLATE "C" PRIMARY KEY,
  -- When it is full again if nothing is taken, in microseconds: the theoretical arrival time of GCRA.
  full_at bigint NOT NULL,
  -- The same of the bucket for bursts, if it is the row of an API key. Both are taken from together.
  burst_full_at bigint
) WITH (fillfactor = 70);
