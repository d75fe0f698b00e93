/** Webhooks of Stripe with Stripe's own library: signatures, and an API like that of an account. */

import fc from "fast-check"
import { beforeEach, describe, expect, it } from "vitest"
import { stripeWebhook } from "../src/index.ts"
import { expectSameEndDate } from "./any-order.ts"
import { eventText } from "./objects.ts"
import {
  type Setup,
  at,
  grant,
  member,
  metadata,
  now,
  paidOnce,
  paidTwice,
  period,
  seconds,
  setUp,
} from "./set-up.ts"
import { type SentEvent, type StripeAccount, secret } from "./stripe-account.ts"

const makeGate = () => {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open: () => open(), opened }
}

describe("a paid invoice", () => {
  it("extends the membership to the end of the period and a day of grace", async () => {
    const on = await setUp()
    await grant(on, 1)
    expect(await on.send(on.account.pay("sub_1", "in_1", period(0, 30)))).toEqual({
      status: 200,
      message: "Handled",
    })
    expect(await on.endDay()).toBe(31)
    const [row] = await on.tenure.memberships.history(member)
    expect(row?.origin).toEqual({ keyId: "stripe", requestId: "evt_1" })
  })

  it("extends once, however often and at the same time it is sent", async () => {
    const on = await setUp()
    await grant(on, 1)
    const paid = on.account.pay("sub_1", "in_1", period(0, 30))
    await Promise.all([on.send(paid), on.send(paid), on.send(paid)])
    await on.send(paid)
    expect(await on.actions()).toEqual(["granted", "extended"])
  })

  it("leaves a membership that an operator has shortened, when it is sent again", async () => {
    const on = await setUp()
    await grant(on, 1)
    const paid = on.account.pay("sub_1", "in_1", period(0, 30))
    await on.send(paid)
    await on.tenure.memberships.extend({ ...member, endDate: at(2) })
    await on.send(paid)
    await on.send(on.account.refund("in_1", 1))
    expect(await on.endDay()).toBe(2)
  })

  it("never shortens, in whatever order payments come", async () => {
    const on = await setUp()
    const first = on.account.pay("sub_1", "in_1", period(0, 30))
    const second = on.account.pay("sub_1", "in_2", period(30, 60))
    await on.send(second)
    await on.send(first)
    expect(await on.endDay()).toBe(61)
  })

  it("leaves a membership that ends later", async () => {
    const on = await setUp()
    await grant(on, 100)
    await on.send(on.account.pay("sub_1", "in_1", period(0, 30)))
    expect(await on.actions()).toEqual(["granted"])
  })

  it("creates a missing membership, once for payments at the same time", async () => {
    const on = await setUp()
    const paid = [10, 20, 30, 40].map((to) => on.account.pay("sub_1", `in_${to}`, period(0, to)))
    await Promise.all(paid.toReversed().map(on.send))
    expect(await on.endDay()).toBe(41)
    expect((await on.actions()).filter((action) => action === "granted")).toHaveLength(1)
  })

  it("creates a membership again that was ended", async () => {
    const on = await setUp()
    for (const to of [10, 20, 30]) {
      await on.send(on.account.pay("sub_1", `in_${to}`, period(0, to)))
      expect(await on.endDay()).toBe(to + 1)
      await on.tenure.memberships.end(member)
    }
  })

  it("is rejected without a membership if the host says so, and succeeds later", async () => {
    const on = await setUp({ missing: "reject" })
    const paid = on.account.pay("sub_1", "in_1", period(0, 30))
    await expect(on.send(paid)).rejects.toMatchObject({ _tag: "MembershipNotFound" })
    await grant(on, 1)
    await on.send(paid)
    expect(await on.endDay()).toBe(31)
  })

  it("creates a missing membership by one event, which says why", async () => {
    const on = await setUp()
    const paid = on.account.pay("sub_1", "in_1", period(0, 30))
    await Promise.all([on.send(paid), on.send(paid)])
    await on.send(paid)
    expect(await on.tenure.memberships.history(member)).toMatchObject([
      {
        action: "granted",
        origin: { keyId: "stripe", requestId: paid.id },
        reason: "Stripe: in_1 pays until 2030-02-01T00:00:00.000Z",
      },
    ])
  })

  it("is applied once, if Stripe announces it twice", async () => {
    const on = await setUp()
    await grant(on, 1)
    const paid = on.account.pay("sub_1", "in_1", period(0, 30))
    const succeeded = on.account.again("in_1", "invoice.payment_succeeded")
    await Promise.all([on.send(paid), on.send(succeeded)])
    expect(await on.actions()).toEqual(["granted", "extended"])
    expect(await on.endDay()).toBe(31)
  })

  it("leaves what an operator has done since, a month later too", async () => {
    const on = await setUp()
    const first = on.account.pay("sub_1", "in_1", period(0, 90))
    await on.send(first)
    await on.tenure.memberships.extend({ ...member, endDate: at(40) })
    await on.clock.advance("31 days")
    await on.send(first)
    expect(await on.endDay()).toBe(40)
    await on.tenure.memberships.end(member)
    await on.send(first)
    expect(await on.actions()).toEqual(["granted", "extended", "ended"])
  })

  it("leaves that, too, if it comes after a later invoice and changes nothing", async () => {
    const on = await setUp()
    const first = on.account.pay("sub_1", "in_1", period(0, 30))
    await on.send(on.account.pay("sub_1", "in_2", period(30, 60)))
    await on.send(first)
    await on.tenure.memberships.extend({ ...member, endDate: at(5) })
    await on.send(first)
    expect(await on.endDay()).toBe(5)
    await on.tenure.memberships.end(member)
    await on.clock.advance("2 days")
    await on.send(on.account.again("in_1", "invoice.payment_succeeded"))
    await expect(on.endDay()).rejects.toMatchObject({ _tag: "MembershipNotFound" })
    await on.send(on.account.pay("sub_1", "in_3", period(0, 30)))
    expect(await on.endDay()).toBe(61)
  })

  it("counts for a trial, which costs nothing", async () => {
    const on = await setUp({ graceDays: 0 })
    await on.send(on.account.pay("sub_1", "in_1", period(0, 14, 0)))
    expect(await on.endDay()).toBe(14)
  })

  it("counts with its lines for the subscription, but those that give money back", async () => {
    const on = await setUp({ graceDays: 0 })
    const credit = period(0, 365, -9000)
    const single = { ...period(0, 90), isSingle: true }
    await on.send(on.account.pay("sub_1", "in_1", credit, single, period(0, 30), period(0, 20)))
    expect(await on.endDay()).toBe(30)
  })

  it.each([12, 250])("counts with all of its %d lines, which are read once", async (count) => {
    const on = await setUp({ graceDays: 0 })
    const singles = Array.from({ length: count - 2 }, () => ({ ...period(0, 365), isSingle: true }))
    await on.send(on.account.pay("sub_1", "in_1", ...singles, period(0, 20), period(0, 30)))
    expect(await on.endDay()).toBe(30)
    const asked = on.account.requests.filter(({ pathname }) => pathname.endsWith("/lines"))
    expect(asked).toHaveLength(Math.ceil(count / 100))
  })

  it("counts with all lines if many invoices have many of them", async () => {
    const on = await setUp({ graceDays: 0 })
    const singles = Array.from({ length: 11 }, () => ({ ...period(0, 365), isSingle: true }))
    const days = Array.from({ length: 25 }, (_, index) => index + 1)
    for (const to of days) on.account.pay("sub_1", `in_${to}`, ...singles, period(0, to))
    await on.send(on.account.refund("in_7"))
    await on.send(on.account.pay("sub_1", "in_0", ...singles, period(0, 5)))
    expect(await on.endDay()).toBe(25)
  })

  it("with more lines than are read has to come again", async () => {
    const on = await setUp()
    const singles = Array.from({ length: 1001 }, () => ({ ...period(0, 365), isSingle: true }))
    const paid = on.account.pay("sub_1", "in_1", ...singles, period(0, 30))
    await expect(on.send(paid)).rejects.toThrow("in_1 has more than 1000 lines")
  })

  it("has to come again if Stripe does not answer with its lines", async () => {
    const on = await setUp()
    const singles = Array.from({ length: 11 }, () => ({ ...period(0, 365), isSingle: true }))
    const paid = on.account.pay("sub_1", "in_1", ...singles, period(0, 30))
    on.account.beforeAnswer(async (path) => on.account.setDown(path.endsWith("/lines")))
    await expect(on.send(paid)).rejects.toThrow("Stripe has failed (500): no")
  })

  it("changes nothing if the period is over", async () => {
    const on = await setUp()
    await grant(on, 1)
    expect(await on.send(on.account.pay("sub_1", "in_1", period(-60, -30)))).toMatchObject({
      status: 200,
    })
    expect(await on.actions()).toEqual(["granted"])
  })

  it("is for the member that the subscription has now", async () => {
    const on = await setUp()
    on.account.subscribe("sub_2", "cus_1", {})
    const paid = on.account.pay("sub_2", "in_1", period(0, 30))
    on.account.setMetadata("sub_2", { project_id: "p1", user_id: "7" })
    await on.send(paid)
    expect(await on.endDay("7")).toBe(31)
  })

  it("is for the member that the host finds", async () => {
    const on = await setUp({
      member: async ({ customer }) => ({ projectId: "p1", userId: String(customer) }),
    })
    await on.send(on.account.pay("sub_1", "in_1", period(0, 30)))
    expect(await on.endDay("cus_1")).toBe(31)
  })

  it("is looked up in the account that has sent it", async () => {
    const on = await setUp({
      member: (_subscription, account) => ({ projectId: "p1", userId: String(account) }),
    })
    const { body } = on.account.pay("sub_1", "in_1", period(0, 30))
    await on.send({ body: JSON.stringify({ ...JSON.parse(body), account: "acct_2" }) })
    expect(new Set(on.account.accounts)).toEqual(new Set(["acct_2"]))
    expect(await on.endDay("acct_2")).toBe(31)
    await on.send({ body })
    expect(on.account.accounts).toContain(undefined)
  })

  it("has to come again if the API does not list it yet", async () => {
    const on = await setUp()
    const body = eventText("evt_9", "invoice.paid", { id: "in_9", customer: "cus_1" })
    await expect(on.send({ body })).rejects.toThrow("in_9")
  })
})

