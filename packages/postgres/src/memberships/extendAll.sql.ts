import type { Mode } from "@tenure/core/Bulk"
import { bulkActions } from "@tenure/core/Membership"
import { alarmOf } from "../expiry/fragments.sql.ts"
import type { OncePart } from "../idempotency/fragments.sql.ts"
import { nextRound } from "../sequence.sql.ts"
import { asked, recordingChange } from "./fragments.sql.ts"

/** What an extension of each mode does to the project, and which floors it makes superfluous. */
const effects = {
  set: { also: `, bulk_end_date = $3, set_seq = ${nextRound("seq")}`, covered: "'infinity'" },
  neverShorten: { also: "", covered: "$3" },
} as const satisfies Record<Mode, unknown>

const adding = (schema: string): string => `,
  added AS (
    INSERT INTO ${schema}.floors (project_number, seq, end_date)
    SELECT project_number, seq, to_date FROM changed
  )`

/**
 * Sets the end date of all memberships of a project, or of those that end earlier, and touches none of
 * them. Returns one row, with the number of memberships and of deliveries, if the project exists.
 */
export const extendAll =
  (mode: Mode) =>
  (schema: string, once: OncePart): string =>
    `
  WITH ${asked},
  project AS (
    UPDATE ${schema}.projects
    SET last_bulk_end_date = $3, seq = ${nextRound("seq")}, bulk_seq = ${nextRound("seq")}${effects[mode].also},
        alarm_at = least(alarm_at, ${alarmOf(schema, "$3::timestamptz")})
    WHERE id = $1 ${once.condition}
    RETURNING number, members, seq
  ),
  changed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, p.seq, NULL::timestamptz AS from_date,
           p.members AS total, ${schema}.remove_floors(p.number, ${effects[mode].covered}) AS removed
    FROM asked a, project p
  )${mode === "neverShorten" ? adding(schema) : ""},
  ${recordingChange(schema, "changed", bulkActions[mode])}${once.keeping("changed", "total::text")}
  SELECT seq, total, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`
