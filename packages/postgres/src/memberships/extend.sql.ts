import { publishing } from "../outbox/fragments.sql.ts"
import { askedOfEach, auditing, effectiveDate } from "./fragments.sql.ts"

/**
 * Sets the end dates of memberships. Returns the positions, from 1, of the memberships that exist, and
 * the number of deliveries.
 *
 * A membership keeps its own seq if that is greater than the project's. Otherwise a statement that
 * read the project before a bulk extension could undo a later extension of the same membership.
 */
export const extend = (schema: string): string => `
  WITH ${askedOfEach},
  changed AS (
    UPDATE ${schema}.memberships m
    SET end_date = a.to_date,
        seq = greatest(m.seq, p.bulk_seq),
        previous_end_date = ${effectiveDate}
    FROM asked a
    JOIN ${schema}.projects p ON p.id = a.project_id
    WHERE m.project_id = a.project_id AND m.user_id = a.user_id
    RETURNING a.*, m.seq, m.previous_end_date AS from_date
  ),${auditing(schema, "changed", "extended")},${publishing(schema, "changed")}
  SELECT n::integer, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`
