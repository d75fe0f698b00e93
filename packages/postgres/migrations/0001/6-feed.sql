-- Returns the next events of some projects that the snapshot `base` does not see: those of
-- transactions with numbers from its end on, and of those that were running. It returns up to
-- `most_events`, and none after `most_bytes`. If `last_xid` is not NULL, it returns those after the
-- event `last_id` of this transaction that the snapshot `until` sees.
-- Every row has the snapshot of the statement, how many events it found within `most_events`, and a
-- transaction `used` whose number no other gets after a crash of the database; if `most_events` is 0,
-- no event is of a later one. Without an event, the only row has nothing else. Without any of the
-- projects, there is no row.
-- It looks only into the days from `open_from` on if `base` has seen everything before: see
-- `closed_days`. A function, because a connection plans it once: planning takes longer than looking
-- into the partitions of a month.
CREATE FUNCTION tenure.read_feed(
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
      AND NOT EXISTS (
        SELECT FROM tenure.late_events
        WHERE xid >= pg_snapshot_xmax(base) AND xid < pg_snapshot_xmax(pg_current_snapshot())
      )
      AND NOT EXISTS (SELECT FROM tenure.late_events WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(base))))
    THEN c.open_from
  END INTO used, open_from FROM tenure.closed_days c;
  open_from := coalesce(open_from, '00000000-0000-0000-0000-000000000000');
  IF most_events = 0 THEN
    used := greatest(used, (
      SELECT n.xid FROM tenure.projects p
      CROSS JOIN LATERAL (
        SELECT e.xid FROM tenure.events e
        WHERE e.project_number = p.number AND xid < pg_snapshot_xmax(pg_current_snapshot())
        ORDER BY e.xid DESC, e.id DESC LIMIT 1
      ) n
      WHERE p.id = ANY (projects) ORDER BY n.xid DESC LIMIT 1
    ));
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
        WHERE e.project_number = p.number AND e.id >= open_from
          AND xid >= pg_snapshot_xmax(base) AND xid < pg_snapshot_xmax(pg_current_snapshot())
          AND (last_xid IS NULL
               OR (e.xid, e.id) > (last_xid, last_id) AND pg_visible_in_snapshot(e.xid, until))
        ORDER BY e.xid, e.id LIMIT most_events
      )
      UNION ALL

      (
        SELECT e.xid, e.id, e.type, e.at, e.body FROM tenure.events e
        WHERE e.project_number = p.number AND e.id >= open_from
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
  SELECT pg_current_snapshot()::text, statement_timestamp(),
substr(md5(concat_ws(' ',
  (SELECT c.system_identifier FROM pg_control_system() c),
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
  (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()),
  'tenure.events'::regclass::oid
)), 1, 12),
         (SELECT count(*) FROM events)::integer, used::text,
         m.xid::text, m.id, m.project_id, m.type, m.at, m.body
  FROM (SELECT FROM existing LIMIT 1) any_project
  LEFT JOIN measured m ON m.bytes < most_bytes
  ORDER BY m.xid, m.id;
END $$;
