/** Records the payment behind an end date in the audit trail, and reads it there. */

import type { AuditRow, Member, Tenure } from "@tenure/core"
import { datelessActions } from "@tenure/core/internal"
import { type Basis, type PaidInvoice, type PaymentRules, lossOf, paidBy } from "./paid-until.ts"

const keyId = "stripe"

/** Tells whether a change in the audit trail was made for an event from Stripe. */
export const isOwn = ({ origin }: AuditRow): boolean => origin.keyId === keyId

/** Returns the origin of a change. */
export const originOf = (eventId: string) => ({ keyId, requestId: eventId })

const describeLoss = (
  invoices: ReadonlyArray<PaidInvoice>,
  rules: PaymentRules,
): string | undefined => {
  for (const invoice of invoices) {
    const loss = lossOf(invoice, rules)
    if (loss !== undefined) return `${invoice.id} ${loss}`
  }
  return undefined
}

/** Its period may be over by other rules than before. */
const describeOver = ([invoice]: ReadonlyArray<PaidInvoice>): string | undefined =>
  invoice && `${invoice.id} over`

const describePaid = (invoiceId: string, until: number): string =>
  `${invoiceId} pays until ${new Date(until).toISOString()}`

const describePaying = (
  invoices: ReadonlyArray<PaidInvoice>,
  rules: PaymentRules,
): string | undefined => {
  const [longest] = invoices.toSorted((a, b) => paidBy(b, rules) - paidBy(a, rules))
  const until = longest === undefined ? -Infinity : paidBy(longest, rules)
  return longest === undefined || until === -Infinity ? undefined : describePaid(longest.id, until)
}

const prefix = "Stripe: "

/** The reason for an end date paid by an invoice. */
export const paymentReason = (invoiceId: string, until: number): string =>
  prefix + describePaid(invoiceId, until)

/**
 * The reason for another end date: why an invoice behind the old date pays less, and the invoice paying now.
 *
 * @param behind - the invoices behind the old date
 * @param paying - the invoices paying for the new date; none if the membership ends now
 */
export const changeReason = (
  behind: ReadonlyArray<PaidInvoice>,
  paying: ReadonlyArray<PaidInvoice>,
  rules: PaymentRules,
): string =>
  prefix +
  ([describeLoss(behind, rules), describePaying(paying, rules)]
    .filter((part) => part !== undefined)
    .join("; ") || describeOver(behind))

const pattern =
  /^Stripe: (?:(\w+) (?:refunded|credited|disputed|canceled|over))?(?:; )?(?:(\w+) pays until (\S+))?$/

/** Returns the payment recorded in a row; `undefined` for rows of others. */
export const basisIn = (row: AuditRow): Basis | undefined => {
  const [, lost, paying, until] = (isOwn(row) && pattern.exec(row.reason ?? "")) || []
  const invoices = [paying, lost].filter((id) => id !== undefined)
  if (invoices.length === 0) return undefined
  return { invoices, until: until === undefined ? -Infinity : Date.parse(until) }
}

/** So many ids of invoices are short enough for a reason. */
const maxNamed = 10

/** The reason for a pause during the disputes of invoices. It names no basis. */
export const disputeReason = (invoices: ReadonlyArray<PaidInvoice>): string =>
  `${prefix}${invoices
    .slice(0, maxNamed)
    .map(({ id }) => id)
    .join(", ")} in dispute`

const disputePattern = /^Stripe: (\w+(?:, \w+)*) in dispute$/

/** Returns the invoices in dispute for which a row's change has paused a membership; `undefined` for other changes. */
export const disputeIn = (row: AuditRow): ReadonlyArray<string> | undefined => {
  const [, invoices] =
    (row.action === "paused" && isOwn(row) && disputePattern.exec(row.reason ?? "")) || []
  return invoices?.split(", ")
}

/** The reason for the end of such a pause. */
export const disputeOverReason = (invoices: ReadonlyArray<string>): string =>
  `${prefix}${invoices.join(", ")} no longer in dispute, or paid otherwise`

/**
 * Returns the payment behind a membership's end date; `undefined` if somebody else has set the date. Bulk extensions by a
 * duration and pauses only add to it, and a move to another user id takes it along.
 *
 * @param after - reads only rows of the audit trail older than this one
 */
export const readBasis = async (
  memberships: Tenure["memberships"],
  { projectId, userId }: Member,
  after?: AuditRow["cursor"],
): Promise<Basis | undefined> => {
  const undone = new Set<string | undefined>()
  for (const row of await memberships.history({ projectId, userId, after })) {
    const { action, cursor, from, subject, to } = row
    if (action === "bulk_undone") undone.add(subject)
    const isPassed =
      datelessActions.has(action) ||
      action === "bulk_undone" ||
      action === "bulk_extended_by" ||
      action === "resumed" ||
      // The membership left, or the one that came had no later date.
      (action === "moved" && (to === undefined || to === from)) ||
      (subject !== undefined && undone.has(subject))
    if (isPassed) continue
    return action === "moved" && subject !== undefined
      ? readBasis(memberships, { projectId, userId: subject }, cursor)
      : basisIn(row)
  }
  return undefined
}
