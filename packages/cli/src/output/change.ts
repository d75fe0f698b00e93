/** Rows of the audit trail. */

import type { AuditRow } from "@tenure/client"

type Change = Omit<AuditRow, "user_id" | "subject">

/** A change of something in a line: from what to what, by whom and why. */
export const changeOf = ({ action, at, from, key_id, key_name, reason, to }: Change) => ({
  at,
  action,
  from,
  to,
  by: key_name ?? key_id,
  reason,
})
