/** Brings memberships to the end dates paid by a customer. */

import type { CurrentMembership, Tenure } from "@tenure/core"
import { hasTag, lastEndDate, unless } from "@tenure/core/internal"
import type Stripe from "stripe"
import { changeReason, originOf, readBasis } from "./basis.ts"
import { settleDisputes } from "./disputes.ts"
import {
  type Basis,
  type PaymentRules,
  decideEndDate,
  invoicesBehind,
  paidBy,
  paidUntil,
} from "./paid-until.ts"
import { lengthen } from "./payment.ts"
import {
  type CustomerPayments,
  type FindMember,
  type ListedInvoice,
  type MemberPayments,
  type Payer,
  type PaymentsClient,
  idOf,
  makeReadPayments,
  optionsFor,
} from "./payments.ts"
import { fromStripe } from "./stripe-error.ts"

/** The work for an event from Stripe. */
export interface Settling {
  readonly eventId: string
  /** `undefined` if the event does not name it. */
  readonly customer: string | undefined
  /** The event's charge: its id, or all of it. */
  readonly charge: string | Stripe.Charge | undefined
  /** The ids of the event's invoice, subscription or payment. */
  readonly subjects: ReadonlyArray<string>
  /** Whether money came in, or came back. Then a missing membership is created. */
  readonly isPayment: boolean
  /** The invoice to be listed as paid, if the event names it. */
  readonly paidInvoice: string | undefined
  /** The connected account; `undefined` for the client's own. */
  readonly account: string | undefined
}

/** A paid invoice without a member. */
export interface Orphan {
  readonly invoice: string
  readonly subscription: string
  /** Why Tenure refuses its member; `undefined` if it has none. */
  readonly refusal: string | undefined
}

/** An event's result. */
export interface Settlement {
  /** The event's invoices without a member. */
  readonly orphans: ReadonlyArray<Orphan>
  /** Why no membership may change; `undefined` if one has changed, or is as it should be. */
  readonly obstacle: string | undefined
}

/** The services and rules for settling. */
export interface SettleServices {
  readonly memberships: Tenure["memberships"]
  readonly stripe: PaymentsClient
  readonly findMember: FindMember
  readonly rules: Omit<PaymentRules, "grace">
  /** That of the rules; `undefined` for a day, unless the project has grace itself. */
  readonly grace: number | undefined
  /** Whether a payment creates a missing membership. */
  readonly grantsMissing: boolean
}

/** After so many changes by others meanwhile, the event has to come again. */
const maxRounds = 10

/** Stripe collects a renewal about an hour after the period has ended, in milliseconds. */
const defaultGrace = 86_400_000

/** The most seconds in a duration. */
const maxSeconds = 999_999_999

/** Tells whether a membership's end date is over. Then it may still be in the project's grace, which must not begin anew. */
const hasEnded = ({ graceUntil, state }: CurrentMembership): boolean =>
  state === "expired" || graceUntil !== undefined

/** The errors for an impossible member. */
const refusals = ["InvalidInput", "ProjectNotFound"]

const meanwhile = ["EndDateConflict", "MembershipNotFound"]

/** Returns the event's invoices among the customer's. */
const aboutIn = (
  { invoices }: CustomerPayments,
  { subjects }: Settling,
): ReadonlyArray<ListedInvoice> =>
  invoices.filter(({ ids }) => subjects.some((id) => ids.includes(id)))

/**
 * Returns the invoices of a subscription paid after this one, and this one: what has applied one of them, has read this
 * one, too.
 */
const appliedWith = (
  { id, paidAt, subscription }: ListedInvoice,
  { invoices }: CustomerPayments,
): ReadonlyArray<string> =>
  invoices
    .filter(
      (one) =>
        one.id === id ||
        (one.subscription === subscription && (one.paidAt ?? 0) > (paidAt ?? Infinity)),
    )
    .map((one) => one.id)

