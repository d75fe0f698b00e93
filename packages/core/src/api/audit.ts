/** The operation on the audit trail outside projects. */

import { brandedText } from "../base/input.ts"
import { input } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { type AuditAction, AuditCursor, type MembershipAction } from "../memberships/audit-trail.ts"
import { auditFilterFields } from "../memberships/inputs.ts"
import { declareOperations, pageFields, paged } from "./declaration.ts"
import type { Instant, Int } from "./types.ts"

/** A change's principal, time and reason, and its old and new date. */
interface AuditedChange {
  readonly at: Instant
  readonly from: Instant | null
  readonly to: Instant | null
  /**
   * The ISO 8601 duration added to all end dates, if there was one.
   * @example null
   */
  readonly extend_by: string | null
  /** The API key's id, or the id of another principal named by the host. */
  readonly key_id: string | null
  /** The API key's name. */
  readonly key_name: string | null
  readonly request_id: string | null
  readonly reason: string | null
}

export interface MembershipChange extends AuditedChange {
  /**
   * The action; `bulk_lengthened` has left memberships with a later end date, `bulk_undone` has undone
   * a bulk extension, `moved` has moved the membership to or from another user id, `updated` has
   * changed metadata, `paused` and `resumed` begin and end a pause, and `expiring`, `overdue` and `expired`
   * announce the date.
   */
  readonly action: MembershipAction
}

type AuditedValue = string | Int | boolean | ReadonlyArray<string> | null

export interface AuditRow extends AuditedChange {
  /**
   * The action; `bulk_lengthened` has left memberships with a later end date, `bulk_undone` has undone
   * a bulk extension, `moved` has moved the membership to or from another user id, `updated` has
   * changed metadata, `paused` and `resumed` begin and end a pause, and `expiring`, `overdue` and `expired`
   * announce the date.
   */
  readonly action: AuditAction
  /**
   * The changed member; null for a change to all memberships or to another subject, or if the user was
   * erased.
   * @pattern ^[!-~]{1,128}$
   * @example "1001"
   */
  readonly user_id: string | null
  /**
   * The changed webhook's, API key's, project's or bulk extension's id; the other user id for a moved
   * membership; null for other changes to one membership.
   * @example null
   */
  readonly subject: string | null
  /**
   * A webhook's changed settings, with old and new values.
   * @example []
   */
  readonly changes: ReadonlyArray<{
    readonly field: string
    readonly from: AuditedValue
    readonly to: AuditedValue
  }>
}

/** A page from the audit trail. */
export const auditPage = {
  ...pageFields,
  ...auditFilterFields,
  /** The previous page's `next`; without it, the first page. */
  after: Setting.optional(brandedText(AuditCursor)),
}

/**
 * Audit trail
 *
 * Changes outside projects.
 */
export const auditOperations = declareOperations({
  /**
   * List changes to projects and keys
   *
   * Returns changes with their principals, newest first: projects created and deleted, and API keys
   * issued and revoked. Needs a key with all projects in its scope. With parameters that select changes, a page
   * may have fewer than `limit`, or none, before the last.
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
