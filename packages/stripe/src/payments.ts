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

/** Earlier versions of the library refuse options without a field. */
type Options = [] | [Stripe.RequestOptions]

/** The most lines read for one invoice, a hundred in each request. */
const maxLines = 1000

/** How many invoices are read at the same time. */
const maxReads = 10

const fromStripe = <A>(answer: Promise<A>): Promise<A> =>
  answer.catch((cause: unknown) => {
    // Express would answer with the status and the headers in an error from Stripe's library.
    throw new Error("Stripe has not answered", { cause })
  })

/**
 * Returns when the period paid by these lines ends, in seconds. Lines without a subscription are single items. Negative
 * lines give back the rest of a former plan.
 */
const periodEndOf = (lines: ReadonlyArray<Stripe.InvoiceLineItem>): number =>
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
      .map(({ period }) => period.end),
  )

/**
 * Makes the function that reads when the period paid by an invoice ends, in seconds. A list of invoices has only the
 * first lines of each. The others are read once, because those of a paid invoice do not change.
 */
const makeReadPeriodEnd = ({ invoices }: Pick<Stripe, "invoices">, options: Options) => {
  const known = new Map<string, number>()
  return async ({ id, lines }: Stripe.Invoice): Promise<number> => {
    if (!lines.has_more) return periodEndOf(lines.data)
    const end = known.get(id)
    if (end !== undefined) return end
    const pages = invoices.listLineItems(id, { limit: 100 }, ...options)
    const all = await fromStripe(pages.autoPagingToArray({ limit: maxLines + 1 }))
    if (all.length > maxLines) throw new Error(`${id} has more than ${maxLines} lines`)
    known.set(id, periodEndOf(all))
    return periodEndOf(all)
  }
}

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
  // Of those that the list leaves out, some may not be refunded.
  if (payments === undefined || payments.has_more) return false
  const paid = payments.data.filter(({ status }) => status === "paid")
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
 * Makes the function that reads a customer's payments, by member. The newest hundred invoices and charges decide: the
 * periods of earlier ones are over.
 */
export const makeReadPayments = (
  stripe: Pick<Stripe, "charges" | "invoices">,
  customer: string,
  findMember: FindMember,
  account: string | undefined,
): (() => Promise<CustomerPayments>) => {
  const options: Options = account === undefined ? [] : [{ stripeAccount: account }]
  const readPeriodEnd = makeReadPeriodEnd(stripe, options)

  const readLists = () =>
    Promise.all([
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

  return async () => {
    const [invoices, charges] = await fromStripe(readLists())
    const refunded = refundedIn(charges.data)
    const memberOf = findOnce(findMember, account)
    const found: Array<{
      readonly invoice: Stripe.Invoice
      readonly subscription: Stripe.Subscription
      readonly member: Member
    }> = []
    for (const invoice of invoices.data) {
      const subscription = subscriptionOf(invoice)
      if (subscription === undefined) continue
      const member = await memberOf(subscription)
      if (member !== undefined) found.push({ invoice, subscription, member })
    }
    const members = new Map<string, MemberPayments>()
    for (let start = 0; start < found.length; start += maxReads) {
      const some = found.slice(start, start + maxReads)
      const ends = await Promise.all(some.map(({ invoice }) => readPeriodEnd(invoice)))
      for (const [index, { invoice, member, subscription }] of some.entries()) {
        const periodEnd = ends[index] ?? -Infinity
        if (!Number.isFinite(periodEnd)) continue
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
    }
    return {
      members: [...members.values()],
      lists: (invoiceId) => invoices.has_more || invoices.data.some(({ id }) => id === invoiceId),
    }
  }
}