describe("a refund", () => {
  it("ends the membership now, if nothing else is paid", async () => {
    const on = await setUp()
    await on.send(on.account.pay("sub_1", "in_1", period(-1, 29)))
    await on.send(on.account.refund("in_1"))
    expect(await on.endDay()).toBe(now)
    await on.clock.advance("1 hour")
    expect(await on.tenure.memberships.find(member)).toMatchObject({ state: "expired" })
  })

  it("shortens the membership to what is still paid", async () => {
    const on = await paidTwice()
    await on.send(on.account.refund("in_2"))
    expect(await on.endDay()).toBe(31)
  })

  it("never shortens what a later payment has extended", async () => {
    const on = await paidTwice()
    await on.send(on.account.refund("in_1"))
    expect(await on.endDay()).toBe(61)
  })

  it("that comes before the payment leaves the membership as it was", async () => {
    const on = await setUp()
    await grant(on, 1)
    const paid = on.account.pay("sub_1", "in_1", period(0, 30))
    const refunded = on.account.refund("in_1")
    await on.send(refunded)
    await on.send(paid)
    await on.send(refunded)
    expect(await on.actions()).toEqual(["granted"])
  })

  it.each(["payment", "refund"])(
    "at the same time as the payment ends the membership, if the %s is slower",
    async (slower) => {
      const on = await setUp()
      await grant(on, 1)
      const paid = on.account.pay("sub_1", "in_1", period(0, 30))
      const reads = makeGate()
      const refunds = makeGate()
      let answers = 0
      on.account.beforeAnswer(async () => {
        // The API has read what it answers the payment with.
        if (++answers === 2) reads.open()
        if (answers <= 2 && slower === "payment") await refunds.opened
      })
      const handled = on.send(paid)
      await reads.opened
      if (slower === "refund") await handled
      await on.send(on.account.refund("in_1"))
      refunds.open()
      await handled
      expect(await on.endDay()).toBe(now)
    },
  )

  it("is taken back if the period is paid again meanwhile", async () => {
    const on = await paidOnce()
    const refunded = on.account.refund("in_1")
    let answers = 0
    on.account.beforeAnswer(async () => {
      answers += 1
      if (answers === 2) await on.send(on.account.pay("sub_1", "in_2", period(0, 30)))
    })
    await on.send(refunded)
    expect(await on.endDay()).toBe(31)
  })

  it("leaves what a payment extends before it is shortened", async () => {
    const on = await setUp()
    const { account, tenure } = on
    await on.send(account.pay("sub_1", "in_1", period(0, 30)))
    let isPaid = false
    const find: Setup["tenure"]["memberships"]["find"] = async (asked) => {
      const found = await tenure.memberships.find(asked)
      if (!isPaid) {
        isPaid = true
        await on.send(account.pay("sub_1", "in_2", period(30, 60)))
      }
      return found
    }
    const { stripe } = account
    const memberships = { ...tenure.memberships, find }
    const { receive } = stripeWebhook({ tenure: { memberships }, stripe, secret })
    const { body } = account.refund("in_1")
    await receive(body, stripe.webhooks.generateTestHeaderString({ payload: body, secret }))
    expect(await on.endDay()).toBe(61)
    expect(await on.actions()).toEqual(["granted", "extended"])
  })

  it("of a part changes nothing", async () => {
    const on = await paidOnce()
    await on.send(on.account.refund("in_1", 900))
    expect(await on.endDay()).toBe(31)
    await on.send(on.account.refund("in_1", 1000))
    expect(await on.endDay()).toBe(now)
  })

  it("of the first of many payments changes nothing", async () => {
    const on = await paidOnce()
    on.account.split("in_1", 19)
    await on.send(on.account.refund("in_1", 1800))
    expect(await on.endDay()).toBe(31)
  })

  it("of each of several payments counts", async () => {
    const on = await paidOnce()
    on.account.split("in_1", 2)
    await on.send(on.account.refund("in_1", 950))
    expect(await on.endDay()).toBe(31)
    await on.send(on.account.refund("in_1"))
    expect(await on.endDay()).toBe(now)
  })

  it("as a credit note counts, too", async () => {
    const on = await paidOnce()
    await on.send(on.account.credit("in_1"))
    expect(await on.endDay()).toBe(now)
  })

  it("changes nothing if the host keeps memberships", async () => {
    const on = await paidOnce({ refunds: "keep" })
    await on.send(on.account.refund("in_1"))
    expect(await on.endDay()).toBe(31)
  })

  it("leaves an end date that somebody else has set", async () => {
    const on = await paidOnce()
    await on.tenure.memberships.extend({ ...member, endDate: at(40) })
    await on.send(on.account.refund("in_1"))
    expect(await on.endDay()).toBe(40)
  })

  it("leaves a membership that is missing, or over", async () => {
    const on = await paidOnce()
    await on.clock.advance("40 days")
    await on.send(on.account.refund("in_1"))
    expect(await on.endDay()).toBe(31)
    await on.tenure.memberships.erase(member)
    await on.send(on.account.refund("in_1"))
    await expect(on.endDay()).rejects.toMatchObject({ _tag: "MembershipNotFound" })
  })

  it("leaves the other members of a customer", async () => {
    const on = await setUp()
    on.account.subscribe("sub_2", "cus_1", { project_id: "p1", user_id: "7" })
    await on.send(on.account.pay("sub_1", "in_1", period(0, 30)))
    await on.send(on.account.pay("sub_2", "in_2", period(0, 30)))
    await on.send(on.account.refund("in_1"))
    expect([await on.endDay(), await on.endDay("7")]).toEqual([now, 31])
  })
})

