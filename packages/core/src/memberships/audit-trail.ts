/** The audit trail: its actions and rows, and the rows that concern a member. */

import type { Branded } from "effect/Brand"
import type { FieldChange, Origin } from "../base/change-context.ts"
import type { Millis } from "../base/time.ts"
import { type ProjectId, brandedWhere } from "../base/values.ts"
import { type EndDate, type Adjustment, type BulkChange, adjust, adjustmentOf } from "./end-date.ts"
import type { UserId, Reason } from "./membership.ts"

/** Membership actions in the audit trail. */
export const membershipActions = [
  "granted",
  "imported",
  "extended",
  // All memberships in the project.
  "bulk_extended",
  // All memberships in the project, except those with a later end date.
  "bulk_lengthened",
  // All memberships in the project, by a duration.
  "bulk_extended_by",
  // A bulk extension was undone.
  "bulk_undone",
  "ended",
  // From one user id to another: both have such a row.
  "moved",
  // Its metadata was changed.
  "updated",
  // Its end date stands.
  "paused",
  // Its pause has ended, by itself or because somebody ended it: it ends later by the time paused.
  "resumed",
  // It has what it would have without earlier changes.
  "reverted",
  // A reminder was published.
  "expiring",
  // The membership has ended by itself, and is still active during the project's grace.
  "overdue",
  // The membership has ended by itself, its grace is over, and the announcement was published.
  "expired",
] as const

/** Announcements: actions that nobody asked for. */
export const announcementActions = [
  "expiring",
  "overdue",
  "expired",
] as const satisfies ReadonlyArray<(typeof membershipActions)[number]>

/** Actions on one membership without a change to its end date. */
export const datelessActions: ReadonlySet<string> = new Set([
  "updated",
  "paused",
  ...announcementActions,
])

/** A membership action in the audit trail. */
export type MembershipAction = (typeof membershipActions)[number]

/** The audit action for each bulk mode. */
export const bulkActions = {
  set: "bulk_extended",
  neverShorten: "bulk_lengthened",
  extendBy: "bulk_extended_by",
} as const satisfies Record<BulkChange["mode"], MembershipAction>

/** A cursor in the audit trail: two numbers only the store understands. */
export type AuditCursor = Branded<string, "@tenure/core/AuditCursor">

/** Brands a cursor. Throws a `TypeError` if it is invalid. */
export const AuditCursor = brandedWhere<string, AuditCursor>(
  "cursor",
  "a cursor of the trail",
  (text) => /^\d{1,18}\.\d{1,18}$/u.test(text),
)

/** Disclosures: a webhook's secret, or an event's data. */
export const disclosureActions = ["secret_shown", "data_shown"] as const

/** Other actions on a project in the audit trail. */
const projectActions = [
  // Without the user id, removed from all rows.
  "person_erased",
  "webhook_created",
  // Its settings, such as the URL, or whether it is enabled.
  "webhook_changed",
  "webhook_deleted",
  // By the dispatcher, because all attempts had failed for too long.
  "webhook_disabled",
  "secret_rotated",
  "signing_key_added",
  // Waiting deliveries to a webhook.
  "deliveries_cancelled",
  // Its settings, such as the time zone.
  "project_changed",
  ...disclosureActions,
] as const

/** Actions outside projects in the audit trail. */
const globalActions = [
  "project_created",
  // With all its data, including its audit trail.
  "project_deleted",
  "key_issued",
  // An existing key was given access to more projects.
  "key_opened",
  "key_revoked",
] as const

/** An action on anything other than a membership. */
export type NonMembershipAction = (typeof projectActions | typeof globalActions)[number]

/** A disclosure in the audit trail. */
export interface Disclosure {
  /** The disclosed data. */
  readonly action: (typeof disclosureActions)[number]
  /** The webhook's or event's id. */
  readonly subject: string
}

/** All actions in the audit trail. */
export const auditActions = [...membershipActions, ...projectActions, ...globalActions]

/** An action in the audit trail. */
export type AuditAction = MembershipAction | NonMembershipAction

