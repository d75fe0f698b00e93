/** Reads a customer's payments from Stripe. */

import type { Member } from "@tenure/core"
import type Stripe from "stripe"
import type { PaidInvoice } from "./paid-until.ts"
import { readPeriodEnd } from "./payment.ts"
import { fromStripe } from "./stripe-error.ts"

/**
 * Returns the member of a subscription: `undefined` if one is missing, `null` to ignore the subscription.
 *
 * @param account - the id of the connected account whose subscription it is; `undefined` for your own. Owners of
 *   connected accounts choose the metadata of their subscriptions
 */
export type FindMember = (
  subscription: Stripe.Subscription,
  account: string | undefined,
) => Member | null | undefined | Promise<Member | null | undefined>

/** A member, and the paid invoices for its subscriptions. */
export interface MemberPayments {
  /** The member as text. */
  readonly key: string
  readonly member: Member
  readonly invoices: ReadonlyArray<PaidInvoice>
}

/** A paid invoice for a subscription. Ignored ones are left out. */
export interface ListedInvoice {
  readonly id: string
  readonly subscription: string
  /** Its own id and those of its subscription and its payments: events name it by one of them. */
  readonly ids: ReadonlyArray<string>
  /** The `key` of its member; `undefined` if it has none. */
  readonly member: string | undefined
  /** When it was paid, in seconds since the epoch, if Stripe says so. */
  readonly paidAt: number | null | undefined
}

/** A customer's payments. */
export interface CustomerPayments {
  readonly members: ReadonlyArray<MemberPayments>
  readonly invoices: ReadonlyArray<ListedInvoice>
  /** Whether Stripe lists an invoice as paid. Older invoices than the thousand read count as listed. */
  readonly lists: (invoiceId: string) => boolean
}

/** Returns the id in a reference. Stripe sends either the id or the whole object. */
export const idOf = (
  reference: string | { readonly id: string } | null | undefined,
): string | undefined => (typeof reference === "object" ? reference?.id : reference)

const millisOf = (seconds: number): number => seconds * 1000

/** Earlier versions of the library refuse options without a field. */
type Options = [] | [{ stripeAccount: string }]

/** Returns the options of requests to a connected account. */
export const optionsFor = (account: string | undefined): Options =>
  account === undefined ? [] : [{ stripeAccount: account }]

/** The most invoices read: the newest, a hundred in each request. */
const maxInvoices = 1000

/** The most charges read: the newest, a hundred in each request. */
const maxCharges = 10_000

/** How many invoices or charges are read at the same time. */
const maxReads = 10

/** Maps some at a time. */
const mapSome = async <A, B>(
  all: ReadonlyArray<A>,
  map: (one: A) => Promise<B>,
): Promise<ReadonlyArray<B>> => {
  const results: Array<B> = []
  for (let start = 0; start < all.length; start += maxReads) {
    results.push(...(await Promise.all(all.slice(start, start + maxReads).map(map))))
  }
  return results
}

/** Returns the ids by which invoices name a charge. */
const idsOfCharge = ({ id, payment_intent: intent }: Stripe.Charge): ReadonlyArray<string> => [
  id,
  ...[idOf(intent) ?? []].flat(),
]

/** Returns the ids of an invoice's payments; `undefined` if the list leaves out some. */
const paymentsOf = ({ payments }: Stripe.Invoice): ReadonlyArray<string> | undefined =>
  payments === undefined || payments.has_more
    ? undefined
    : payments.data
        .filter(({ status }) => status === "paid")
        .map(({ payment }) => idOf(payment.payment_intent ?? payment.charge) ?? "")

/**
 * Finds the charges behind payments. Reads as many pages as it needs.
 *
 * @param known - the charge in the event, perhaps older than all charges read
 */
