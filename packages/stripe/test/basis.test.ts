/** Money that goes back, and comes back, and the payments behind end dates in the audit trail. */

import { describe, expect, it } from "vitest"
import {
  type Steps,
  at,
  expectDays,
  member,
  metadata,
  now,
  paidOnce,
  paidTwice,
  period,
  setUp,
} from "./set-up.ts"

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
    const { message } = await on.send(on.account.dispute("in_2", "updated", status))
    expect(message).toBe("Handled")
    expect(await on.endDay()).toBe(day)
  })

  it("takes the membership while the bank has the money, and gives it back once it is won", async () => {
    const on = await paidOnce()
    await expectDays(on, [[({ dispute }) => dispute("in_1", "created", "needs_response"), now]])
    await on.send(on.account.dispute("in_1", "funds_withdrawn", "under_review"))
    await on.clock.advance("1 day")
    expect(await on.memberships.find(member)).toMatchObject({ state: "expired" })
    await expectDays(on, [
      [({ dispute }) => dispute("in_1", "closed", "won"), 31],
      [({ dispute }) => dispute("in_1", "funds_reinstated", "won"), 31],
    ])
    const paid = "Stripe: in_1 pays until 2030-02-01T00:00:00.000Z"
    const told = (await on.reasons()).filter((reason) => reason !== undefined)
    expect(told).toEqual([paid, "Stripe: in_1 disputed", paid])
  })

  it("of a part changes nothing, unless the rest was refunded", async () => {
    await expectDays(await paidTwice(), [
      [({ dispute }) => dispute("in_2", "created", "lost", 1000), 61],
      [({ refund }) => refund("in_2", 900), 31],
    ])
  })
})

