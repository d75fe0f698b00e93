/** A webhook's activity, compared with counting and sorting the attempts themselves. */

import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { EventId } from "../../src/events/event.ts"
import {
  type ActivitySpan,
  answerTimeBucket,
  answerTimeBuckets,
  answerTimePercentile,
  attemptData,
  cellStart,
  compareTroubles,
  fillCells,
  lastDay,
  lastHour,
  spanStart,
  sumAnswerTimes,
} from "../../src/webhooks/delivery-activity.ts"
import { WebhookId } from "../../src/webhooks/webhook.ts"

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const now = Date.UTC(2026, 10, 18, 11, 6, 40)

const spans = fc.constantFrom<ActivitySpan>(lastHour, lastDay)

/** Attempts from two days before now on, some in the same minute. */
const attempts = fc.array(
  fc.record({ at: fc.integer({ min: now - 2 * day, max: now + hour }), succeeded: fc.boolean() }),
)

describe("a span", () => {
  it("is the last hour by the minute, or the last day by the quarter of an hour", () => {
    const shown = ({ cellMillis, cells }: ActivitySpan) => [cellMillis, cellMillis * cells]
    expect([lastHour, lastDay].map(shown)).toEqual([
      [minute, hour],
      [15 * minute, day],
    ])
    expect(new Date(cellStart(lastDay, now)).toISOString()).toBe("2026-11-18T11:00:00.000Z")
    expect(new Date(spanStart(lastDay, now)).toISOString()).toBe("2026-11-17T11:15:00.000Z")
    expect(new Date(spanStart(lastHour, now)).toISOString()).toBe("2026-11-18T10:07:00.000Z")
  })

  it("counts each attempt once, in the cell in which it was, and none that was outside", () => {
    fc.assert(
      fc.property(spans, attempts, (span, all) => {
        const known = all.map(({ at, succeeded }) => ({
          at: cellStart(span, at),
          delivered: succeeded ? 1 : 0,
          failed: succeeded ? 0 : 1,
        }))
        const cells = fillCells(span, now, known)
        expect(cells).toHaveLength(span.cells)
        expect(cells.at(-1)?.at).toBeLessThanOrEqual(now)
        for (const [index, cell] of cells.entries()) {
          const end = cells[index + 1]?.at ?? cell.at + span.cellMillis
          expect(end - cell.at).toBe(span.cellMillis)
          const within = all.filter(({ at }) => at >= cell.at && at < end)
          const delivered = within.filter(({ succeeded }) => succeeded).length
          expect(cell).toEqual({ at: cell.at, delivered, failed: within.length - delivered })
        }
        expect((cells.at(-1)?.at ?? 0) + span.cellMillis).toBeGreaterThan(now)
      }),
    )
  })
})

const durations = fc.oneof(
  fc.double({ min: 0, max: 40_000, noNaN: true }),
  fc.double({ min: 0, max: 50, noNaN: true }),
)
const someDurations = fc.array(durations, { minLength: 1, maxLength: 50 })

const histogramOf = (all: ReadonlyArray<number>): ReadonlyArray<number> => {
  const counts = Array.from({ length: answerTimeBuckets }, () => 0)
  return counts.map((_, index) => all.filter((one) => answerTimeBucket(one) === index).length)
}

describe("a histogram of answer times", () => {
  it("counts from 4 ms to 16,384 ms, and whatever is shorter or longer", () => {
    expect(answerTimeBuckets).toBe(26)
    const bounds = [0, 4, 4.1, 5.6, 5.7, 8, 8.1, 16_383, 16_384, 16_385, Infinity]
    expect(bounds.map(answerTimeBucket)).toEqual([0, 0, 1, 1, 2, 2, 3, 24, 24, 25, 25])
  })

  it("is the sum of those of its parts", () => {
    fc.assert(
      fc.property(fc.array(someDurations, { maxLength: 5 }), (parts) => {
        expect(sumAnswerTimes(parts.map(histogramOf))).toEqual(histogramOf(parts.flat()))
      }),
    )
  })

  it("tells each percentile within 19 %, or that it is at most 4 ms or at least 16,384 ms", () => {
    const shares = fc.oneof(
      fc.constantFrom(0, 0.5, 0.95, 0.99, 1),
      fc.double({ min: 0, max: 1, noNaN: true }),
    )
    fc.assert(
      fc.property(someDurations, shares, (all, part) => {
        const sorted = all.toSorted((one, other) => one - other)
        const exact = sorted[Math.max(1, Math.ceil(part * all.length)) - 1] ?? Number.NaN
        const told = answerTimePercentile(histogramOf(all), part)
        if (exact <= 4) expect(told).toBe(4)
        else if (exact > 16_384) expect(told).toBe(16_384)
        else {
          expect(told).toBeGreaterThanOrEqual(Math.floor(exact / 1.19))
          expect(told).toBeLessThanOrEqual(Math.ceil(exact * 1.19))
        }
        expect(Number.isInteger(told)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it("has no percentile without attempts", () => {
    expect(answerTimePercentile(sumAnswerTimes([]), 0.5)).toBeUndefined()
  })
})

describe("an attempt in a response", () => {
  const attempt = {
    at: now,
    durationMillis: 12.6,
    eventId: EventId("00000000-0000-7000-8000-000000000001"),
  }
  const common = { at: "2026-11-18T11:06:40.000Z", event_id: attempt.eventId, duration_ms: 13 }

  it("has a status or an error, and nothing that the receiver wrote", () => {
    for (const [result, shown] of [
      [
        { _tag: "Answered", status: 500, body: "a secret" },
        { status: 500, error: null },
      ],
      [
        { _tag: "Failed", reason: "ECONNREFUSED" },
        { status: null, error: "ECONNREFUSED" },
      ],
    ] as const) {
      expect(attemptData({ ...attempt, result })).toEqual({ ...common, ...shown })
    }
  })
})

describe("the order of webhooks in trouble", () => {
  const webhook = (trouble: "disabled" | "failing", since: number, id: number) => ({
    trouble,
    since,
    webhookId: WebhookId(`00000000-0000-4000-8000-00000000000${id}`),
  })

  it("begins with those that can be saved, the longest failing first, whatever came in first", () => {
    const urgent = [
      webhook("failing", 1, 7),
      webhook("failing", 2, 3),
      webhook("failing", 2, 5),
      webhook("failing", 3, 1),
      webhook("disabled", 9, 8),
      webhook("disabled", 4, 2),
      webhook("disabled", 4, 6),
      webhook("disabled", 1, 4),
    ]
    const orders = fc.shuffledSubarray(urgent, { minLength: urgent.length })
    fc.assert(
      fc.property(orders, (given) => {
        expect(given.toSorted(compareTroubles)).toEqual(urgent)
      }),
    )
  })
})
