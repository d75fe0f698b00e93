-- Tables for everything that clients and hosts store, and their indexes.

CREATE TABLE tenure.projects (
  id                   text COLLATE "C" PRIMARY KEY,
  -- All other tables have this number in place of the id. So a project that is created again after it was
  -- deleted has another number, and nothing from the earlier one.
  number               bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  -- The IANA time zone in which the project's days begin and end.
  time_zone            text NOT NULL DEFAULT 'UTC',
  -- For how long memberships are still active after their end dates.
  grace_seconds        integer NOT NULL DEFAULT 0,
  grace_set_at         timestamptz,
  -- How many memberships and webhooks the project has.
  membership_count     bigint NOT NULL DEFAULT 0,
  webhook_count        integer NOT NULL DEFAULT 0,
  -- The seq of the last change to many memberships or, if that is greater, of the last removal of one.
  seq                  bigint NOT NULL DEFAULT 0,
  -- The seq of the last bulk extension, even if it was undone: members with a greater one have their own
  -- date.
  bulk_seq             bigint NOT NULL DEFAULT 0,
  -- When a bulk extension was last made or undone, by the earlier of the process's and the database's clock.
  bulk_changed_at      timestamptz,
  -- The same time for the first one that no pass through the members has seen.
  bulk_unseen_since    timestamptz,
  -- The seq of the newest bulk extension that has become part of members' own dates.
  settled_seq          bigint NOT NULL DEFAULT 0,
  -- When to give every member a next check, because a bulk extension may end memberships then. '-infinity'
  -- means at once.
  next_check_at        timestamptz,
  -- Members up to this user id are in the index for the ending list, and new ones are added to it. NULL if
  -- the list has not been used yet. U+007F sorts after all user ids.
  ending_backfilled_to text COLLATE "C"
) WITH (fillfactor = 50);

CREATE TABLE tenure.memberships (
  project_number         bigint NOT NULL,
  user_id                text COLLATE "C" NOT NULL,
  end_date               timestamptz(3) NOT NULL,
  -- Whether end_date was given as a day.
  in_days                boolean NOT NULL DEFAULT false,
  -- The day of the month that months count with, if end_date hides it. Without a CHECK, which each extension
  -- would pay for.
  kept_day               smallint,
  -- A pause: end_date stands meanwhile, and is later afterwards by the time paused. When resumes_at is over,
  -- both stay until that is announced, but paused_at is NULL as soon as end_date has it.
  paused_at              timestamptz(3),
  resumes_at             timestamptz(3),
  -- The seq of the change that set end_date: bulk extensions with a greater one apply.
  seq                    bigint NOT NULL,
  -- When end_date was set, by the database's clock or, if that was ahead, the process's. Setting the same
  -- date again keeps it.
  date_set_at            timestamptz NOT NULL DEFAULT statement_timestamp(),
  -- The same time, if a change of many has set end_date: what sets it for one member need not write this.
  set_with_others_at     timestamptz,
  -- The end date before the last change, for the statement that audits the change.
  previous_end_date      timestamptz(3),
  -- When to check whether there is something to announce.
  next_check_at          timestamptz,
  -- The last announced end date, and how many seconds before it: 0 for the end itself, if there is grace, and -1
  -- for the expiry.
  announced_end          timestamptz(3),
  announced_lead_seconds integer,
  -- The seq of the last change that kept end_date, which is an announcement or a change to the metadata. It
  -- is greater than the seq of the change before.
  dateless_seq           bigint,
  -- The project's bulk_seq when end_date was set, for the ending list; NULL if the membership is not in its
  -- index. If the membership was found to have ended, -1 minus that.
  ending_generation      bigint,
  -- A lower bound for end_date; end_date itself if the membership was found to have ended.
  ending_lower_bound     timestamptz(3),
  -- A JSON object with texts by name, sorted by name; NULL if there never was one.
  metadata               text,
  PRIMARY KEY (project_number, user_id)
) WITH (fillfactor = 60);

-- The cell directory, in the home schema, if there are several servers. If it is empty, this schema has
-- everything.
CREATE TABLE tenure.cells (
  number     integer PRIMARY KEY,
  -- The name of the cell's server, and when the cell came there; NULL if it never moved.
  server     text NOT NULL,
  moved_at   timestamptz,
  -- The server it is moving to, and the one that still has its former tables.
  moving_to  text,
  moved_from text,
  CHECK (moving_to IS NULL OR moved_from IS NULL)
);

-- When a row has arrived at a move's target, all earlier changes have.
CREATE TABLE tenure.move_markers (id uuid PRIMARY KEY);

