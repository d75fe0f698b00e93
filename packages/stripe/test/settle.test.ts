/** What the receiver says if a payment is nobody's, and if Stripe refuses. */

import { createServer } from "node:http"
import { Stripe } from "stripe"
import { describe, expect, it, onTestFinished } from "vitest"
import { stripeWebhook } from "../src/index.ts"
import { grant, member, metadata, period, setUp } from "./set-up.ts"
import { secret } from "./stripe-account.ts"

describe("a payment that is nobody's", () => {
  it("is answered and logged once, with what to do", async () => {
    const on = await setUp()
    on.account.subscribe("sub_2", "cus_1", { user_id: "1001" })
    await grant(on, 1)
    const paid = on.account.pay("sub_2", "in_1", period(0, 30))
    const { message, status } = await on.send(paid)
    expect(status).toBe(200)
    expect(message).toBe(
      `in_1 is paid, but the metadata of sub_2 names no member. Set project_id and user_id there, and in subscription_data.metadata of new Checkout sessions; then have Stripe send ${paid.id} again`,
    )
    expect(on.warnings).toEqual([message])
    expect(await on.actions()).toEqual(["granted"])
    on.account.setMetadata("sub_2", { project_id: "p1", user_id: "1001" })
    expect(await on.send(paid)).toMatchObject({ message: "Handled" })
    expect(await on.endDay()).toBe(31)
  })

  it.each(["refund", "dispute", "credit", "cancel"] as const)(
    "is told after its %s, too",
    async (kind) => {
      const on = await setUp()
      on.account.subscribe("sub_2", "cus_1", {})
      on.account.pay("sub_2", "in_0", period(-30, 0))
      on.account.pay("sub_2", "in_1", period(0, 30))
      const event = {
        refund: () => on.account.refund("in_1"),
        dispute: () => on.account.dispute("in_1", "closed", "lost"),
        credit: () => on.account.credit("in_1"),
        cancel: () => on.account.cancel("sub_2", 1_900_000_000),
      }[kind]()
      const { message } = await on.send(event)
      expect(message).toContain("in_1 is paid, but the metadata of sub_2 names no member")
      expect(on.warnings).toEqual([message])
    },
  )

  it.each([
    ["an id that Tenure refuses", { project_id: "p1", user_id: "münchen 1" }, "userId must be"],
    ["no id", { project_id: "p1", user_id: "" }, "userId must be"],
    ["a project that does not exist", { project_id: "p2", user_id: "1" }, 'The project "p2"'],
  ])(
    "because its metadata have %s, fails no payment and no refund of others",
    async (_, refused, problem) => {
      const on = await setUp()
      on.account.subscribe("sub_bad", "cus_1", refused)
      const { message } = await on.send(on.account.pay("sub_bad", "in_bad", period(0, 30)))
      expect(message).toContain("in_bad is paid, but the member of sub_bad is invalid")
      expect(message).toContain(problem)
      expect(on.warnings).toEqual([message])
      const paid = on.account.pay("sub_1", "in_1", period(0, 30))
      expect(await on.send(paid)).toMatchObject({ message: "Handled" })
      expect(await on.endDay()).toBe(31)
      await on.send(on.account.refund("in_1"))
      expect(await on.endDay()).toBeLessThan(31)
      expect(on.warnings).toHaveLength(1)
    },
  )

  it("is one of a connected account, without the option member", async () => {
    const on = await setUp()
    const { body } = on.account.pay("sub_1", "in_1", period(0, 30))
    const sent = { body: JSON.stringify({ ...JSON.parse(body), account: "acct_evil" }) }
    expect((await on.send(sent)).message).toContain("acct_evil may not name members")
    await expect(on.endDay()).rejects.toMatchObject({ _tag: "MembershipNotFound" })
  })

  it("is one whose member the host does not find, but not one that it ignores", async () => {
    for (const found of [undefined, null]) {
      const on = await setUp({ member: () => found })
      const { message } = await on.send(on.account.pay("sub_1", "in_1", period(0, 30)))
      expect(message).toContain(
        found === null ? "Nothing to do: in_1" : "the option member has found nobody for sub_1",
      )
      expect(on.warnings).toHaveLength(found === null ? 0 : 1)
    }
  })

  it("is none if it pays for no time, or the membership was ended", async () => {
    const on = await setUp()
    const none = "Nothing to do: the member of in_1 has no membership"
    expect(await on.send(on.account.pay("sub_1", "in_1", period(-40, -10)))).toMatchObject({
      message: none,
    })
    const single = { ...period(0, 30), isSingle: true }
    on.account.subscribe("sub_2", "cus_2", metadata)
    expect(await on.send(on.account.pay("sub_2", "in_2", single))).toMatchObject({
      message: "Nothing to do: in_2 pays for no period",
    })
    await on.send(on.account.pay("sub_1", "in_3", period(0, 30)))
    expect(await on.send(on.account.again("in_1"))).toMatchObject({ message: "Handled" })
    await on.tenure.memberships.end(member)
    expect(await on.send(on.account.again("in_1"))).toMatchObject({ message: none })
    expect(await on.send(on.account.refund("in_3"))).toMatchObject({
      message: expect.stringContaining("has no membership"),
    })
    expect(on.warnings).toEqual([])
  })

  it("is none for a single item, or before a payment", async () => {
    const on = await setUp()
    await on.send(on.account.pay("sub_1", "in_1", { ...period(0, 30), isSingle: true }))
    on.account.subscribe("sub_2", "cus_2", {})
    const { message } = await on.send(on.account.cancel("sub_2", 1_900_000_000))
    expect(message).toBe("Nothing to do: sub_2 is of no subscription with a member")
    expect(on.warnings).toEqual([])
  })
})

