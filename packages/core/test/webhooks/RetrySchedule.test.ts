import { options } from "@tenure/core/Dispatcher"
import { delay, longestAsked } from "@tenure/core/RetrySchedule"
import * as Setting from "@tenure/core/Setting"
import fc from "fast-check"
import { describe, expect, it } from "vitest"

const { retrySchedule: standard } = Setting.readSync(options)
const hour = 3_600_000

const random = fc.double({ min: 0, max: 1, noNaN: true })
const schedules = fc.oneof(
  fc.constant(standard),
  fc.array(fc.integer({ min: 0, max: 48 * hour }), { maxLength: 12 }),
)
const attempts = fc.integer({ min: 1, max: 15 })

describe("the standard schedule", () => {
  it("has ten attempts over more than three days", () => {
    const delays = Array.from({ length: 10 }, (_, index) => delay(standard, index + 1, 0.5))
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
        const delayed = delay(schedule, attemptNumber, at)
        if (scheduled === undefined) expect(delayed).toBeUndefined()
        else {
          expect(delayed).toBeGreaterThanOrEqual(Math.floor(scheduled * 0.8))
          expect(delayed).toBeLessThanOrEqual(Math.ceil(scheduled * 1.2))
        }
      }),
    )
  })

  it("is spread to both sides", () => {
    expect([0, 0.5, 1].map((at) => delay([1000], 1, at))).toEqual([800, 1000, 1200])
  })
})

describe("the longest delay that a receiver can ask for", () => {
  it("is the longer of the next two delays, and 0 after the last", () => {
    expect(longestAsked(standard, 1)).toBe(1_800_000)
    expect(longestAsked([5, 7, 6, 9], 1)).toBe(7)
    expect(longestAsked(standard, 9)).toBe(0)
    expect(longestAsked([], 1)).toBe(0)
  })
})
