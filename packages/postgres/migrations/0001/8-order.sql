-- Ordered webhooks: a member's deliveries are attempted one after another. Among those that are open, the next is the one
-- with the lowest position, and none is claimed while another one is. A claim blocks the others that it meets, so
-- that no claim meets them again. A settlement then unblocks the lowest one.
-- So of each member, either a delivery is claimed, or the lowest one is not blocked. After a claim has lapsed, the
-- lowest one may be blocked, by a replay: then the next claim unblocks it, because it meets the one that had lapsed.

-- Whom an event is about: a number for the first user id that its body has, if any, as `userOf` of core says. Two
-- users with the same number would only wait for each other.
CREATE FUNCTION tenure.member_of(body text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT hashtextextended(
    trim(BOTH '"' FROM substring(left(body, 1000) FROM '"user_id":("(?:[^"\\]|\\.)*"|[0-9]+)')), 0
  )
$$;

-- The event of the delivery that a member's delivery has to wait for, if any: the one that is claimed or, if that
-- is none, the lowest one before it.
CREATE FUNCTION tenure.blocker_of(of_webhook uuid, of_member bigint, before bigint)
RETURNS uuid LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT first.event_id
    FROM (
      SELECT d.event_id, d.state, d.position FROM tenure.deliveries d
      WHERE d.webhook_id = of_webhook AND d.member = of_member AND d.state <> 'failed'
      ORDER BY d.state <> 'leased', d.position LIMIT 1
    ) first
    WHERE first.state = 'leased' OR first.position < before
  );
END $$;

-- Blocks the deliveries whose turn has not come among the next 1000 ready ones of each webhook, for a claim. Returns
-- the webhooks that have such deliveries, and whether to look at once for more.
CREATE FUNCTION tenure.block_deliveries(of_webhooks uuid[], OUT webhook_ids uuid[], OUT is_partial boolean)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
  WITH met AS MATERIALIZED (
    SELECT r.event_id, o.id AS webhook_id, r.position,
           CASE WHEN r.member IS NOT NULL THEN tenure.blocker_of(o.id, r.member, r.position) END AS blocker_id,
           r.n
    FROM unnest(of_webhooks) o (id)
    CROSS JOIN LATERAL (
      SELECT d.event_id, d.member, d.position,
             row_number() OVER (ORDER BY d.is_replay, d.next_attempt_at, d.position) AS n
      FROM tenure.deliveries d
      WHERE d.webhook_id = o.id AND d.state = 'ready'
      ORDER BY d.is_replay, d.next_attempt_at, d.position LIMIT 1000
    ) r
  ), locked AS MATERIALIZED (
    -- A blocker that is being settled is left: whether there is another one then is not known yet. One that is
    -- locked ends after this, and then unblocks the next.
    SELECT d.event_id, d.webhook_id, d.position, d.state
    FROM (SELECT DISTINCT m.blocker_id, m.webhook_id FROM met m WHERE m.blocker_id IS NOT NULL) b
    -- By its key: an index of some states would be read from its start.
    JOIN tenure.deliveries d ON d.event_id = b.blocker_id AND d.webhook_id = b.webhook_id
    WHERE d.state || '' <> 'failed'
    FOR NO KEY UPDATE OF d SKIP LOCKED
  ), blocked AS (
    UPDATE tenure.deliveries d SET state = 'blocked'
    FROM locked l JOIN met m ON m.blocker_id = l.event_id AND m.webhook_id = l.webhook_id
    WHERE d.event_id = m.event_id AND d.webhook_id = m.webhook_id AND d.state || '' = 'ready'
      AND (l.state = 'leased' OR l.position < m.position)
  ), unblocked AS (
    -- It was replayed during a claim that has lapsed since.
    UPDATE tenure.deliveries d SET state = 'ready' FROM locked l
    WHERE l.state = 'blocked' AND d.event_id = l.event_id AND d.webhook_id = l.webhook_id
  )
  SELECT coalesce(array_agg(DISTINCT m.webhook_id) FILTER (WHERE m.blocker_id IS NOT NULL), '{}'),
         bool_or(m.n = 1000) AND bool_or(m.blocker_id IS NOT NULL)
  INTO webhook_ids, is_partial FROM met m;
END $$;

-- Unblocks a member's next delivery when an attempt has ended, and returns whether there is one. It is due since it
-- was published, so it comes before those that have not been blocked yet. A function, because it has to see what
-- claims have blocked until the delivery that was attempted was locked.
CREATE FUNCTION tenure.unblock_next(of_webhook uuid, of_member bigint) RETURNS boolean LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  first record;
BEGIN
  SELECT d.event_id, d.state INTO first FROM tenure.deliveries d
  WHERE d.webhook_id = of_webhook AND d.member = of_member AND d.state <> 'failed'
  ORDER BY d.state <> 'leased', d.position LIMIT 1;
  IF first.state IS DISTINCT FROM 'blocked' THEN RETURN false; END IF;
  UPDATE tenure.deliveries d SET state = 'ready'
  WHERE d.event_id = first.event_id AND d.webhook_id = of_webhook AND d.state || '' = 'blocked';
  RETURN FOUND;
END $$;