describe("a canceled subscription", () => {
  it("ends the membership with the paid period, without grace", async () => {
    const on = await paidOnce({ graceDays: 3 })
    await on.send(on.account.cancel("sub_1", seconds(5)))
    expect(await on.endDay()).toBe(30)
  })

  it("ends it at once if the host says so", async () => {
    const on = await setUp({ cancellation: "now" })
    await on.send(on.account.pay("sub_1", "in_1", period(-5, 30)))
    await on.send(on.account.cancel("sub_1", seconds(0)))
    expect(await on.endDay()).toBe(now)
  })

  it("leaves what another subscription of the member pays for", async () => {
    const on = await paidOnce({ cancellation: "now" })
    on.account.subscribe("sub_2", "cus_1", metadata)
    await on.send(on.account.pay("sub_2", "in_2", period(0, 20)))
    await on.send(on.account.cancel("sub_1", seconds(0)))
    expect(await on.endDay()).toBe(21)
  })
})

it("any order and repetition of events leads to the same end date", () => expectSameEndDate(10))

describe("a request that is not from Stripe", () => {
  let on: Setup
  let paid: SentEvent
  beforeEach(async () => {
    on = await setUp()
    paid = on.account.pay("sub_1", "in_1", period(0, 30))
  })

  const sign = ({ stripe }: StripeAccount, payload: string, more = {}) =>
    stripe.webhooks.generateTestHeaderString({ payload, secret, ...more })

  const refused = { status: 400, message: "Not an event that Stripe has signed" }

  it("is answered 400, whatever it has", async () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: "binary" }), fc.json())
    const body = fc.oneof(text, fc.uint8Array({ maxLength: 100 }))
    const signature = fc.oneof(
      text,
      fc.constantFrom(
        undefined,
        null,
        [],
        "t=1,v1=",
        `t=${Date.now()},v1=aa`,
        sign(on.account, "{}"),
      ),
    )
    await fc.assert(
      fc.asyncProperty(body, signature, async (anyBody, header) => {
        expect(await on.webhook.receive(anyBody, header)).toEqual(refused)
      }),
    )
    expect(on.account.requests).toEqual([])
  })

  it("is answered 400 if another body, another secret or another time was signed", async () => {
    const { account, webhook } = on
    const old = Math.floor(Date.now() / 1000) - 301
    for (const header of [
      sign(account, `${paid.body} `),
      sign(account, paid.body, { secret: "whsec_other" }),
      sign(account, paid.body, { timestamp: old }),
      sign(account, paid.body, { scheme: "v0" }),
    ]) {
      expect(await webhook.receive(paid.body, header)).toEqual(refused)
    }
    expect(account.requests).toEqual([])
  })

  it("is answered 400 if it is signed, and no event", async () => {
    for (const body of [
      "{",
      "null",
      "[]",
      '"evt_1"',
      "{}",
      '{"id":"evt_1","data":{"object":null}}',
    ]) {
      expect(await on.send({ body })).toEqual(refused)
    }
    const body = eventText("evt\n1", "invoice.paid", { customer: "cus_1" })
    expect(await on.send({ body })).toEqual(refused)
  })

  it("is answered 200 if it is an event without an effect", async () => {
    const ignored = { status: 200, message: "Ignored" }
    expect(await on.send(on.account.other("customer.created"))).toEqual(ignored)
    const body = eventText("evt_1", "charge.refunded", { id: "ch_1", customer: null })
    expect(await on.send({ body })).toEqual(ignored)
    expect(on.account.requests).toEqual([])
  })
})

