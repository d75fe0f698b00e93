import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  clampConcurrency,
  concurrencyAfterFailure,
  concurrencyAfterSuccess,
  initialConcurrency,
} from "../../src/webhooks/claim-budget.ts"

/** The concurrency after attempts, of which each has succeeded or failed. */
const after = (attempts: ReadonlyArray<boolean>): number =>
  attempts.reduce(
    (concurrency, succeeded) =>
      succeeded ? concurrencyAfterSuccess(concurrency) : concurrencyAfterFailure(concurrency),
    initialConcurrency,
  )

const successes = (count: number): ReadonlyArray<boolean> =>
  Array.from({ length: count }, () => true)

const histories = fc.array(fc.boolean(), { maxLength: 200 })

describe("the concurrency of a webhook", () => {
  it("grows by one with each success, from 4 up to 16", () => {
    const counts = [0, 1, 2, 11, 12, 13, 1000]
    expect(counts.map((count) => after(successes(count)))).toEqual([4, 5, 6, 15, 16, 16, 16])
  })

  it("is halved by each failure, down to 4", () => {
    const failures = [[false], [false, false], [false, false, false]]
    expect(failures.map((some) => after([...successes(12), ...some]))).toEqual([8, 4, 4])
    expect(after([...successes(5), false])).toBe(4)
  })

  it("stays within its bounds, whatever happens, and twelve successes restore it", () => {
    fc.assert(
      fc.property(histories, (history) => {
        expect(after(history)).toBeGreaterThanOrEqual(4)
        expect(after(history)).toBeLessThanOrEqual(16)
        expect(after([...history, ...successes(12)])).toBe(16)
      }),
    )
  })

  it("is never higher after a failure, nor lower after a success", () => {
    fc.assert(
      fc.property(histories, (history) => {
        const before = after(history)
        expect(after([...history, false])).toBeLessThanOrEqual(before)
        expect(after([...history, true])).toBeGreaterThanOrEqual(before)
      }),
    )
  })

  it("can be bounded more narrowly, or widely", () => {
    const bounded = (least: number, most: number) =>
      [4, 10, 16].map((concurrency) => clampConcurrency(concurrency, { least, most }))
    expect([bounded(4, 16), bounded(4, 8), bounded(2, 2), bounded(12, 100)]).toEqual([
      [4, 10, 16],
      [4, 8, 8],
      [2, 2, 2],
      [12, 12, 16],
    ])
  })
})