/** Returns the newest invoice without a member, by subscription. */
const orphansIn = (
  about: ReadonlyArray<ListedInvoice>,
  refusedBy: ReadonlyMap<string, string>,
): ReadonlyArray<Orphan> => {
  const orphans = new Map<string, Orphan>()
  for (const { id: invoice, member, subscription } of about.toReversed()) {
    const refusal = member === undefined ? undefined : refusedBy.get(member)
    if (member !== undefined && refusal === undefined) continue
    orphans.set(subscription, { invoice, subscription, refusal })
  }
  return [...orphans.values()]
}

/**
 * Says why no membership may change.
 *
 * @param found - the keys of the members with a membership
 */
const obstacleOf = (
  { subjects }: Settling,
  about: ReadonlyArray<ListedInvoice>,
  { members }: CustomerPayments,
  found: ReadonlySet<string>,
): string | undefined => {
  const concerned = members.filter(({ key }) => about.some(({ member }) => member === key))
  const named = subjects.join(", ")
  if (about.length === 0) return `${named} is of no subscription with a member`
  if (concerned.length === 0) return `${named} pays for no period`
  return concerned.some(({ key }) => found.has(key))
    ? undefined
    : `the member of ${named} has no membership`
}

/**
 * Makes the function that settles an event.
 *
 * An event only announces a change. The state itself is read from Stripe, so the order of events does not matter. It is
 * read again after each change: a refund made meanwhile is either seen then, or its own event finds the change.
 */
