/** On PostgreSQL, several processes receive the same events at the same time. */

import { randomUUID } from "node:crypto"
import { createTenure } from "@tenure/core"
import { postgres } from "@tenure/postgres"
import { afterAll, beforeAll, expect, inject, it } from "vitest"
import { stripeWebhook } from "../src/index.ts"
import { type SentEvent, type StripeAccount, secret, startStripeAccount } from "./stripe-account.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const day = 86_400
const start = Math.floor(Date.UTC(2090, 0, 1) / 1000)
// Of this run: the database may have projects and idempotency keys of an earlier one.
const projectId = randomUUID()
const member = { projectId, userId: "1001" }

let account: StripeAccount
let processes: ReadonlyArray<Awaited<ReturnType<typeof startProcess>>>

const startProcess = async () => {
  const stores = postgres({ url: inject("databaseUrl"), schema: "stripe_events" })
  const tenure = await createTenure({ stores, webhooks: { dispatch: false } })
  return { tenure, webhook: stripeWebhook({ tenure, stripe: account.stripe, secret }) }
}

beforeAll(async () => {
  account = await startStripeAccount()
  processes = [await startProcess(), await startProcess()]
  await processes[0]?.tenure.memberships.createProject(projectId)
  account.subscribe("sub_1", "cus_1", { project_id: projectId, user_id: "1001" })
})

afterAll(async () => {
  await processes[0]?.tenure.memberships.deleteProject(projectId)
  await Promise.all(processes.map(({ tenure }) => tenure.close()))
  await account.close()
})

/** Sends each event to each process three times, all at the same time. */
const sendAll = (...events: ReadonlyArray<SentEvent>) =>
  Promise.all(
    [1, 2, 3].flatMap(() =>
      processes.flatMap(({ webhook }) =>
        events.map(({ body }) => {
          const signed = { payload: body, secret }
          const signature = account.stripe.webhooks.generateTestHeaderString(signed)
          return webhook.receive(body, signature)
        }),
      ),
    ),
  )

const periodOf = (from: number, to: number) => ({
  amount: 1900,
  start: start + from * day,
  end: start + to * day,
})

const memberships = () => {
  const [first] = processes
  if (first === undefined) throw new Error("no process")
  return first.tenure.memberships
}

const endDay = async () => ((await memberships().find(member)).endDate / 1000 - start) / day

it("creates, extends and shortens the membership once", async () => {
  const first = account.pay("sub_1", "in_1", periodOf(0, 30))
  const second = account.pay("sub_1", "in_2", periodOf(30, 60))
  await sendAll(second, first)
  expect(await endDay()).toBe(61)
  const actionsOf = async (eventId: string) =>
    (await memberships().history(member))
      .filter(({ origin }) => origin.requestId === eventId)
      .map(({ action }) => action)
  const granted = [...(await actionsOf(first.id)), ...(await actionsOf(second.id))].filter(
    (action) => action === "granted",
  )
  expect(granted).toHaveLength(1)
  for (const { id } of [first, second]) {
    expect((await actionsOf(id)).filter((action) => action === "extended").length).toBeLessThan(2)
  }

  const third = account.pay("sub_1", "in_3", periodOf(60, 90))
  const refund = account.refund("in_3")
  await sendAll(third, refund, second)
  expect(await endDay()).toBe(61)

  const refunded = account.refund("in_2")
  await sendAll(refunded, first)
  expect(await endDay()).toBe(31)
  expect(await actionsOf(refunded.id)).toEqual(["extended"])
  // The payment goes with the membership to another user id.
  const moved = { projectId, userId: "2002" }
  await memberships().move({ ...member, to: moved.userId })
  account.setMetadata("sub_1", { project_id: projectId, user_id: moved.userId })
  await memberships().extendAll({ projectId, by: "P3D", idempotencyKey: randomUUID() })
  await sendAll(account.refund("in_1"))
  expect((await memberships().find(moved)).endDate).toBeLessThanOrEqual(Date.now() + 1000)
})
