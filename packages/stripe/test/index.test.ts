/** Stripe's webhooks with Stripe's own library: signatures, and an API like that for an account. */

import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { StripeWebhookOptions } from "../src/index.ts"
import { expectSameEndDate } from "./any-order.ts"
import { type LineInput, eventText } from "./objects.ts"
import {
  type Setup,
  type Steps,
  expectDays,
  member,
  metadata,
  now,
  paidOnce,
  paidTwice,
  period,
  seconds,
  setUp,
  singles,
} from "./set-up.ts"
import { type StripeAccount, secret } from "./stripe-account.ts"

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
    await on.grant(1)
    expect(await on.pay("in_1", 0, 30)).toEqual({ status: 200, message: "Handled" })
    expect(await on.endDay()).toBe(31)
    const [row] = await on.memberships.history(member)
    expect(row?.action).toBe("extended")
    expect(row?.origin).toEqual({ keyId: "stripe", requestId: "evt_1" })
  })

  it("extends once, however often and at the same time Stripe announces it", async () => {
    const on = await setUp()
    await on.grant(1)
    const paid = on.account.pay("sub_1", "in_1", period(0, 30))
    const succeeded = on.account.again("in_1", "invoice.payment_succeeded")
    await Promise.all([on.send(paid), on.send(succeeded), on.send(paid)])
    await on.send(paid)
    expect(await on.actions()).toEqual(["granted", "extended"])
    expect(await on.endDay()).toBe(31)
  })

  it("never shortens, in whatever order payments come", async () => {
    await expectDays(await setUp(), [
      [({ pay }) => pay("sub_1", "in_2", period(30, 60)), 61],
      [({ pay }) => pay("sub_1", "in_1", period(0, 30)), 61],
    ])
  })

  it.each([
    ["ends later", 100, 0, 30],
    ["is granted, if the paid period is over", 1, -60, -30],
  ])("leaves a membership that %s", async (_, granted, from, to) => {
    const on = await setUp()
    await on.grant(granted)
    expect(await on.pay("in_1", from, to)).toMatchObject({ status: 200 })
    expect(await on.actions()).toEqual(["granted"])
  })

  it("creates a missing membership by one event, which says why", async () => {
    const on = await setUp()
    const paid = on.account.pay("sub_1", "in_1", period(0, 30))
    await Promise.all([on.send(paid), on.send(paid)])
    await on.send(paid)
    expect(await on.memberships.history(member)).toMatchObject([
      {
        action: "granted",
        origin: { keyId: "stripe", requestId: paid.id },
        reason: "Stripe: in_1 pays until 2030-02-01T00:00:00.000Z",
      },
    ])
  })

  it("creates a missing membership once for payments at the same time", async () => {
    const on = await setUp()
    const paid = [10, 20, 30, 40].map((to) => on.account.pay("sub_1", `in_${to}`, period(0, to)))
    await Promise.all(paid.toReversed().map(on.send))
    expect(await on.endDay()).toBe(41)
    expect((await on.actions()).filter((action) => action === "granted")).toHaveLength(1)
  })

  it("creates a membership again that was ended", async () => {
    const on = await setUp()
    for (const to of [10, 20, 30]) {
      await on.pay(`in_${to}`, 0, to)
      expect(await on.endDay()).toBe(to + 1)
      await on.memberships.end(member)
    }
  })

  it("is rejected without a membership if the host says so, and succeeds later", async () => {
    const on = await setUp({ missing: "reject" })
    const paid = on.account.pay("sub_1", "in_1", period(0, 30))
    await expect(on.send(paid)).rejects.toMatchObject({ _tag: "MembershipNotFound" })
    await on.grant(1)
    await on.send(paid)
    expect(await on.endDay()).toBe(31)
  })

  it("leaves what an operator has done since, a month later too", async () => {
    const on = await setUp()
    const first = on.account.pay("sub_1", "in_1", period(0, 90))
    await on.send(first)
    await on.extend(40)
    await on.send(first)
    await on.send(on.account.refund("in_1", 1))
    expect(await on.endDay()).toBe(40)
    await on.clock.advance("31 days")
    await on.send(first)
    expect(await on.endDay()).toBe(40)
    await on.memberships.end(member)
    await on.send(first)
    expect(await on.actions()).toEqual(["granted", "extended", "ended"])
  })

  it("leaves that, too, if it comes after a later invoice and changes nothing", async () => {
    const on = await setUp()
    const first = on.account.pay("sub_1", "in_1", period(0, 30))
    await on.pay("in_2", 30, 60)
    await on.send(first)
    await on.extend(5)
    await on.send(first)
    expect(await on.endDay()).toBe(5)
    await on.memberships.end(member)
    await on.clock.advance("2 days")
    await on.send(on.account.again("in_1", "invoice.payment_succeeded"))
    await on.expectNoMembership()
    await on.pay("in_3", 0, 30)
    expect(await on.endDay()).toBe(61)
  })

  it.each<[string, ReadonlyArray<LineInput>, number]>([
    ["of a trial, which costs nothing", [period(0, 14, 0)], 14],
    [
      "for the subscription, but not with those that give money back",
      [period(0, 365, -9000), ...singles(1), period(0, 30), period(0, 20)],
      30,
    ],
  ])("counts with its lines %s", async (_, lines, day) => {
    const on = await setUp({ graceDays: 0 })
    await on.send(on.account.pay("sub_1", "in_1", ...lines))
    expect(await on.endDay()).toBe(day)
  })

  it.each([12, 250])("counts with all of its %d lines, which are read once", async (count) => {
    const on = await setUp({ graceDays: 0 })
    const lines = [...singles(count - 2), period(0, 20), period(0, 30)]
    await on.send(on.account.pay("sub_1", "in_1", ...lines))
    expect(await on.endDay()).toBe(30)
    const asked = on.account.requests.filter(({ pathname }) => pathname.endsWith("/lines"))
    expect(asked).toHaveLength(Math.ceil(count / 100))
  })

  it("counts with all lines if many invoices have many of them", async () => {
    const on = await setUp({ graceDays: 0 })
    for (let to = 1; to <= 25; to++) {
      on.account.pay("sub_1", `in_${to}`, ...singles(11), period(0, to))
    }
    await on.send(on.account.refund("in_7"))
    await on.send(on.account.pay("sub_1", "in_0", ...singles(11), period(0, 5)))
    expect(await on.endDay()).toBe(25)
  })

  it("has to come again if its lines cannot be read, or are too many", async () => {
    const on = await setUp()
    const tooMany = on.account.pay("sub_1", "in_1", ...singles(1001), period(0, 30))
    await expect(on.send(tooMany)).rejects.toThrow("in_1 has more than 1000 lines")
    on.account.beforeAnswer(async (path) => on.account.setDown(path.endsWith("/lines")))
    await expect(on.send(tooMany)).rejects.toThrow("Stripe has failed (500): no")
  })

  it("has to come again if the API does not list it yet", async () => {
    const on = await setUp()
    const body = eventText("evt_9", "invoice.paid", { id: "in_9", customer: "cus_1" })
    await expect(on.send({ body })).rejects.toThrow("in_9")
  })

  it("is for the member that the subscription has now", async () => {
    const on = await setUp()
    on.account.subscribe("sub_2", "cus_1", {})
    const paid = on.account.pay("sub_2", "in_1", period(0, 30))
    on.account.setMetadata("sub_2", { ...metadata, user_id: "7" })
    await on.send(paid)
    expect(await on.endDay("7")).toBe(31)
  })

  it("is for the member that the host finds, in the account that has sent it", async () => {
    const on = await setUp({
      member: async ({ customer }, account) => ({
        projectId: "p1",
        userId: `${customer}-${account}`,
      }),
    })
    const { body } = on.account.pay("sub_1", "in_1", period(0, 30))
    await on.send({ body: JSON.stringify({ ...JSON.parse(body), account: "acct_2" }) })
    expect(new Set(on.account.accounts)).toEqual(new Set(["acct_2"]))
    expect(await on.endDay("cus_1-acct_2")).toBe(31)
    await on.send({ body })
    expect(on.account.accounts).toContain(undefined)
  })
})

