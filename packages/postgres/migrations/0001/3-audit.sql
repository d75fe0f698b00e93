-- The audit trail, in parts that can be dropped whole. A part's ids are a range, and the id sequence jumps to
-- the first one when the part begins: so ids are in the order in which rows were written, across parts.
-- Functions with SECURITY DEFINER change tables for roles that own nothing. They wait only a moment for a
-- lock, because there is a next time.

-- Without a cache, so that all connections continue after a jump.
CREATE SEQUENCE tenure.audit_ids CACHE 1;

CREATE TABLE tenure.audit (
  id         bigint NOT NULL DEFAULT nextval('tenure.audit_ids'),
  -- 0 for whatever belongs to no project.
  project_number bigint NOT NULL,
  -- The round that the change's seq is in. It puts an extension before a bulk extension that overrode it,
  -- whichever was recorded first.
  seq        bigint NOT NULL,
  -- NULL for a bulk change, for an erased user, and for a change to something else: then `subject` is a
  -- webhook, an API key, a project or a bulk extension.
  user_id    text COLLATE "C",
  -- The other user in a move. Both have a row.
  other_user_id text COLLATE "C",
  subject    text,
  action     text NOT NULL CHECK (action IN (
               'granted', 'imported', 'extended', 'bulk_extended', 'bulk_lengthened', 'bulk_extended_by',
               'bulk_undone', 'ended', 'moved',
               'updated', 'paused', 'resumed', 'reverted', 'expiring', 'overdue', 'expired', 'person_erased', 'project_created',
               'project_deleted',
               'project_changed', 'webhook_created', 'webhook_changed', 'webhook_deleted', 'webhook_disabled',
               'secret_rotated', 'secret_shown', 'data_shown', 'signing_key_added', 'deliveries_cancelled',
               'key_issued', 'key_opened', 'key_revoked'
             )),
  from_date  timestamptz(3),
  to_date    timestamptz(3),
  -- How much later all memberships end.
  extend_by  interval,
  at         timestamptz NOT NULL,
  request_id text,
  key_id     text,
  reason     text,
  -- The changed settings of a webhook or a project with old and new values, as JSON; NULL for other changes.
  changes    text,
  -- The state after a change to a membership, for reverts: the form of the end date, where NULL is no day, and
  -- the pause. A bulk extension has in_days. The end of a pause by itself has resumes_at alone.
  in_days    boolean,
  kept_day   smallint,
  paused_at  timestamptz(3),
  resumes_at timestamptz(3),
  PRIMARY KEY (project_number, seq, id)
) PARTITION BY RANGE (id);

CREATE INDEX audit_of_user ON tenure.audit (project_number, user_id, seq, id);

CREATE INDEX audit_of_all_users ON tenure.audit (project_number, seq, id)
WHERE action IN ('bulk_extended', 'bulk_lengthened', 'bulk_extended_by', 'bulk_undone');

-- For erasing a user from other users' rows.
CREATE INDEX audit_of_other_user ON tenure.audit (project_number, other_user_id) WHERE other_user_id IS NOT NULL;

-- Returns the first id in the part that begins on a day.
CREATE FUNCTION tenure.first_audit_id(day date) RETURNS bigint LANGUAGE sql IMMUTABLE
AS $$ SELECT (day - date '1970-01-01')::bigint << 40 $$;

-- Creates the part that begins on a day. Rows are written only through `audit`, so that a role which may not
-- change `audit` cannot change the parts either.
CREATE FUNCTION tenure.create_audit_part(day date) RETURNS void LANGUAGE plpgsql
AS $$
DECLARE
  name CONSTANT text := 'tenure.audit' || to_char(day, '_YYYYMMDD');
  role text;
BEGIN
  EXECUTE 'CREATE TABLE ' || name || ' (LIKE tenure.audit INCLUDING ALL)';
  FOR role IN
    SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
    FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.oid = name::regclass AND a.grantee <> c.relowner
  LOOP
    EXECUTE 'REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON ' || name || ' FROM ' || role;
  END LOOP;
  EXECUTE format(
    'ALTER TABLE tenure.audit ATTACH PARTITION ' || name || ' FOR VALUES FROM (%s) TO (%s)',
    tenure.first_audit_id(day), tenure.first_audit_id(day + 1));
END $$;

-- Each part, when it began, and when the next one did.
CREATE VIEW tenure.audit_parts AS
SELECT c.relname AS name, d.day, lead(d.day) OVER (ORDER BY d.day) AS next_day
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
CROSS JOIN LATERAL (SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day) d
WHERE i.inhparent = 'tenure.audit'::regclass;