const findCharges = async (
  listed: AsyncIterable<Stripe.Charge>,
  payments: ReadonlySet<string>,
  known: Stripe.Charge | undefined,
): Promise<ReadonlyMap<string, Stripe.Charge>> => {
  const found = new Map<string, Stripe.Charge>()
  const missing = new Set(payments)
  const add = (charge: Stripe.Charge): void => {
    for (const id of idsOfCharge(charge)) if (payments.has(id)) found.set(id, charge)
  }
  if (known !== undefined) add(known)
  let read = 0
  for await (const charge of listed) {
    if (charge.status !== "failed") {
      add(charge)
      for (const id of idsOfCharge(charge)) missing.delete(id)
    }
    read += 1
    if (missing.size === 0 || read >= maxCharges) break
  }
  return found
}

/** Disputes with the money at the bank. Inquiries take none, and winning a dispute returns it. */
const takenStatuses: ReadonlySet<string> = new Set([
  "needs_response",
  "under_review",
  "lost",
  "appeal_needs_response",
  "appeal_under_review",
])

/** How all the money of a charge went back. While the dispute is `"open"`, the bank may return it. */
type ChargeReturn = "refunded" | "disputed" | "open"

/** Tells whether disputes and refunds together have taken all the money of a charge. */
const areAll = (
  { amount, amount_refunded: refunded }: Stripe.Charge,
  disputes: ReadonlyArray<Stripe.Dispute>,
): boolean =>
  disputes.length > 0 &&
  !(disputes.reduce((total, dispute) => total + dispute.amount, refunded) < amount)

/** Tells how disputes and refunds together have taken all the money of a charge; `undefined` if they have not. */
const disputeOf = (
  charge: Stripe.Charge,
  disputes: ReadonlyArray<Stripe.Dispute>,
): Exclude<ChargeReturn, "refunded"> | undefined => {
  const taken = disputes.filter(({ status }) => takenStatuses.has(status))
  const lost = taken.filter(({ status }) => status === "lost")
  if (areAll(charge, lost)) return "disputed"
  return areAll(charge, taken) ? "open" : undefined
}

/** Reads how charged money went back. */
const readReturns = async (
  { disputes }: Pick<Stripe, "disputes">,
  charges: ReadonlyMap<string, Stripe.Charge>,
  options: Options,
): Promise<ReadonlyMap<string, ChargeReturn>> => {
  const returns = await mapSome([...charges], async ([payment, charge]) => {
    if (charge.refunded) return [payment, "refunded"] as const
    if (!charge.disputed) return undefined
    const { data } = await disputes.list({ charge: charge.id, limit: 100 }, ...options)
    const dispute = disputeOf(charge, data)
    return dispute && ([payment, dispute] as const)
  })
  return new Map(returns.filter((one) => one !== undefined))
}

/** Tells how all the money for an invoice went back. */
const returnOf = (
  invoice: Stripe.Invoice,
  returns: ReadonlyMap<string, ChargeReturn>,
): Pick<PaidInvoice, "isInDispute" | "returned"> => {
  const { post_payment_credit_notes_amount: credited, total } = invoice
  if (total > 0 && credited >= total) return { returned: "credited", isInDispute: false }
  // Payments missing in the list may not be refunded.
  const ways = paymentsOf(invoice)?.map((payment) => returns.get(payment)) ?? []
  if (ways.length === 0 || ways.includes(undefined)) {
    return { returned: undefined, isInDispute: false }
  }
  const isInDispute = ways.includes("open")
  const isDisputed = isInDispute || ways.includes("disputed")
  return { returned: isDisputed ? "disputed" : "refunded", isInDispute }
}

const subscriptionOf = ({ id, parent }: Stripe.Invoice): Stripe.Subscription | undefined => {
  const subscription = parent?.subscription_details?.subscription
  if (typeof subscription === "string") {
    throw new Error(`Stripe has left out the subscription of ${id}`)
  }
  return subscription
}

/** Finds each subscription's member once. */
const findOnce = (findMember: FindMember, account: string | undefined) => {
  const found = new Map<string, ReturnType<FindMember>>()
  return (subscription: Stripe.Subscription): ReturnType<FindMember> => {
    if (!found.has(subscription.id)) found.set(subscription.id, findMember(subscription, account))
    return found.get(subscription.id)
  }
}