describe("an answer of Stripe", () => {
  it.each([
    [400, "Stripe has refused a request (400): No such customer: cus_1"],
    [401, "Stripe has refused the API key (401): No such customer: cus_1. Check the key"],
    [403, "Stripe has refused permission (403): No such customer: cus_1. Change"],
    [404, "Stripe has refused a request (404): No such customer: cus_1"],
    [
      429,
      "Stripe has answered that requests are too many (429): No such customer: cus_1. Stripe sends",
    ],
    [500, "Stripe has failed (500): No such customer: cus_1. Stripe sends the event again"],
    [503, "Stripe has failed (503): No such customer: cus_1. Stripe sends the event again"],
  ])("with status %d is described", async (status, description) => {
    const on = await setUp()
    on.account.refuse({ status, message: "No such customer: cus_1" })
    await expect(on.send(on.account.pay("sub_1", "in_1", period(0, 30)))).rejects.toThrow(
      description,
    )
  })

  it("shows no key, and has no status for Express", async () => {
    const on = await setUp()
    on.account.refuse({ status: 401, message: "Invalid API Key provided: rk_live_abc123" })
    const error: unknown = await on
      .send(on.account.pay("sub_1", "in_1", period(0, 30)))
      .catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ message: expect.stringContaining("provided: rk_…. Check") })
    expect(error).not.toHaveProperty("statusCode")
    expect(error).not.toHaveProperty("cause")
  })

  it.each([
    ["a connection that breaks", 10_000, (socket: { destroy: () => void }) => socket.destroy()],
    ["silence", 50, () => undefined],
  ])("that is missing after %s is described", async (_, timeout, answer) => {
    const on = await setUp()
    const server = createServer((request) => answer(request.socket))
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    const host = { host: "127.0.0.1", port, protocol: "http", maxNetworkRetries: 0 } as const
    const stripe = new Stripe("sk_test_123", { ...host, timeout, telemetry: false })
    const { receive } = stripeWebhook({ tenure: on.tenure, stripe, secret })
    const { body } = on.account.pay("sub_1", "in_1", period(0, 30))
    const signature = stripe.webhooks.generateTestHeaderString({ payload: body, secret })
    await expect(receive(body, signature)).rejects.toThrow(
      /^Stripe has not answered: .*\. Stripe sends the event again$/,
    )
  })
})
