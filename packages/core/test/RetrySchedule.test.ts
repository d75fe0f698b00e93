import * as RetrySchedule from "@tenure/core/RetrySchedule"
import fc from "fast-check"
import { describe, expect, it } from "vitest"

const { delay, standard } = RetrySchedule
const hour = 3_600_000

const random = fc.double({ min: 0, max: 1, noNaN: true })
const schedules = fc.oneof(
  fc.constant(standard),
  fc.array(fc.integer({ min: 0, max: 48 * hour }), { maxLength: 12 }),
)
const attempts = fc.integer({ min: 1, max: 15 })
const askedFor = fc.integer({ min: 0, max: 1000 * hour })

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
  it("is the scheduled one, give or take a fifth", () => {
    fc.assert(
      fc.property(schedules, attempts, random, (schedule, attempt, at) => {
        const scheduled = schedule[attempt - 1]
        const delayed = delay(schedule, attempt, at)
        if (scheduled === undefined) expect(delayed).toBeUndefined()
        else {
          expect(delayed).toBeGreaterThanOrEqual(Math.floor(scheduled * 0.8))
          expect(delayed).toBeLessThanOrEqual(Math.ceil(scheduled * 1.2))
        }
      }),
    )
  })

  it("spreads to both ends", () => {
    expect([0, 0.5, 1].map((at) => delay([1000], 1, at))).toEqual([800, 1000, 1200])
  })

  it("is never shortened by what the receiver asks for", () => {
    fc.assert(
      fc.property(schedules, attempts, random, askedFor, (schedule, attempt, at, asked) => {
        const plain = delay(schedule, attempt, at)
        const delayed = delay(schedule, attempt, at, asked)
        if (plain === undefined) expect(delayed).toBeUndefined()
        else expect(delayed).toBeGreaterThanOrEqual(plain)
      }),
    )
  })

  it("is lengthened by it, as far as the next two steps allow", () => {
    expect(delay(standard, 1, 0.5, 60_000)).toBe(60_000)
    expect(delay(standard, 1, 0.5, 100 * hour)).toBe(1_800_000)
    expect(delay(standard, 9, 0.5, 100 * hour)).toBe(24 * hour)
  })
})
