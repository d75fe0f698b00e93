import type { OncePart } from "../idempotency/fragments.sql.ts"
import { asked, ending, lockedProject, recordingChange } from "./fragments.sql.ts"

/** Removes a membership. Returns one row, with the number of deliveries, if the membership existed. */
export const end = (schema: string, once: OncePart): string => `
  WITH ${asked},
  ${lockedProject(schema)},
  ${ending(schema, once.condition)},
  changed AS (SELECT a.*, e.project_number, e.seq, e.from_date FROM asked a, ended e),
  ${recordingChange(schema, "changed", "ended")}${once.keeping("changed")}
  SELECT seq, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`
