/** Starts Tenure with a receiver, and an account at Stripe. */

import { testTenure } from "@tenure/testing"
import { onTestFinished } from "vitest"
import { type StripeWebhookOptions, stripeWebhook } from "../src/index.ts"
import { type SentEvent, secret, startStripeAccount } from "./stripe-account.ts"

export const start = Date.UTC(2030, 0, 1)
export const day = 86_400_000
export const member = { projectId: "p1", userId: "1001" }
export const metadata = { project_id: "p1", user_id: "1001" }

/** A day of the test, in milliseconds or in the seconds of Stripe. */
export const at = (days: number): number => start + days * day
export const seconds = (days: number): number => at(days) / 1000

/** A line for a period, in days. */
export const period = (from: number, to: number, amount = 1900) => ({
  amount,
  start: seconds(from),
  end: seconds(to),
})

/** Starts Tenure and an account at Stripe with one subscription. */
export const setUp = async (options: Partial<StripeWebhookOptions> = {}) => {
  const account = await startStripeAccount()
  const { clock, close, tenure, webhooks } = await testTenure({ start })
  const warnings: Array<string> = []
  const warn = (_fields: object, message: string) => void warnings.push(message)
  onTestFinished(async () => {
    await close()
    await account.close()
  })
  await webhooks.register("p1")
  account.subscribe("sub_1", "cus_1", metadata)
  const { stripe } = account
  const logger = { info: warn, warn, error: warn }
  const webhook = stripeWebhook({ tenure, stripe, secret, logger, ...options })
  const send = async ({ body }: Pick<SentEvent, "body">) => {
    const signature = stripe.webhooks.generateTestHeaderString({ payload: body, secret })
    return webhook.receive(body, signature)
  }
  const endDay = async (userId = "1001"): Promise<number> =>
    ((await tenure.memberships.find({ projectId: "p1", userId })).endDate - start) / day
  const actions = async () =>
    (await tenure.memberships.history(member)).map(({ action }) => action).toReversed()
  return { account, clock, tenure, webhook, send, endDay, actions, warnings }
}

/** The result of `setUp`. */
export type Setup = Awaited<ReturnType<typeof setUp>>

/** Starts them with a member for whom a month is paid. */
export const paidOnce = async (options?: Partial<StripeWebhookOptions>) => {
  const on = await setUp(options)
  await on.send(on.account.pay("sub_1", "in_1", period(0, 30)))
  return on
}

/** Starts them with a member for whom two months are paid. */
export const paidTwice = async (options?: Partial<StripeWebhookOptions>) => {
  const on = await paidOnce(options)
  await on.send(on.account.pay("sub_1", "in_2", period(30, 60)))
  return on
}

export const grant = ({ tenure }: Setup, endDay: number) =>
  tenure.memberships.grant({ ...member, endDate: at(endDay) })

/** One second after the start: an extension has to end in the future. */
export const now = 1 / 86_400
