/** The rows of the host's tables, and what they are to Tenure. */

import type { PgClient } from "@effect/sql-pg"
import {
  ApiKeyId,
  type AuditAction,
  AuditCursor,
  type AuditRow,
  type BulkChange,
  type BulkExtensionRecord,
  EndDate,
  EventId,
  type Membership,
  Millis,
  type Pause,
  type ProjectId,
  type ProjectSummary,
  Reason,
  type RecordedChange,
  UserId,
  bulkActions,
  metadataFromJson,
} from "@tenure/core/store"

/** A row of `subscriptions`. */
export interface Subscription {
  readonly customer: string
  readonly paid_until: Date
  readonly in_days: boolean
  readonly kept_day: number | null
  readonly paused_at: Date | null
  readonly resumes_at: Date | null
  readonly metadata: string
}

/** A row of `subscription_changes`, with the name of the API key. */
export interface ChangeRow {
  readonly id: string
  readonly customer: string | null
  readonly other_customer: string | null
  readonly action: AuditAction
  readonly paid_from: Date | null
  readonly paid_until: Date | null
  /** Of a change of all subscriptions: its event, by how much, and how many there were. */
  readonly event_id: string | null
  readonly added_millis: string | null
  readonly total: number | null
  readonly at: Date
  readonly request_id: string | null
  readonly key_id: string | null
  readonly key_name: string | null
  readonly reason: string | null
}

/** A row with the state after the change. */
export interface StateRow extends ChangeRow {
  readonly in_days: boolean
  readonly kept_day: number | null
  readonly paused_at: Date | null
  readonly resumes_at: Date | null
  readonly is_unasked: boolean
}

/** The last end date. */
export const lastDate = "9999-12-31T23:59:59.999Z"

export const toEndDate = (date: Date): EndDate => EndDate(date.getTime())

/**
 * Writes an instant. The client rounds the microseconds of a `Date` after the year 4253, which text has exactly.
 * PostgreSQL calls the year 0 1 BC.
 */
export const toDate = (instant: number | undefined): string | null => {
  if (instant === undefined) return null
  const text = new Date(instant).toISOString()
  return text.startsWith("0000") ? `0001${text.slice(4)} BC` : text
}

const toPause = ({
  paused_at,
  resumes_at,
}: Pick<Subscription, "paused_at" | "resumes_at">): Pause | undefined =>
  paused_at === null ? undefined : { since: paused_at.getTime(), until: resumes_at?.getTime() }

export const toMembership = (
  { grace, id, timeZone }: Pick<ProjectSummary, "grace" | "id" | "timeZone">,
  row: Subscription,
): Membership => ({
  projectId: id,
  userId: UserId(row.customer),
  endDate: toEndDate(row.paid_until),
  inDays: row.in_days,
  keptDay: row.kept_day ?? undefined,
  pause: toPause(row),
  metadata: metadataFromJson(row.metadata),
  timeZone,
  grace,
})

export const toAuditRow = (projectId: ProjectId, row: ChangeRow): AuditRow => ({
  projectId,
  userId: row.customer === null ? undefined : UserId(row.customer),
  cursor: AuditCursor(`0.${row.id}`),
  action: row.action,
  subject: row.event_id ?? row.other_customer ?? undefined,
  origin: {
    requestId: row.request_id ?? undefined,
    keyId: row.key_id === null ? undefined : ApiKeyId(row.key_id),
  },
  keyName: row.key_name ?? undefined,
  reason: row.reason === null ? undefined : Reason(row.reason),
  from: row.paid_from === null ? undefined : toEndDate(row.paid_from),
  to: row.paid_until === null ? undefined : toEndDate(row.paid_until),
  by: row.added_millis === null ? undefined : Millis(Number(row.added_millis)),
  changes: [],
  at: row.at.getTime(),
})

/** A change with the state afterwards. */
export const toRecordedChange = (projectId: ProjectId, row: StateRow): RecordedChange => ({
  ...toAuditRow(projectId, row),
  state: {
    inDays: row.in_days,
    keptDay: row.kept_day ?? undefined,
    pause: toPause(row),
    isUnasked: row.is_unasked,
  },
})

/** A change of all subscriptions of an account. */
export const toBulkExtension = (projectId: ProjectId, row: ChangeRow): BulkExtensionRecord => {
  const { at, by, origin, reason, to } = toAuditRow(projectId, row)
  const mode = row.action === bulkActions.set ? "set" : "neverShorten"
  return {
    id: EventId(row.event_id ?? ""),
    change: to === undefined ? { mode: "extendBy", by: by ?? Millis(0) } : { mode, endDate: to },
    at,
    reason,
    origin,
    total: row.total ?? 0,
    // Each subscription has one date, so none can be undone.
    undone: undefined,
  }
}

/** How the date of a subscription is given after a change of all of them. */
export const formAfter = (sql: PgClient.PgClient, bulk: BulkChange) => {
  const isKept =
    bulk.mode === "neverShorten" ? sql`paid_until >= ${toDate(bulk.endDate)}` : sql`false`
  const inDays = bulk.mode !== "extendBy" && bulk.inDays === true
  return sql`in_days = in_days OR ${inDays}, kept_day = CASE WHEN ${isKept} THEN kept_day END`
}

/** The date of a subscription after a change of all of them. */
export const dateAfter = (sql: PgClient.PgClient, bulk: BulkChange) => {
  switch (bulk.mode) {
    case "set":
      return sql`${toDate(bulk.endDate)}::timestamptz`
    case "neverShorten":
      return sql`greatest(paid_until, ${toDate(bulk.endDate)})`
    case "extendBy":
      return sql`least(paid_until + ${bulk.by}::float8 * interval '1 millisecond', ${lastDate})`
  }
}
