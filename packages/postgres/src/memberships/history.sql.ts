import { ApiKeyId } from "@tenure/core/ApiKey"
import { EndDate } from "@tenure/core/EndDate"
import { type Action, type AuditRow, UserId } from "@tenure/core/Membership"
import type { ProjectId } from "@tenure/core/Project"
import { Reason } from "@tenure/core/Reason"

const auditRows = (schema: string, condition: string, order: string): string => `
  SELECT a.user_id, a.action, a.from_date, a.to_date, a.at, a.request_id, a.key_id, a.reason
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

/** A row of both statements, which may be empty. */
export interface HistoryRow {
  readonly user_id: string | null
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
export const toAuditRow = (projectId: ProjectId, row: HistoryRow): ReadonlyArray<AuditRow> =>
  row.action === null
    ? []
    : [
        {
          projectId,
          userId: row.user_id === null ? undefined : UserId(row.user_id),
          action: row.action,
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