-- Raises the same error as an absent schema, which makes processes look for the cell.
CREATE FUNCTION tenure.refuse_change() RETURNS trigger LANGUAGE plpgsql
AS $$
BEGIN
  RAISE invalid_schema_name USING MESSAGE = 'the cell is still on another server';
END $$;

-- Makes a cell refuse changes while it is being copied to this server. Replicated changes fire no trigger.
CREATE FUNCTION tenure.close_cell() RETURNS void LANGUAGE plpgsql
AS $$
DECLARE
  changed regclass;
BEGIN
  FOR changed IN
    SELECT c.oid FROM pg_class c
    WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'tenure.cells'::regclass)
      AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
      -- Among partitions, statements name only these.
      AND (NOT c.relispartition OR c.relname ~ '_default$')
  LOOP
    EXECUTE format(
      'CREATE TRIGGER closed BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s
       FOR EACH STATEMENT EXECUTE FUNCTION tenure.refuse_change()', changed);
  END LOOP;
END $$;

-- Opens a cell whose former tables are gone. Any process may do this, repeatedly.
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
  -- In the same transaction, because changes would otherwise belong to the epoch before.
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
  -- Whether the key's scope is all projects, not only those in api_key_projects.
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
  -- The secret before the last rotation, which also signs until this time.
  previous_secret text,
  previous_until  timestamptz,
  -- The Ed25519 key that signs in addition to the secret, if one was requested.
  signing_key     text,
  -- The event types that the webhook receives; NULL for all types.
  event_types     text[],
  description     text,
  -- The names of the webhook's own request headers, and all headers as JSON, encrypted like a secret; NULL
  -- without any.
  header_names    text[],
  headers         text,
  -- Whether a member's events are sent one after another; NULL if it never was so. If it ever was, deliveries
  -- may still have a member.
  ordered         boolean,
  -- How many attempts may start in a second; NULL without a limit. The tokens are in rate_limit_buckets, so
  -- that a claim waits for no transaction that changes the webhook.
  rate            integer CHECK (rate > 0),
  created_at      timestamptz NOT NULL,
  -- Since when it is disabled, and why: waiting deliveries fail if it was because of failures, and keep
  -- waiting if it was requested.
  disabled_at     timestamptz,
  disabled_by     text CHECK (disabled_by IN ('failures', 'request')),
  -- How many attempts have failed since the last success, and when the first did.
  failures        integer NOT NULL DEFAULT 0,
  failing_since   timestamptz,
  -- How much of the time until it is disabled was announced, in percent; meaningless before the first
  -- failure.
  failing_percent smallint NOT NULL DEFAULT 0,
  -- No attempt starts before this time; the pause began at the other one.
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
  -- The transaction that stored the event. The feed is in the order in which these commit.
  xid            xid8 NOT NULL DEFAULT pg_current_xact_id(),
  -- Transactions can only be compared within an epoch. `begin_epoch` sets the default.
  epoch          integer NOT NULL,
  type           text NOT NULL,
  body           text NOT NULL
) PARTITION BY RANGE (id);

CREATE INDEX events_feed ON tenure.events (project_number, epoch, xid, id);

CREATE TABLE tenure.events_default PARTITION OF tenure.events DEFAULT;

CREATE INDEX events_by_age ON tenure.events_default (at);

CREATE TABLE tenure.dispatchers (
  id       uuid PRIMARY KEY,
  -- When it last reported to be alive, and since when it has reported every second by a clock that was not
  -- set back.
  seen_at  timestamptz NOT NULL,
  since    timestamptz NOT NULL,
  -- When it last claimed something.
  busy_at  timestamptz NOT NULL DEFAULT to_timestamp(0),
  -- Whether it has no claims and knows no other dispatcher: then it reports every 5 seconds.
  is_quiet boolean NOT NULL DEFAULT false,
  -- The session in its process that holds a lock, as of its last report, and that server's start time. NULL
  -- without one, for example behind a pooler.
  session           uuid,
  server_started_at timestamptz
) WITH (fillfactor = 50);

-- Since when a dispatcher that reports now has reported every second. It starts again after a pause, and
-- after the clock was set back, because others had no time to report since then.
CREATE FUNCTION tenure.reporting_since(seen_at timestamptz, since timestamptz) RETURNS timestamptz LANGUAGE sql AS $$
  SELECT CASE WHEN seen_at < clock_timestamp() - interval '1 second' OR seen_at > clock_timestamp()
         THEN clock_timestamp() ELSE since END
$$;

