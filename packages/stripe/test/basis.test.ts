/** Money that goes back, and comes back: refunds, disputes and credit notes. */

import { describe, expect, it } from "vitest"
import { stripeWebhook } from "../src/index.ts"
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
  setUp,
} from "./set-up.ts"
import { type SentEvent, secret } from "./stripe-account.ts"

const reasons = async ({ tenure }: Setup) =>
  (await tenure.memberships.history(member)).map(({ reason }) => reason).toReversed()

describe("a dispute", () => {
  it.each([
    ["warning_needs_response", 61],
    ["warning_under_review", 61],
    ["warning_closed", 61],
    ["needs_response", 31],
    ["under_review", 31],
    ["lost", 31],
    ["appeal_under_review", 31],
    ["won", 61],
    ["prevented", 61],
  ])("that is %s leaves the membership until day %d", async (status, day) => {
    const on = await paidTwice()
    expect(await on.send(on.account.dispute("in_2", "updated", status))).toMatchObject({
      message: "Handled",
    })
    expect(await on.endDay()).toBe(day)
  })

  it("takes the membership while the bank has the money, and gives it back once it is won", async () => {
    const on = await paidOnce()
    await on.send(on.account.dispute("in_1", "created", "needs_response"))
    expect(await on.endDay()).toBe(now)
    await on.send(on.account.dispute("in_1", "funds_withdrawn", "under_review"))
    await on.clock.advance("1 day")
    expect(await on.tenure.memberships.isActive(member)).toBe(false)
    await on.send(on.account.dispute("in_1", "closed", "won"))
    await on.send(on.account.dispute("in_1", "funds_reinstated", "won"))
    expect(await on.endDay()).toBe(31)
    const paid = "Stripe: in_1 pays until 2030-02-01T00:00:00.000Z"
    const told = (await reasons(on)).filter((reason) => reason !== undefined)
    expect(told).toEqual([paid, "Stripe: in_1 disputed", paid])
  })

  it("of a part changes nothing, unless the rest was refunded", async () => {
    const on = await paidTwice()
    await on.send(on.account.dispute("in_2", "created", "lost", 1000))
    expect(await on.endDay()).toBe(61)
    await on.send(on.account.refund("in_2", 900))
    expect(await on.endDay()).toBe(31)
  })

  it("changes nothing if the host keeps memberships", async () => {
    const on = await paidTwice({ refunds: "keep" })
    await on.send(on.account.dispute("in_2", "closed", "lost"))
    expect(await on.endDay()).toBe(61)
  })
})

describe("money that comes back", () => {
  it.each(["refund.failed", "refund.updated", "charge.refund.updated"])(
    "with %s restores the membership",
    async (type) => {
      const on = await paidTwice()
      await on.send(on.account.refund("in_2"))
      expect(await on.endDay()).toBe(31)
      await on.send(on.account.failRefund("in_2", type))
      expect(await on.endDay()).toBe(61)
    },
  )

  it.each(["credit_note.voided", "credit_note.updated"])(
    "with %s restores the membership",
    async (type) => {
      const on = await paidTwice()
      await on.send(on.account.credit("in_2"))
      expect(await on.endDay()).toBe(31)
      await on.send(on.account.voidCredit("in_2", type))
      expect(await on.endDay()).toBe(61)
    },
  )

  it("counts even if its payment came while it was away", async () => {
    const on = await setUp()
    const paid = on.account.pay("sub_1", "in_1", period(0, 30))
    const refunded = on.account.refund("in_1")
    await on.send(paid)
    await on.send(refunded)
    await on.send(on.account.failRefund("in_1"))
    expect(await on.endDay()).toBe(31)
  })

  it("leaves a date that somebody has set since, and a membership that somebody has ended", async () => {
    const on = await paidTwice()
    await on.send(on.account.refund("in_2"))
    await on.tenure.memberships.extend({ ...member, endDate: at(5) })
    await on.send(on.account.failRefund("in_2"))
    expect(await on.endDay()).toBe(5)
    await on.send(on.account.refund("in_2"))
    await on.tenure.memberships.end(member)
    await on.send(on.account.failRefund("in_2"))
    await expect(on.endDay()).rejects.toMatchObject({ _tag: "MembershipNotFound" })
  })

  it("after the paid period changes nothing", async () => {
    const on = await paidOnce()
    await on.send(on.account.refund("in_1"))
    await on.clock.advance("40 days")
    await on.send(on.account.failRefund("in_1"))
    expect(await on.endDay()).toBe(now)
  })
})