describe("in a project with grace", () => {
  const setUpWithGrace = async (options?: Partial<StripeWebhookOptions>) => {
    const on = await setUp(options)
    await on.memberships.updateProject({ projectId: "p1", grace: "P7D" })
    return on
  }

  it("a paid invoice extends the membership to the end of the period", async () => {
    const on = await setUpWithGrace()
    await on.pay("in_1", 0, 30)
    expect(await on.endDay()).toBe(30)
    await on.clock.advance("33 days")
    expect(await on.memberships.find(member)).toMatchObject({ state: "active" })
    await on.pay("in_2", 30, 60)
    expect(await on.endDay()).toBe(60)
  })

  it("a day of grace that was paid before goes with the next event", async () => {
    const on = await paidOnce()
    await on.memberships.updateProject({ projectId: "p1", grace: "P7D" })
    expect(await on.endDay()).toBe(31)
    await expectDays(on, [[({ again }) => again("in_1"), 30]])
  })

  it("graceDays still counts if it is given", async () => {
    const on = await setUpWithGrace({ graceDays: 2 })
    await on.pay("in_1", 0, 30)
    expect(await on.endDay()).toBe(32)
  })

  it("a refund ends the membership now, but does not begin a grace anew", async () => {
    const on = await setUpWithGrace()
    await on.pay("in_1", 0, 30)
    await expectDays(on, [[({ refund }) => refund("in_1"), now]])
    const other = await setUpWithGrace()
    await other.pay("in_1", 0, 30)
    await other.clock.advance("33 days")
    await expectDays(other, [[({ refund }) => refund("in_1"), 30]])
  })
})

