/** What responses show of the audit trail. */

import type { AuditRow } from "../memberships/Membership.ts"
import { timeOf } from "./Operation.ts"

/** Returns who changed a membership, when and why, from and to which date. */
export const changeOf = (row: AuditRow) => ({
  at: timeOf(row.at),
  action: row.action,
  from: timeOf(row.from),
  to: timeOf(row.to),
  key_id: row.origin.keyId ?? null,
  key_name: row.keyName ?? null,
  request_id: row.origin.requestId ?? null,
  reason: row.reason ?? null,
})

/** Returns a row with what was changed: the member, or something else. */
export const of = (row: AuditRow) => ({
  ...changeOf(row),
  user_id: row.userId ?? null,
  subject: row.subject ?? null,
})