describe("money that comes back", () => {
  const refund: Steps[0] = [(account) => account.refund("in_2"), 31]
  const credit: Steps[0] = [(account) => account.credit("in_2"), 31]

  it.each<[string, Steps]>([
    ["refund.failed", [refund, [({ failRefund }) => failRefund("in_2"), 61]]],
    ["refund.updated", [refund, [({ failRefund }) => failRefund("in_2", "refund.updated"), 61]]],
    [
      "charge.refund.updated",
      [refund, [({ failRefund }) => failRefund("in_2", "charge.refund.updated"), 61]],
    ],
    ["credit_note.voided", [credit, [({ voidCredit }) => voidCredit("in_2"), 61]]],
    [
      "credit_note.updated",
      [credit, [({ voidCredit }) => voidCredit("in_2", "credit_note.updated"), 61]],
    ],
  ])("with %s restores the membership", async (_, steps) => {
    await expectDays(await paidTwice(), steps)
  })

  it("counts even if its payment came while it was away", async () => {
    const on = await setUp()
    const paid = on.account.pay("sub_1", "in_1", period(0, 30))
    const refunded = on.account.refund("in_1")
    for (const event of [paid, refunded, on.account.failRefund("in_1")]) await on.send(event)
    expect(await on.endDay()).toBe(31)
  })

  it("leaves a date that somebody has set since, and a membership that somebody has ended", async () => {
    const on = await paidTwice()
    await on.send(on.account.refund("in_2"))
    await on.extend(5)
    await on.send(on.account.failRefund("in_2"))
    expect(await on.endDay()).toBe(5)
    await on.send(on.account.refund("in_2"))
    await on.memberships.end(member)
    await on.send(on.account.failRefund("in_2"))
    await on.expectNoMembership()
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
    expect(await on.reasons()).toEqual([
      "Stripe: in_1 pays until 2030-02-01T00:00:00.000Z",
      "Stripe: in_2 pays until 2030-03-03T00:00:00.000Z",
      "Stripe: in_2 refunded; in_1 pays until 2030-02-01T00:00:00.000Z",
      "Stripe: in_1 canceled; in_1 pays until 2030-01-31T00:00:00.000Z",
      "Stripe: in_1 credited",
    ])
  })

  it.each([0, 3])("after the grace became %d days", async (graceDays) => {
    const on = await paidTwice()
    await expectDays({ ...on, ...on.receiver({ graceDays }) }, [
      [({ refund }) => refund("in_2"), 30 + graceDays],
      [({ cancel }) => cancel("sub_1", at(2) / 1000), 30],
      [({ refund }) => refund("in_1"), now],
    ])
  })

  it("and ends the membership within a grace that is over by now", async () => {
    const on = await setUp({ graceDays: 30 })
    await on.pay("in_1", -30, 0)
    await on.clock.advance("10 days")
    const { send } = on.receiver({})
    const refunded = on.account.refund("in_1", 1)
    await send(refunded)
    expect(await on.endDay()).toBe(10 + now)
    expect((await on.reasons()).at(-1)).toBe("Stripe: in_1 over")
    await send(refunded)
    expect(await on.actions()).toEqual(["granted", "extended"])
  })

  it("among hundreds of other charges and invoices", async () => {
    const on = await setUp()
    await on.pay("in_1", 0, 365)
    on.account.subscribe("sub_2", "cus_1", { ...metadata, user_id: "7" })
    for (let number = 0; number < 110; number++) {
      on.account.pay("sub_2", `in_weekly_${number}`, period(-7, -1))
    }
    on.account.charge("cus_1", 230)
    await expectDays(on, [
      [({ refund }) => refund("in_1"), now],
      [({ failRefund }) => failRefund("in_1"), 366],
    ])
  })

  it("after all memberships were extended by a duration, and leaves them that", async () => {
    const on = await paidTwice()
    await on.memberships.extendAll({ projectId: "p1", by: "P3D", idempotencyKey: "1" })
    await expectDays(on, [
      [({ refund }) => refund("in_1"), 64],
      [({ failRefund }) => failRefund("in_1"), 64],
      [({ refund }) => refund("in_2"), 34],
      [({ failRefund }) => failRefund("in_2"), 64],
      [({ refund }) => refund("in_1"), 64],
      [({ refund }) => refund("in_2"), now],
    ])
  })

  it("after the membership was moved to another user id, back and forth, and has changed since", async () => {
    const on = await paidTwice()
    for (const [userId, to] of [
      ["1001", "7"],
      ["7", "1001"],
      ["1001", "7"],
    ] as const) {
      await on.memberships.move({ projectId: "p1", userId, to, reason: "sign-up" })
    }
    on.account.setMetadata("sub_1", { ...metadata, user_id: "7" })
    await on.memberships.extendAll({ projectId: "p1", by: "P3D", idempotencyKey: "1" })
    await on.send(on.account.refund("in_2"))
    expect(await on.endDay("7")).toBe(34)
  })

  it("but none that has moved to a member with a later date", async () => {
    const on = await paidTwice()
    await on.memberships.grant({ projectId: "p1", userId: "7", endDate: at(70) })
    await on.memberships.move({ ...member, to: "7" })
    on.account.setMetadata("sub_1", { ...metadata, user_id: "7" })
    await on.send(on.account.refund("in_2"))
    expect(await on.endDay("7")).toBe(70)
  })

  it("but no date for all, unless that was undone", async () => {
    const on = await paidTwice()
    await on.memberships.extendAll({ projectId: "p1", endDate: at(70) })
    await expectDays(on, [[({ refund }) => refund("in_2"), 70]])
    const [bulk] = await on.memberships.bulkExtensions({ projectId: "p1" })
    await on.memberships.undoBulkExtension({ projectId: "p1", id: bulk?.id ?? "" })
    expect(await on.endDay()).toBe(61)
    await expectDays(on, [[({ again }) => again("in_2"), 31]])
  })

  it("but no membership for life, given after a payment, by a move or by added time", async () => {
    const on = await paidOnce()
    const last = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
    const forLife = async (userId: string) => {
      const found = await on.memberships.find({ projectId: "p1", userId })
      expect(found).toMatchObject({ endDate: last })
    }
    await on.memberships.grant({ ...member, endDate: null })
    await on.pay("in_2", 30, 60)
    await on.send(on.account.refund("in_1"))
    await on.send(on.account.refund("in_2"))
    await forLife("1001")
    expect(await on.actions()).toEqual(["granted", "granted"])

    await on.memberships.grant({ projectId: "p1", userId: "7", endDate: at(10) })
    on.account.subscribe("sub_2", "cus_1", { ...metadata, user_id: "7" })
    await on.send(on.account.pay("sub_2", "in_3", period(0, 90)))
    await on.memberships.move({ ...member, to: "7" })
    await on.send(on.account.refund("in_3"))
    await on.send(on.account.cancel("sub_2", at(5) / 1000))
    await forLife("7")

    on.account.subscribe("sub_3", "cus_1", { ...metadata, user_id: "8" })
    const days = Math.floor((last - at(0)) / 86_400_000) - 2
    await on.send(on.account.pay("sub_3", "in_4", period(0, days)))
    await on.memberships.extendAll({ projectId: "p1", by: "P3D", idempotencyKey: "1" })
    await on.send(on.account.refund("in_4"))
    await forLife("8")
  })

  it("and no date that another customer has paid for the same member", async () => {
    const on = await paidOnce()
    on.account.subscribe("sub_2", "cus_2", metadata)
    await on.send(on.account.pay("sub_2", "in_2", period(0, 30)))
    await on.send(on.account.refund("in_2"))
    expect(await on.endDay()).toBe(31)
  })

  it("in a date that the host has imported", async () => {
    const on = await setUp()
    await on.grant(30)
    await on.pay("in_1", -30, 10)
    on.account.pay("sub_1", "in_2", period(0, 30))
    await on.send(on.account.refund("in_2"))
    expect(await on.endDay()).toBe(11)
  })
})
