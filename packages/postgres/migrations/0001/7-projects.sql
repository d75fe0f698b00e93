-- Deleted projects and erased persons, until housekeeping has removed the rest of their data.

CREATE TABLE tenure.deleted_projects (
  number       bigint PRIMARY KEY,
  deleted_in   xid8 NOT NULL DEFAULT pg_current_xact_id(),
  -- The last event that housekeeping has read.
  events_after uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'
);

CREATE TABLE tenure.erasures (
  project_number bigint NOT NULL REFERENCES tenure.projects (number) ON DELETE CASCADE,
  user_id        text COLLATE "C" NOT NULL,
  at             timestamptz NOT NULL,
  -- An earlier transaction may have published events about the person that were not visible yet.
  begun_in       xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (project_number, user_id)
);

-- Deletes a project and its webhooks, sends their ids on a channel, and leaves the rest to `forget_projects`:
-- no other table has the project's id. Returns a row if the project existed. A function, because it has to
-- read the webhooks after it has the lock: one may have been added meanwhile.
CREATE FUNCTION tenure.delete_project(deleted_id text, channel text) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
DECLARE
  deleted bigint;
  webhook uuid;
BEGIN
  SELECT p.number INTO deleted FROM tenure.projects p WHERE p.id = deleted_id FOR UPDATE;
  IF deleted IS NULL THEN RETURN; END IF;
  FOR webhook IN DELETE FROM tenure.webhooks w WHERE w.project_number = deleted RETURNING w.id LOOP
    PERFORM pg_notify(channel, webhook::text);
  END LOOP;
  DELETE FROM tenure.projects p WHERE p.number = deleted;
  INSERT INTO tenure.deleted_projects (number) VALUES (deleted);
  RETURN NEXT deleted;
END $$;

-- Removes up to `most` rows in deleted projects from each table, and reads up to `most` events in all
-- projects, ordered by id. Returns a row if there may be more. It begins with a project when all transactions
-- that may still write its rows have ended. Audit rows stay where the caller may not delete them.
CREATE FUNCTION tenure.forget_projects(most integer) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
  gone bigint[];
  first uuid;
  last uuid;
  old uuid[];
  removed integer;
  rest integer := 0;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tenure.deleted_projects', 0)) THEN RETURN; END IF;
  SELECT array_agg(d.number), (array_agg(d.events_after ORDER BY d.events_after))[1] INTO gone, first
  FROM tenure.deleted_projects d WHERE d.deleted_in < pg_snapshot_xmin(pg_current_snapshot());
  IF gone IS NULL THEN RETURN; END IF;

  -- By `ctid`, because in a join the planner may run the subquery again for each row in the table.
  DELETE FROM tenure.memberships m WHERE m.ctid = ANY (ARRAY(
    SELECT o.ctid FROM tenure.memberships o WHERE o.project_number = ANY (gone) LIMIT most
  ));
  GET DIAGNOSTICS removed = ROW_COUNT;
  rest := rest + removed;

  DELETE FROM tenure.delivery_minutes m WHERE m.ctid = ANY (ARRAY(
    SELECT o.ctid FROM tenure.delivery_minutes o WHERE o.project_number = ANY (gone) LIMIT most
  ));
  GET DIAGNOSTICS removed = ROW_COUNT;
  rest := rest + removed;

  DELETE FROM tenure.delivery_quarters q WHERE q.ctid = ANY (ARRAY(
    SELECT o.ctid FROM tenure.delivery_quarters o WHERE o.project_number = ANY (gone) LIMIT most
  ));
  GET DIAGNOSTICS removed = ROW_COUNT;
  rest := rest + removed;

  DELETE FROM tenure.api_key_projects k WHERE k.ctid = ANY (ARRAY(
    SELECT o.ctid FROM tenure.api_key_projects o WHERE o.project_number = ANY (gone) LIMIT most
  ));
  GET DIAGNOSTICS removed = ROW_COUNT;
  rest := rest + removed;

  DELETE FROM tenure.delivered_runs d WHERE (d.project_number, d.webhook_id, d.first_event) IN (
    SELECT o.project_number, o.webhook_id, o.first_event FROM tenure.delivered_runs o
    WHERE o.project_number = ANY (gone) LIMIT most
  );
  GET DIAGNOSTICS removed = ROW_COUNT;
  rest := rest + removed;

  IF has_table_privilege('tenure.audit', 'DELETE') THEN
    DELETE FROM tenure.audit a WHERE (a.project_number, a.seq, a.id) IN (
      SELECT o.project_number, o.seq, o.id FROM tenure.audit o
      WHERE o.project_number = ANY (gone) LIMIT most
    );
    GET DIAGNOSTICS removed = ROW_COUNT;
    rest := rest + removed;
  END IF;

  SELECT array_agg(e.id) FILTER (WHERE e.project_number = ANY (gone)),
         (array_agg(e.id ORDER BY e.id DESC))[1], count(*)
  INTO old, last, removed
  FROM (
    SELECT o.id, o.project_number FROM tenure.events o WHERE o.id > first ORDER BY o.id LIMIT most
  ) e;
  DELETE FROM tenure.deliveries d WHERE d.event_id = ANY (old);
  DELETE FROM tenure.finished_deliveries d WHERE d.event_id = ANY (old);
  DELETE FROM tenure.events e WHERE e.id = ANY (old);
  IF removed = most THEN
    UPDATE tenure.deleted_projects d SET events_after = last
    WHERE d.number = ANY (gone) AND d.events_after < last;
  ELSIF rest = 0 THEN
    DELETE FROM tenure.deleted_projects d WHERE d.number = ANY (gone);
    RETURN;
  END IF;
  RETURN NEXT rest;
END $$;