/** An audit row: a change with its principal, request and reason, and with old and new end date. */
export interface AuditRow {
  /** The row's cursor; the rows after it are older. */
  readonly cursor: AuditCursor
  /** `undefined` outside projects: for API keys, and for projects themselves. */
  readonly projectId: ProjectId | undefined
  /** `undefined` for a bulk extension, for other objects, and after an erasure. */
  readonly userId: UserId | undefined
  /** The action, such as `"extended"`. */
  readonly action: AuditAction
  /**
   * The id of a webhook, event, API key, project or bulk extension; for a moved membership, the other
   * user id. `undefined` for other changes to one membership, and after that user is erased.
   */
  readonly subject: string | undefined
  /** The principal and the request. */
  readonly origin: Origin
  /** The origin's API key name; `undefined` without a name or without an API key. */
  readonly keyName: string | undefined
  /** Why it was changed; `undefined` if nobody said. */
  readonly reason: Reason | undefined
  /** The end date before; `undefined` if there was none, or if there were many. */
  readonly from: EndDate | undefined
  /** The end date after; `undefined` if the membership was ended, or if there are many. */
  readonly to: EndDate | undefined
  /** How much later all memberships end, in milliseconds; only for a bulk extension by a duration. */
  readonly by: Millis | undefined
  /** The replaced settings, if a webhook or the project was changed. */
  readonly changes: ReadonlyArray<FieldChange>
  /** When it happened, in milliseconds since the epoch. */
  readonly at: number
}

/** Returns the bulk extension in an audit row; `undefined` for other rows. */
export const bulkChangeOf = ({
  action,
  by,
  to,
}: Pick<AuditRow, "action" | "by" | "to">): BulkChange | undefined => {
  switch (action) {
    case "bulk_extended":
      return to && { mode: "set", endDate: to }
    case "bulk_lengthened":
      return to && { mode: "neverShorten", endDate: to }
    case "bulk_extended_by":
      return by && { mode: "extendBy", by }
    default:
      return undefined
  }
}

/** A bulk extension since the last change to one membership. */
interface BulkRow {
  readonly id: string | undefined
  readonly adjustment: Adjustment
  /** Whether it changed the end date when it was made. */
  readonly hadEffect: boolean
}

/**
 * Selects a membership's changes from a project's whole trail: its own, and the bulk extensions it was
 * subject to, including undone ones.
 *
 * @param rows - the project's trail, oldest first
 * @param isMember - whether the membership exists now
 */
export const changesOfUser = (
  rows: ReadonlyArray<AuditRow>,
  userId: UserId,
  isMember: boolean,
): ReadonlyArray<AuditRow> => {
  const first = rows.find((row) => row.userId === userId)
  const existed = first === undefined ? isMember : first.from !== undefined
  // The date last set for this membership alone, and the current one. An unknown date, deleted from the trail,
  // counts as earlier than any other.
  let own = existed ? -Infinity : undefined
  let date = -Infinity
  let bulk: Array<BulkRow> = []

  const applyChange = ({ action, to }: AuditRow): boolean => {
    if (datelessActions.has(action)) return true
    own = to
    date = to ?? -Infinity
    bulk = []
    return true
  }

  const applyBulkExtension = ({ subject }: AuditRow, change: BulkChange): boolean => {
    const hadEffect = change.mode !== "neverShorten" || date < change.endDate
    const adjustment = adjustmentOf(change)
    bulk.push({ id: subject, adjustment, hadEffect })
    date = adjust(date, adjustment)
    return hadEffect
  }

  const applyUndo = (start: number, { subject }: AuditRow): boolean => {
    const undone = bulk.find(({ id }) => id === subject)
    if (undone === undefined) return false
    const before = date
    bulk = bulk.filter((one) => one !== undone)
    date = bulk.reduce((sum, { adjustment }) => adjust(sum, adjustment), start)
    return undone.hadEffect || date !== before
  }

  return rows.filter((row) => {
    if (row.userId === userId) return applyChange(row)
    if (own === undefined) return false
    if (row.action === "bulk_undone") return applyUndo(own, row)
    const change = bulkChangeOf(row)
    return change !== undefined && applyBulkExtension(row, change)
  })
}
