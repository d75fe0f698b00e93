/** Objects as Stripe sends them in the API version of its library, with the fields of accounts in test mode. */

import type { Stripe } from "stripe"

/** A list in another object: the API cuts it. */
export const listOf = <A>(url: string, all: Array<A>): Stripe.ApiList<A> => ({
  object: "list",
  data: all.slice(0, 10),
  has_more: all.length > 10,
  url,
})

/** A subscription. */
export const subscriptionOf = (given: {
  readonly id: string
  readonly customer: string
  readonly metadata: Record<string, string>
  readonly endedAt?: number | null
}): Stripe.Subscription => ({
  id: given.id,
  object: "subscription",
  application: null,
  application_fee_percent: null,
  automatic_tax: { disabled_reason: null, enabled: false, liability: null },
  billing_cycle_anchor: 1_795_000_000,
  billing_cycle_anchor_config: null,
  billing_mode: { flexible: { proration_discounts: "included" }, type: "flexible" },
  billing_schedules: [],
  billing_thresholds: null,
  cancel_at: null,
  cancel_at_period_end: false,
  canceled_at: given.endedAt ?? null,
  cancellation_details: { comment: null, feedback: null, feedback_option: null, reason: null },
  collection_method: "charge_automatically",
  created: 1_795_000_000,
  currency: "eur",
  customer: given.customer,
  customer_account: null,
  days_until_due: null,
  default_payment_method: null,
  default_source: null,
  description: null,
  discounts: [],
  ended_at: given.endedAt ?? null,
  invoice_settings: {
    account_tax_ids: null,
    custom_fields: null,
    description: null,
    footer: null,
    issuer: { type: "self" },
  },
  items: listOf(`/v1/subscription_items?subscription=${given.id}`, []),
  latest_invoice: null,
  livemode: false,
  managed_payments: null,
  metadata: given.metadata,
  next_pending_invoice_item_invoice: null,
  on_behalf_of: null,
  pause_collection: null,
  payment_settings: null,
  pending_invoice_item_interval: null,
  pending_setup_intent: null,
  pending_update: null,
  schedule: null,
  start_date: 1_795_000_000,
  status: (given.endedAt ?? null) === null ? "active" : "canceled",
  test_clock: null,
  transfer_data: null,
  trial_end: null,
  trial_settings: {
    end_behavior: { billing_cycle_anchor: null, missing_payment_method: "create_invoice" },
  },
  trial_start: null,
})

/** A line of an invoice. */
export interface LineInput {
  readonly amount: number
  readonly start: number
  readonly end: number
  /** Whether it is a single item, which belongs to no subscription. */
  readonly isSingle?: boolean
}

export const lineOf = (
  { amount, end, isSingle = false, start }: LineInput,
  index: number,
  invoice: string,
  subscription: string,
): Stripe.InvoiceLineItem => ({
  id: `il_${invoice}_${index}`,
  object: "line_item",
  amount,
  currency: "eur",
  description: "1 × Gold (at €19.00 / month)",
  discount_amounts: [],
  discountable: amount >= 0,
  discounts: [],
  invoice,
  livemode: false,
  metadata: {},
  parent: {
    type: isSingle || amount < 0 ? "invoice_item_details" : "subscription_item_details",
    invoice_item_details:
      isSingle || amount < 0
        ? {
            invoice_item: `ii_${invoice}_${index}`,
            proration: amount < 0,
            proration_details: null,
            subscription: isSingle ? null : subscription,
          }
        : null,
    subscription_item_details:
      isSingle || amount < 0
        ? null
        : {
            invoice_item: null,
            proration: false,
            proration_details: null,
            subscription,
            subscription_item: `si_${subscription}`,
          },
  },
  period: { end, start },
  pretax_credit_amounts: [],
  pricing: {
    price_details: { price: "price_gold", product: "prod_gold" },
    type: "price_details",
    unit_amount_decimal: null,
  },
  quantity: 1,
  quantity_decimal: null,
  subscription: isSingle ? null : subscription,
  subtotal: amount,
  taxes: [],
})

