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
  listed AS MATERIALIZED (SELECT array_agg(user_id) AS users, array_agg(seq) AS seqs FROM page),
  free AS MATERIALIZED (
    SELECT m.project_number, m.user_id, p.bulk_seq, ${effectiveDate(schema)} AS end_date
    FROM project p
    CROSS JOIN listed l
    -- From arrays, few rows are expected, which are looked up in the index. For many, the whole table would be read.
    CROSS JOIN LATERAL unnest(l.users, l.seqs) AS a (user_id, seq)
    JOIN ${schema}.memberships m ON m.project_number = p.number AND m.user_id = a.user_id
    -- Who has changed it meanwhile may know of a bulk extension that the project does not have here.
    WHERE m.seq = a.seq
    FOR NO KEY UPDATE OF m SKIP LOCKED
  ),
  placed AS (
    UPDATE ${schema}.memberships m SET ends_seq = f.bulk_seq, ends_from = ${boundOf("f.end_date")}
    FROM free f
    WHERE m.project_number = f.project_number AND m.user_id = f.user_id AND m.ends_seq IS NULL
  ),
  locked AS MATERIALIZED (
    SELECT min(user_id) AS first FROM page WHERE user_id NOT IN (SELECT user_id FROM free)
  )
  SELECT CASE WHEN l.first IS NULL AND (SELECT count(*) FROM page) < $2 THEN '${beyondAll}'
         ELSE coalesce((SELECT max(user_id) FROM page WHERE l.first IS NULL OR user_id < l.first), '') END AS ends_to
  FROM project, locked l
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
