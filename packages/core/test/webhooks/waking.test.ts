import { describe, expect, it } from "vitest"
import { makeClaimTrigger } from "../../src/webhooks/claim-budget.ts"
import { WebhookId } from "../../src/webhooks/webhook.ts"

const one = WebhookId("00000000-0000-4000-8000-000000000001")
const other = WebhookId("00000000-0000-4000-8000-000000000002")

const inHand = () => true
const elsewhere = () => false

describe("a settlement", () => {
  it("is a reason to claim again if the last claim has kept back something of its webhook", () => {
    const waking = makeClaimTrigger()
    waking.beginClaim()
    expect(waking.endClaim([one], inHand)).toBeUndefined()
    expect([waking.settled(one), waking.settled(other)]).toEqual([true, false])
    waking.beginClaim()
    expect(waking.endClaim([], inHand)).toBeUndefined()
    expect(waking.settled(one)).toBe(false)
  })

  it("during a claim is a reason if that claim has kept back something, and did not see it", () => {
    const waking = makeClaimTrigger()
    waking.beginClaim()
    waking.endClaim([one], inHand)
    waking.beginClaim()
    expect(waking.settled(one)).toBe(false)
    expect(waking.endClaim([one], elsewhere)).toBe(0)
    waking.beginClaim()
    waking.settled(other)
    expect(waking.endClaim([one], inHand)).toBeUndefined()
  })
})

describe("what is kept back because of claims elsewhere", () => {
  it("is claimed after a pause", () => {
    const waking = makeClaimTrigger()
    waking.beginClaim()
    expect(waking.endClaim([one, other], (id) => id === one)).toBe(200)
  })
})
