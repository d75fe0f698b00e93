/** Starts Tenure with a receiver, and an account at Stripe. */

import type { Tenure } from "@tenure/core"
import { testTenure } from "@tenure/testing"
import { expect, onTestFinished } from "vitest"
import { type StripeWebhookOptions, stripeWebhook } from "../src/index.ts"
import { type SentEvent, type StripeAccount, secret, startStripeAccount } from "./stripe-account.ts"

export const start = Date.UTC(2030, 0, 1)
export const day = 86_400_000
export const member = { projectId: "p1", userId: "1001" }
export const metadata = { project_id: "p1", user_id: "1001" }

/** One second after the start: an extension has to end in the future. */
export const now = 1 / 86_400

/** A test day, in milliseconds or in Stripe's seconds. */
export const at = (days: number): number => start + days * day
export const seconds = (days: number): number => at(days) / 1000

/** A line for a period, in days. */
export const period = (from: number, to: number, amount = 1900) => ({
  amount,
  start: seconds(from),
  end: seconds(to),
})

/** Lines for single items, which count for no subscription. */
export const singles = (length: number) =>
  Array.from({ length }, () => ({ ...period(0, 365), isSingle: true }))

type Calls = Tenure["memberships"]

/** Tenure's memberships, by a name for the types below. */
interface Memberships extends Calls {}

/** Starts Tenure and an account at Stripe with one subscription. */
export const setUp = async (options: Partial<StripeWebhookOptions> = {}) => {
  const account = await startStripeAccount()
  const { clock, close, tenure, webhooks } = await testTenure({ start })
  const memberships: Memberships = tenure.memberships
  onTestFinished(async () => {
    await close()
    await account.close()
  })
  await webhooks.register("p1")
  account.subscribe("sub_1", "cus_1", metadata)
  const warnings: Array<string> = []
  const warn = (_fields: object, message: string) => void warnings.push(message)
  const logger = { info: warn, warn, error: warn }
  /** Returns a receiver, and how to send to it. */
  const receiver = (more: Partial<StripeWebhookOptions>) => {
    const webhook = stripeWebhook({ tenure, stripe: account.stripe, secret, logger, ...more })
    const send = ({ body }: Pick<SentEvent, "body">) => webhook.receive(body, account.sign(body))
    return { webhook, send }
  }
  const { send, webhook } = receiver(options)
  const endDay = async (userId = "1001"): Promise<number> =>
    ((await memberships.find({ projectId: "p1", userId })).endDate - start) / day
  const history = async () => (await memberships.history(member)).toReversed()
  return {
    account,
    clock,
    tenure,
    memberships,
    receiver,
    webhook,
    send,
    /** Pays an invoice for a period in days, and sends its event. */
    pay: (id: string, from: number, to: number) => send(account.pay("sub_1", id, period(from, to))),
    grant: (days: number) => memberships.grant({ ...member, endDate: at(days) }),
    extend: (days: number) => memberships.extend({ ...member, endDate: at(days) }),
    endDay,
    expectNoMembership: (userId?: string) =>
      expect(endDay(userId)).rejects.toMatchObject({ _tag: "MembershipNotFound" }),
    actions: async () => (await history()).map(({ action }) => action),
    reasons: async () => (await history()).map(({ reason }) => reason),
    warnings,
  }
}

/** The result of `setUp`. */
export type Setup = Awaited<ReturnType<typeof setUp>>

/** Starts them with a member for whom a month is paid. */
export const paidOnce = async (options?: Partial<StripeWebhookOptions>) => {
  const on = await setUp(options)
  await on.pay("in_1", 0, 30)
  return on
}

/** Starts them with a member for whom two months are paid. */
export const paidTwice = async (options?: Partial<StripeWebhookOptions>) => {
  const on = await paidOnce(options)
  await on.pay("in_2", 30, 60)
  return on
}

/** What happens at Stripe, and the day on which the membership ends after its event. */
export type Steps = ReadonlyArray<readonly [(account: StripeAccount) => SentEvent, number]>

/** Sends what happens, and expects the days. */
export const expectDays = async ({ account, endDay, send }: Setup, steps: Steps) => {
  for (const [happen, expected] of steps) {
    expect(await send(happen(account))).toMatchObject({ status: 200 })
    expect(await endDay()).toBe(expected)
  }
}