-- Returns the first id that rows can have since a time. A part may be written to until the day after the next one
-- begins, and until the part after that exists, because the newest one may be unused.
CREATE FUNCTION tenure.first_audit_id_since(since timestamptz) RETURNS bigint LANGUAGE sql STABLE
AS $$
  SELECT tenure.first_audit_id(min(p.day))
  FROM (SELECT day, next_day, lead(day, 2) OVER (ORDER BY day) AS later_day FROM tenure.audit_parts) p
  WHERE p.later_day IS NULL OR p.next_day + 1 > since AT TIME ZONE 'UTC'
$$;

-- Returns the first selected row of each of the next users who have one, in their order. Of actions on one
-- membership, the end of a pause by itself is never selected. A function, because the planner would read and
-- sort all selected rows for each page: this reads the index of users until the page is full.
CREATE FUNCTION tenure.first_selected_changes(
  of_project bigint, after_user text, most integer, first_id bigint, actions text[],
  since timestamptz, until timestamptz, by_key text, by_requests text[]
) RETURNS SETOF tenure.audit LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET jit = off
AS $$
BEGIN
  RETURN QUERY
  SELECT DISTINCT ON (a.user_id) a.* FROM tenure.audit a
  WHERE a.project_number = of_project AND a.user_id > after_user AND a.id >= first_id
    AND a.action = ANY (actions)
    AND (a.action = 'resumed' AND a.resumes_at IS NOT NULL AND a.paused_at IS NULL) IS NOT TRUE
    AND a.at >= since AND (until IS NULL OR a.at < until)
    AND (by_key IS NULL OR a.key_id = by_key)
    AND (by_requests IS NULL OR a.request_id = ANY (by_requests))
  ORDER BY a.user_id, a.seq, a.id LIMIT most;
END $$;

-- Begins a part if the newest one has covered a day, or a thirtieth of the retention time if that is longer,
-- because reading from all parts has to open each. Returns the day after each of two steps. The first creates
-- the part; the second makes the sequence jump to it, which no rollback could undo. No row is written
-- meanwhile, because a statement that has begun before does not know the part.
CREATE FUNCTION tenure.begin_audit(kept interval) RETURNS SETOF date LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '50ms'
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  today CONSTANT date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
  newest date;
  unused name;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tenure.days', 0)) THEN RETURN; END IF;
  SELECT max(p.day) INTO newest
  FROM tenure.audit_parts p, tenure.audit_ids s
  WHERE tenure.first_audit_id(p.day) <= s.last_value;
  IF newest + greatest(interval '1 day', kept / 30) > today THEN RETURN; END IF;
  IF EXISTS (SELECT FROM tenure.audit_parts p WHERE p.day = today) THEN
    LOCK TABLE ONLY tenure.audit IN SHARE ROW EXCLUSIVE MODE;
    PERFORM setval('tenure.audit_ids', tenure.first_audit_id(today));
  ELSE
    -- An unused part from an earlier day would give the part before it a wrong end.
    FOR unused IN SELECT p.name FROM tenure.audit_parts p WHERE p.day > newest LOOP
      EXECUTE format('DROP TABLE tenure.%I', unused);
    END LOOP;
    PERFORM tenure.create_audit_part(today);
  END IF;
  RETURN NEXT today;
EXCEPTION WHEN lock_not_available THEN RETURN;
END $$;

-- Drops the oldest part if everything in it is older than `kept`, and returns its day. Rows are written to a
-- part until some time on the day when the next one begins.
CREATE FUNCTION tenure.drop_audit(kept interval) RETURNS SETOF date LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '50ms'
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  oldest record;
BEGIN
  IF NOT has_table_privilege(session_user, 'tenure.audit', 'DELETE') THEN
    RAISE insufficient_privilege USING MESSAGE = 'permission denied to delete audit rows';
  END IF;
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tenure.days', 0)) THEN RETURN; END IF;
  SELECT * INTO oldest FROM tenure.audit_parts ORDER BY day LIMIT 1;
  IF oldest.next_day + 1 <= (clock_timestamp() AT TIME ZONE 'UTC') - kept
     AND tenure.first_audit_id(oldest.next_day) <= (SELECT last_value FROM tenure.audit_ids) THEN
    EXECUTE format('DROP TABLE tenure.%I', oldest.name);
    RETURN NEXT oldest.day;
  END IF;
EXCEPTION WHEN lock_not_available THEN RETURN;
END $$;

-- The only part, as long as rows are kept forever.
SELECT tenure.create_audit_part(today), setval('tenure.audit_ids', tenure.first_audit_id(today))
FROM (SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS today) t;
