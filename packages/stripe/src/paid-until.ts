/** Decides until when paid invoices let a membership last. */

/** When a canceled subscription ends the membership. */
export const cancellationRules = ["periodEnd", "now"] as const

/** How payments become end dates. */
export interface PaymentRules {
  /** How long a membership lasts after the paid period, in milliseconds, unless the subscription has ended. */
  readonly grace: number
  /** Whether a canceled subscription ends the membership with the paid period, or at once. */
  readonly cancellation: (typeof cancellationRules)[number]
  /** Whether a refunded invoice counts as unpaid. */
  readonly refundsShorten: boolean
}

/** A paid invoice. Times are milliseconds since the epoch. */
export interface PaidInvoice {
  readonly id: string
  /** When the paid period ends. */
  readonly periodEnd: number
  /** Whether all its payments were refunded. */
  readonly isRefunded: boolean
  /** When its subscription ended; `undefined` while it lasts. */
  readonly subscriptionEndedAt: number | undefined
}

const dateAfterEnd = ({ periodEnd }: PaidInvoice, endedAt: number, rules: PaymentRules): number =>
  rules.cancellation === "now" ? Math.min(periodEnd, endedAt) : periodEnd

const withGrace = ({ periodEnd }: PaidInvoice, { grace }: PaymentRules): number => periodEnd + grace

/** Returns the end date paid by one invoice; `-Infinity` for none. */
const paidBy = (invoice: PaidInvoice, rules: PaymentRules): number => {
  const { isRefunded, subscriptionEndedAt: endedAt } = invoice
  if (isRefunded && rules.refundsShorten) return -Infinity
  return endedAt === undefined ? withGrace(invoice, rules) : dateAfterEnd(invoice, endedAt, rules)
}

/** Returns the end date paid by invoices; `-Infinity` if all were refunded. */
export const paidUntil = (invoices: ReadonlyArray<PaidInvoice>, rules: PaymentRules): number =>
  Math.max(...invoices.map((invoice) => paidBy(invoice, rules)))

/** Tells whether this invoice has led to an end date, now or earlier. */
const hasSet = (invoice: PaidInvoice, endDate: number, rules: PaymentRules): boolean => {
  const { periodEnd, subscriptionEndedAt: endedAt } = invoice
  return (
    endDate === withGrace(invoice, rules) ||
    endDate === periodEnd ||
    (endedAt !== undefined && endDate === dateAfterEnd(invoice, endedAt, rules))
  )
}

/**
 * Decides whether a membership ends too late: an invoice has led to its end date, and no invoice pays for it any more.
 * Any other date was set by somebody else, so it stays.
 *
 * @returns the end date paid by the invoices, `-Infinity` for none; `undefined` to leave the membership as it is
 */
export const decideShortening = (
  invoices: ReadonlyArray<PaidInvoice>,
  endDate: number,
  rules: PaymentRules,
): number | undefined => {
  const paid = paidUntil(invoices, rules)
  return paid < endDate && invoices.some((invoice) => hasSet(invoice, endDate, rules))
    ? paid
    : undefined
}
