import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Micros } from "../../src/base/time.ts"
import { type TheoreticalArrivalTime, takeToken } from "../../src/limits/buckets.ts"
import { webhookRatePolicy } from "../../src/webhooks/claim-budget.ts"

const rates = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 10_000 }))

describe("the rate of a webhook", () => {
  it("allows a burst of a quarter of a second, and no more than the rate from then on", () => {
    const pauses = fc.array(fc.nat({ max: 2_000_000 }), { maxLength: 100 })
    fc.assert(
      fc.property(rates, pauses, (rate, all) => {
        const policy = webhookRatePolicy(rate)
        let tat: TheoreticalArrivalTime
        let now = 0
        let taken = 0
        for (const pause of [0, ...all]) {
          now += pause
          for (;;) {
            const take = takeToken(tat, Micros(now), policy)
            tat = take.tat
            if (!take.admitted) break
            taken++
          }
          expect(taken).toBeLessThanOrEqual(Math.max(1, rate / 4) + (rate * now) / 1_000_000)
        }
      }),
    )
  })

  it("allows at once what it allows in a quarter of a second, and one at least", () => {
    const burst = (rate: number): number => {
      let tat: TheoreticalArrivalTime
      for (let taken = 0; ; taken++) {
        const take = takeToken(tat, Micros(0), webhookRatePolicy(rate))
        if (!take.admitted) return taken
        tat = take.tat
      }
    }
    expect([1, 3, 4, 7, 8, 100, 10_000].map(burst)).toEqual([1, 1, 1, 1, 2, 25, 2500])
  })

  it("is reached by who takes each token when it comes back, within a hundredth", () => {
    for (const rate of [1, 3, 7, 8, 40, 999, 10_000]) {
      const { increment } = webhookRatePolicy(rate)
      expect(increment * rate).toBeGreaterThanOrEqual(1_000_000)
      expect(increment * rate).toBeLessThan(1_010_000)
    }
  })
})
