/** Pauses memberships while payments are in dispute. */

import type { CurrentMembership, Member, Tenure } from "@tenure/core"
import { lastEndDate, unless } from "@tenure/core/internal"
import { disputeIn, disputeOverReason, disputeReason, isOwn, originOf, readBasis } from "./basis.ts"
import { type PaymentRules, disputedBehind, disputedIn } from "./paid-until.ts"
import type { MemberPayments } from "./payments.ts"

type Memberships = Tenure["memberships"]

const meanwhile = ["MembershipNotFound", "StateConflict"]

/** Returns the invoices for which a membership is paused; `undefined` if somebody else has paused it. */
const readPause = async (
  memberships: Memberships,
  { projectId, userId }: Member,
  pausedAt: number,
): Promise<ReadonlyArray<string> | undefined> => {
  const search = { projectId, userId, action: "paused", limit: 1 } as const
  const [row] = (await memberships.searchHistory(search)).rows
  return row?.at === pausedAt ? disputeIn(row) : undefined
}

/** Returns the invoices for which a membership was paused, and not resumed here since. */
const readHandled = async (
  memberships: Memberships,
  { projectId, userId }: Member,
): Promise<ReadonlySet<string>> => {
  const rows = await memberships.history({ projectId, userId })
  const end = rows.findIndex(
    (row) => row.action === "ended" || (row.action === "resumed" && isOwn(row)),
  )
  const since = end === -1 ? rows : rows.slice(0, end)
  return new Set(since.flatMap((row) => disputeIn(row) ?? []))
}

/**
 * Pauses a membership while money behind its end date is in dispute, and resumes it afterwards. Leaves the pauses of
 * others, and a membership that others have resumed meanwhile. Tells whether the membership may have changed.
 *
 * @param isOver - whether the end date is over: then there is nothing to pause
 */
export const settleDisputes = async (
  memberships: Memberships,
  { invoices, member }: MemberPayments,
  found: CurrentMembership,
  {
    eventId,
    isOver,
    rules,
  }: { readonly eventId: string; readonly isOver: boolean; readonly rules: PaymentRules },
): Promise<boolean> => {
  const { endDate, pausedAt } = found
  const disputed = disputedIn(invoices, rules)
  if (pausedAt !== undefined) {
    if (disputed.length > 0) return false
    const ids = await readPause(memberships, member, pausedAt)
    // The payments of another customer may be in dispute.
    if (ids?.every((named) => invoices.some(({ id }) => id === named)) !== true) return false
    const resumed = memberships.resume(
      { ...member, reason: disputeOverReason(ids) },
      originOf(eventId),
    )
    await unless(meanwhile, resumed)
    return true
  }
  if (disputed.length === 0 || isOver || endDate === lastEndDate) return false
  const basis = await readBasis(memberships, member)
  const behind = disputedBehind(invoices, endDate, basis, rules)
  if (behind.length === 0) return false
  const handled = await readHandled(memberships, member)
  if (behind.every(({ id }) => handled.has(id))) return false
  const paused = memberships.pause({ ...member, reason: disputeReason(behind) }, originOf(eventId))
  await unless(meanwhile, paused)
  return true
}
