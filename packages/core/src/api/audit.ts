/** The operation on the audit trail of what belongs to no project. */

import { brandedText } from "../base/input.ts"
import { input } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { type AuditAction, AuditCursor, type MembershipAction } from "../memberships/membership.ts"
import { declareOperations, pageFields, paged } from "./declaration.ts"
import type { Instant, Int } from "./types.ts"

/** Who made a change, when and why, from and to which date. */
interface AuditedChange {
  readonly at: Instant
  readonly from: Instant | null
  readonly to: Instant | null
  /**
   * How much later all memberships end, if that was done: a duration of ISO 8601.
   * @example null
   */
  readonly extend_by: string | null
  /** The id of the API key, or of whom else the host named. */
  readonly key_id: string | null
  /** The name of the API key. */
  readonly key_name: string | null
  readonly request_id: string | null
  readonly reason: string | null
}

export interface MembershipChange extends AuditedChange {
  /**
   * What was done; `bulk_lengthened` has left memberships that ended later, `bulk_undone` has undone a bulk extension, `moved`
   * has moved the membership to or from another user id, `updated` has changed metadata, and `expiring` and `expired` are
   * announcements of the date.
   */
  readonly action: MembershipAction
}

type AuditedValue = string | Int | boolean | ReadonlyArray<string> | null

export interface AuditRow extends AuditedChange {
  /**
   * What was done; `bulk_lengthened` has left memberships that ended later, `bulk_undone` has undone a bulk extension, `moved`
   * has moved the membership to or from another user id, `updated` has changed metadata, and `expiring` and `expired` are
   * announcements of the date.
   */
  readonly action: AuditAction
  /**
   * Whose membership was changed; null if all were, or something else, or if the user was erased.
   * @pattern ^[!-~]{1,128}$
   * @example "1001"
   */
  readonly user_id: string | null
  /**
   * The id of the webhook, the API key, the project or the bulk extension that was changed; the other user id of a membership
   * that was moved; null for other changes of one membership.
   * @example null
   */
  readonly subject: string | null
  /**
   * The settings of a webhook that were changed, from and to which value.
   * @example []
   */
  readonly changes: ReadonlyArray<{
    readonly field: string
    readonly from: AuditedValue
    readonly to: AuditedValue
  }>
}

/** A page of the audit trail. */
export const auditPage = {
  ...pageFields,
  /** The cursor that the page before has as `next`; without it, the first page. */
  after: Setting.optional(brandedText(AuditCursor)),
}

/**
 * Audit trail
 *
 * Who changed what, beside the changes of a project.
 */
export const auditOperations = declareOperations({
  /**
   * List changes of projects and keys
   *
   * Returns who created and deleted projects, and who issued and revoked API keys, newest first. Needs a key that opens all
   * projects.
   */
  list: {
    method: "GET",
    pattern: "/v2/audit",
    role: "admin",
    input: input({}, auditPage),
    reply: paged<ReadonlyArray<AuditRow>>(
      "The audit trail of projects and API keys, newest first.",
    ),
    errors: [],
  },
})
