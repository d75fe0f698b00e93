/** Disputes that pause memberships. */

import { describe, expect, it } from "vitest"
import {
  type Setup,
  at,
  member,
  metadata,
  now,
  paidOnce,
  paidTwice,
  period,
  setUp,
} from "./set-up.ts"

const pausing = { disputes: "pause" } as const

const open = (on: Setup, id = "in_1", status = "needs_response") =>
  on.send(on.account.dispute(id, "created", status))

const close = (on: Setup, status: "won" | "lost", id = "in_1") =>
  on.send(on.account.dispute(id, "closed", status))

/** The membership's state, and the day on which it ends. */
const standing = async (on: Setup) => {
  const { state } = await on.memberships.find(member)
  return [state, await on.endDay()]
}

const lastReason = async (on: Setup) => (await on.reasons()).at(-1)

describe("a dispute", () => {
  it("pauses the membership until it is won, which ends later by the time paused", async () => {
    const on = await paidOnce(pausing)
    for (const status of ["needs_response", "under_review"]) {
      expect(await open(on, "in_1", status)).toMatchObject({ message: "Handled" })
      expect(await standing(on)).toEqual(["paused", 31])
    }
    expect(await lastReason(on)).toBe("Stripe: in_1 in dispute")
    await on.clock.advance("40 days")
    expect(await standing(on)).toEqual(["paused", 31])
    const won = on.account.dispute("in_1", "closed", "won")
    for (let times = 0; times < 2; times++) {
      expect(await on.send(won)).toMatchObject({ message: "Handled" })
      expect(await standing(on)).toEqual(["active", 71])
    }
    expect(await on.actions()).toEqual(["granted", "paused", "resumed"])
    expect(await lastReason(on)).toContain("Stripe: in_1 no longer in dispute")
    // The payment is still behind the end date.
    await on.send(on.account.refund("in_1"))
    expect(await on.endDay()).toBe(40 + now)
  })

  it("that is lost resumes the membership, and counts as a refund", async () => {
    const on = await paidOnce(pausing)
    await open(on)
    await on.clock.advance("10 days")
    await close(on, "lost")
    expect(await standing(on)).toEqual(["active", 10 + now])
    expect(await on.actions()).toEqual(["granted", "paused", "extended", "resumed"])
    const again = on.account.dispute("in_1", "updated", "lost")
    await on.send(again)
    expect(await standing(on)).toEqual(["active", 10 + now])
    await on.clock.advance("1 day")
    await on.send(again)
    expect(await standing(on)).toEqual(["expired", 10 + now])
  })

  it.each([5, 40])("that is lost after %d days leaves what others pay", async (days) => {
    const on = await paidTwice(pausing)
    await open(on, "in_2")
    await on.clock.advance(`${days} days`)
    await close(on, "lost", "in_2")
    expect(await standing(on)).toEqual(["active", 31 + days])
    await on.send(on.account.refund("in_1"))
    expect(await on.endDay()).toBe(days + now)
  })

  it("that is lost counts as paid if the host keeps memberships", async () => {
    const on = await paidOnce({ ...pausing, refunds: "keep" })
    await open(on)
    await on.clock.advance("10 days")
    await close(on, "lost")
    expect(await standing(on)).toEqual(["active", 41])
  })

  it.each([
    ["warning_needs_response", "active"],
    ["appeal_under_review", "paused"],
    ["won", "active"],
  ])("that is %s leaves the membership %s", async (status, state) => {
    const on = await paidOnce(pausing)
    await open(on, "in_1", status)
    expect(await standing(on)).toEqual([state, 31])
  })

  it("pauses the membership again if it is taken up again", async () => {
    const on = await paidOnce(pausing)
    await open(on)
    await close(on, "won")
    await open(on, "in_1", "appeal_under_review")
    expect(await standing(on)).toEqual(["paused", 31])
    await close(on, "lost")
    await open(on, "in_1", "appeal_under_review")
    expect(await standing(on)).toEqual(["paused", 31])
  })

  it("about an earlier period, or of a part, pauses nothing", async () => {
    const on = await paidTwice(pausing)
    await open(on, "in_1")
    await on.send(on.account.dispute("in_2", "created", "needs_response", 1000))
    expect(await standing(on)).toEqual(["active", 61])
    expect(await on.actions()).toEqual(["granted", "extended"])
    await on.send(on.account.refund("in_2", 900))
    expect(await standing(on)).toEqual(["paused", 61])
  })

  it("that comes before the payment pauses the membership once it is paid", async () => {
    const on = await setUp(pausing)
    const paid = on.account.pay("sub_1", "in_1", period(0, 30))
    await open(on)
    await on.expectNoMembership()
    await on.send(paid)
    expect(await standing(on)).toEqual(["paused", 31])
    await close(on, "won")
    expect(await standing(on)).toEqual(["active", 31])
  })

  it("ends the pause if another invoice pays for as long", async () => {
    const on = await paidOnce(pausing)
    await open(on)
    await on.clock.advance("5 days")
    await on.pay("in_2", 30, 60)
    expect(await standing(on)).toEqual(["active", 66])
    await close(on, "lost")
    expect(await standing(on)).toEqual(["active", 66])
  })

  it("is one of several: the membership is paused until all are closed", async () => {
    const on = await paidTwice(pausing)
    await open(on, "in_1")
    await open(on, "in_2")
    await close(on, "won", "in_2")
    expect(await standing(on)).toEqual(["active", 61])
    await open(on, "in_2", "appeal_under_review")
    expect(await lastReason(on)).toBe("Stripe: in_2, in_1 in dispute")
    await close(on, "won", "in_1")
    expect(await standing(on)).toEqual(["paused", 61])
    await close(on, "won", "in_2")
    expect(await standing(on)).toEqual(["active", 61])
  })

  it("leaves a membership that is over, missing, or in grace", async () => {
    const on = await paidOnce(pausing)
    await on.memberships.updateProject({ projectId: "p1", grace: "P7D" })
    await on.clock.advance("32 days")
    await open(on)
    expect(await standing(on)).toEqual(["active", 31])
    await on.clock.advance("10 days")
    await open(on)
    expect(await standing(on)).toEqual(["expired", 31])
    await on.memberships.end(member)
    await open(on)
    await on.expectNoMembership()
    expect(await on.actions()).not.toContain("paused")
  })

  it("leaves an end date that somebody else has set, and members for life", async () => {
    const on = await paidOnce(pausing)
    await on.extend(40)
    await open(on)
    expect(await standing(on)).toEqual(["active", 40])
    await on.memberships.grant({ ...member, endDate: null })
    await open(on)
    expect(await on.memberships.find(member)).toMatchObject({ state: "active" })
  })

  it("is resumed although the host no longer pauses", async () => {
    const on = await paidOnce(pausing)
    await open(on)
    const { send } = on.receiver({})
    await send(on.account.dispute("in_1", "updated", "under_review"))
    expect(await standing(on)).toEqual(["active", now])
  })

  it("leaves the other members of a customer", async () => {
    const on = await paidOnce(pausing)
    on.account.subscribe("sub_2", "cus_1", { ...metadata, user_id: "7" })
    await on.send(on.account.pay("sub_2", "in_2", period(0, 30)))
    await open(on)
    expect(await standing(on)).toEqual(["paused", 31])
    const other = await on.memberships.find({ ...member, userId: "7" })
    expect(other).toMatchObject({ state: "active" })
  })
})

