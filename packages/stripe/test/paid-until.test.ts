/** The rules by which paid invoices become end dates. */

import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type Basis,
  type PaidInvoice,
  type PaymentRules,
  decideEndDate,
  disputedBehind,
  lossOf,
  paidUntil,
} from "../src/paid-until.ts"

const grace = 3
const rules: PaymentRules = {
  grace,
  cancellation: "periodEnd",
  refundsShorten: true,
  disputesPause: false,
}
const atOnce: PaymentRules = { ...rules, cancellation: "now" }
const keeping: PaymentRules = { ...rules, refundsShorten: false }
const pausing: PaymentRules = { ...rules, disputesPause: true }
const inDispute = { returned: "disputed", isInDispute: true } as const

const invoice = (given: Partial<PaidInvoice>): PaidInvoice => ({
  id: "in_1",
  periodEnd: 100,
  returned: undefined,
  isInDispute: false,
  subscriptionEndedAt: undefined,
  ...given,
})

// Few instants, so that dates often meet.
const instant = fc.integer({ min: 1, max: 30 })
const returns = [
  ...(["refunded", "credited", "disputed", undefined] as const).map((returned) => ({
    returned,
    isInDispute: false,
  })),
  inDispute,
]
const invoices = fc.array(
  fc
    .record({
      id: fc.constant("in_1"),
      periodEnd: instant,
      how: fc.constantFrom(...returns),
      subscriptionEndedAt: fc.option(instant, { nil: undefined }),
    })
    .map(({ how, ...rest }) => ({ ...rest, ...how })),
  { minLength: 1, maxLength: 5 },
)
const anyRules = fc.record({
  grace: fc.nat({ max: 5 }),
  cancellation: fc.constantFrom("periodEnd", "now"),
  refundsShorten: fc.boolean(),
  disputesPause: fc.boolean(),
})

describe("what an invoice pays for", () => {
  it.each<[string, Partial<PaidInvoice>, PaymentRules, number]>([
    ["its period and the grace, while the subscription lasts", {}, rules, 103],
    ["its period alone, once the subscription has ended", { subscriptionEndedAt: 40 }, rules, 100],
    ["the time until the subscription ended at once", { subscriptionEndedAt: 40 }, atOnce, 40],
    ["no more than its period", { subscriptionEndedAt: 140 }, atOnce, 100],
    ["nothing, once it is refunded", { returned: "refunded" }, rules, -Infinity],
    ["its period, if refunds shorten nothing", { returned: "refunded" }, keeping, 103],
    ["nothing, while it is in dispute", inDispute, rules, -Infinity],
    ["its period, while it is in dispute, and the membership paused", inDispute, pausing, 103],
    ["nothing, once a dispute is lost", { returned: "disputed" }, pausing, -Infinity],
  ])("is %s", (_, given, by, expected) => {
    expect(paidUntil([invoice(given)], by)).toBe(expected)
  })

  it("is, of several, what the longest pays for", () => {
    fc.assert(
      fc.property(invoices, anyRules, (all, by) => {
        expect(paidUntil(all, by)).toBe(Math.max(...all.map((one) => paidUntil([one], by))))
      }),
    )
  })
})

describe("a membership that lasts too long", () => {
  const other = invoice({ id: "in_2", periodEnd: 50 })
  const refunded = invoice({ returned: "disputed" })
  const ended = invoice({ subscriptionEndedAt: 40 })
  const lost = invoice({ subscriptionEndedAt: 40, returned: "refunded" })

  it.each([
    ["the refunded period and the grace", [refunded, other], 103, rules, 53],
    ["the refunded period", [refunded, other], 100, rules, 53],
    ["the end of the refunded, ended subscription", [lost, other], 40, atOnce, undefined],
    ["the refunded period, and nothing else is paid", [refunded], 100, rules, -Infinity],
    ["the grace of a subscription that has ended", [ended], 103, rules, 100],
    ["the period of a subscription that has ended at once", [ended], 100, atOnce, 40],
    ["the end of a refunded subscription", [lost], 40, atOnce, -Infinity],
    ["a date from somebody else", [refunded, other], 101, rules, undefined],
    ["a date from somebody else, when the subscription ended", [refunded], 40, rules, undefined],
    ["what is paid", [invoice({}), other], 103, rules, undefined],
    ["less than what is paid", [invoice({}), other], 53, rules, undefined],
  ] as const)("at %s", (_, all, endDate, by, expected) => {
    expect(decideEndDate(all, endDate, undefined, by)).toBe(expected)
  })

  it("is shortened to what is paid, and only from a date that an invoice has led to", () => {
    fc.assert(
      fc.property(invoices, anyRules, instant, (all, by, endDate) => {
        const shortened = decideEndDate(all, endDate, undefined, by)
        const paid = paidUntil(all, by)
        const wasSet = all.some((one) =>
          [
            one.periodEnd,
            one.periodEnd + by.grace,
            paidUntil([{ ...one, returned: undefined }], by),
          ].includes(endDate),
        )
        expect(shortened).toBe(paid < endDate && wasSet ? paid : undefined)
        if (shortened !== undefined)
          expect(decideEndDate(all, shortened, undefined, by)).toBeUndefined()
      }),
    )
  })
})

