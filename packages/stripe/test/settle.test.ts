/** What the receiver says if a payment is nobody's. */

import { describe, expect, it } from "vitest"
import { member, metadata, period, setUp, singles } from "./set-up.ts"
import type { SentEvent, StripeAccount } from "./stripe-account.ts"

describe("a payment that is nobody's", () => {
  it("is answered and logged once, with what to do", async () => {
    const on = await setUp()
    on.account.subscribe("sub_2", "cus_1", { user_id: "1001" })
    await on.grant(1)
    const paid = on.account.pay("sub_2", "in_1", period(0, 30))
    const { message, status } = await on.send(paid)
    expect(status).toBe(200)
    expect(message).toBe(
      `in_1 is paid, but the metadata of sub_2 names no member. Set project_id and user_id there, and in subscription_data.metadata of new Checkout sessions; then have Stripe send ${paid.id} again`,
    )
    expect(on.warnings).toEqual([message])
    expect(await on.actions()).toEqual(["granted"])
    on.account.setMetadata("sub_2", metadata)
    expect(await on.send(paid)).toMatchObject({ message: "Handled" })
    expect(await on.endDay()).toBe(31)
  })

  it.each<[string, (account: StripeAccount) => SentEvent]>([
    ["refund", ({ refund }) => refund("in_1")],
    ["dispute", ({ dispute }) => dispute("in_1", "closed", "lost")],
    ["credit", ({ credit }) => credit("in_1")],
    ["cancel", ({ cancel }) => cancel("sub_2", 1_900_000_000)],
  ])("is told after its %s, too", async (_, happen) => {
    const on = await setUp()
    on.account.subscribe("sub_2", "cus_1", {})
    on.account.pay("sub_2", "in_0", period(-30, 0))
    on.account.pay("sub_2", "in_1", period(0, 30))
    const { message } = await on.send(happen(on.account))
    expect(message).toContain("in_1 is paid, but the metadata of sub_2 names no member")
    expect(on.warnings).toEqual([message])
  })

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
      expect(await on.pay("in_1", 0, 30)).toMatchObject({ message: "Handled" })
      expect(await on.endDay()).toBe(31)
      await on.send(on.account.refund("in_1"))
      expect(await on.endDay()).toBeLessThan(31)
      expect(on.warnings).toEqual([message])
    },
  )

  it("is one of a connected account, without the option member", async () => {
    const on = await setUp()
    const { body } = on.account.pay("sub_1", "in_1", period(0, 30))
    const sent = { body: JSON.stringify({ ...JSON.parse(body), account: "acct_evil" }) }
    expect((await on.send(sent)).message).toContain("acct_evil may not name members")
    await on.expectNoMembership()
  })

  it.each([
    ["does not find", undefined, "the option member has found nobody for sub_1", 1],
    ["ignores, but without a warning", null, "Nothing to do: in_1", 0],
  ])("is one whose member the host %s", async (_, found, expected, warnings) => {
    const on = await setUp({ member: () => found })
    expect((await on.pay("in_1", 0, 30)).message).toContain(expected)
    expect(on.warnings).toHaveLength(warnings)
  })

  it("is none if it pays for no time, or the membership was ended", async () => {
    const on = await setUp()
    const none = { message: "Nothing to do: the member of in_1 has no membership" }
    expect(await on.pay("in_1", -40, -10)).toMatchObject(none)
    await on.pay("in_3", 0, 30)
    expect(await on.send(on.account.again("in_1"))).toMatchObject({ message: "Handled" })
    await on.memberships.end(member)
    expect(await on.send(on.account.again("in_1"))).toMatchObject(none)
    const { message } = await on.send(on.account.refund("in_3"))
    expect(message).toContain("has no membership")
    expect(on.warnings).toEqual([])
  })

  it("is none for a single item, or before a payment", async () => {
    const on = await setUp()
    expect(await on.send(on.account.pay("sub_1", "in_1", ...singles(1)))).toMatchObject({
      message: "Nothing to do: in_1 pays for no period",
    })
    on.account.subscribe("sub_2", "cus_2", {})
    expect(await on.send(on.account.cancel("sub_2", 1_900_000_000))).toMatchObject({
      message: "Nothing to do: sub_2 is of no subscription with a member",
    })
    expect(on.warnings).toEqual([])
  })
})
