import { EndDate } from "@tenure/core/EndDate"
import { type Membership, UserId } from "@tenure/core/Membership"
import type { ProjectId } from "@tenure/core/Project"
import { type Integer, millisOf } from "../connection/results.ts"

const listing = (schema: string, condition: string): string => `
  SELECT m.user_id, ${millisOf("m.end_date")} AS end_date
  FROM ${schema}.projects p
  LEFT JOIN LATERAL (
    SELECT user_id, end_date FROM ${schema}.memberships_current
    WHERE project_id = p.id AND user_id > $2::text
      AND ($4::boolean IS NULL OR (end_date > $5::timestamptz) = $4) ${condition}
    ORDER BY user_id
    LIMIT $3::integer
  ) m ON true
  WHERE p.id = $1::text
  ORDER BY m.user_id
`

/**
 * Returns a page of memberships, ordered by user id and starting after `$2`; if `$4` is not NULL, only
 * those that are active at `$5`, or only those that are not. Returns one empty row if the page is empty,
 * and no row if the project does not exist.
 */
export const listMemberships = (schema: string): string => listing(schema, "")

/** The same, with only the memberships of the users `$6`. */
export const listMembershipsOf = (schema: string): string =>
  listing(schema, "AND user_id = ANY ($6::text[])")

/** A row of a membership. That of an empty page has no values. */
export interface MembershipRow {
  readonly user_id: string | null
  readonly end_date: Integer | null
}

/** Converts a row to a membership, or to nothing if it has no values. */
export const toMembership = (
  projectId: ProjectId,
  { end_date, user_id }: MembershipRow,
): ReadonlyArray<Membership> =>
  user_id === null || end_date === null
    ? []
    : [{ projectId, userId: UserId(user_id), endDate: EndDate(Number(end_date)) }]
