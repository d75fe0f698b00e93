/** Audit rows. */

import type { AuditRow, MembershipChange } from "@tenure/client"
import { shortOf } from "./screen.tsx"
import { Time } from "./text.tsx"

/** Actions in words. */
export const deeds: Readonly<Record<AuditRow["action"], string>> = {
  granted: "Granted",
  imported: "Imported",
  extended: "Extended",
  bulk_extended: "All memberships extended",
  bulk_lengthened: "All memberships lengthened",
  bulk_extended_by: "All memberships extended by a duration",
  bulk_undone: "Extension of all memberships undone",
  ended: "Ended",
  moved: "Moved between user ids",
  updated: "Metadata changed",
  paused: "Paused",
  reverted: "Reverted",
  resumed: "Resumed",
  expiring: "Announced to end",
  overdue: "Overdue",
  expired: "Expired",
  person_erased: "Person erased",
  webhook_created: "Webhook created",
  webhook_changed: "Webhook changed",
  webhook_deleted: "Webhook deleted",
  webhook_disabled: "Webhook disabled",
  secret_rotated: "Secret rotated",
  secret_shown: "Secret shown",
  data_shown: "Data shown",
  signing_key_added: "Signing key added",
  deliveries_cancelled: "Deliveries cancelled",
  project_changed: "Project changed",
  project_created: "Project created",
  project_deleted: "Project deleted",
  key_issued: "Key issued",
  key_opened: "Key opened for a project",
  key_revoked: "Key revoked",
}

/** The old and new end date; an announcement changes none, and a pause keeps it. */
export const Dates = ({
  of: { action, from, to },
}: {
  readonly of: MembershipChange | AuditRow
}) => (
  <>
    {from !== null && from !== to && (
      <>
        from <Time iso={from} />{" "}
      </>
    )}
    {to !== null && action !== "paused" && (
      <>
        to <Time iso={to} />
      </>
    )}
  </>
)

/** The author. */
export const Author = ({
  of: { key_id, key_name },
}: {
  readonly of: MembershipChange | AuditRow
}) => (
  <span title={key_id ?? undefined}>
    {key_name ?? (key_id === null ? "the host" : shortOf(key_id))}
  </span>
)
