import { asked, auditing, effectiveDate, lockedProject } from "../memberships/fragments.sql.ts"
import { publishing } from "../outbox/fragments.sql.ts"

/**
 * Creates the function `extend_shorter`, which sets the end date of the memberships of a project that
 * end earlier. Returns one row, with the project, the number of these memberships and of deliveries, if the project
 * exists. A later migration replaces it.
 *
 * It is a function so that the memberships are read after the lock: a statement that waits for it would
 * see some memberships as they were before, and others as an import that held it has left them.
 */
export const createExtendShorter = (schema: string): string => `
  CREATE FUNCTION ${schema}.extend_shorter(
    text, text, timestamptz, timestamptz, text, text, uuid, text, text, text
  ) RETURNS TABLE (project_number bigint, total bigint, deliveries integer) LANGUAGE plpgsql AS $$
  #variable_conflict use_column
  BEGIN
    UPDATE ${schema}.projects SET last_bulk_end_date = $3 WHERE id = $1;
    RETURN QUERY
    WITH ${asked},
    ${lockedProject(schema)},
    -- All statements lock memberships in the same order, which avoids deadlocks.
    shorter AS MATERIALIZED (
      SELECT m.user_id FROM ${schema}.memberships m, project p
      WHERE m.project_number = p.number AND ${effectiveDate} < $3
      ORDER BY m.user_id
      FOR UPDATE OF m
    ),
    extended AS (
      UPDATE ${schema}.memberships m
      SET end_date = $3,
          seq = greatest(m.seq, p.bulk_seq),
          previous_end_date = ${effectiveDate}
      FROM project p, shorter s
      WHERE m.project_number = p.number AND m.user_id = s.user_id
      RETURNING m.user_id
    ),
    changed AS (
      SELECT a.*, p.number AS project_number, p.bulk_seq AS seq, NULL::timestamptz AS from_date,
             (SELECT count(*) FROM extended) AS total
      FROM asked a, project p
    ),
    ${auditing(schema, "changed", "bulk_lengthened")},${publishing(schema, "changed")}
    SELECT project_number, total, (SELECT count(*) FROM delivered)::integer FROM changed;
  END $$
`
