/** Statements that begin and end the pauses of memberships. */

import type { Pausing, Resuming } from "@tenure/core/store"
import { updateEndingColumns } from "./memberships.sql.ts"
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
  nextSeq,
  projectColumns,
  publishChange,
  requested,
} from "./sql/clauses.ts"
import { bigintParam, instantParam, millisOf } from "./sql/values.ts"

/** Expressions for the end date of a membership `m` in a locked project `p`, and for its form. */
const current = (schema: string) => ({
  endDate: effectiveDateLocked(schema),
  ...effectiveFormLocked(schema),
})

/**
 * The common table expression `placed`: the request, if the membership is as it demands. Locks the membership, after its
 * project.
 *
 * @param condition - on the membership `m` and the end date, `$11`
 */
const placed = (schema: string, condition: string): string => `
  found AS MATERIALIZED (
    SELECT m.* FROM ${schema}.memberships m
    JOIN project p ON p.number = m.project_number
    WHERE m.user_id = $2::text
    FOR NO KEY UPDATE OF m
  ),
  placed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, p.seq AS project_seq, p.bulk_seq,
           ${current(schema).endDate} AS end_date, ${current(schema).inDays} AS in_days, ${current(schema).keptDay} AS kept_day
    FROM asked a, project p, found m
    WHERE ${millisOf(effectiveDateLocked(schema))} = $11::bigint AND ${condition}
  )`

/** The last common table expressions, and the result. */
const published = (
  schema: string,
  action: "paused" | "resumed",
  idempotency: KeyClause,
): string => `
  ${auditRowsAs(schema, "changed", `'${action}'`, true)},${publishChange(schema, "changed", "metadata")}${idempotency.keeping("changed")}
  SELECT seq, metadata, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`

const returned = `
    a.project_number, a.user_id, a.at, a.request_id, a.key_id, a.event_id, a.event_type, a.head, a.reason, a.n,
    a.end_date AS from_date, m.metadata, a.in_days, m.paused_at, m.resumes_at`

/**
 * Pauses a membership until `$12`, or until it is resumed if that is NULL. Returns one row with the number of deliveries
 * if the membership has the end date `$11` and is not paused. An earlier pause was ended before, by `endPauses`.
 */
export const pauseMembership = (schema: string, idempotency: KeyClause): string => `
  WITH ${requested},
  ${lockedProject(schema, idempotency.condition)},${placed(schema, "m.paused_at IS NULL")},
  changed AS (
    UPDATE ${schema}.memberships m
    SET paused_at = a.at, resumes_at = $12::timestamptz, next_check_at = $12::timestamptz,
        dateless_seq = ${nextSeq(schema, lastSeq, "a")}
    FROM placed a
    WHERE m.project_number = a.project_number AND m.user_id = a.user_id
    RETURNING ${returned}, a.kept_day, a.end_date AS to_date, m.dateless_seq AS seq
  ),${published(schema, "paused", idempotency)}`

/** The parameters for `pauseMembership`. */
export const pauseParams = (pausing: Pausing) => [
  ...changeParams(pausing, pausing.userId, undefined),
  bigintParam(BigInt(pausing.expected.endDate)),
  instantParam(pausing.until),
]

/**
 * Ends a membership's pause from `$12` to `$13`. Returns one row with the number of deliveries if
 * the membership is in this pause, with the end date `$11`.
 */
export const resumeMembership = (schema: string, idempotency: KeyClause): string => `
  WITH ${requested},
  ${lockedProject(schema, idempotency.condition)},${placed(
    schema,
    `${schema}.is_paused(m.paused_at, m.resumes_at)
      AND m.paused_at = $12::timestamptz AND m.resumes_at IS NOT DISTINCT FROM $13::timestamptz`,
  )},
  changed AS (
    UPDATE ${schema}.memberships m
    SET end_date = a.to_date, in_days = a.in_days, kept_day = NULL, date_set_at = ${changeTimeSql("a.at")},
        seq = ${nextSeq(schema, lastSeq, "a")}, paused_at = NULL, resumes_at = NULL,
        next_check_at = least(m.next_check_at, ${nextCheckOf(schema, "a.to_date")}),
        ${updateEndingColumns(schema, "a.bulk_seq", "a.to_date")}
    FROM placed a
    WHERE m.project_number = a.project_number AND m.user_id = a.user_id
    RETURNING ${returned}, m.kept_day, a.to_date, m.seq
  ),${published(schema, "resumed", idempotency)}`

