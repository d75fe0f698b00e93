/** The history of one membership, from the audit trail of its project. */

import type { AuditRow, UserId } from "./Membership.ts"

const isBulk = ({ action }: AuditRow): boolean =>
  action === "bulk_extended" || action === "bulk_lengthened"

/**
 * Selects the changes of a membership: its own, and the bulk extensions that applied to it. For stores
 * that read a whole trail.
 *
 * @param rows - the trail of the project, oldest first
 * @param isMember - whether the membership exists now
 */
export const changesOf = (
  rows: ReadonlyArray<AuditRow>,
  userId: UserId,
  isMember: boolean,
): ReadonlyArray<AuditRow> => {
  const first = rows.find((row) => row.userId === userId)
  const existed = first === undefined ? isMember : first.from !== undefined
  // A date that the trail does not tell any more is taken to be earlier than any other.
  let date = existed ? -Infinity : undefined
  return rows.filter((row) => {
    if (row.userId === userId) {
      date = row.to
      return true
    }
    const { to = -Infinity } = row
    const applies =
      isBulk(row) && date !== undefined && (row.action === "bulk_extended" || date < to)
    if (applies) date = to
    return applies
  })
}