-- Whether a dispatcher has missed several reports. A report in the future is from before the clock was set
-- back.
CREATE FUNCTION tenure.is_silent(seen_at timestamptz, is_quiet boolean) RETURNS boolean LANGUAGE sql AS $$
  SELECT abs(extract(epoch FROM seen_at - clock_timestamp())) > CASE WHEN is_quiet THEN 6.5 ELSE 1.5 END
$$;

-- Whether a session holds its lock. The server releases it when the session ends.
CREATE FUNCTION tenure.is_held(session uuid) RETURNS boolean LANGUAGE sql AS $$
  SELECT NOT pg_try_advisory_xact_lock_shared(hashtextextended(session::text, 0))
$$;

-- In how many seconds a dispatcher whose session has ended will count as gone, unless it reports before:
-- perhaps only its connections were cut. NULL if the session goes on, or if the server has restarted since.
CREATE FUNCTION tenure.gone_in(seen_at timestamptz, session uuid, server_started_at timestamptz)
RETURNS double precision LANGUAGE sql AS $$
  SELECT CASE WHEN server_started_at = pg_postmaster_start_time() AND NOT tenure.is_held(session)
         THEN 0.6 - abs(extract(epoch FROM seen_at - clock_timestamp())) END
$$;

-- Dispatchers that are gone, as noticed by another. Silence counts only while the other could report itself:
-- if the database stands still, all are silent. An ended session counts only for a dispatcher whose own goes
-- on: whatever ended all sessions has ended no process.
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
  -- Fresh deliveries have waited since they were published; ready ones are due again.
  state           text NOT NULL DEFAULT 'fresh'
                  CHECK (state IN ('fresh', 'ready', 'blocked', 'later', 'failed')),
  next_attempt_at timestamptz NOT NULL,
  -- When the last attempt was recorded, in whole milliseconds: its delay counts from then.
  attempted_at    timestamptz,
  -- How many claims have ended, without released ones.
  claim_count     integer NOT NULL DEFAULT 0,
  attempts        jsonb NOT NULL DEFAULT '[]',
  -- Whether it was replayed together with others: all other deliveries to its webhook are claimed before it.
  is_replay       boolean NOT NULL DEFAULT false,
  -- The member that the event is about (see `member_of`), if the webhook was ordered when it was published or
  -- replayed.
  member          bigint,
  PRIMARY KEY (event_id, webhook_id)
  -- Most rows are deleted soon after they are inserted, so vacuum has to run often.
) WITH (autovacuum_vacuum_scale_factor = 0.01);

CREATE INDEX deliveries_fresh ON tenure.deliveries (webhook_id, position)
WHERE state = 'fresh';

-- Fresh deliveries have no entry in the following indexes, unless they are ordered.
CREATE INDEX deliveries_open ON tenure.deliveries (webhook_id, position)
WHERE state IN ('ready', 'blocked', 'later');

CREATE INDEX deliveries_failed ON tenure.deliveries (webhook_id, position)
WHERE state = 'failed';

CREATE INDEX deliveries_ready ON tenure.deliveries (webhook_id, is_replay, next_attempt_at, position)
WHERE state = 'ready';

CREATE INDEX deliveries_due ON tenure.deliveries (next_attempt_at) WHERE state = 'later';

CREATE INDEX deliveries_later ON tenure.deliveries (attempted_at) WHERE state = 'later';

-- For a webhook's next attempt, and for its latest ones. Deliveries without an attempt are in none of these.
CREATE INDEX deliveries_next ON tenure.deliveries (webhook_id, next_attempt_at)
WHERE state = 'later';

CREATE INDEX deliveries_open_attempted ON tenure.deliveries (webhook_id, attempted_at)
WHERE state IN ('ready', 'blocked', 'later') AND attempted_at IS NOT NULL;

-- A member's open deliveries to an ordered webhook, in order.
CREATE INDEX deliveries_of_member ON tenure.deliveries (webhook_id, member, position)
WHERE member IS NOT NULL AND state <> 'failed';

CREATE INDEX deliveries_failed_attempted ON tenure.deliveries (webhook_id, attempted_at)
WHERE state = 'failed' AND attempted_at IS NOT NULL;

CREATE SEQUENCE tenure.lease_ids;

