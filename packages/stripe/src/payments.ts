/** Reads a customer's payments from Stripe. */

import type { Member } from "@tenure/core"
import type Stripe from "stripe"
import type { PaidInvoice } from "./paid-until.ts"

/**
 * Finds a subscription's member; `undefined` for none.
 *
 * @param account - the id of the connected account whose subscription it is; `undefined` for your own. Owners of
 *   connected accounts choose the metadata of their subscriptions
 */
export type FindMember = (
  subscription: Stripe.Subscription,
  account: string | undefined,
) => Member | undefined | Promise<Member | undefined>

/** A member, and the paid invoices for its subscriptions. */
export interface MemberPayments {
  /** The member as text. */
  readonly key: string
  readonly member: Member
  readonly invoices: ReadonlyArray<PaidInvoice>
}

/** A customer's payments. */
export interface CustomerPayments {
  readonly members: ReadonlyArray<MemberPayments>
  /** Whether Stripe lists an invoice as paid. Invoices beyond the newest hundred count as listed. */
  readonly lists: (invoiceId: string) => boolean
}

/** Returns the id in a reference. Stripe sends either the id or the whole object. */
export const idOf = (
  reference: string | { readonly id: string } | null | undefined,
): string | undefined => (typeof reference === "object" ? reference?.id : reference)

const millisOf = (seconds: number): number => seconds * 1000

/**
 * Returns when the period paid by an invoice ends, in seconds. Lines without a subscription are single items. Negative
 * lines give back the rest of a former plan.
 */
const periodEndOf = ({ lines }: Stripe.Invoice): number =>
  Math.max(
    ...lines.data
      .filter(
        ({ amount, parent }) =>
          amount >= 0 &&
          Boolean(
            parent?.subscription_item_details?.subscription ??
            parent?.invoice_item_details?.subscription,
          ),
      )
      .map(({ period }) => period.end),
  )

/** Returns the ids of payment intents and charges refunded as a whole. */
const refundedIn = (charges: ReadonlyArray<Stripe.Charge>): ReadonlySet<string> =>
  new Set(
    charges
      .filter(({ refunded }) => refunded)
      .map(({ id, payment_intent: intent }) => idOf(intent) ?? id),
  )

const isRefunded = (invoice: Stripe.Invoice, refunded: ReadonlySet<string>): boolean => {
  const { payments, post_payment_credit_notes_amount: credited, total } = invoice
  if (total > 0 && credited >= total) return true
  const paid = payments?.data.filter(({ status }) => status === "paid") ?? []
  return (
    paid.length > 0 &&
    paid.every(({ payment }) => refunded.has(idOf(payment.payment_intent ?? payment.charge) ?? ""))
  )
}

const subscriptionOf = ({ id, parent }: Stripe.Invoice): Stripe.Subscription | undefined => {
  const subscription = parent?.subscription_details?.subscription
  if (typeof subscription === "string") {
    throw new Error(`Stripe has left out the subscription of ${id}`)
  }
  return subscription
}

/** Finds the member of each subscription once. */
const findOnce = (findMember: FindMember, account: string | undefined) => {
  const found = new Map<string, ReturnType<FindMember>>()
  return (subscription: Stripe.Subscription): ReturnType<FindMember> => {
    if (!found.has(subscription.id)) found.set(subscription.id, findMember(subscription, account))
    return found.get(subscription.id)
  }
}

/**
 * Reads a customer's payments, by member. The newest hundred invoices and charges decide: the periods of earlier ones
 * are over.
 */
export const readPayments = async (
  stripe: Pick<Stripe, "charges" | "invoices">,
  customer: string,
  findMember: FindMember,
  account: string | undefined,
): Promise<CustomerPayments> => {
  // Earlier versions of the library refuse options without a field.
  const options: [] | [Stripe.RequestOptions] =
    account === undefined ? [] : [{ stripeAccount: account }]
  const lists = Promise.all([
    stripe.invoices.list(
      {
        customer,
        status: "paid",
        limit: 100,
        expand: ["data.payments", "data.parent.subscription_details.subscription"],
      },
      ...options,
    ),
    stripe.charges.list({ customer, limit: 100 }, ...options),
  ])
  const [invoices, charges] = await lists.catch((cause: unknown) => {
    // Express would answer with the status and the headers in an error from Stripe's library.
    throw new Error("Stripe has not answered", { cause })
  })
  const refunded = refundedIn(charges.data)
  const memberOf = findOnce(findMember, account)
  const members = new Map<string, MemberPayments>()
  for (const invoice of invoices.data) {
    const subscription = subscriptionOf(invoice)
    const periodEnd = periodEndOf(invoice)
    if (subscription === undefined || !Number.isFinite(periodEnd)) continue
    const member = await memberOf(subscription)
    if (member === undefined) continue
    const key = JSON.stringify([member.projectId, member.userId])
    const paid: PaidInvoice = {
      id: invoice.id,
      periodEnd: millisOf(periodEnd),
      isRefunded: isRefunded(invoice, refunded),
      subscriptionEndedAt:
        subscription.ended_at === null ? undefined : millisOf(subscription.ended_at),
    }
    const earlier = members.get(key)?.invoices ?? []
    members.set(key, { key, member, invoices: [...earlier, paid] })
  }
  return {
    members: [...members.values()],
    lists: (invoiceId) => invoices.has_more || invoices.data.some(({ id }) => id === invoiceId),
  }
}
