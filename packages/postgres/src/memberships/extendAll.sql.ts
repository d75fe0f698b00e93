import type { OncePart } from "../idempotency/fragments.sql.ts"
import { publishing } from "../outbox/fragments.sql.ts"
import { asked, auditing } from "./fragments.sql.ts"

/**
 * Sets the end date of all memberships of a project, by updating the project alone. Returns one row,
 * with the number of memberships and of deliveries, if the project exists.
 */
export const extendAll = (schema: string, once: OncePart): string => `
  WITH ${asked},
  project AS (
    UPDATE ${schema}.projects
    SET bulk_end_date = $3, last_bulk_end_date = $3, bulk_seq = bulk_seq + 1
    WHERE id = $1 ${once.condition}
    RETURNING number, members, bulk_seq
  ),
  changed AS (
    SELECT a.*, p.number AS project_number, p.bulk_seq AS seq, NULL::timestamptz AS from_date,
           p.members AS total
    FROM asked a, project p
  ),
  ${auditing(schema, "changed", "bulk_extended")},${publishing(schema, "changed")}${once.keeping("changed", "total::text")}
  SELECT total, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`
