/**
 * Statements that give a place in the order of ends to the members of a project whose ends nobody has listed yet.
 */

import type { ProjectId } from "@tenure/core/Project"
import { integer, text } from "../connection/parameters.ts"
import { effectiveDate } from "../memberships/fragments.sql.ts"
import { boundOf } from "./fragments.sql.ts"

/** What comes after all user ids. */
export const beyondAll = ":"

/**
 * Has new members of the project `$1` get places from now on. It is a statement of its own: those that follow it
 * see all members who have none.
 */
export const begin = (schema: string): string => `
  UPDATE ${schema}.projects SET ends_to = '' WHERE id = $1::text AND ends_to IS NULL
`

/**
 * Assigns places to the next `$2` members, and stops at the first one that is locked or has changed. Returns one row: up to which
 * user id all members have places then.
 */
export const goOn = (schema: string): string => `
  WITH project AS MATERIALIZED (
    SELECT number, bulk_seq, set_seq, bulk_end_date, ends_to FROM ${schema}.projects WHERE id = $1::text
  ),
  page AS MATERIALIZED (
    SELECT m.*
    FROM project p
    CROSS JOIN LATERAL (
      SELECT m.project_number, m.user_id, m.seq FROM ${schema}.memberships m
      WHERE m.project_number = p.number AND m.user_id > p.ends_to
      ORDER BY m.user_id LIMIT $2::integer
    ) m
  ),
  -- Joined with nothing: PostgreSQL keeps a copy of what a locked row is joined with beside each. From an array, few
  -- rows are expected, which are looked up in the index. For many, the whole table would be read.
  locked AS MATERIALIZED (
    SELECT m.project_number, m.user_id, m.seq, m.end_date FROM ${schema}.memberships m
    WHERE m.project_number = (SELECT number FROM project)
      AND m.user_id = ANY (ARRAY(SELECT user_id FROM page))
    FOR NO KEY UPDATE OF m SKIP LOCKED
  ),
  free AS MATERIALIZED (
    SELECT m.project_number, m.user_id, p.bulk_seq, ${effectiveDate(schema)} AS end_date
    FROM project p, locked m
    -- Who has changed it meanwhile may know of a bulk extension that the project does not have here. Such a
    -- condition is no join either, which a plan made for few rows would do by comparing each with each.
    WHERE ((m.user_id, m.seq) IN (SELECT user_id, seq FROM page)) IS TRUE
  ),
  placed AS (
    UPDATE ${schema}.memberships m SET ends_seq = f.bulk_seq, ends_from = ${boundOf("f.end_date")}
    FROM free f
    WHERE m.project_number = f.project_number AND m.user_id = f.user_id AND m.ends_seq IS NULL
  ),
  left_out AS MATERIALIZED (
    SELECT min(user_id) AS first FROM page WHERE user_id NOT IN (SELECT user_id FROM free)
  )
  SELECT CASE WHEN l.first IS NULL AND (SELECT count(*) FROM page) < $2 THEN '${beyondAll}'
         ELSE coalesce((SELECT max(user_id) FROM page WHERE l.first IS NULL OR user_id < l.first), '') END AS ends_to
  FROM project, left_out l
`

/** The row of `goOn`. */
export interface GoOnRow {
  readonly ends_to: string
}

/** The parameters of `goOn`. */
export const goOnParams = (projectId: ProjectId, most: number) => [text(projectId), integer(most)]

/** Takes note of how far that has come, `$2`. */
export const note = (schema: string): string => `
  UPDATE ${schema}.projects SET ends_to = greatest(ends_to, $2::text) WHERE id = $1::text
`
