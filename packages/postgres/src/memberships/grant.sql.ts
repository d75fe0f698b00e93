import type { OnceEachPart } from "../idempotency/fragments.sql.ts"
import { roundOf } from "../sequence.sql.ts"
import { askedOfEach, granting, lockedProjects, recordingChange } from "./fragments.sql.ts"

/**
 * Creates memberships, or sets the end dates of those that exist. Returns the positions, from 1, of the
 * memberships whose project exists, and the number of deliveries.
 */
export const grant = (schema: string, once: OnceEachPart): string => `
  WITH ${askedOfEach(once)},
  ${lockedProjects(schema)},
  ${granting(schema, "p.seq + 1")},
  -- Where the round of a member ends, the project goes on to the next one, too.
  counted AS (
    UPDATE ${schema}.projects p
    SET members = p.members + g.new_members,
        seq = CASE WHEN ${roundOf("g.seq")} > ${roundOf("p.seq")} THEN g.seq ELSE p.seq END
    FROM (
      SELECT project_number, count(*) FILTER (WHERE is_new) AS new_members, max(seq) AS seq
      FROM granted GROUP BY project_number
    ) g
    WHERE p.number = g.project_number AND (g.new_members > 0 OR ${roundOf("g.seq")} > ${roundOf("p.seq")})
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