describe("a refund finds what was paid", () => {
  it("and says why, in the audit trail", async () => {
    const on = await paidTwice()
    await on.send(on.account.refund("in_2"))
    await on.send(on.account.cancel("sub_1", at(2) / 1000))
    await on.send(on.account.credit("in_1"))
    expect(await reasons(on)).toEqual([
      "Stripe: in_1 pays until 2030-02-01T00:00:00.000Z",
      "Stripe: in_2 pays until 2030-03-03T00:00:00.000Z",
      "Stripe: in_2 refunded; in_1 pays until 2030-02-01T00:00:00.000Z",
      "Stripe: in_1 canceled; in_1 pays until 2030-01-31T00:00:00.000Z",
      "Stripe: in_1 credited",
    ])
  })

  it.each([0, 3])("after the grace became %d days", async (graceDays) => {
    const on = await paidTwice()
    const { stripe } = on.account
    const { receive } = stripeWebhook({ tenure: on.tenure, stripe, secret, graceDays })
    const send = ({ body }: SentEvent) =>
      receive(body, stripe.webhooks.generateTestHeaderString({ payload: body, secret }))
    await send(on.account.refund("in_2"))
    expect(await on.endDay()).toBe(30 + graceDays)
    await send(on.account.cancel("sub_1", at(2) / 1000))
    expect(await on.endDay()).toBe(30)
    await send(on.account.refund("in_1"))
    expect(await on.endDay()).toBe(now)
  })

  it("and ends the membership within a grace that is over by now", async () => {
    const on = await setUp({ graceDays: 30 })
    await on.send(on.account.pay("sub_1", "in_1", period(-30, 0)))
    await on.clock.advance("10 days")
    const { stripe } = on.account
    const { receive } = stripeWebhook({ tenure: on.tenure, stripe, secret })
    const { body } = on.account.refund("in_1", 1)
    const signature = stripe.webhooks.generateTestHeaderString({ payload: body, secret })
    await receive(body, signature)
    expect(await on.endDay()).toBe(10 + now)
    expect((await reasons(on)).at(-1)).toBe("Stripe: in_1 over")
    await receive(body, signature)
    expect(await on.actions()).toEqual(["granted", "extended"])
  })

  it("among hundreds of other charges and invoices", async () => {
    const on = await setUp()
    await on.send(on.account.pay("sub_1", "in_1", period(0, 365)))
    on.account.subscribe("sub_2", "cus_1", { project_id: "p1", user_id: "7" })
    for (let number = 0; number < 110; number++) {
      on.account.pay("sub_2", `in_weekly_${number}`, period(-7, -1))
    }
    on.account.charge("cus_1", 230)
    await on.send(on.account.refund("in_1"))
    expect(await on.endDay()).toBe(now)
    await on.send(on.account.failRefund("in_1"))
    expect(await on.endDay()).toBe(366)
  })

  it("after all memberships were extended by a duration, and leaves them that", async () => {
    const on = await paidTwice()
    const { memberships } = on.tenure
    await memberships.extendAll({ projectId: "p1", by: "P3D", idempotencyKey: "1" })
    await on.send(on.account.refund("in_1"))
    expect(await on.endDay()).toBe(64)
    await on.send(on.account.failRefund("in_1"))
    await on.send(on.account.refund("in_2"))
    expect(await on.endDay()).toBe(34)
    await on.send(on.account.failRefund("in_2"))
    expect(await on.endDay()).toBe(64)
    await on.send(on.account.refund("in_1"))
    await on.send(on.account.refund("in_2"))
    expect(await on.endDay()).toBe(now)
  })

  it("after the membership was moved to another user id, back and forth, and has changed since", async () => {
    const on = await paidTwice()
    const { memberships } = on.tenure
    for (const [userId, to] of [
      ["1001", "7"],
      ["7", "1001"],
      ["1001", "7"],
    ] as const) {
      await memberships.move({ projectId: "p1", userId, to, reason: "sign-up" })
    }
    on.account.setMetadata("sub_1", { project_id: "p1", user_id: "7" })
    await memberships.extendAll({ projectId: "p1", by: "P3D", idempotencyKey: "1" })
    await on.send(on.account.refund("in_2"))
    expect(await on.endDay("7")).toBe(34)
  })

  it("but none that has moved to a member with a later date", async () => {
    const on = await paidTwice()
    const { memberships } = on.tenure
    await memberships.grant({ projectId: "p1", userId: "7", endDate: at(70) })
    await memberships.move({ ...member, to: "7" })
    on.account.setMetadata("sub_1", { project_id: "p1", user_id: "7" })
    await on.send(on.account.refund("in_2"))
    expect(await on.endDay("7")).toBe(70)
  })

  it("but no date for all, unless that was undone", async () => {
    const on = await paidTwice()
    const { memberships } = on.tenure
    await memberships.extendAll({ projectId: "p1", endDate: at(70) })
    await on.send(on.account.refund("in_2"))
    expect(await on.endDay()).toBe(70)
    const [bulk] = await memberships.bulkExtensions({ projectId: "p1" })
    await memberships.undoBulkExtension({ projectId: "p1", id: bulk?.id ?? "" })
    expect(await on.endDay()).toBe(61)
    await on.send(on.account.again("in_2"))
    expect(await on.endDay()).toBe(31)
  })

  it("and no date that another customer has paid for the same member", async () => {
    const on = await setUp()
    on.account.subscribe("sub_2", "cus_2", metadata)
    await on.send(on.account.pay("sub_1", "in_1", period(0, 30)))
    await on.send(on.account.pay("sub_2", "in_2", period(0, 30)))
    await on.send(on.account.refund("in_2"))
    expect(await on.endDay()).toBe(31)
  })

  it("in a date that the host has imported", async () => {
    const on = await setUp()
    await grant(on, 30)
    await on.send(on.account.pay("sub_1", "in_1", period(-30, 10)))
    on.account.pay("sub_1", "in_2", period(0, 30))
    await on.send(on.account.refund("in_2"))
    expect(await on.endDay()).toBe(11)
  })
})
