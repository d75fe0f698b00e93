import { ApiKeyId } from "@tenure/core/ApiKey"
import { EndDate } from "@tenure/core/EndDate"
import { type Action, type AuditRow, UserId } from "@tenure/core/Membership"
import type { ProjectId } from "@tenure/core/Project"
import { noProject } from "../audit/fragments.sql.ts"

const columns =
  "a.user_id, a.subject, a.action, a.from_date, a.to_date, a.at, a.request_id, a.key_id, a.reason"
import { Reason } from "@tenure/core/Reason"

const auditRows = (schema: string, condition: string, order: string): string => `
  SELECT ${columns}
  FROM ${schema}.projects p
  LEFT JOIN LATERAL (
    SELECT * FROM ${schema}.audit a
    WHERE ${condition}
    ORDER BY ${order}
    LIMIT $2::integer
  ) a ON true
  WHERE p.id = $1::text
  ORDER BY ${order}
`

/**
 * Returns the audit rows of a project, newest first. Returns one empty row if there are none, and no
 * row if the project does not exist.
 */
export const projectHistory = (schema: string): string =>
  auditRows(schema, "a.project_id = p.id", "a.seq DESC, a.id DESC")

/** Returns the audit rows of the user `$3` in a project, in the same way. */
export const userHistory = (schema: string): string =>
  auditRows(schema, "a.project_id = p.id AND a.user_id = $3::text", "a.id DESC")

/** Returns the newest `$1` audit rows of what belongs to no project, newest first. */
export const otherHistory = (schema: string): string => `
  SELECT ${columns} FROM ${schema}.audit a
  WHERE a.project_id = '${noProject}'
  ORDER BY a.seq DESC, a.id DESC
  LIMIT $1::integer
`

/** A row of the statements, which may be empty. */
export interface HistoryRow {
  readonly user_id: string | null
  readonly subject: string | null
  readonly action: Action | null
  readonly from_date: Date | null
  readonly to_date: Date | null
  readonly at: Date
  readonly request_id: string | null
  readonly key_id: string | null
  readonly reason: string | null
}

const endDateOf = (date: Date | null): EndDate | undefined =>
  date === null ? undefined : EndDate(Number(date))

/** Converts a row to an audit row, or to nothing if it is empty. */
export const toAuditRow = (
  projectId: ProjectId | undefined,
  row: HistoryRow,
): ReadonlyArray<AuditRow> =>
  row.action === null
    ? []
    : [
        {
          projectId,
          userId: row.user_id === null ? undefined : UserId(row.user_id),
          action: row.action,
          subject: row.subject ?? undefined,
          origin: {
            requestId: row.request_id ?? undefined,
            keyId: row.key_id === null ? undefined : ApiKeyId(row.key_id),
          },
          reason: row.reason === null ? undefined : Reason(row.reason),
          from: endDateOf(row.from_date),
          to: endDateOf(row.to_date),
          at: Number(row.at),
        },
      ]
