/** Reads the period paid by one invoice, and extends the membership. */

import type { Member, Tenure } from "@tenure/core"
import { digestToken, unless } from "@tenure/core/internal"
import { basisIn, originOf, paymentReason } from "./basis.ts"
import { fromStripe } from "./stripe-error.ts"

/** An invoice line as in Stripe's library. */
interface Line {
  readonly amount: number
  readonly period: { readonly end: number }
  readonly parent?: {
    readonly subscription_item_details?: { readonly subscription?: unknown } | null
    readonly invoice_item_details?: { readonly subscription?: unknown } | null
  } | null
}

/** An invoice's lines, and whether it has more. */
interface WithLines {
  readonly id: string
  readonly lines: { readonly data: ReadonlyArray<Line>; readonly has_more: boolean }
}

/** An invoice as in Stripe's library. */
export interface InvoiceInput extends WithLines {
  readonly parent: {
    readonly subscription_details?: {
      readonly metadata: { readonly [name: string]: string } | null
    } | null
  } | null
}

/** A client as in Stripe's library. */
export interface LinesClient {
  readonly invoices: {
    readonly listLineItems: (
      id: string,
      page: { limit: number },
      ...options: [] | [{ stripeAccount?: string }]
    ) => { autoPagingToArray(most: { limit: number }): Promise<ReadonlyArray<Line>> }
  }
}

/** A member's paid date. */
export interface Payment extends Member {
  /** The paid invoice's id. */
  readonly invoice: string
  /** When the paid period ends, in milliseconds since the epoch. */
  readonly endDate: number
}

/** A paid period. */
export interface PaidPeriod extends Pick<Payment, "invoice" | "endDate"> {
  /** The member named by the subscription's metadata; `undefined` if they name nobody. */
  readonly member: Member | undefined
}

/** The most lines read for one invoice, a hundred in each request. */
const maxLines = 1000

/**
 * Returns when the period paid by these lines ends, in milliseconds; `-Infinity` for no period. Lines without a
 * subscription are single items. Negative lines give back the rest of a former plan.
 */
const periodEndOf = (lines: ReadonlyArray<Line>): number =>
  Math.max(
    ...lines
      .filter(
        ({ amount, parent }) =>
          amount >= 0 &&
          Boolean(
            parent?.subscription_item_details?.subscription ??
            parent?.invoice_item_details?.subscription,
          ),
      )
      .map(({ period }) => period.end * 1000),
  )

/** Reads when the period paid by an invoice ends. Events and lists have only the first lines of an invoice. */
export const readPeriodEnd = async (
  { invoices }: LinesClient,
  { id, lines }: WithLines,
  ...options: [] | [{ stripeAccount: string }]
): Promise<number> => {
  if (!lines.has_more) return periodEndOf(lines.data)
  const pages = invoices.listLineItems(id, { limit: 100 }, ...options)
  const all = await fromStripe(pages.autoPagingToArray({ limit: maxLines + 1 }))
  if (all.length > maxLines) throw new Error(`${id} has more than ${maxLines} lines`)
  return periodEndOf(all)
}

/** Returns the member named by a subscription's metadata. */
export const memberIn = (metadata: { readonly [name: string]: string }): Member | undefined => {
  const { project_id: projectId, user_id: userId } = metadata
  return projectId === undefined || userId === undefined ? undefined : { projectId, userId }
}

/**
 * Reads the period paid by an invoice for a subscription, and its member. Asks Stripe for lines missing in the invoice. Returns `undefined` if the invoice is for no subscription.
 *
 * @param stripe - a client from Stripe's library
 * @param invoice - as the event `invoice.paid` contains it
 * @example
 * ```ts
 * import { Stripe } from "stripe"
 * import { readPayment } from "tenure/stripe"
 *
 * const stripe = new Stripe("sk_test_…")
 *
 * export const paidUntil = async (id: string) =>
 *   (await readPayment(stripe, await stripe.invoices.retrieve(id)))?.endDate
 * ```
 */
export const readPayment = async (
  stripe: LinesClient,
  invoice: InvoiceInput,
): Promise<PaidPeriod | undefined> => {
  const subscription = invoice.parent?.subscription_details
  if (!subscription) return undefined
  const endDate = await readPeriodEnd(stripe, invoice)
  return endDate === -Infinity
    ? undefined
    : { invoice: invoice.id, endDate, member: memberIn(subscription.metadata ?? {}) }
}

/** How a payment is applied. */
export interface Applying {
  readonly eventId: string
  /** The reason for the date. */
  readonly reason: string
  /** Whether a payment creates a missing membership. */
  readonly grantsMissing: boolean
  /** The invoices of which one in the audit trail shows that the payment was applied. */
  readonly appliedWith: ReadonlyArray<string>
}

/**
 * Has a membership last at least until a paid date, and creates it if it is missing. Resolves to `false` if the payment
 * was applied before, or changes nothing. Of several payments at the same time, one creates the membership, and the
 * others extend it.
 */
export const lengthen = async (
  memberships: Tenure["memberships"],
  { endDate, invoice, projectId, userId }: Payment,
  { appliedWith, eventId, grantsMissing, reason }: Applying,
): Promise<boolean> => {
  const member = { projectId, userId }
  const found = await unless(["MembershipNotFound"], memberships.find(member))
  if (found !== undefined && found.endDate >= endDate) return false
  const rows = await memberships.history(member)
  const known = new Set(rows.flatMap((row) => basisIn(row)?.invoices ?? []))
  if (appliedWith.some((id) => known.has(id))) return false

  const extended = memberships.extend(
    {
      ...member,
      endDate,
      reason,
      mode: "neverShorten",
      create: grantsMissing,
      idempotencyKey: digestToken(JSON.stringify([projectId, userId, invoice])),
    },
    originOf(eventId),
  )
  // The paid period is over, or the payment has been applied, with other payments or rules.
  return (await unless(["EndDateNotInFuture", "IdempotencyMismatch"], extended)) !== undefined
}

/**
 * Has a membership last at least until a paid date, and creates it if it is missing. A later end date stays, and a
 * payment applied before changes nothing, so events may come in any order and again.
 *
 * @param memberships - of Tenure, or of `tenure.within(connection)`
 * @param payment - as `readPayment` returns it
 * @param eventId - the event's id, for the audit trail
 * @example
 * ```ts
 * import { createTenure } from "tenure"
 * import { memory } from "tenure/memory"
 * import { applyPayment } from "tenure/stripe"
 *
 * const { memberships } = await createTenure({ stores: memory() })
 * await memberships.createProject("p1")
 * const endDate = Date.parse("2099-01-01")
 * const payment = { projectId: "p1", userId: "1001", invoice: "in_1", endDate }
 * await applyPayment(memberships, payment, "evt_1")
 * ```
 */
export const applyPayment = async (
  memberships: Tenure["memberships"],
  payment: Payment,
  eventId: string,
): Promise<void> => {
  const reason = paymentReason(payment.invoice, payment.endDate)
  await lengthen(memberships, payment, {
    eventId,
    reason,
    grantsMissing: true,
    appliedWith: [payment.invoice],
  })
}
