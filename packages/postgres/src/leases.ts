/** Takes claims out of their leases. A lease covers the deliveries to one webhook that were claimed together. */

import type { Claim } from "@tenure/core/store"
import { bigintsParam } from "./sql/values.ts"

/**
 * The common table expressions `held` and those before it: they take the claims in `asked` out of their
 * leases, and `held` has the claims whose leases had not ended. Every statement that changes deliveries after
 * an attempt begins with these, so that leases are locked before deliveries, always in the same order, which
 * avoids deadlocks.
 */
export const endLeases = (schema: string): string => `
  locked_leases AS MATERIALIZED (
    SELECT l.webhook_id, l.id, l.positions, l.members, a.positions AS ended
    FROM (SELECT webhook_id, lease, array_agg(position) AS positions FROM asked GROUP BY webhook_id, lease) a
    JOIN ${schema}.leases l ON l.webhook_id = a.webhook_id AND l.id = a.lease
    WHERE l.until > clock_timestamp()
    ORDER BY l.webhook_id, l.id
    FOR UPDATE OF l
  ),
  left_leases AS MATERIALIZED (
    SELECT l.webhook_id, l.id, l.positions, r.positions AS left_positions,
           CASE WHEN l.members IS NOT NULL THEN r.members END AS left_members
    FROM locked_leases l
    CROSS JOIN LATERAL (
      SELECT array_agg(p.position ORDER BY p.n) AS positions, array_agg(p.member ORDER BY p.n) AS members
      FROM unnest(l.positions, l.members) WITH ORDINALITY AS p (position, member, n)
      WHERE p.position <> ALL (l.ended)
    ) r
  ),
  shortened AS (
    UPDATE ${schema}.leases l SET positions = f.left_positions, members = f.left_members
    FROM left_leases f
    WHERE l.webhook_id = f.webhook_id AND l.id = f.id AND f.left_positions IS NOT NULL
    RETURNING f.webhook_id, f.id, f.positions
  ),
  closed AS (
    DELETE FROM ${schema}.leases l USING left_leases f
    WHERE l.webhook_id = f.webhook_id AND l.id = f.id AND f.left_positions IS NULL
    RETURNING f.webhook_id, f.id, f.positions
  ),
  held AS MATERIALIZED (
    SELECT a.* FROM asked a
    -- Each lease is changed before it is joined, so that the functions in this statement see the change.
    JOIN (SELECT * FROM shortened UNION ALL SELECT * FROM closed) l ON l.webhook_id = a.webhook_id AND l.id = a.lease
    WHERE a.position = ANY (l.positions)
    ORDER BY a.delivered_id, a.webhook_id
  )`

/** The parameters for `endLeases`: the claims' leases and positions. */
export const leaseParams = (claims: ReadonlyArray<Pick<Claim, "lease">>) => {
  const parts = claims.map(({ lease }) => lease.split("."))
  return [
    bigintsParam(parts.map(([lease]) => BigInt(lease ?? ""))),
    bigintsParam(parts.map(([, position]) => BigInt(position ?? ""))),
  ]
}