/** A paid invoice of a subscription. */
export const invoiceOf = (given: {
  readonly id: string
  readonly subscription: Stripe.Subscription
  readonly lines: ReadonlyArray<LineInput>
  readonly credited: number
  readonly paidAt: number
}): Stripe.Invoice => {
  const { id, paidAt, subscription } = given
  const total = Math.max(
    0,
    given.lines.reduce((sum, { amount }) => sum + amount, 0),
  )
  return {
    id,
    object: "invoice",
    account_country: "DE",
    account_name: "Example",
    account_tax_ids: null,
    amount_due: total,
    amount_overpaid: 0,
    amount_paid: total,
    amount_remaining: 0,
    amount_shipping: 0,
    application: null,
    attempt_count: 1,
    attempted: true,
    automatic_tax: {
      disabled_reason: null,
      enabled: false,
      liability: null,
      provider: null,
      status: null,
    },
    automatically_finalizes_at: null,
    billing_reason: "subscription_cycle",
    collection_method: "charge_automatically",
    created: 1_795_000_000,
    currency: "eur",
    custom_fields: null,
    customer: subscription.customer,
    customer_account: null,
    customer_address: null,
    customer_email: "ada@example.com",
    customer_name: "Ada",
    customer_phone: null,
    customer_shipping: null,
    customer_tax_exempt: "none",
    customer_tax_ids: [],
    default_payment_method: null,
    default_source: null,
    default_tax_rates: [],
    description: null,
    discounts: [],
    due_date: null,
    effective_at: 1_795_000_000,
    ending_balance: 0,
    footer: null,
    from_invoice: null,
    hosted_invoice_url: `https://invoice.stripe.com/i/acct_1/${id}`,
    invoice_pdf: `https://pay.stripe.com/invoice/acct_1/${id}/pdf`,
    issuer: { type: "self" },
    last_finalization_error: null,
    latest_revision: null,
    lines: listOf(
      `/v1/invoices/${id}/lines`,
      given.lines.map((line, index) => lineOf(line, index, id, subscription.id)),
    ),
    livemode: false,
    metadata: {},
    next_payment_attempt: null,
    number: "TENURE-0001",
    on_behalf_of: null,
    parent: {
      quote_details: null,
      subscription_details: { metadata: subscription.metadata, subscription: subscription.id },
      type: "subscription_details",
    },
    payment_settings: {
      default_mandate: null,
      payment_method_options: null,
      payment_method_types: null,
    },
    period_end: 1_795_000_000,
    period_start: 1_795_000_000,
    post_payment_credit_notes_amount: given.credited,
    pre_payment_credit_notes_amount: 0,
    receipt_number: null,
    rendering: null,
    shipping_cost: null,
    shipping_details: null,
    starting_balance: 0,
    statement_descriptor: null,
    status: "paid",
    status_transitions: {
      finalized_at: 1_795_000_000,
      marked_uncollectible_at: null,
      paid_at: paidAt,
      voided_at: null,
    },
    subtotal: total,
    subtotal_excluding_tax: total,
    test_clock: null,
    total,
    total_discount_amounts: [],
    total_excluding_tax: total,
    total_pretax_credit_amounts: [],
    total_taxes: [],
    webhooks_delivered_at: 1_795_000_000,
  }
}

/** The payment of an invoice, which the API has on demand. */
export const paymentOf = (invoice: string, amount: number): Stripe.InvoicePayment => ({
  id: `inpay_${invoice}`,
  object: "invoice_payment",
  amount_paid: amount,
  amount_requested: amount,
  created: 1_795_000_000,
  currency: "eur",
  invoice,
  is_default: true,
  livemode: false,
  payment: { payment_intent: `pi_${invoice}`, type: "payment_intent" },
  status: "paid",
  status_transitions: { canceled_at: null, paid_at: 1_795_000_000 },
})

