import { publishing } from "../outbox/fragments.sql.ts"
import { asked, auditing, lockedProject } from "./fragments.sql.ts"

/**
 * Creates a membership, or sets its end date if it exists. Returns one row, with the number of
 * deliveries, if the project exists.
 */
export const grant = (schema: string): string => `
  WITH ${asked},
  ${lockedProject(schema)},
  granted AS (
    INSERT INTO ${schema}.memberships AS m (project_id, user_id, end_date, seq)
    SELECT p.id, a.user_id, a.to_date, p.bulk_seq FROM asked a, project p
    ON CONFLICT (project_id, user_id) DO UPDATE
    SET end_date = excluded.end_date,
        seq = excluded.seq,
        previous_end_date =
          CASE WHEN m.seq >= excluded.seq THEN m.end_date
          ELSE (SELECT bulk_end_date FROM project) END
    RETURNING (xmax = 0) AS is_new, seq, previous_end_date AS from_date
  ),
  counted AS (
    UPDATE ${schema}.projects SET members = members + 1
    WHERE id = $1 AND (SELECT is_new FROM granted)
  ),
  changed AS (SELECT a.*, g.seq, g.from_date FROM asked a, granted g),
  ${auditing(schema, "changed", "granted")},${publishing(schema, "changed")}
  SELECT (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`