-- What dispatchers have claimed: one row for the deliveries to a webhook that were claimed together, until
-- all are settled. The rows in deliveries do not change meanwhile.
CREATE TABLE tenure.leases (
  webhook_id uuid NOT NULL,
  id         bigint NOT NULL,
  dispatcher uuid NOT NULL,
  until      timestamptz NOT NULL,
  -- The positions of unsettled deliveries, and the member of each if any has one.
  positions  bigint[] NOT NULL,
  members    bigint[],
  PRIMARY KEY (webhook_id, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);

-- The lowest id that can have been made in the same period as another, or this many periods later. Ids that
-- are no UUIDv7 have their own order, which works as well.
CREATE FUNCTION tenure.floor_of(id uuid, millis bigint, later integer DEFAULT 0)
RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (lpad(to_hex(least(
    (('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / millis + later) * millis, 281474976710655
  )), 12, '0') || repeat('0', 20))::uuid
$$;

-- The lowest first event that a run with this event can have.
CREATE FUNCTION tenure.run_start(event_id uuid) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT tenure.floor_of(event_id, 1024)
$$;

-- Runs: deliveries whose first attempt succeeded, one row for those to a webhook that were recorded together
-- with the same result. An event or a position is found in few rows: the events in a row are from the same
-- 1024 milliseconds, which divide a day, and its positions from the same 8192.
CREATE TABLE tenure.delivered_runs (
  project_number bigint NOT NULL,
  webhook_id     uuid NOT NULL,
  -- The lowest event id.
  first_event    uuid NOT NULL,
  -- No position is lower.
  first_position bigint NOT NULL,
  -- The highest position among remaining deliveries; NULL without any.
  last_position  bigint,
  -- When the attempts were recorded, in whole milliseconds.
  attempted_at   timestamptz NOT NULL,
  -- The attempts' result as JSON; NULL once no delivery is left.
  result         text,
  -- Events about erased persons: the response to these is not shown any more.
  erased_ids     uuid[] NOT NULL DEFAULT '{}',
  -- The arrays have one element for each delivery. The event is NULL once it was replayed.
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

-- An attempt's record, an `Attempt` in core.
CREATE FUNCTION tenure.record_of(start bigint, duration double precision, result text)
RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT jsonb_build_object('at', start, 'durationMillis', duration, 'result', result::jsonb)
$$;

-- A result without the response.
CREATE FUNCTION tenure.without_body(result text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN result::jsonb ? 'body' THEN jsonb_set(result::jsonb, '{body}', '""')::text ELSE result END
$$;

-- What is left in a run without the deliveries at some places, if some persons are erased. A response stays
-- for as long as a delivery shows it.
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

-- Returns a project's runs that have an event. Steps from webhook to webhook, among the runs from that day.
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

-- Deliveries that succeeded after another attempt, or were cancelled. They move here so that deliveries stays
-- small, and they can be dropped by the event's day.
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

-- Each row is in one of the first two indexes, and in at most one of the others.
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

-- Attempts per webhook in each 15 minutes, and per project in each minute; project 0 has the total. Processes
-- add their counts every few seconds; housekeeping deletes old rows.
CREATE TABLE tenure.delivery_quarters (
  project_number bigint NOT NULL,
  webhook_id     uuid NOT NULL,
  at             timestamptz NOT NULL,
  delivered      integer NOT NULL,
  failed         integer NOT NULL,
  -- A histogram of durations, with the buckets in core.
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
  -- The project with which the key is deleted; 0 if there is none.
  project_number bigint NOT NULL,
  fingerprint    text NOT NULL,
  response       text NOT NULL,
  at             timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (owner, key)
);

CREATE INDEX idempotency_keys_by_age ON tenure.idempotency_keys (at);

-- Takes as much room as a change, and gives it back. Fails when changes do, for example because the disk is
-- full.
CREATE FUNCTION tenure.try_change() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  INSERT INTO tenure.idempotency_keys (owner, key, project_number, fingerprint, response)
  SELECT '', gen_random_uuid()::text, 0, '', string_agg(md5(random()::text), '') FROM generate_series(1, 1000);
  RAISE EXCEPTION USING ERRCODE = 'TE000';
EXCEPTION WHEN SQLSTATE 'TE000' THEN
  NULL;
END $$;

-- A server crash empties unlogged tables. That only refills the buckets, and makes pages request new tickets.
CREATE UNLOGGED TABLE tenure.tickets (
  digest     text COLLATE "C" PRIMARY KEY,
  key_id     text COLLATE "C" NOT NULL,
  -- The digest of the API key; NULL if the host identified the ticket's owner.
  key_digest text,
  -- NULL for all projects.
  projects   text[],
  -- The ticket's whole life, and its end.
  life       interval NOT NULL,
  expires_at timestamptz NOT NULL
);

CREATE INDEX tickets_of_key ON tenure.tickets (key_id, expires_at);

-- Adds a ticket and returns a row, unless its key has the maximum number of valid tickets. A function,
-- because it has to count after it has the lock: other transactions may have added tickets meanwhile.
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
  -- The same for the bucket for bursts, in the row of an API key. Both are taken from together.
  burst_full_at bigint
) WITH (fillfactor = 70);
