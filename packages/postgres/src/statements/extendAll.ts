import { asked, current, lockedProject } from "./change.ts"
import { auditing, publishing } from "./publish.ts"

/**
 * Sets the end date of all memberships of a project, in the time that one row takes. Gives a row
 * with their number if the project exists.
 */
export const extendAll = (schema: string): string => `
  WITH ${asked},
  project AS (
    UPDATE ${schema}.projects SET bulk_end_date = $3, bulk_seq = bulk_seq + 1 WHERE id = $1
    RETURNING members
  ),
  changed AS (SELECT a.*, NULL::timestamptz AS from_date, p.members AS total FROM asked a, project p),
  ${auditing(schema, "changed", "bulk_extended")},${publishing(schema, "changed")}
  SELECT total, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`

/**
 * Sets the end date of those memberships of a project that end earlier, each of them. Gives a row
 * with their number if the project exists.
 */
export const extendShorter = (schema: string): string => `
  WITH ${asked},
  ${lockedProject(schema)},
  -- Everybody locks in the same order.
  shorter AS MATERIALIZED (
    SELECT m.user_id FROM ${schema}.memberships m, project p
    WHERE m.project_id = p.id AND ${current} < $3
    ORDER BY m.user_id
    FOR UPDATE OF m
  ),
  extended AS (
    UPDATE ${schema}.memberships m
    SET end_date = $3,
        seq = greatest(m.seq, p.bulk_seq),
        previous_end_date = ${current}
    FROM project p, shorter s
    WHERE m.project_id = p.id AND m.user_id = s.user_id
    RETURNING m.user_id
  ),
  changed AS (
    SELECT a.*, NULL::timestamptz AS from_date, (SELECT count(*) FROM extended) AS total
    FROM asked a, project p
  ),
  ${auditing(schema, "changed", "bulk_extended")},${publishing(schema, "changed")}
  SELECT total, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`