describe("an endpoint", () => {
  const request = (body: string, headers: Record<string, string> = {}) =>
    new Request("https://example.com/stripe", { method: "POST", body, headers })

  it("answers web requests", async () => {
    const on = await setUp()
    const { body } = on.account.pay("sub_1", "in_1", period(0, 30))
    const signature = on.account.stripe.webhooks.generateTestHeaderString({ payload: body, secret })
    const headers = { "stripe-signature": signature }
    expect((await on.webhook.fetch(request(body, headers))).status).toBe(200)
    expect(await on.endDay()).toBe(31)
    expect((await on.webhook.fetch(request(body))).status).toBe(400)
    expect((await on.webhook.fetch(request(`${body} `, headers))).status).toBe(400)
    expect((await on.webhook.fetch(request("x".repeat(1024 * 1024 + 1)))).status).toBe(413)
    const get = await on.webhook.fetch(new Request("https://example.com/stripe"))
    expect([get.status, get.headers.get("allow")]).toEqual([405, "POST"])
  })

  it("answers 400 to a body that breaks off", async () => {
    const on = await setUp()
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error("gone")) })
    const broken = new Request("https://example.com/", { method: "POST", body, duplex: "half" })
    expect((await on.webhook.fetch(broken)).status).toBe(400)
  })

  it("takes the event again after Stripe or Tenure did not answer", async () => {
    const on = await setUp()
    const { body } = on.account.pay("sub_1", "in_1", period(0, 30))
    const send = () => {
      const signature = on.account.stripe.webhooks.generateTestHeaderString({
        payload: body,
        secret,
      })
      return on.webhook.fetch(request(body, { "stripe-signature": signature }))
    }
    on.account.setDown(true)
    await expect(send()).rejects.toThrow("Stripe has failed (500): no")
    on.account.setDown(false)
    expect((await send()).status).toBe(200)
    expect(await on.endDay()).toBe(31)
    await on.tenure.close()
    await expect(send()).rejects.toMatchObject({ _tag: "StoreUnavailable" })
  })

  it("takes several secrets while one replaces another", async () => {
    const on = await setUp({ secret: ["whsec_new", secret] })
    expect(await on.send(on.account.pay("sub_1", "in_1", period(0, 30)))).toMatchObject({
      status: 200,
    })
  })

  it.each([
    [{ secret: "" }, "secret"],
    [{ secret: [] }, "secret"],
    [{ secret: "sk_test_1" }, "secret"],
    [{ graceDays: -1 }, "graceDays"],
    [{ graceDays: NaN }, "graceDays"],
    [{ cancellation: "never" }, "cancellation"],
    [{ refunds: "maybe" }, "refunds"],
    [{ missing: "ignore" }, "missing"],
    [{ member: "1001" }, "member"],
    [{ tenure: {} }, "tenure"],
    [{ stripe: {} }, "stripe"],
  ])("refuses the options %j", async (options, name) => {
    const on = await setUp()
    const { stripe } = on.account
    // @ts-expect-error: as programs without types may pass them
    const make = () => stripeWebhook({ tenure: on.tenure, stripe, secret, ...options })
    expect(make).toThrow(`${name} must be`)
    expect(make).toThrow(expect.objectContaining({ _tag: "InvalidInput", field: name }))
  })

  it("refuses unknown options, and shows no secret", async () => {
    const { account, tenure } = await setUp()
    const { stripe } = account
    // @ts-expect-error: as programs without types may pass them
    expect(() => stripeWebhook({ tenure, stripe, secret, graceDay: 3 })).toThrow(
      "graceDay is unknown",
    )
    expect(() => stripeWebhook({ tenure, stripe, secret: ["secret_1"] })).toThrow(
      /^secret must be .* received another value$/,
    )
  })
})
