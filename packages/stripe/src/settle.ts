/** Brings memberships to the end dates paid by a customer. */

import type { Member, MembershipEnd, Tenure } from "@tenure/core"
import { digestToken, hasTag, unless } from "@tenure/core/internal"
import type Stripe from "stripe"
import { type PaymentRules, decideShortening, paidUntil } from "./paid-until.ts"
import {
  type CustomerPayments,
  type FindMember,
  type MemberPayments,
  makeReadPayments,
} from "./payments.ts"

/** The work for an event from Stripe. */
export interface Settling {
  readonly eventId: string
  readonly customer: string
  /** The paid invoice; `undefined` for an event that may only shorten memberships. */
  readonly paidInvoice: string | undefined
  /** The connected account; `undefined` for the client's own. */
  readonly account: string | undefined
}

/** The services and rules for settling. */
export interface SettleServices {
  readonly memberships: Tenure["memberships"]
  readonly stripe: Pick<Stripe, "charges" | "invoices">
  readonly findMember: FindMember
  readonly rules: PaymentRules
  /** Whether a payment creates a missing membership. */
  readonly grantsMissing: boolean
}

/** After so many changes by others meanwhile, the event has to come again. */
const maxRounds = 10

/** How often a payment creates a membership anew, if others end it. */
const maxGrants = 10

/** How a membership is ended now: an extension has to end in the future. */
const soon = { by: "PT1S", from: "now" } as const

/**
 * Makes the function that settles an event.
 *
 * An event only announces a change. The state itself is read from Stripe, so the order of events does not matter. It is
 * read again after each change: a refund made meanwhile is either seen then, or its own event finds the change.
 */
export const makeSettle = ({
  findMember,
  grantsMissing,
  memberships,
  rules,
  stripe,
}: SettleServices): ((settling: Settling) => Promise<void>) => {
  /** Extends a membership. Resolves to `undefined` if it is missing. */
  const extend = async (
    member: Member,
    endDate: number,
    eventId: string,
    idempotencyKey?: string,
  ): Promise<MembershipEnd | "done" | undefined> => {
    const change = { ...member, endDate, mode: "neverShorten", idempotencyKey } as const
    try {
      return await memberships.extend(change, { keyId: "stripe", requestId: eventId })
    } catch (error) {
      // The paid period is over, or the event has been handled, with other payments or rules.
      if (hasTag(error, ["EndDateNotInFuture", "IdempotencyMismatch"])) return "done"
      if (grantsMissing && hasTag(error, ["MembershipNotFound"])) return undefined
      throw error
    }
  }

  /**
   * Has a membership last at least until a date, and creates it if it is missing. Of several payments at the same time,
   * one creates it, because their grants share an idempotency key; then each extends it.
   */
  const lengthen = async (
    { key, member }: MemberPayments,
    endDate: number,
    eventId: string,
    idempotencyKey?: string,
  ): Promise<void> => {
    for (let grants = 0; grants < maxGrants; grants++) {
      if ((await extend(member, endDate, eventId, idempotencyKey)) !== undefined) return
      const grant = memberships.grant(
        { ...member, endDate, idempotencyKey: `${digestToken(key)}-${grants}` },
        { keyId: "stripe", requestId: eventId },
      )
      await unless(["IdempotencyMismatch"], grant)
    }
    throw new Error(`The membership of the user "${member.userId}" is ended again and again`)
  }

  /** Ends a membership at a date, or now if that has passed, unless it was changed meanwhile. */
  const shorten = async (
    member: Member,
    expectedEndDate: number,
    endDate: number,
    eventId: string,
  ): Promise<void> => {
    const origin = { keyId: "stripe", requestId: eventId }
    const extendTo = (goal: { readonly endDate: number } | typeof soon) =>
      memberships.extend({ ...member, expectedEndDate, ...goal }, origin)
    const meanwhile = ["EndDateConflict", "MembershipNotFound"]
    try {
      await extendTo(Number.isFinite(endDate) ? { endDate } : soon)
    } catch (error) {
      if (hasTag(error, ["EndDateNotInFuture"])) await unless(meanwhile, extendTo(soon))
      else if (!hasTag(error, meanwhile)) throw error
    }
  }

  /** Extends the membership for a paid invoice. Tells whether it may have changed. */
  const applyPayment = async (
    { members, lists }: CustomerPayments,
    invoiceId: string,
    eventId: string,
  ): Promise<boolean> => {
    const payments = members.find(({ invoices }) => invoices.some(({ id }) => id === invoiceId))
    if (payments === undefined) {
      if (lists(invoiceId)) return false
      throw new Error(`Stripe does not list ${invoiceId} among the paid invoices of its customer`)
    }
    const paid = paidUntil(payments.invoices, rules)
    if (!Number.isFinite(paid)) return false
    await lengthen(payments, paid, eventId, eventId)
    return true
  }

  /**
   * Shortens a membership if it ends too late. Tells whether it may have changed.
   *
   * @param wasShortened - whether this event has shortened it before, and takes that back after a new payment
   */
  const correct = async (
    payments: MemberPayments,
    wasShortened: boolean,
    eventId: string,
  ): Promise<boolean> => {
    const { invoices, member } = payments
    // Ids that Tenure refuses have no membership: they fail their own payments, and not those of others.
    const refused = ["MembershipNotFound", "InvalidInput"]
    const membership = await unless(refused, memberships.find(member))
    if (membership === undefined) return false
    const paid = paidUntil(invoices, rules)
    if (wasShortened && paid > membership.endDate) {
      await lengthen(payments, paid, eventId)
      return true
    }
    if (membership.state === "expired") return false
    const endDate = decideShortening(invoices, membership.endDate, rules)
    if (endDate === undefined) return false
    await shorten(member, membership.endDate, endDate, eventId)
    return true
  }

  return async ({ account, customer, eventId, paidInvoice }) => {
    const readPayments = makeReadPayments(stripe, customer, findMember, account)
    const shortened = new Set<string>()
    for (let round = 0; round < maxRounds; round++) {
      const payments = await readPayments()
      let isChanged = false
      if (round === 0 && paidInvoice !== undefined) {
        isChanged = await applyPayment(payments, paidInvoice, eventId)
      }
      for (const one of payments.members) {
        if (!(await correct(one, shortened.has(one.key), eventId))) continue
        shortened.add(one.key)
        isChanged = true
      }
      if (!isChanged) return
    }
    throw new Error(`The memberships of ${customer} are changed again and again`)
  }
}
