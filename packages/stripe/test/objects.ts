/** Objects as Stripe sends them in its library's API version, with the fields that are read. */

import type { Stripe } from "stripe"

export interface Subscription {
  readonly id: string
  readonly customer: string
  metadata: Record<string, string>
  endedAt: number | null
}

export interface LineInput {
  readonly amount: number
  readonly start: number
  readonly end: number
  /** Whether it is a single item, which belongs to no subscription. */
  readonly isSingle?: boolean
}

/** A paid invoice. */
export interface Invoice {
  readonly id: string
  readonly subscription: Subscription
  readonly lines: ReadonlyArray<LineInput>
  /** How many equal payments have paid it. */
  parts: number
  refunded: number
  credited: number
  dispute: { readonly status: string; readonly amount: number } | undefined
  readonly paidAt: number
}

export const totalOf = ({ lines }: Pick<Invoice, "lines">): number =>
  Math.max(
    0,
    lines.reduce((sum, { amount }) => sum + amount, 0),
  )

/** An invoice's payment ids: its own, if there is one. */
const partsOf = ({ id, parts }: Invoice): ReadonlyArray<string> =>
  parts === 1 ? [id] : Array.from({ length: parts }, (_, index) => `${id}_${index}`)

/** A list in another object: the API cuts it. */
const listOf = <A>(url: string, all: ReadonlyArray<A>) => ({
  object: "list",
  data: all.slice(0, 10),
  has_more: all.length > 10,
  url,
})

export const subscriptionOf = ({ customer, endedAt, id, metadata }: Subscription) =>
  ({
    id,
    object: "subscription",
    customer,
    ended_at: endedAt,
    metadata,
    status: endedAt === null ? "active" : "canceled",
  }) satisfies Partial<Stripe.Subscription>

export const linesOf = ({ id, lines, subscription }: Invoice) =>
  lines.map(({ amount, end, isSingle = false, start }, index) => {
    const isItem = isSingle || amount < 0
    const item = { proration: amount < 0, proration_details: null }
    return {
      id: `il_${id}_${index}`,
      object: "line_item",
      amount,
      parent: {
        type: isItem ? "invoice_item_details" : "subscription_item_details",
        invoice_item_details: isItem
          ? {
              ...item,
              invoice_item: `ii_${id}_${index}`,
              subscription: isSingle ? null : subscription.id,
            }
          : null,
        subscription_item_details: isItem
          ? null
          : {
              ...item,
              invoice_item: null,
              subscription: subscription.id,
              subscription_item: `si_${subscription.id}`,
            },
      },
      period: { end, start },
    } satisfies Partial<Stripe.InvoiceLineItem>
  })

/** The payment for an invoice or a part. */
const paymentOf = (part: string, amount: number) =>
  ({
    id: `inpay_${part}`,
    object: "invoice_payment",
    amount_paid: amount,
    payment: { payment_intent: `pi_${part}`, type: "payment_intent" },
    status: "paid",
  }) satisfies Partial<Stripe.InvoicePayment>

/**
 * A paid invoice.
 *
 * @param paths - what the API has only if it is asked to expand it
 */
export const invoiceOf = (invoice: Invoice, paths: ReadonlyArray<string> = []) => {
  const { credited, id, paidAt, parts, subscription } = invoice
  const total = totalOf(invoice)
  const isExpanded = paths.includes("data.parent.subscription_details.subscription")
  const payments = total === 0 ? [] : partsOf(invoice).map((part) => paymentOf(part, total / parts))
  return {
    ...({
      id,
      object: "invoice",
      amount_paid: total,
      customer: subscription.customer,
      post_payment_credit_notes_amount: credited,
      status: "paid",
      status_transitions: {
        finalized_at: paidAt,
        marked_uncollectible_at: null,
        paid_at: paidAt,
        voided_at: null,
      },
      total,
    } satisfies Partial<Stripe.Invoice>),
    lines: listOf(`/v1/invoices/${id}/lines`, linesOf(invoice)),
    parent: {
      type: "subscription_details",
      subscription_details: {
        metadata: subscription.metadata,
        subscription: isExpanded ? subscriptionOf(subscription) : subscription.id,
      },
    },
    payments: paths.includes("data.payments") ? listOf("/v1/payments", payments) : undefined,
  }
}

/** A charge. It names the payment intent, and not the invoice. */
export const chargeOf = (given: {
  readonly payment: string
  readonly customer: string
  readonly amount: number
  readonly refunded: number
  readonly isDisputed: boolean
}) =>
  ({
    id: `ch_${given.payment}`,
    object: "charge",
    amount: given.amount,
    amount_refunded: given.refunded,
    customer: given.customer,
    disputed: given.isDisputed,
    payment_intent: `pi_${given.payment}`,
    refunded: given.refunded === given.amount,
    status: "succeeded",
  }) satisfies Partial<Stripe.Charge>

/** An invoice's charges. The first are refunded first. */
export const chargesOf = (invoice: Invoice) => {
  const total = totalOf(invoice)
  const amount = total / invoice.parts
  const { customer } = invoice.subscription
  return (total === 0 ? [] : partsOf(invoice)).map((payment, index) => {
    const refunded = Math.min(amount, Math.max(0, invoice.refunded - index * amount))
    const isDisputed = invoice.dispute !== undefined
    return chargeOf({ payment, customer, amount, refunded, isDisputed })
  })
}

/** A refund. It is for a charge, and names no customer in earlier API versions. */
export const refundOf = (invoice: string, status: string) =>
  ({
    id: `re_${invoice}`,
    object: "refund",
    charge: `ch_${invoice}`,
    payment_intent: `pi_${invoice}`,
    status,
  }) satisfies Partial<Stripe.Refund>

/** A dispute. It names no customer. */
export const disputeOf = (invoice: string, status: string, amount: number) => ({
  id: `dp_${invoice}`,
  object: "dispute",
  amount,
  charge: `ch_${invoice}`,
  payment_intent: `pi_${invoice}`,
  status,
})

/** A credit note for a whole invoice. */
export const creditNoteOf = (invoice: Invoice, status: "issued" | "void") =>
  ({
    id: `cn_${invoice.id}`,
    object: "credit_note",
    amount: totalOf(invoice),
    customer: invoice.subscription.customer,
    invoice: invoice.id,
    status,
  }) satisfies Partial<Stripe.CreditNote>

export const eventText = (id: string, type: string, object: object): string =>
  JSON.stringify({ id, object: "event", data: { object }, type }, null, 2)
