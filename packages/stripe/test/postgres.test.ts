/** On PostgreSQL, several processes receive the same events at the same time. */

import { randomUUID } from "node:crypto"
import { createTenure } from "@tenure/core"
import { postgres } from "@tenure/postgres"
import { expect, inject, it, onTestFinished } from "vitest"
import { type StripeWebhookOptions, stripeWebhook } from "../src/index.ts"
import { type SentEvent, secret, startStripeAccount } from "./stripe-account.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const start = Math.floor(Date.UTC(2090, 0, 1) / 1000)
const dayOf = (days: number) => start + days * 86_400

/** Starts two processes on one database. */
const setUp = async (options: Partial<StripeWebhookOptions> = {}) => {
  const account = await startStripeAccount()
  const startProcess = async () => {
    const stores = postgres({ url: inject("databaseUrl"), schema: "stripe_events" })
    const tenure = await createTenure({ stores, webhooks: { dispatch: false } })
    const webhook = stripeWebhook({ tenure, stripe: account.stripe, secret, ...options })
    return { tenure, webhook }
  }
  const processes = [await startProcess(), await startProcess()] as const
  const { memberships } = processes[0].tenure
  // From this run: the database may have projects and idempotency keys from an earlier one.
  const projectId = randomUUID()
  await memberships.createProject(projectId)
  onTestFinished(async () => {
    await memberships.deleteProject(projectId)
    await Promise.all(processes.map(({ tenure }) => tenure.close()))
    await account.close()
  })
  const moveTo = (userId: string) =>
    account.setMetadata("sub_1", { project_id: projectId, user_id: userId })
  account.subscribe("sub_1", "cus_1", { project_id: projectId, user_id: "1001" })
  return {
    account,
    memberships,
    moveTo,
    pay: (id: string, from: number, to: number) =>
      account.pay("sub_1", id, { amount: 1900, start: dayOf(from), end: dayOf(to) }),
    projectId,
    /** Sends each event to each process three times, all at the same time. */
    sendAll: (...events: ReadonlyArray<SentEvent>) =>
      Promise.all(
        [...processes, ...processes, ...processes].flatMap(({ webhook }) =>
          events.map(({ body }) => webhook.receive(body, account.sign(body))),
        ),
      ),
  }
}

it("creates, extends and shortens the membership once", async () => {
  const { account, memberships, moveTo, pay, projectId, sendAll } = await setUp()
  const member = { projectId, userId: "1001" }
  const endDay = async () => ((await memberships.find(member)).endDate / 1000 - start) / 86_400
  const actionsOf = async (eventId: string) =>
    (await memberships.history(member))
      .filter(({ origin }) => origin.requestId === eventId)
      .map(({ action }) => action)

  const first = pay("in_1", 0, 30)
  const second = pay("in_2", 30, 60)
  await sendAll(second, first)
  expect(await endDay()).toBe(61)
  const actions = [await actionsOf(first.id), await actionsOf(second.id)]
  expect(actions.flat().filter((action) => action === "granted")).toHaveLength(1)
  for (const ofEvent of actions) {
    expect(ofEvent.filter((action) => action === "extended").length).toBeLessThan(2)
  }

  await sendAll(pay("in_3", 60, 90), account.refund("in_3"), second)
  expect(await endDay()).toBe(61)

  const refunded = account.refund("in_2")
  await sendAll(refunded, first)
  expect(await endDay()).toBe(31)
  expect(await actionsOf(refunded.id)).toEqual(["extended"])
  // The payment goes with the membership to another user id.
  await memberships.move({ ...member, to: "2002" })
  moveTo("2002")
  await memberships.extendAll({ projectId, by: "P3D", idempotencyKey: randomUUID() })
  await sendAll(account.refund("in_1"))
  const moved = await memberships.find({ projectId, userId: "2002" })
  expect(moved.endDate).toBeLessThanOrEqual(Date.now() + 1000)
})

it("pauses and resumes the membership once for a dispute", async () => {
  const { account, memberships, pay, projectId, sendAll } = await setUp({ disputes: "pause" })
  const member = { projectId, userId: "1001" }
  const find = () => memberships.find(member)
  const first = pay("in_1", 0, 30)
  await sendAll(first, account.dispute("in_1", "created", "needs_response"))
  expect(await find()).toMatchObject({ state: "paused", endDate: dayOf(31) * 1000 })
  await sendAll(account.dispute("in_1", "closed", "won"), first)
  const resumed = await find()
  expect(resumed.state).toBe("active")
  const rows = await memberships.history(member)
  expect(rows.map(({ action }) => action)).toEqual(["resumed", "paused", "granted"])

  await memberships.pause({ ...member, until: Date.now() + 86_400_000 })
  await sendAll(account.dispute("in_1", "updated", "won"))
  expect(await find()).toMatchObject({ state: "paused", endDate: resumed.endDate })
})
