import fc from "fast-check"
import { describe, expect, it } from "vitest"
import * as Setting from "../../src/base/setting.ts"
import { dispatcherOptions } from "../../src/webhooks/dispatcher.ts"
import { maxRetryAfter, retryDelay } from "../../src/webhooks/verdict.ts"

const { retrySchedule: standard } = Setting.parse(dispatcherOptions)
const hour = 3_600_000

const random = fc.double({ min: 0, max: 1, noNaN: true })
const schedules = fc.oneof(
  fc.constant(standard),
  fc.array(fc.integer({ min: 0, max: 48 * hour }), { maxLength: 12 }),
)
const attempts = fc.integer({ min: 1, max: 15 })

describe("the standard schedule", () => {
  it("has ten attempts over more than three days", () => {
    const delays = Array.from({ length: 10 }, (_, index) => retryDelay(standard, index + 1, 0.5))
    expect(delays).toEqual([
      5000,
      300_000,
      1_800_000,
      2 * hour,
      5 * hour,
      10 * hour,
      14 * hour,
      20 * hour,
      24 * hour,
      undefined,
    ])
  })
})

describe("a delay", () => {
  it("differs from the scheduled delay by at most 20 %", () => {
    fc.assert(
      fc.property(schedules, attempts, random, (schedule, attemptNumber, at) => {
        const scheduled = schedule[attemptNumber - 1]
        const delayed = retryDelay(schedule, attemptNumber, at)
        if (scheduled === undefined) expect(delayed).toBeUndefined()
        else {
          expect(delayed).toBeGreaterThanOrEqual(Math.floor(scheduled * 0.8))
          expect(delayed).toBeLessThanOrEqual(Math.ceil(scheduled * 1.2))
        }
      }),
    )
  })

  it("is spread to both sides", () => {
    expect([0, 0.5, 1].map((at) => retryDelay([1000], 1, at))).toEqual([800, 1000, 1200])
  })
})

describe("the longest delay that a receiver can ask for", () => {
  it("is the longer of the next two delays, and 0 after the last", () => {
    expect(maxRetryAfter(standard, 1)).toBe(1_800_000)
    expect(maxRetryAfter([5, 7, 6, 9], 1)).toBe(7)
    expect(maxRetryAfter(standard, 9)).toBe(0)
    expect(maxRetryAfter([], 1)).toBe(0)
  })
})