describe("a refund", () => {
  const refundFirst: Steps[0] = [({ refund }) => refund("in_1"), now]

  it.each<[string, Partial<StripeWebhookOptions>, Steps]>([
    ["ends the membership now, if nothing else is paid", {}, [refundFirst]],
    [
      "of a part changes nothing",
      {},
      [
        [({ refund }) => refund("in_1", 900), 31],
        [({ refund }) => refund("in_1", 1000), now],
      ],
    ],
    ["as a credit note counts, too", {}, [[({ credit }) => credit("in_1"), now]]],
    [
      "and a dispute change nothing if the host keeps memberships",
      { refunds: "keep" },
      [
        [({ refund }) => refund("in_1"), 31],
        [({ dispute }) => dispute("in_1", "closed", "lost"), 31],
      ],
    ],
  ])("%s", async (_, options, steps) => {
    await expectDays(await paidOnce(options), steps)
  })

  it.each([
    ["shortens the membership to what is still paid", "in_2", 31],
    ["never shortens what a later payment has extended", "in_1", 61],
  ])("%s", async (_, invoice, day) => {
    await expectDays(await paidTwice(), [[({ refund }) => refund(invoice), day]])
  })

  it.each<[string, number, Steps]>([
    ["the first of many", 19, [[({ refund }) => refund("in_1", 1800), 31]]],
    ["each of several", 2, [[({ refund }) => refund("in_1", 950), 31], refundFirst]],
  ])("counts if it is of all payments, not of %s", async (_, parts, steps) => {
    const on = await paidOnce()
    on.account.split("in_1", parts)
    await expectDays(on, steps)
  })

  it("that comes before the payment leaves the membership as it was", async () => {
    const on = await setUp()
    await on.grant(1)
    const paid = on.account.pay("sub_1", "in_1", period(0, 30))
    const refunded = on.account.refund("in_1")
    for (const event of [refunded, paid, refunded]) await on.send(event)
    expect(await on.actions()).toEqual(["granted"])
  })

  it.each(["payment", "refund"])(
    "at the same time as the payment ends the membership, if the %s is slower",
    async (slower) => {
      const on = await setUp()
      await on.grant(1)
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
      if (++answers === 2) await on.pay("in_2", 0, 30)
    })
    await on.send(refunded)
    expect(await on.endDay()).toBe(31)
  })

  it("leaves what a payment extends before it is shortened", async () => {
    const on = await paidOnce()
    let isPaid = false
    const find: Setup["memberships"]["find"] = async (asked) => {
      const found = await on.memberships.find(asked)
      if (!isPaid) {
        isPaid = true
        await on.pay("in_2", 30, 60)
      }
      return found
    }
    const { send } = on.receiver({ tenure: { memberships: { ...on.memberships, find } } })
    await send(on.account.refund("in_1"))
    expect(await on.endDay()).toBe(61)
    expect(await on.actions()).toEqual(["granted", "extended"])
  })

  it("leaves an end date that somebody else has set", async () => {
    const on = await paidOnce()
    await on.extend(40)
    await on.send(on.account.refund("in_1"))
    expect(await on.endDay()).toBe(40)
  })

  it("leaves a membership that is missing, or over", async () => {
    const on = await paidOnce()
    await on.clock.advance("40 days")
    await on.send(on.account.refund("in_1"))
    expect(await on.endDay()).toBe(31)
    await on.memberships.erase(member)
    await on.send(on.account.refund("in_1"))
    await on.expectNoMembership()
  })

  it("leaves the other members of a customer", async () => {
    const on = await paidOnce()
    on.account.subscribe("sub_2", "cus_1", { ...metadata, user_id: "7" })
    await on.send(on.account.pay("sub_2", "in_2", period(0, 30)))
    await on.send(on.account.refund("in_1"))
    expect([await on.endDay(), await on.endDay("7")]).toEqual([now, 31])
  })
})

