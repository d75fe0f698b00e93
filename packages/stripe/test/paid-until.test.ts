/** The rules by which paid invoices become end dates. */

import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type PaidInvoice,
  type PaymentRules,
  decideShortening,
  paidUntil,
} from "../src/paid-until.ts"

const grace = 3
const rules: PaymentRules = { grace, cancellation: "periodEnd", refundsShorten: true }
const atOnce: PaymentRules = { ...rules, cancellation: "now" }

const invoice = (given: Partial<PaidInvoice>): PaidInvoice => ({
  id: "in_1",
  periodEnd: 100,
  isRefunded: false,
  subscriptionEndedAt: undefined,
  ...given,
})

// Few instants, so that dates often meet.
const instant = fc.integer({ min: 1, max: 30 })
const invoices = fc.array(
  fc.record({
    id: fc.constant("in_1"),
    periodEnd: instant,
    isRefunded: fc.boolean(),
    subscriptionEndedAt: fc.option(instant, { nil: undefined }),
  }),
  { minLength: 1, maxLength: 5 },
)
const anyRules = fc.record({
  grace: fc.nat({ max: 5 }),
  cancellation: fc.constantFrom("periodEnd", "now"),
  refundsShorten: fc.boolean(),
})

describe("what an invoice pays for", () => {
  it.each([
    ["its period and the grace, while the subscription lasts", {}, rules, 103],
    ["its period alone, once the subscription has ended", { subscriptionEndedAt: 40 }, rules, 100],
    ["the time until the subscription ended at once", { subscriptionEndedAt: 40 }, atOnce, 40],
    ["no more than its period", { subscriptionEndedAt: 140 }, atOnce, 100],
    ["nothing, once it is refunded", { isRefunded: true }, rules, -Infinity],
    [
      "its period, if refunds shorten nothing",
      { isRefunded: true },
      { ...rules, refundsShorten: false },
      103,
    ],
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
  const refunded = invoice({ isRefunded: true })
  const ended = invoice({ subscriptionEndedAt: 40 })

  it.each([
    ["the refunded period and the grace", [refunded, other], 103, rules, 53],
    ["the refunded period", [refunded, other], 100, rules, 53],
    [
      "the end of the refunded, ended subscription",
      [{ ...ended, isRefunded: true }, other],
      40,
      atOnce,
      undefined,
    ],
    ["the refunded period, and nothing else is paid", [refunded], 100, rules, -Infinity],
    ["the grace of a subscription that has ended", [ended], 103, rules, 100],
    ["the period of a subscription that has ended at once", [ended], 100, atOnce, 40],
    ["the end of a refunded subscription", [{ ...ended, isRefunded: true }], 40, atOnce, -Infinity],
    ["a date from somebody else", [refunded, other], 101, rules, undefined],
    ["a date from somebody else, when the subscription ended", [refunded], 40, rules, undefined],
    ["what is paid", [invoice({}), other], 103, rules, undefined],
    ["less than what is paid", [invoice({}), other], 53, rules, undefined],
  ] as const)("at %s", (_, all, endDate, by, expected) => {
    expect(decideShortening(all, endDate, by)).toBe(expected)
  })

  it("is shortened to what is paid, and only from a date that an invoice has led to", () => {
    fc.assert(
      fc.property(invoices, anyRules, instant, (all, by, endDate) => {
        const shortened = decideShortening(all, endDate, by)
        const paid = paidUntil(all, by)
        const wasSet = all.some((one) =>
          [
            one.periodEnd,
            one.periodEnd + by.grace,
            paidUntil([{ ...one, isRefunded: false }], by),
          ].includes(endDate),
        )
        expect(shortened).toBe(paid < endDate && wasSet ? paid : undefined)
        if (shortened !== undefined) expect(decideShortening(all, shortened, by)).toBeUndefined()
      }),
    )
  })
})