/** An invoice for a subscription, and its member. */
interface Found {
  readonly invoice: Stripe.Invoice
  readonly subscription: Stripe.Subscription
  readonly member: Member | undefined
}

const keyOf = ({ projectId, userId }: Member): string => JSON.stringify([projectId, userId])

const listedOf = ({ invoice, member, subscription }: Found): ListedInvoice => ({
  id: invoice.id,
  subscription: subscription.id,
  ids: [invoice.id, subscription.id, ...(paymentsOf(invoice) ?? [])],
  member: member && keyOf(member),
  paidAt: invoice.status_transitions?.paid_at,
})

/** The resources read. */
export type PaymentsClient = Pick<Stripe, "charges" | "disputes" | "invoices">

/** A customer, for an event. */
export interface Payer {
  readonly customer: string
  /** The connected account; `undefined` for the client's own. */
  readonly account: string | undefined
  /** The charge in the event, if it contains one. */
  readonly charge: Stripe.Charge | undefined
}

/**
 * Makes the function that reads a customer's payments, by member. The newest invoices decide: the periods of earlier ones
 * are over.
 */
export const makeReadPayments = (
  stripe: PaymentsClient,
  { account, charge, customer }: Payer,
  findMember: FindMember,
): (() => Promise<CustomerPayments>) => {
  const options = optionsFor(account)
  // The lines of a paid invoice do not change.
  const periodEnds = new Map<string, Promise<number>>()
  const periodEndOf = (invoice: Stripe.Invoice): Promise<number> => {
    const end = periodEnds.get(invoice.id) ?? readPeriodEnd(stripe, invoice, ...options)
    periodEnds.set(invoice.id, end)
    return end
  }

  /** Reads the paid invoices, and the charges as far as they have arrived. */
  const readLists = async () => {
    const charges = stripe.charges.list({ customer, limit: 100 }, ...options)
    const invoices = stripe.invoices
      .list(
        {
          customer,
          status: "paid",
          limit: 100,
          expand: ["data.payments", "data.parent.subscription_details.subscription"],
        },
        ...options,
      )
      .autoPagingToArray({ limit: maxInvoices })
    const [all] = await Promise.all([invoices, charges])
    return { invoices: all, charges }
  }

  const findMembers = async (invoices: ReadonlyArray<Stripe.Invoice>) => {
    const memberOf = findOnce(findMember, account)
    const found: Array<Found> = []
    for (const invoice of invoices) {
      const subscription = subscriptionOf(invoice)
      if (subscription === undefined) continue
      const member = await memberOf(subscription)
      if (member !== null) found.push({ invoice, subscription, member })
    }
    return found
  }

  return async () => {
    const { charges, invoices } = await fromStripe(readLists())
    const found = await findMembers(invoices)
    const payments = new Set(found.flatMap(({ invoice }) => paymentsOf(invoice) ?? []))
    const returns = await fromStripe(
      findCharges(charges, payments, charge).then((known) => readReturns(stripe, known, options)),
    )
    const members = new Map<string, MemberPayments>()
    const ends = await mapSome(found, ({ invoice }) => periodEndOf(invoice))
    for (const [index, { invoice, member, subscription }] of found.entries()) {
      const periodEnd = ends[index] ?? -Infinity
      if (member === undefined || periodEnd === -Infinity) continue
      const key = keyOf(member)
      const paid: PaidInvoice = {
        id: invoice.id,
        periodEnd,
        ...returnOf(invoice, returns),
        subscriptionEndedAt:
          subscription.ended_at === null ? undefined : millisOf(subscription.ended_at),
      }
      const earlier = members.get(key)?.invoices ?? []
      members.set(key, { key, member, invoices: [...earlier, paid] })
    }
    return {
      members: [...members.values()],
      invoices: found.map(listedOf),
      lists: (invoiceId) =>
        invoices.length >= maxInvoices || invoices.some(({ id }) => id === invoiceId),
    }
  }
}
