import { ApiKeyId } from "@tenure/core/ApiKey"
import { EndDate } from "@tenure/core/EndDate"
import { type Action, AuditCursor, type AuditRow, UserId } from "@tenure/core/Membership"
import type { ProjectId } from "@tenure/core/Project"
import { Reason } from "@tenure/core/Reason"
import { noProject } from "../audit/fragments.sql.ts"
import { text } from "../connection/parameters.ts"
import { type Integer, millisOf } from "../connection/results.ts"

// Keys stay when they are revoked, and their names never change.
const columns = (schema: string): string => `
         a.seq, a.id, a.user_id, a.subject, a.action, ${millisOf("a.from_date")} AS from_date,
         ${millisOf("a.to_date")} AS to_date, ${millisOf("a.at")} AS at, a.request_id, a.key_id, a.reason,
         (SELECT k.name FROM ${schema}.api_keys k WHERE k.id = a.key_id) AS key_name`

const latest = "9223372036854775807"

// Whether a row is older than the cursor, which is NULL for the first page.
const isOlder = (row: string, seq: string, id: string): string =>
  `(${row}.seq, ${row}.id) < (coalesce(${seq}::text, '${latest}')::bigint, coalesce(${id}::text, '${latest}')::bigint)`

const newestFirst = (row: string): string => `${row}.seq DESC, ${row}.id DESC`

// Whether a row is of all memberships. The index of these rows has the same condition.
const isBulk = "b.user_id IS NULL AND b.subject IS NULL"

const auditRows = (schema: string, rows: string): string => `
  SELECT ${columns(schema)}
  FROM ${schema}.projects p
  LEFT JOIN LATERAL (${rows}) a ON true
  WHERE p.id = $1::text
  ORDER BY ${newestFirst("a")}
`

/**
 * Returns the newest `$2` audit rows of a project that are older than the cursor `$3` and `$4`, newest
 * first. Returns one empty row if there are none, and no row if the project does not exist.
 */
export const projectHistory = (schema: string): string =>
  auditRows(
    schema,
    `
    SELECT * FROM ${schema}.audit a
    WHERE a.project_id = p.id AND ${isOlder("a", "$3", "$4")}
    ORDER BY ${newestFirst("a")} LIMIT $2::integer`,
  )

/**
 * Returns the audit rows of the user `$5` in a project, in the same way, with the bulk extensions that
 * applied to the membership: it existed, as the next change of it tells, or else that it exists now; and
 * if only earlier dates were set, the one before was earlier. That is the date of the last change before,
 * of this membership or of all of them, or a later one that was set for all since then.
 *
 * Reads all rows of the user and all bulk extensions of the project, each once.
 */
export const userHistory = (schema: string): string =>
  auditRows(
    schema,
    `
    SELECT * FROM (
      SELECT *, max(from_date) OVER (PARTITION BY own_from_here) AS next_from_date,
             max(to_date) OVER (
               PARTITION BY dates_so_far ORDER BY seq, id
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
             ) AS previous_date
      FROM (
        SELECT *, count(user_id) OVER (ORDER BY seq DESC, id DESC) AS own_from_here,
               count(*) FILTER (WHERE action <> 'bulk_lengthened') OVER (ORDER BY seq, id)
                 AS dates_so_far
        FROM (
          SELECT * FROM ${schema}.audit o WHERE o.project_id = p.id AND o.user_id = $5::text
          UNION ALL
          SELECT * FROM ${schema}.audit b WHERE b.project_id = p.id AND ${isBulk}
        ) one
      ) numbered
    ) a
    WHERE ${isOlder("a", "$3", "$4")} AND (a.user_id IS NOT NULL OR (
      CASE WHEN a.own_from_here > 0 THEN a.next_from_date IS NOT NULL
      ELSE EXISTS (
        SELECT FROM ${schema}.memberships m WHERE m.project_id = p.id AND m.user_id = $5::text
      ) END
      AND (a.action = 'bulk_extended' OR (a.to_date > a.previous_date) IS NOT FALSE)
    ))
    ORDER BY ${newestFirst("a")} LIMIT $2::integer`,
  )

/** Returns the audit rows of what belongs to no project: the newest `$1` older than `$2` and `$3`. */
export const otherHistory = (schema: string): string => `
  SELECT ${columns(schema)} FROM ${schema}.audit a
  WHERE a.project_id = '${noProject}' AND ${isOlder("a", "$2", "$3")}
  ORDER BY ${newestFirst("a")}
  LIMIT $1::integer
`

/** The parameters of a cursor. */
export const cursorParams = (cursor: AuditCursor | undefined) => {
  const [seq, id] = cursor === undefined ? [] : cursor.split(".")
  return [text(seq), text(id)]
}

/** A row of the statements, which may be empty. */
export interface HistoryRow {
  readonly seq: Integer | null
  readonly id: Integer | null
  readonly user_id: string | null
  readonly subject: string | null
  readonly action: Action | null
  readonly from_date: Integer | null
  readonly to_date: Integer | null
  readonly at: Integer
  readonly request_id: string | null
  readonly key_id: string | null
  readonly key_name: string | null
  readonly reason: string | null
}

const endDateOf = (millis: Integer | null): EndDate | undefined =>
  millis === null ? undefined : EndDate(Number(millis))

/** Converts a row to an audit row, or to nothing if it is empty. */
export const toAuditRow = (
  projectId: ProjectId | undefined,
  row: HistoryRow,
): ReadonlyArray<AuditRow> =>
  row.action === null
    ? []
    : [
        {
          cursor: AuditCursor(`${row.seq}.${row.id}`),
          projectId,
          userId: row.user_id === null ? undefined : UserId(row.user_id),
          action: row.action,
          subject: row.subject ?? undefined,
          origin: {
            requestId: row.request_id ?? undefined,
            keyId: row.key_id === null ? undefined : ApiKeyId(row.key_id),
          },
          keyName: row.key_name ?? undefined,
          reason: row.reason === null ? undefined : Reason(row.reason),
          from: endDateOf(row.from_date),
          to: endDateOf(row.to_date),
          at: Number(row.at),
        },
      ]
