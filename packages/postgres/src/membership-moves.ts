/** Moves a membership to another user id. */

import { type Move, type MovedMembership, metadataJson } from "@tenure/core/store"
import { newEndingColumns, updateEndingColumns } from "./memberships.sql.ts"
import {
  type KeyClause,
  auditRowsAs,
  changeParams,
  changeTimeSql,
  effectiveDateLocked,
  effectiveFormLocked,
  lastSeq,
  lockedProject,
  nextCheckOf,
  publishChange,
  requested,
  updatePausedAt,
} from "./sql/clauses.ts"
import { flagParam, integerParam, millisOf, textParam, uuidParam } from "./sql/values.ts"

/**
 * Moves user `$2`'s membership to user `$11`, whose event is `$12` to `$14`, with the metadata `$15` and a date in the form
 * `$16` and `$17`. Expects the end dates, forms and metadata `$18` to `$25`, which are NULL if the other user is expected
 * to have no membership. If they are as expected, returns two rows: for the end, then for the other user.
 *
 * The statement may have begun before it locked the project. So it decides by the rows that it locks, not by
 * those that it finds, and overwrites no membership that it did not find.
 */
export const moveMembership = (schema: string, idempotency: KeyClause): string => `
  WITH ${requested},
  ${lockedProject(schema, idempotency.condition)},
  locked AS MATERIALIZED (
    SELECT m.* FROM ${schema}.memberships m
    JOIN project p ON p.number = m.project_number
    WHERE m.user_id = ANY (ARRAY[$2::text, $11::text])
    -- All statements lock memberships in the same order, which avoids deadlocks.
    ORDER BY m.user_id
    FOR NO KEY UPDATE OF m
  ),
  member AS MATERIALIZED (
    SELECT m.user_id, ${effectiveDateLocked(schema)} AS end_date,
           ${effectiveFormLocked(schema).inDays} AS in_days, ${effectiveFormLocked(schema).keptDay} AS kept_day, ${lastSeq} AS last_seq,
           coalesce(m.metadata, '{}') AS metadata, m.announced_end, m.announced_lead_seconds,
           ${schema}.is_paused(m.paused_at, m.resumes_at) AS is_paused
    FROM locked m, project p
  ),
  placed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, greatest(f.last_seq, t.last_seq, p.seq) AS last_seq,
           f.end_date AS moved_date, f.metadata AS moved_metadata, t.end_date AS replaced_date,
           later.end_date, later.announced_end, later.announced_lead_seconds
    FROM asked a
    CROSS JOIN project p
    JOIN member f ON f.user_id = $2::text
    LEFT JOIN member t ON t.user_id = $11::text
    CROSS JOIN (
      SELECT * FROM member
      ORDER BY end_date DESC, announced_end IS DISTINCT FROM end_date, announced_lead_seconds LIMIT 1
    ) later
    WHERE ${millisOf("f.end_date")} = $18::bigint AND f.metadata = $19::text
      AND f.in_days = $20::boolean AND f.kept_day IS NOT DISTINCT FROM $21::integer
      AND ${millisOf("t.end_date")} IS NOT DISTINCT FROM $22::bigint AND t.metadata IS NOT DISTINCT FROM $23::text
      AND t.in_days IS NOT DISTINCT FROM $24::boolean AND t.kept_day IS NOT DISTINCT FROM $25::integer
      AND NOT f.is_paused AND t.is_paused IS NOT TRUE
  ),
  granted AS (
    INSERT INTO ${schema}.memberships AS m
      (project_number, user_id, end_date, in_days, kept_day, date_set_at, seq, next_check_at, ending_generation,
       ending_lower_bound, metadata, announced_end, announced_lead_seconds)
    SELECT p.number, $11::text, a.end_date, $16::boolean, $17::integer, ${changeTimeSql("a.at")}, a.last_seq + 2, ${nextCheckOf(schema, "a.end_date")},
           ${newEndingColumns("a.end_date")}, $15::text, a.announced_end, a.announced_lead_seconds
    FROM placed a, project p
    ON CONFLICT (project_number, user_id) DO UPDATE
    SET end_date = excluded.end_date, in_days = excluded.in_days, kept_day = excluded.kept_day, date_set_at = excluded.date_set_at, seq = excluded.seq,
        next_check_at = least(m.next_check_at, excluded.next_check_at),
        metadata = excluded.metadata,
        announced_end = excluded.announced_end, announced_lead_seconds = excluded.announced_lead_seconds,
        ${updatePausedAt(schema)},
        ${updateEndingColumns(schema, "excluded.ending_generation", "excluded.ending_lower_bound")}
    WHERE $22::bigint IS NOT NULL
    RETURNING project_number
  ),
  ended AS (
    DELETE FROM ${schema}.memberships m USING granted g
    WHERE m.project_number = g.project_number AND m.user_id = $2::text
  ),
  counted AS (
    UPDATE ${schema}.projects p
    SET membership_count = p.membership_count - (a.replaced_date IS NOT NULL)::integer, seq = a.last_seq + 2
    FROM placed a, granted g WHERE p.number = g.project_number
  ),
  changed AS (
    SELECT 1 AS n, a.user_id, $11::text AS other_user_id, a.last_seq + 1 AS seq, a.moved_date AS from_date,
           NULL::timestamptz AS to_date, NULL::boolean AS in_days, NULL::integer AS kept_day,
           NULL::timestamptz AS paused_at, NULL::timestamptz AS resumes_at, a.moved_metadata AS metadata, a.event_id, a.event_type, a.head,
           a.project_number, a.at, a.request_id, a.key_id, a.reason
    FROM placed a, granted
    UNION ALL
    SELECT 2, $11::text, a.user_id, a.last_seq + 2, a.replaced_date,
           a.end_date, $16::boolean, $17::integer, NULL, NULL, $15::text, $12::uuid, $13::text, $14::text,
           a.project_number, a.at, a.request_id, a.key_id, a.reason
    FROM placed a, granted
  ),
  ${auditRowsAs(schema, "changed", "'moved'", true, "other_user_id")},${publishChange(schema, "changed", "metadata")}${idempotency.keeping("granted")}
  SELECT n, seq, metadata, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed ORDER BY n
`

const expectedParams = (expected: MovedMembership | undefined) => [
  textParam(expected && String(expected.endDate)),
  textParam(expected && metadataJson(expected.metadata)),
  flagParam(expected && (expected.inDays ?? false)),
  integerParam(expected?.keptDay),
]

/** The parameters for `moveMembership`. */
export const moveParams = (move: Move) => [
  ...changeParams(move, move.userId, undefined),
  textParam(move.to),
  uuidParam(move.granted.id),
  textParam(move.granted.type),
  textParam(move.granted.head),
  textParam(metadataJson(move.metadata)),
  flagParam(move.inDays ?? false),
  integerParam(move.keptDay),
  ...expectedParams(move.expected.from),
  ...expectedParams(move.expected.to),
]
