import { current } from "./change.ts"
import { auditing, publishing } from "./publish.ts"

/**
 * Sets the end dates of memberships: one element of each array for each membership. Gives the
 * positions, from 1, of those that exist. `$10` is how long to wait for a lock.
 *
 * A membership takes the greater of its own seq and the project's: were it overtaken by a bulk
 * extension and then by another change, it would otherwise lose what that change has made of it.
 */
export const extend = (schema: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[],
                         $5::text[], $6::text[], $7::uuid[], $8::text[], $9::text[])
    WITH ORDINALITY
    AS a (project_id, user_id, to_date, at, request_id, key_id, event_id, event_type, body, n)
    -- For this transaction alone, and not for one of the host's.
    WHERE $10::text IS NULL OR set_config('lock_timeout', $10::text, true) IS NOT NULL
    -- Everybody locks in the same order.
    ORDER BY project_id COLLATE "C", user_id COLLATE "C"
  ),
  changed AS (
    UPDATE ${schema}.memberships m
    SET end_date = a.to_date,
        seq = greatest(m.seq, p.bulk_seq),
        previous_end_date = ${current}
    FROM asked a
    JOIN ${schema}.projects p ON p.id = a.project_id
    WHERE m.project_id = a.project_id AND m.user_id = a.user_id
    RETURNING a.*, m.previous_end_date AS from_date
  ),${auditing(schema, "changed", "extended")},${publishing(schema, "changed")}
  SELECT n::integer, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`