/** The charge of an invoice. It names the payment intent, and not the invoice. */
export const chargeOf = (given: {
  readonly invoice: string
  readonly customer: string
  readonly amount: number
  readonly refunded: number
  readonly isDisputed: boolean
}): Stripe.Charge => ({
  id: `ch_${given.invoice}`,
  object: "charge",
  amount: given.amount,
  amount_captured: given.amount,
  amount_refunded: given.refunded,
  application: null,
  application_fee: null,
  application_fee_amount: null,
  balance_transaction: `txn_${given.invoice}`,
  billing_details: { address: null, email: null, name: null, phone: null, tax_id: null },
  calculated_statement_descriptor: "EXAMPLE",
  captured: true,
  created: 1_795_000_000,
  currency: "eur",
  customer: given.customer,
  description: "Subscription update",
  disputed: given.isDisputed,
  failure_balance_transaction: null,
  failure_code: null,
  failure_message: null,
  fraud_details: null,
  livemode: false,
  metadata: {},
  on_behalf_of: null,
  outcome: null,
  paid: true,
  payment_intent: `pi_${given.invoice}`,
  payment_method: "pm_1",
  payment_method_details: null,
  receipt_email: null,
  receipt_number: null,
  receipt_url: null,
  refunded: given.refunded === given.amount,
  review: null,
  shipping: null,
  source: null,
  source_transfer: null,
  statement_descriptor: null,
  statement_descriptor_suffix: null,
  status: "succeeded",
  transfer_data: null,
  transfer_group: null,
})

/** A refund's fields, as far as they are read. It is for a charge, and names no customer in earlier versions of the API. */
export const refundOf = (invoice: string, status: string) => ({
  id: `re_${invoice}`,
  object: "refund",
  charge: `ch_${invoice}`,
  payment_intent: `pi_${invoice}`,
  status,
})

/** A dispute's fields, as far as they are read. It names no customer. */
export const disputeOf = (invoice: string, status: string, amount: number) => ({
  id: `dp_${invoice}`,
  object: "dispute",
  amount,
  charge: `ch_${invoice}`,
  payment_intent: `pi_${invoice}`,
  status,
})

/** A credit note for a whole invoice. */
export const creditNoteOf = (
  invoice: Stripe.Invoice,
  status: "issued" | "void",
): Stripe.CreditNote => ({
  id: `cn_${invoice.id}`,
  object: "credit_note",
  amount: invoice.total,
  amount_shipping: 0,
  created: 1_795_000_000,
  currency: "eur",
  customer: typeof invoice.customer === "string" ? invoice.customer : "",
  customer_account: null,
  customer_balance_transaction: null,
  discount_amount: 0,
  discount_amounts: [],
  effective_at: 1_795_000_000,
  invoice: invoice.id,
  lines: listOf(`/v1/credit_notes/cn_${invoice.id}/lines`, []),
  livemode: false,
  memo: null,
  metadata: {},
  number: "TENURE-0001-CN-01",
  out_of_band_amount: null,
  pdf: "https://pay.stripe.com/credit_notes/acct_1/pdf",
  post_payment_amount: invoice.total,
  pre_payment_amount: 0,
  pretax_credit_amounts: [],
  reason: "order_change",
  refunds: [],
  shipping_cost: null,
  status,
  subtotal: invoice.total,
  subtotal_excluding_tax: invoice.total,
  total: invoice.total,
  total_excluding_tax: invoice.total,
  total_taxes: [],
  type: "post_payment",
  voided_at: null,
})

/** The text of an event. */
export const eventText = (id: string, type: string, object: object): string =>
  JSON.stringify(
    {
      id,
      object: "event",
      api_version: "2026-10-28.endive",
      created: 1_795_000_000,
      data: { object },
      livemode: false,
      pending_webhooks: 1,
      request: { id: null, idempotency_key: null },
      type,
    },
    null,
    2,
  )
