import type { Integer } from "../connection/results.ts"
import { effectiveDate } from "./fragments.sql.ts"

/**
 * Counts the memberships of a project, and those that end after `$2`. Returns one row if the
 * project exists. Reads all memberships of the project: an index on the end date would take longer to
 * write at each extension than all other indexes.
 */
export const countMemberships = (schema: string): string => `
  SELECT p.members AS total, c.later
  FROM ${schema}.projects p
  CROSS JOIN LATERAL (
    SELECT count(*) AS later FROM ${schema}.memberships m
    WHERE m.project_number = p.number AND ${effectiveDate(schema)} > $2::timestamptz
  ) c
  WHERE p.id = $1::text
`

/** The row that it returns. */
export interface CountsRow {
  readonly total: Integer
  readonly later: Integer
}