describe("a pause of somebody else", () => {
  it("outlasts every dispute", async () => {
    const on = await paidOnce(pausing)
    await on.memberships.pause({ ...member, reason: "Stripe: in_1 in dispute" })
    await open(on)
    await close(on, "won")
    expect(await standing(on)).toEqual(["paused", 31])
    await on.memberships.resume(member)
    await open(on, "in_1", "appeal_under_review")
    await on.memberships.resume(member)
    await on.memberships.pause(member)
    await close(on, "won")
    expect(await standing(on)).toEqual(["paused", 31])
  })

  it("in place of that for a dispute stays, also from an import", async () => {
    const on = await paidOnce(pausing)
    await open(on)
    const imported = { userId: "1001", endDate: at(31), pausedAt: at(-1) }
    await on.memberships.import({ projectId: "p1", memberships: [imported] })
    await close(on, "won")
    expect(await standing(on)).toEqual(["paused", 31])
  })

  it("is not made anew once somebody has resumed the membership during the dispute", async () => {
    const on = await paidOnce(pausing)
    await open(on)
    await on.memberships.resume(member)
    await on.send(on.account.dispute("in_1", "updated", "under_review"))
    expect(await standing(on)).toEqual(["active", 31])
    await close(on, "lost")
    expect(await standing(on)).toEqual(["active", now])
  })

  it("leaves the payment behind the end date, and its clock stands", async () => {
    const on = await paidTwice()
    await on.clock.advance("10 days")
    await on.memberships.pause(member)
    await on.clock.advance("25 days")
    // What in_1 pays would be over, without the pause.
    await on.send(on.account.refund("in_2"))
    expect(await standing(on)).toEqual(["paused", 31])
    expect(await lastReason(on)).toContain("in_2 refunded; in_1 pays until")
    await on.memberships.resume(member)
    expect(await standing(on)).toEqual(["active", 56])
    await on.send(on.account.failRefund("in_2"))
    expect(await on.endDay()).toBe(86)
  })

  it("does not make a payment for another customer end it", async () => {
    const on = await paidOnce(pausing)
    await open(on)
    on.account.subscribe("sub_2", "cus_2", metadata)
    await on.send(on.account.pay("sub_2", "in_2", period(-60, -30)))
    expect(await standing(on)).toEqual(["paused", 31])
  })
})
