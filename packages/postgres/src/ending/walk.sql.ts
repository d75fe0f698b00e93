/**
 * Statements that go through memberships in the order of the index, put those in their places that have
 * others, and return those that are listed.
 *
 * They walk from a place to the first that is to be moved and is locked, or has changed meanwhile: it may belong
 * behind what they return.
 */

import type { EndDate } from "@tenure/core/EndDate"
import type { ProjectId } from "@tenure/core/Project"
import { bigint, instant, integer, text } from "../connection/parameters.ts"
import { type Integer, millisOf } from "../connection/results.ts"
import { effectiveDate } from "../memberships/fragments.sql.ts"
import type { MembershipRow } from "../memberships/listMemberships.sql.ts"
import { boundOf } from "./fragments.sql.ts"
import { beyondAll } from "./keep.sql.ts"
import { type BulkPlace, goalOf, type OwnPlace, type SortPlace } from "./Place.ts"

/** What one of the two statements does. */
interface Walk {
  /** Before when those of a project end that it lists. */
  readonly until: string
  /** Which memberships `m` of a project `p` it walks. */
  readonly range: string
  /** Which of those that it has walked, `w`, it moves, besides those that have ended. */
  readonly isMoved: string
  /** Which of them it lists if it has come as far as `t`, and in which order. */
  readonly isListed: string
  readonly order: string
}

const walk = (schema: string, { isListed, isMoved, order, range, until }: Walk): string => `
  WITH project AS MATERIALIZED (
    SELECT number, bulk_seq, set_seq, bulk_end_date, last_bulk_end_date AS bulk_date,
           ends_to IS NOT DISTINCT FROM '${beyondAll}' AS is_kept,
           ${until} AS until
    FROM ${schema}.projects WHERE id = $1::text
  ),
  walked AS MATERIALIZED (
    SELECT w.*, p.bulk_seq, p.bulk_date, w.end_date <= statement_timestamp() AS has_ended,
           row_number() OVER (ORDER BY w.ends_seq, w.ends_from, w.user_id) AS n
    FROM project p
    CROSS JOIN LATERAL (
      SELECT m.project_number, m.user_id, m.seq, m.ends_seq, m.ends_from, ${effectiveDate(schema)} AS end_date
      FROM ${schema}.memberships m
      WHERE m.project_number = p.number AND ${range}
      ORDER BY m.ends_seq, m.ends_from, m.user_id
      LIMIT $5::integer
    ) w
  ),
  to_move AS MATERIALIZED (SELECT * FROM walked w WHERE w.has_ended OR ${isMoved}),
  moving AS MATERIALIZED (
    SELECT w.* FROM to_move w
    JOIN ${schema}.memberships m ON m.project_number = w.project_number AND m.user_id = w.user_id
    WHERE m.seq = w.seq AND m.ends_seq = w.ends_seq AND m.ends_from = w.ends_from
    FOR NO KEY UPDATE OF m SKIP LOCKED
  ),
  moved AS (
    UPDATE ${schema}.memberships m
    SET ends_seq = w.bulk_seq, ends_from = ${boundOf("w.end_date")}
    FROM moving w
    WHERE m.project_number = w.project_number AND m.user_id = w.user_id
  ),
  reached AS MATERIALIZED (
    SELECT * FROM walked
    WHERE n < coalesce((SELECT min(n) FROM to_move WHERE n NOT IN (SELECT n FROM moving)), $5 + 1)
  ),
  turn AS MATERIALIZED (
    SELECT p.*, far.ends_seq, far.ends_from, far.user_id,
           (SELECT count(*) FROM walked) AS walked, (SELECT count(*) FROM reached) AS reached
    FROM project p
    LEFT JOIN (SELECT * FROM reached ORDER BY n DESC LIMIT 1) far ON true
  )
  SELECT t.walked < $5 AND t.walked = t.reached AS is_whole, t.is_kept, t.bulk_seq, ${millisOf("t.bulk_date")} AS bulk_date,
         t.ends_seq AS far_seq, ${millisOf("t.ends_from")} AS far_from, t.user_id AS far_user,
         w.user_id, ${millisOf("w.end_date")} AS end_date, w.ends_seq, ${millisOf("w.ends_from")} AS ends_from
  FROM turn t
  LEFT JOIN LATERAL (
    SELECT * FROM reached w WHERE NOT w.has_ended AND ${isListed} ORDER BY ${order} LIMIT $6::integer
  ) w ON true
  ORDER BY ${order}
`

