import type { OncePart } from "../idempotency/fragments.sql.ts"
import { publishing } from "../outbox/fragments.sql.ts"
import { asked, auditing, effectiveDateLocked, lockedProject } from "./fragments.sql.ts"

/** Removes a membership. Returns one row, with the number of deliveries, if the membership existed. */
export const end = (schema: string, once: OncePart): string => `
  WITH ${asked},
  ${lockedProject(schema)},
  ended AS (
    DELETE FROM ${schema}.memberships m USING project p
    WHERE m.project_number = p.number AND m.user_id = $2 ${once.condition}
    RETURNING p.number AS project_number, p.bulk_seq AS seq, ${effectiveDateLocked(schema)} AS from_date
  ),
  counted AS (
    UPDATE ${schema}.projects SET members = members - 1
    WHERE id = $1 AND EXISTS (SELECT FROM ended)
  ),
  changed AS (SELECT a.*, e.project_number, e.seq, e.from_date FROM asked a, ended e),
  ${auditing(schema, "changed", "ended")},${publishing(schema, "changed")}${once.keeping("changed")}
  SELECT (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`
