import type { OnceEachPart } from "../idempotency/fragments.sql.ts"
import { askedOfEach, granting, projectColumns, recordingChange } from "./fragments.sql.ts"

/**
 * Creates memberships, or sets the end dates of those that exist. Returns the positions, from 1, of the
 * memberships whose project exists, and the number of deliveries.
 */
export const grant = (schema: string, once: OnceEachPart): string => `
  WITH ${askedOfEach(once)},
  project AS MATERIALIZED (
    SELECT ${projectColumns} FROM ${schema}.projects WHERE id = ANY ($1)
    -- All statements lock projects in the same order, too, and before memberships.
    ORDER BY id
    FOR NO KEY UPDATE
  ),
  ${granting(schema, "p.seq + 1")},
  counted AS (
    UPDATE ${schema}.projects p SET members = p.members + new.members
    FROM (SELECT project_number, count(*) AS members FROM granted WHERE is_new GROUP BY project_number) new
    WHERE p.number = new.project_number
  ),
  changed AS (
    SELECT a.*, g.project_number, g.seq, g.from_date
    FROM asked a
    JOIN project p ON p.id = a.project_id
    JOIN granted g ON g.project_number = p.number AND g.user_id = a.user_id
  ),
  ${recordingChange(schema, "changed", "granted")}${once.keeping("changed")}
  SELECT n::integer, seq, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`
