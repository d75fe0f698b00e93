import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  isPrefetchLow,
  maxPrefetchMillis,
  smoothedMillis,
  wantedPrefetch,
} from "../../src/webhooks/claim-budget.ts"

const sought = (concurrency: number, attemptMillis: number | undefined, most = 64) =>
  wantedPrefetch({ concurrency, attemptMillis }, most)

describe("the queue of a webhook", () => {
  it("is as long as the attempts of a tenth of a second, and as all queues may be together", () => {
    expect([sought(16, 25), sought(16, 0.2), sought(16, 50), sought(4, 100)]).toEqual([
      64, 64, 32, 4,
    ])
  })

  it("is empty if the webhook is slow, or nothing is known of it", () => {
    expect([sought(16, 1601), sought(4, 15_000), sought(16, undefined)]).toEqual([0, 0, 0])
  })

  it("never gets longer because attempts take longer, and drains in time", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 16 }),
        fc.double({ min: 0, max: 20_000, noNaN: true }),
        fc.double({ min: 0, max: 20_000, noNaN: true }),
        (concurrency, millis, more) => {
          const length = sought(concurrency, millis, 1_000_000)
          expect(sought(concurrency, millis + more, 1_000_000)).toBeLessThanOrEqual(length)
          expect((length * millis) / concurrency).toBeLessThanOrEqual(maxPrefetchMillis)
        },
      ),
    )
  })

  it("is low when it is half empty", () => {
    const isLow = (length: number) =>
      isPrefetchLow(length, { concurrency: 16, attemptMillis: 25 }, 64)
    expect([0, 32, 33, 64].map(isLow)).toEqual([true, true, false, false])
  })
})

describe("the duration of an attempt", () => {
  it("is that of the first, and then follows the latest", () => {
    expect(smoothedMillis(undefined, 20)).toBe(20)
    expect(smoothedMillis(20, 100)).toBe(40)
  })
})