describe("a dispute", () => {
  it("pauses a membership where it would shorten it otherwise", () => {
    const recorded = fc.option(
      instant.map((until): Basis => ({ invoices: ["in_1"], until })),
      { nil: undefined },
    )
    const others = anyRules.map((one) => ({ ...one, refundsShorten: true }))
    fc.assert(
      fc.property(invoices, others, instant, recorded, (all, by, endDate, basis) => {
        const meanwhile = { ...by, disputesPause: true }
        // First, the end date becomes that without a dispute.
        fc.pre(decideEndDate(all, endDate, basis, meanwhile) === undefined)
        const shortened = decideEndDate(all, endDate, basis, { ...by, disputesPause: false })
        const isPaused = disputedBehind(all, endDate, basis, meanwhile).length > 0
        expect(isPaused).toBe(shortened !== undefined && shortened < endDate)
        const shortening = { ...by, disputesPause: false }
        expect(disputedBehind(all, endDate, basis, shortening)).toEqual([])
      }),
    )
  })

  it("is named if it is of an invoice that pays for longer than the others", () => {
    const [first, second, third] = [50, 100, 200].map((periodEnd, index) =>
      invoice({ ...(index !== 1 && inDispute), id: `in_${index}`, periodEnd }),
    )
    const all = [first, second, third].filter((one) => one !== undefined)
    const recorded = { invoices: ["in_2"], until: 203 }
    expect(disputedBehind(all, 203, recorded, pausing)).toEqual([third])
    expect(disputedBehind(all, 203, { ...recorded, invoices: ["in_9"] }, pausing)).toEqual([])
    expect(disputedBehind(all, 250, undefined, pausing)).toEqual([])
  })
})

describe("a membership whose end date is recorded", () => {
  const later = invoice({ id: "in_2", periodEnd: 200 })
  const basis = (until: number, ...ids: ReadonlyArray<string>): Basis => ({
    invoices: ids,
    until,
  })
  const lost = { ...later, returned: "refunded" } as const

  it.each([
    ["is shortened by what is not paid now", [invoice({}), lost], 203, basis(203, "in_2"), 103],
    ["keeps what was added to it", [invoice({}), lost], 206, basis(203, "in_2"), 106],
    ["is shortened, whatever the grace was", [invoice({}), lost], 201, basis(201, "in_2"), 103],
    ["ends now if nothing is paid", [lost], 206, basis(203, "in_2"), -Infinity],
    ["stays ended", [lost], 7, basis(-Infinity, "in_2"), undefined],
    ["lasts again once it is paid again", [later], 7, basis(-Infinity, "in_2"), 203],
    ["is not shortened by that", [later], 300, basis(-Infinity, "in_2"), undefined],
    ["stays as long as it is paid", [later], 206, basis(203, "in_2"), undefined],
    ["stays if another customer has paid it", [lost], 203, basis(203, "in_3"), undefined],
  ])("%s", (_, all, endDate, recorded, expected) => {
    expect(decideEndDate(all, endDate, recorded, rules)).toBe(expected)
  })

  it("moves by the difference of what is paid, and then stays", () => {
    fc.assert(
      fc.property(invoices, anyRules, instant, instant, (all, by, endDate, until) => {
        const paid = paidUntil(all, by)
        const decided = decideEndDate(all, endDate, basis(until, "in_1"), by)
        expect(decided).toBe(paid === until ? undefined : endDate + paid - until)
        const after = decideEndDate(all, decided ?? endDate, basis(paid, "in_1"), by)
        expect(after).toBeUndefined()
      }),
    )
  })
})

it("tells why an invoice pays less", () => {
  const ended = { subscriptionEndedAt: 40 }
  expect(lossOf(invoice({}), rules)).toBeUndefined()
  expect(lossOf(invoice(ended), rules)).toBe("canceled")
  expect(lossOf(invoice({ ...ended, returned: "disputed" }), rules)).toBe("disputed")
  expect(lossOf(invoice({ returned: "disputed" }), keeping)).toBeUndefined()
})
