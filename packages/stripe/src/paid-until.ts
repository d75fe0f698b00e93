/** Decides until when paid invoices let a membership last. */

/** When a canceled subscription ends the membership. */
export const cancellationRules = ["periodEnd", "now"] as const

/** How payments become end dates. */
export interface PaymentRules {
  /** How long a membership lasts after the paid period, in milliseconds, unless the subscription has ended. */
  readonly grace: number
  /** Whether a canceled subscription ends the membership with the paid period, or at once. */
  readonly cancellation: (typeof cancellationRules)[number]
  /** Whether an invoice counts as unpaid once its money went back. */
  readonly refundsShorten: boolean
  /** Whether an invoice in dispute counts as paid, because its membership is paused. */
  readonly disputesPause: boolean
}

/** How all the money for an invoice went back. */
export type Return = "refunded" | "credited" | "disputed"

/** A paid invoice. Times are milliseconds since the epoch. */
export interface PaidInvoice {
  readonly id: string
  /** When the paid period ends. */
  readonly periodEnd: number
  /** How all its money went back; `undefined` if it did not. */
  readonly returned: Return | undefined
  /** Whether the bank may still give it back: the dispute that took it is open. */
  readonly isInDispute: boolean
  /** When its subscription ended; `undefined` while it lasts. */
  readonly subscriptionEndedAt: number | undefined
}

/** The payment behind an end date, as the audit trail records it. */
export interface Basis {
  /** The invoices named there, the paying one first. */
  readonly invoices: ReadonlyArray<string>
  /** Until when they paid; `-Infinity` if nothing was paid any more. */
  readonly until: number
}

const dateAfterEnd = ({ periodEnd }: PaidInvoice, endedAt: number, rules: PaymentRules): number =>
  rules.cancellation === "now" ? Math.min(periodEnd, endedAt) : periodEnd

const withGrace = ({ periodEnd }: PaidInvoice, { grace }: PaymentRules): number => periodEnd + grace

/** Returns how the money of an invoice went back, if it counts as unpaid for that. */
const unpaidBy = (
  { isInDispute, returned }: PaidInvoice,
  { disputesPause, refundsShorten }: PaymentRules,
): Return | undefined => (refundsShorten && !(disputesPause && isInDispute) ? returned : undefined)

/** Tells why an invoice pays for less than its period and the grace, or for nothing; `undefined` if it does not. */
export const lossOf = (
  invoice: PaidInvoice,
  rules: PaymentRules,
): Return | "canceled" | undefined => {
  const { subscriptionEndedAt } = invoice
  const returned = unpaidBy(invoice, rules)
  if (returned !== undefined) return returned
  return subscriptionEndedAt === undefined ? undefined : "canceled"
}

/** Returns the end date paid by one invoice; `-Infinity` for none. */
export const paidBy = (invoice: PaidInvoice, rules: PaymentRules): number => {
  const { subscriptionEndedAt: endedAt } = invoice
  if (unpaidBy(invoice, rules) !== undefined) return -Infinity
  return endedAt === undefined ? withGrace(invoice, rules) : dateAfterEnd(invoice, endedAt, rules)
}

/** Returns the end date paid by invoices; `-Infinity` if nothing is paid any more. */
export const paidUntil = (invoices: ReadonlyArray<PaidInvoice>, rules: PaymentRules): number =>
  Math.max(...invoices.map((invoice) => paidBy(invoice, rules)))

/** Tells whether this invoice leads to an end date by the present rules, now or before its subscription ended. */
const leadsTo = (invoice: PaidInvoice, endDate: number, rules: PaymentRules): boolean => {
  const { periodEnd, subscriptionEndedAt: endedAt } = invoice
  return (
    endDate === withGrace(invoice, rules) ||
    endDate === periodEnd ||
    (endedAt !== undefined && endDate === dateAfterEnd(invoice, endedAt, rules))
  )
}

/** Returns the invoices behind an end date, as its basis names them. Without a basis, their dates tell. */
export const invoicesBehind = (
  invoices: ReadonlyArray<PaidInvoice>,
  endDate: number,
  basis: Basis | undefined,
  rules: PaymentRules,
): ReadonlyArray<PaidInvoice> =>
  basis === undefined
    ? invoices.filter((invoice) => leadsTo(invoice, endDate, rules))
    : basis.invoices.flatMap((named) => invoices.filter(({ id }) => id === named))

/**
 * Decides whether a membership has to end at another date, because the invoices behind its end date pay for less, or
 * others for more. A date without such an invoice was set by somebody else, so it stays. Time added by somebody else to a
 * paid date is added to the new one.
 *
 * @returns the end date, `-Infinity` to end now; `undefined` to leave the membership as it is
 */
export const decideEndDate = (
  invoices: ReadonlyArray<PaidInvoice>,
  endDate: number,
  basis: Basis | undefined,
  rules: PaymentRules,
): number | undefined => {
  if (invoicesBehind(invoices, endDate, basis, rules).length === 0) return undefined
  const paid = paidUntil(invoices, rules)
  if (basis === undefined) return paid < endDate ? paid : undefined
  if (paid === basis.until) return undefined
  if (basis.until === -Infinity) return paid > endDate ? paid : undefined
  return endDate + paid - basis.until
}

/** Returns until when the invoices pay that are not in dispute. */
const undisputedUntil = (invoices: ReadonlyArray<PaidInvoice>, rules: PaymentRules): number =>
  paidUntil(
    invoices.filter(({ isInDispute }) => !isInDispute),
    rules,
  )

/** Returns the invoices in dispute that pay for longer than the others, if a dispute pauses the membership. */
export const disputedIn = (
  invoices: ReadonlyArray<PaidInvoice>,
  rules: PaymentRules,
): ReadonlyArray<PaidInvoice> => {
  const others = undisputedUntil(invoices, rules)
  return rules.disputesPause
    ? invoices.filter((invoice) => invoice.isInDispute && paidBy(invoice, rules) > others)
    : []
}

/**
 * Returns the invoices in dispute without which a membership would have to end earlier; none if its end date does not come
 * from them.
 */
export const disputedBehind = (
  invoices: ReadonlyArray<PaidInvoice>,
  endDate: number,
  basis: Basis | undefined,
  rules: PaymentRules,
): ReadonlyArray<PaidInvoice> => {
  const isBehind = invoicesBehind(invoices, endDate, basis, rules).length > 0
  return isBehind && undisputedUntil(invoices, rules) < (basis?.until ?? endDate)
    ? disputedIn(invoices, rules)
    : []
}