/**
 * Walks through up to `$5` memberships whose bounds say when they end, after the place (`$2`, `$3`) and before
 * `$4`; if `$7` is not the `bulk_seq` of the project, up to the date of the last bulk extension. Returns up to `$6`
 * of them in the order of their ends; one empty row if there are none, and no row if the project does not exist.
 */
export const walkEnds = (schema: string): string =>
  walk(schema, {
    until: `
      CASE WHEN last_bulk_end_date IS NULL OR bulk_seq = $7::bigint THEN $4::timestamptz
      ELSE least($4, last_bulk_end_date + interval '1 millisecond') END`,
    range: `m.ends_seq = p.bulk_seq AND (m.ends_from, m.user_id) > ($2::timestamptz, $3::text)
      AND m.ends_from < p.until`,
    isMoved: "w.end_date > w.ends_from",
    isListed: `w.end_date < t.until
      AND ((t.walked < $5 AND t.walked = t.reached) OR (w.end_date, w.user_id) <= (t.ends_from, t.user_id))`,
    order: "w.end_date, w.user_id",
  })

/**
 * Walks through up to `$5` memberships that have not changed since a bulk extension, after the place (`$7`, `$2`,
 * `$3`) and before the `ends_seq` `$8`. Those that end after (`$4`, `$9`) in the order of ends get places in it.
 * Returns up to `$6` of those that end in the millisecond before `$4`, in the order of the index, in the same way.
 */
export const walkOlder = (schema: string): string =>
  walk(schema, {
    until: "$4::timestamptz",
    range: `m.ends_seq < $8::bigint
      AND (m.ends_seq, m.ends_from, m.user_id) > ($7::bigint, $2::timestamptz, $3::text)`,
    isMoved: "(w.end_date, w.user_id) > ($4, $9::text)",
    isListed: "w.end_date = t.until - interval '1 millisecond'",
    order: "w.ends_seq, w.ends_from, w.user_id",
  })

/** How far a walk goes. */
export interface Asked {
  readonly projectId: ProjectId
  readonly before: EndDate
  /** The most memberships to walk through. */
  readonly most: number
  /** The most memberships to return. */
  readonly limit: number
}

/** The parameters of `walkEnds` from a place. */
export const walkEndsParams = (place: OwnPlace, { before, limit, most, projectId }: Asked) => [
  text(projectId),
  instant(place.from),
  text(place.userId),
  instant(before),
  integer(most),
  integer(limit),
  bigint(place.passed),
]

/** The parameters of `walkOlder` from a place. */
export const walkOlderParams = (
  place: BulkPlace | SortPlace,
  { limit, most, projectId }: Asked,
) => {
  const goal = goalOf(place)
  return [
    text(projectId),
    instant(place.from),
    text(place.userId),
    instant(goal.from),
    integer(most),
    integer(place._tag === "Bulk" ? limit : 0),
    bigint(place.seq),
    bigint(place.upTo),
    text(goal.userId),
  ]
}

/** A row of both statements. Without a membership, it has no values of one. */
export interface WalkRow extends MembershipRow {
  /** Whether all members have places. */
  readonly is_kept: boolean
  /** Whether nothing is left in the range. */
  readonly is_whole: boolean
  /** The number of the last bulk extension. */
  readonly bulk_seq: Integer
  /** The date of the last bulk extension. */
  readonly bulk_date: Integer | null
  /** The place of the last membership that was walked. */
  readonly far_seq: Integer | null
  readonly far_from: Integer | null
  readonly far_user: string | null
  /** The place of the membership in the index. */
  readonly ends_seq: Integer | null
  readonly ends_from: Integer | null
}