/** The parameters for `resumeMembership`. */
export const resumeParams = (resuming: Resuming) => [
  ...changeParams(resuming, resuming.userId, resuming.endDate),
  bigintParam(BigInt(resuming.expected.endDate)),
  instantParam(resuming.expected.pause.since),
  instantParam(resuming.expected.pause.until),
]

/**
 * Makes the time paused part of end dates in the project `$1` after pauses, with the function in the migrations. It comes
 * before statements with end dates from an index, or with arrays of bulk extensions.
 */
export const endPauses = (schema: string): string =>
  `SELECT ${schema}.end_pauses_in($1::text)::text AS ended`

/**
 * Publishes the end of pauses, for memberships without a change since they were read, with the end dates
 * of the decision, and without a lock. Makes the time paused part of these dates, unless it is already, and audits
 * it. So the event has the own date, and its number: later bulk extensions apply to it. Returns the
 * positions, from 1, and sequences, and the number of deliveries.
 */
export const announceResumptions = (schema: string): string => {
  const { endDate, inDays, keptDay } = current(schema)
  const added = {
    end_date: "u.end_date",
    in_days: "u.in_days",
    kept_day: "u.kept_day",
    seq: nextSeq(schema, lastSeq, "u"),
    ending_generation: `${schema}.next_ending_generation(m.ending_generation, u.bulk_seq)`,
    ending_lower_bound: `${schema}.next_ending_lower_bound(m.ending_generation, m.ending_lower_bound, u.bulk_seq, u.end_date)`,
  }
  return `
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::timestamptz[], $6::uuid[], $7::text[],
                         $8::timestamptz[], $9::text[])
    WITH ORDINALITY
    AS a (project_number, user_id, version, decided_date, next_check_at, event_id, event_type, at, head, n)
  ),
  project AS MATERIALIZED (
    SELECT ${projectColumns} FROM ${schema}.projects WHERE number = ANY ($1)
    -- Nothing waits for a lock while it holds locks in other projects.
    FOR NO KEY UPDATE SKIP LOCKED
  ),
  unchanged AS MATERIALIZED (
    SELECT a.*, p.seq AS project_seq, p.bulk_seq, ${endDate} AS end_date, ${inDays} AS in_days, ${keptDay} AS kept_day,
           m.paused_at IS NOT NULL AS is_added,
           ${endDate} - ${schema}.time_paused(m.paused_at, m.resumes_at) AS from_date,
           NULL::timestamptz AS paused_at, m.resumes_at
    FROM asked a
    JOIN project p ON p.number = a.project_number
    JOIN ${schema}.memberships m ON m.project_number = a.project_number AND m.user_id = a.user_id
    WHERE m.xmin::text = a.version AND ${millisOf(endDate)} = a.decided_date AND m.resumes_at <= statement_timestamp()
    FOR NO KEY UPDATE OF m SKIP LOCKED
  ),
  resumed AS (
    UPDATE ${schema}.memberships m
    SET next_check_at = u.next_check_at, paused_at = NULL, resumes_at = NULL,
        ${Object.entries(added)
          .map(
            ([column, value]) =>
              `${column} = CASE WHEN u.is_added THEN ${value} ELSE m.${column} END`,
          )
          .join(",\n        ")},
        date_set_at = CASE WHEN m.paused_at < m.resumes_at THEN m.resumes_at ELSE m.date_set_at END
    FROM unchanged u
    WHERE m.project_number = u.project_number AND m.user_id = u.user_id
    RETURNING u.*, u.end_date AS to_date, m.seq, m.metadata,
              NULL::text AS request_id, NULL::text AS key_id, NULL::text AS reason
  ),
  added AS (SELECT * FROM resumed WHERE is_added),
  ${auditRowsAs(schema, "added", "'resumed'", true)},${publishChange(schema, "resumed", "metadata")}
  SELECT n::integer, seq, metadata, (SELECT count(*) FROM delivered)::integer AS deliveries FROM resumed
`
}
