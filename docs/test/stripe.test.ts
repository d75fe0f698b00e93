/** The code in `docs/hosts/stripe.md` runs, with Stripe's own library and an API like Stripe's. */

import { createServer } from "node:http"
import { testTenure } from "@tenure/testing"
import express from "express"
import { expect, it, onTestFinished } from "vitest"
import { secret, startStripeAccount } from "../../packages/stripe/test/stripe-account.ts"
import { examplesIn, writeExamples } from "./examples.ts"

const folder = await writeExamples("stripe", examplesIn("docs/hosts/stripe.md"))
const start = Date.UTC(2030, 0, 1)
const day = 86_400

const setUp = async () => {
  const account = await startStripeAccount()
  const { close, tenure } = await testTenure({ start })
  onTestFinished(async () => {
    await close()
    await account.close()
  })
  await tenure.memberships.createProject("p1")
  const endDayOf = async (userId: string) =>
    ((await tenure.memberships.find({ projectId: "p1", userId })).endDate - start) / 1000 / day
  const period = { amount: 1900, start: start / 1000, end: start / 1000 + 30 * day }
  const sign = (payload: string) =>
    account.stripe.webhooks.generateTestHeaderString({ payload, secret })
  return { account, tenure, endDayOf, period, sign }
}

it("receives events in Express", async () => {
  const { account, endDayOf, period, sign, tenure } = await setUp()
  const { billing } = await import(`${folder}/docs-hosts-stripe.md-1.ts`)
  const server = createServer(express().use(billing(tenure, account.stripe, secret)))
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  const send = async (body: string, signature = sign(body)) => {
    const headers = { "content-type": "application/json", "stripe-signature": signature }
    const url = `http://127.0.0.1:${port}/stripe`
    const response = await fetch(url, { method: "POST", headers, body })
    return [response.status, await response.text()]
  }
  account.subscribe("sub_1", "cus_1", { project_id: "p1", user_id: "1001" })
  const { body } = account.pay("sub_1", "in_1", period)
  expect(await send(body)).toEqual([200, "Handled"])
  expect(await endDayOf("1001")).toBe(31)
  expect(await send(body, "t=1,v1=00")).toEqual([400, "Not an event that Stripe has signed"])
  expect(await send("", "t=1,v1=00")).toEqual([400, "Not an event that Stripe has signed"])
  account.setDown(true)
  expect((await send(body))[0]).toBe(500)
})

it("receives web requests", async () => {
  const { POST } = await import(`${folder}/docs-hosts-stripe.md-2.ts`)
  const request = new Request("http://localhost/stripe", { method: "POST", body: "{}" })
  expect((await POST(request)).status).toBe(400)
})

it("finds members in the tables of the host", async () => {
  const { account, endDayOf, period, sign, tenure } = await setUp()
  const { webhookOf } = await import(`${folder}/docs-hosts-stripe.md-3.ts`)
  const users = new Map([["cus_1", "ada"]])
  const webhook = webhookOf({ tenure, stripe: account.stripe, secret, users })
  account.subscribe("sub_1", "cus_1", {})
  account.subscribe("sub_2", "cus_2", {})
  for (const { body } of [
    account.pay("sub_1", "in_1", period),
    account.pay("sub_2", "in_2", period),
  ]) {
    expect(await webhook.receive(body, sign(body))).toMatchObject({ status: 200 })
  }
  expect(await endDayOf("ada")).toBe(33)
})
