/** Records in the audit trail which payment is behind an end date, and reads it there. */

import type { AuditRow } from "@tenure/core"
import { datelessActions } from "@tenure/core/internal"
import { type Basis, type PaidInvoice, type PaymentRules, lossOf, paidBy } from "./paid-until.ts"

const keyId = "stripe"

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

/** The reason for the end date that an invoice has paid. */
export const paymentReason = (invoiceId: string, until: number): string =>
  prefix + describePaid(invoiceId, until)

/**
 * The reason for an end date: why an invoice behind the date before pays less, and which invoice pays now.
 *
 * @param behind - the invoices behind the date before
 * @param paying - the invoices that pay for the new date; none if the membership ends now
 */
export const changeReason = (
  behind: ReadonlyArray<PaidInvoice>,
  paying: ReadonlyArray<PaidInvoice>,
  rules: PaymentRules,
): string =>
  prefix +
  [describeLoss(behind, rules), describePaying(paying, rules)]
    .filter((part) => part !== undefined)
    .join("; ")

const pattern =
  /^Stripe: (?:(\w+) (?:refunded|credited|disputed|canceled))?(?:; )?(?:(\w+) pays until (\S+))?$/

/** Returns the payment that a row records; `undefined` for rows of others. */
export const basisIn = ({ origin, reason }: AuditRow): Basis | undefined => {
  const [, lost, paying, until] = (origin.keyId === keyId && pattern.exec(reason ?? "")) || []
  const invoices = [paying, lost].filter((id) => id !== undefined)
  if (invoices.length === 0) return undefined
  return { invoices, until: until === undefined ? -Infinity : Date.parse(until) }
}

/**
 * Returns the payment behind a membership's end date; `undefined` if somebody else has set the date. Bulk extensions by a
 * duration only add to it.
 *
 * @param rows - the membership's history, newest first
 */
export const readBasis = (rows: ReadonlyArray<AuditRow>): Basis | undefined => {
  const undone = new Set<string | undefined>()
  for (const row of rows) {
    if (row.action === "bulk_undone") undone.add(row.subject)
    const isPassed =
      datelessActions.has(row.action) ||
      row.action === "bulk_undone" ||
      row.action === "bulk_extended_by" ||
      (row.subject !== undefined && undone.has(row.subject))
    if (!isPassed) return basisIn(row)
  }
  return undefined
}