export const makeSettle = ({
  findMember,
  grace,
  grantsMissing,
  memberships,
  rules: given,
  stripe,
}: SettleServices): ((settling: Settling) => Promise<Settlement>) => {
  /** Finds the event's customer; `undefined` for a charge without one. */
  const findPayer = async ({ account, charge, customer }: Settling): Promise<Payer | undefined> => {
    if (customer !== undefined) {
      return { customer, account, charge: typeof charge === "string" ? undefined : charge }
    }
    if (typeof charge !== "string") return undefined
    const read = await fromStripe(stripe.charges.retrieve(charge, {}, ...optionsFor(account)))
    const payer = idOf(read.customer)
    return payer === undefined ? undefined : { customer: payer, account, charge: read }
  }

  /** Returns the rules for the payments of a project's members. */
  const findRules = async (projectId: string): Promise<PaymentRules> => {
    if (grace !== undefined) return { ...given, grace }
    const project = await memberships.findProject(projectId)
    return { ...given, grace: project.grace > 0 ? 0 : defaultGrace }
  }

  /** Applies a paid invoice. Tells whether its membership may have changed. */
  const applyInvoice = async (
    { invoices, member }: MemberPayments,
    invoice: ListedInvoice,
    all: CustomerPayments,
    eventId: string,
    rules: PaymentRules,
  ): Promise<boolean> => {
    const paid = paidUntil(invoices, rules)
    const isPaid = invoices.some((one) => one.id === invoice.id && paidBy(one, rules) > -Infinity)
    if (!isPaid) return false
    return lengthen(
      memberships,
      { ...member, invoice: invoice.id, endDate: paid },
      {
        eventId,
        reason: changeReason([], invoices, rules),
        grantsMissing,
        appliedWith: appliedWith(invoice, all),
      },
    )
  }

  /**
   * Sets the end date of a membership, or ends the membership if the date has passed; in a pause, its beginning counts. Does
   * nothing if somebody has changed it since.
   */
  const move = async (
    { invoices, member }: MemberPayments,
    found: CurrentMembership,
    basis: Basis | undefined,
    endDate: number,
    eventId: string,
    rules: PaymentRules,
  ): Promise<boolean> => {
    const { endDate: expectedEndDate } = found
    const behind = invoicesBehind(invoices, expectedEndDate, basis, rules)
    const change = { ...member, expectedEndDate }
    const endNow = async (): Promise<boolean> => {
      if (hasEnded(found)) return false
      const { pausedAt = Infinity } = found
      const left = endDate > pausedAt ? Math.floor((endDate - pausedAt) / 1000) : 0
      const reason = changeReason(behind, left > 0 ? invoices : [], rules)
      const by = `PT${Math.min(Math.max(1, left), maxSeconds)}S`
      const extension = { ...change, by, from: "now", reason } as const
      await unless(meanwhile, memberships.extend(extension, originOf(eventId)))
      return true
    }
    if (endDate === -Infinity) return endNow()
    try {
      const reason = changeReason(behind, invoices, rules)
      await memberships.extend({ ...change, endDate, reason }, originOf(eventId))
    } catch (error) {
      if (hasTag(error, ["EndDateNotInFuture"])) return endNow()
      if (!hasTag(error, meanwhile)) throw error
    }
    return true
  }

  /** Corrects an end date set by a payment. Tells whether the membership may have changed. */
  const correct = async (
    payments: MemberPayments,
    found: CurrentMembership,
    eventId: string,
    rules: PaymentRules,
  ): Promise<boolean> => {
    const { invoices, member } = payments
    // No payment has set it: a membership for life stays.
    if (found.endDate === lastEndDate || found.endDate === paidUntil(invoices, rules)) return false
    const basis = await readBasis(memberships, member)
    const endDate = decideEndDate(invoices, found.endDate, basis, rules)
    if (endDate === undefined || (hasEnded(found) && endDate < found.endDate)) return false
    return move(payments, found, basis, endDate, eventId, rules)
  }

  /** Makes one round of changes. Tells whether a membership may have changed. */
  const settleOnce = async (
    { eventId }: Settling,
    all: CustomerPayments,
    paid: ReadonlyArray<ListedInvoice>,
    refusedBy: Map<string, string>,
    members: Set<string>,
  ): Promise<boolean> => {
    let isChanged = false
    for (const payments of all.members) {
      try {
        const rules = await findRules(payments.member.projectId)
        for (const invoice of paid) {
          if (invoice.member !== payments.key) continue
          if (await applyInvoice(payments, invoice, all, eventId, rules)) isChanged = true
        }
        const found = await unless(["MembershipNotFound"], memberships.find(payments.member))
        if (found === undefined) continue
        members.add(payments.key)
        const isOver = hasEnded(found)
        if (
          (await correct(payments, found, eventId, rules)) ||
          (await settleDisputes(memberships, payments, found, { eventId, isOver, rules }))
        ) {
          isChanged = true
        }
      } catch (error) {
        // The event of its own payment tells. It must not fail the payments of others.
        if (!hasTag(error, refusals) || !(error instanceof Error)) throw error
        refusedBy.set(payments.key, error.message.replace(/\.+$/, ""))
      }
    }
    return isChanged
  }

  return async (settling) => {
    const payer = await findPayer(settling)
    if (payer === undefined) {
      return { orphans: [], obstacle: `${settling.subjects.join(", ")} is of no customer` }
    }
    const readPayments = makeReadPayments(stripe, payer, findMember)
    const refusedBy = new Map<string, string>()
    const members = new Set<string>()
    for (let round = 0; round < maxRounds; round++) {
      const payments = await readPayments()
      const about = aboutIn(payments, settling)
      const { paidInvoice } = settling
      if (paidInvoice !== undefined && !payments.lists(paidInvoice)) {
        throw new Error(`Stripe does not list ${paidInvoice} among its customer's paid invoices`)
      }
      const paid = round === 0 && settling.isPayment ? about : []
      if (await settleOnce(settling, payments, paid, refusedBy, members)) continue
      return {
        orphans: orphansIn(about, refusedBy),
        obstacle: round > 0 ? undefined : obstacleOf(settling, about, payments, members),
      }
    }
    throw new Error(`The memberships of ${payer.customer} are changed again and again`)
  }
}
