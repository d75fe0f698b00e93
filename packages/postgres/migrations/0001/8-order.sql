-- Ordered webhooks: a member's deliveries are attempted one after another. The next one is the open delivery
-- with the lowest position, and none is claimed while another one is. A claim blocks the others that it
-- meets, so that no claim meets them again. A settlement then unblocks the lowest one.
-- So for each member, either a delivery is claimed, or the lowest one is not blocked. After a claim has
-- lapsed, the lowest one may be blocked, by a replay: then the next claim unblocks it, because it meets the
-- one that had lapsed.

-- The member that an event is about: a number for the first user id in its body, if any. Same rule as
-- `userOf` in core. Two users with the same number would only wait for each other.
CREATE FUNCTION tenure.member_of(body text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT hashtextextended(
    trim(BOTH '"' FROM substring(left(body, 1000) FROM '"user_id":("(?:[^"\\]|\\.)*"|[0-9]+)')), 0
  )
$$;

-- The position of a member's claimed delivery, if any.
CREATE FUNCTION tenure.claimed_of(of_webhook uuid, of_member bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT c.position
    FROM tenure.leases l CROSS JOIN LATERAL unnest(l.positions, l.members) AS c (position, member)
    WHERE l.webhook_id = of_webhook AND c.member = of_member LIMIT 1
  );
END $$;

-- The members with a claimed delivery. As with `leased`, a statement reads them once, which costs less than
-- `claimed_of` for many members.
CREATE FUNCTION tenure.claimed_members() RETURNS TABLE (webhook_id uuid, member bigint)
LANGUAGE plpgsql STABLE ROWS 500 AS $$
BEGIN
  RETURN QUERY SELECT l.webhook_id, c.member FROM tenure.leases l CROSS JOIN LATERAL unnest(l.members) AS c (member)
  WHERE c.member IS NOT NULL;
END $$;

-- The lowest position among a member's deliveries before another one, if any. A member's delivery has to wait
-- for the claimed one or, if there is none, for this one.
CREATE FUNCTION tenure.lowest_before(of_webhook uuid, of_member bigint, before bigint)
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT d.position FROM tenure.deliveries d
    WHERE d.webhook_id = of_webhook AND d.member = of_member AND d.state <> 'failed' AND d.position < before
    ORDER BY d.position LIMIT 1
  );
END $$;

-- Blocks deliveries whose turn has not come, among each webhook's next 1000 ready ones, for a claim. Returns
-- the webhooks with such deliveries, and whether there may be more to block at once.
CREATE FUNCTION tenure.block_deliveries(of_webhooks uuid[], OUT webhook_ids uuid[], OUT is_partial boolean)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
  WITH met AS MATERIALIZED (
    SELECT r.event_id, o.id AS webhook_id, r.member, r.position,
           CASE WHEN r.member IS NULL THEN NULL
                WHEN (o.id, r.member) IN (SELECT c.webhook_id, c.member FROM tenure.claimed_members() c)
                THEN tenure.claimed_of(o.id, r.member)
                ELSE tenure.lowest_before(o.id, r.member, r.position) END AS blocker, r.n
    FROM unnest(of_webhooks) o (id)
    CROSS JOIN LATERAL (
      SELECT d.event_id, d.member, d.position,
             row_number() OVER (ORDER BY d.is_replay, d.next_attempt_at, d.position) AS n
      FROM tenure.due_of(o.id, 1000) d
    ) r
  ), claimed AS MATERIALIZED (
    -- A blocker that is being settled is skipped, because it is not known yet whether there will be another.
    -- A locked one ends after this, and then unblocks the next.
    SELECT l.positions FROM tenure.leases l
    WHERE l.webhook_id = ANY (of_webhooks) AND EXISTS (
      SELECT FROM unnest(l.positions) AS p (position)
      -- With `IS TRUE`, the set is read once and looked up.
      WHERE (p.position IN (SELECT m.blocker FROM met m WHERE m.blocker IS NOT NULL)) IS TRUE
    )
    FOR NO KEY UPDATE SKIP LOCKED
  ), waiting AS MATERIALIZED (
    SELECT d.*
    FROM (
      SELECT DISTINCT m.blocker, m.webhook_id, m.member FROM met m
      WHERE m.blocker IS NOT NULL AND m.blocker NOT IN (SELECT tenure.leased())
    ) b
    -- Each by an index, because a join could read all open deliveries instead.
    CROSS JOIN LATERAL (
      SELECT o.event_id, o.webhook_id, o.position, o.state FROM tenure.deliveries o
      WHERE o.webhook_id = b.webhook_id AND o.member = b.member AND o.position = b.blocker AND o.state <> 'failed'
      FOR NO KEY UPDATE SKIP LOCKED
    ) d
  ), behind AS MATERIALIZED (
    SELECT m.event_id, m.webhook_id FROM met m
    WHERE (m.blocker IN (
      SELECT p.position FROM claimed c CROSS JOIN LATERAL unnest(c.positions) AS p (position)
      UNION ALL SELECT w.position FROM waiting w
    )) IS TRUE
  ), blocked AS (
    UPDATE tenure.deliveries d SET state = 'blocked' FROM behind b
    WHERE d.event_id = b.event_id AND d.webhook_id = b.webhook_id AND d.state || '' IN ('fresh', 'ready')
  ), unblocked AS (
    -- Such a delivery was replayed during a claim that has lapsed since.
    UPDATE tenure.deliveries d SET state = 'ready' FROM waiting w
    WHERE w.state = 'blocked' AND d.event_id = w.event_id AND d.webhook_id = w.webhook_id
  )
  SELECT coalesce(array_agg(DISTINCT m.webhook_id) FILTER (WHERE m.blocker IS NOT NULL), '{}'),
         bool_or(m.n = 1000) AND bool_or(m.blocker IS NOT NULL)
  INTO webhook_ids, is_partial FROM met m;
END $$;

-- Unblocks a member's next delivery when an attempt has ended, so that none is claimed, and returns whether
-- there is one. It is due since it was published, so it comes before deliveries that have not been blocked
-- yet. A function, because it has to see what claims blocked before the attempt's lease was locked.
CREATE FUNCTION tenure.unblock_next(of_webhook uuid, of_member bigint) RETURNS boolean LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  first record;
BEGIN
  SELECT d.event_id, d.state INTO first FROM tenure.deliveries d
  WHERE d.webhook_id = of_webhook AND d.member = of_member AND d.state <> 'failed'
  ORDER BY d.position LIMIT 1;
  IF first.state IS DISTINCT FROM 'blocked' THEN RETURN false; END IF;
  UPDATE tenure.deliveries d SET state = 'ready'
  WHERE d.event_id = first.event_id AND d.webhook_id = of_webhook AND d.state || '' = 'blocked';
  RETURN FOUND;
END $$;
