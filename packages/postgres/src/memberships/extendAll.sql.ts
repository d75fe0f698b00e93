import type { Mode } from "@tenure/core/Bulk"
import { bulkActions } from "@tenure/core/Membership"
import type { OncePart } from "../idempotency/fragments.sql.ts"
import { publishing } from "../outbox/fragments.sql.ts"
import { asked, auditing } from "./fragments.sql.ts"

/** What an extension of each mode does to the project, and which floors it makes superfluous. */
const effects = {
  set: { also: ", bulk_end_date = $3, set_seq = bulk_seq + 1", covered: "'infinity'" },
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
    SET last_bulk_end_date = $3, bulk_seq = bulk_seq + 1${effects[mode].also}
    WHERE id = $1 ${once.condition}
    RETURNING number, members, bulk_seq
  ),
  changed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, p.bulk_seq AS seq, NULL::timestamptz AS from_date,
           p.members AS total, ${schema}.remove_floors(p.number, ${effects[mode].covered}) AS removed
    FROM asked a, project p
  )${mode === "neverShorten" ? adding(schema) : ""},
  ${auditing(schema, "changed", bulkActions[mode])},${publishing(schema, "changed")}${once.keeping("changed", "total::text")}
  SELECT total, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`
