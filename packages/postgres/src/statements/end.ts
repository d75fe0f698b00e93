import { asked, current, lockedProject } from "./change.ts"
import { auditing, publishing } from "./publish.ts"

/** Removes a membership. Gives a row if there was one. */
export const end = (schema: string): string => `
  WITH ${asked},
  ${lockedProject(schema)},
  ended AS (
    DELETE FROM ${schema}.memberships m USING project p
    WHERE m.project_id = p.id AND m.user_id = $2
    RETURNING ${current} AS from_date
  ),
  counted AS (
    UPDATE ${schema}.projects SET members = members - 1
    WHERE id = $1 AND EXISTS (SELECT FROM ended)
  ),
  changed AS (SELECT a.*, e.from_date FROM asked a, ended e),
  ${auditing(schema, "changed", "ended")},${publishing(schema, "changed")}
  SELECT (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`