describe("a canceled subscription", () => {
  it.each<[string, Partial<StripeWebhookOptions>, number, number, number]>([
    ["with the paid period, without grace", { graceDays: 3 }, 0, 5, 30],
    ["at once if the host says so", { cancellation: "now" }, -5, 0, now],
  ])("ends the membership %s", async (_, options, from, endedOn, day) => {
    const on = await setUp(options)
    await on.pay("in_1", from, 30)
    await on.send(on.account.cancel("sub_1", seconds(endedOn)))
    expect(await on.endDay()).toBe(day)
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
  const refused = { status: 400, message: "Not an event that Stripe has signed" }

  it("is answered 400, whatever it has", async () => {
    const { account, webhook } = await setUp()
    const text = fc.oneof(fc.string(), fc.string({ unit: "binary" }), fc.json())
    const body = fc.oneof(text, fc.uint8Array({ maxLength: 100 }))
    const other = account.sign("{}")
    const signature = fc.oneof(
      text,
      fc.constantFrom(undefined, null, [], "t=1,v1=", `t=${Date.now()},v1=aa`, other),
    )
    await fc.assert(
      fc.asyncProperty(body, signature, async (anyBody, header) => {
        expect(await webhook.receive(anyBody, header)).toEqual(refused)
      }),
    )
    expect(account.requests).toEqual([])
  })

  it.each<[string, (account: StripeAccount, body: string) => string]>([
    ["another body", ({ sign }, body) => sign(`${body} `)],
    ["another secret", ({ sign }, body) => sign(body, { secret: "whsec_other" })],
    [
      "another time",
      ({ sign }, body) => sign(body, { timestamp: Math.floor(Date.now() / 1000) - 301 }),
    ],
    ["another scheme", ({ sign }, body) => sign(body, { scheme: "v0" })],
  ])("is answered 400 if it is signed with %s", async (_, sign) => {
    const { account, webhook } = await setUp()
    const { body } = account.pay("sub_1", "in_1", period(0, 30))
    expect(await webhook.receive(body, sign(account, body))).toEqual(refused)
    expect(account.requests).toEqual([])
  })

  it("is answered 400 if it is signed, and no event", async () => {
    const { send } = await setUp()
    const noObject = '{"id":"evt_1","data":{"object":null}}'
    const noId = eventText("evt\n1", "invoice.paid", { customer: "cus_1" })
    for (const body of ["{", "null", "[]", '"evt_1"', "{}", noObject, noId]) {
      expect(await send({ body })).toEqual(refused)
    }
  })

  it("is answered 200 if it is an event without an effect", async () => {
    const { account, send } = await setUp()
    const ignored = { status: 200, message: "Ignored" }
    expect(await send(account.other("customer.created"))).toEqual(ignored)
    const body = eventText("evt_1", "charge.refunded", { id: "ch_1", customer: null })
    expect(await send({ body })).toEqual(ignored)
    expect(account.requests).toEqual([])
  })
})

describe("an endpoint", () => {
  const setUpEndpoint = async () => {
    const on = await setUp()
    const { body } = on.account.pay("sub_1", "in_1", period(0, 30))
    const headers = { "stripe-signature": on.account.sign(body) }
    const fetch = (init: RequestInit = { method: "POST", body, headers }) =>
      on.webhook.fetch(new Request("https://example.com/stripe", init))
    return { ...on, body, headers, fetch }
  }

  it("answers web requests", async () => {
    const { body, endDay, fetch, headers } = await setUpEndpoint()
    expect((await fetch()).status).toBe(200)
    expect(await endDay()).toBe(31)
    const broken = new ReadableStream({ pull: (stream) => stream.error(new Error("gone")) })
    for (const [status, init] of [
      [400, { body }],
      [400, { body: `${body} `, headers }],
      [400, { body: broken, duplex: "half" }],
      [413, { body: "x".repeat(1024 * 1024 + 1) }],
    ] as const) {
      expect((await fetch({ method: "POST", ...init })).status).toBe(status)
    }
    const get = await fetch({})
    expect([get.status, get.headers.get("allow")]).toEqual([405, "POST"])
  })

  it("takes the event again after Stripe or Tenure did not answer", async () => {
    const { account, endDay, fetch, tenure } = await setUpEndpoint()
    account.setDown(true)
    await expect(fetch()).rejects.toThrow("Stripe has failed (500): no")
    account.setDown(false)
    expect((await fetch()).status).toBe(200)
    expect(await endDay()).toBe(31)
    await tenure.close()
    await expect(fetch()).rejects.toMatchObject({ _tag: "StoreUnavailable" })
  })

  it("takes several secrets while one replaces another", async () => {
    const on = await setUp({ secret: ["whsec_new", secret] })
    expect(await on.pay("in_1", 0, 30)).toMatchObject({ status: 200 })
  })
})

describe("the options", () => {
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
  ])("%j are refused", async (options, name) => {
    const { receiver } = await setUp()
    // @ts-expect-error: as programs without types may pass them
    const make = () => receiver(options)
    expect(make).toThrow(`${name} must be`)
    expect(make).toThrow(expect.objectContaining({ _tag: "InvalidInput", field: name }))
  })

  it("are refused if one is unknown, and show no secret", async () => {
    const { receiver } = await setUp()
    // @ts-expect-error: as programs without types may pass it
    expect(() => receiver({ graceDay: 3 })).toThrow("graceDay is unknown")
    expect(() => receiver({ secret: ["secret_1"] })).toThrow(
      /^secret must be .* received another value$/,
    )
  })
})
