/** The rule of bulk extensions, compared with making one change after the other. */

import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Millis } from "../../src/base/time.ts"
import {
  EndDate,
  type OrderedEndDate,
  bulkModes,
  lastEndDate,
  type BulkChange,
  type LoggedBulkExtension,
  adjust,
  adjustmentOf,
  composeAdjustments,
  composeLog,
  composeWith,
  effectiveEndDate,
} from "../../src/memberships/end-date.ts"

const dayMillis = 86_400_000

// Some are near the end of time.
const date = fc
  .oneof(fc.nat({ max: 5 }), fc.integer({ min: 2_932_893, max: 2_932_896 }))
  .map((days) => EndDate(days * dayMillis))

const change: fc.Arbitrary<BulkChange> = fc.oneof(
  fc.record({ mode: fc.constantFrom(...bulkModes), endDate: date }),
  fc.record({
    mode: fc.constant("extendBy" as const),
    by: fc.integer({ min: 1, max: 3 }).map((days) => Millis(days * dayMillis)),
  }),
)

/** What a bulk extension does to one date, in words of its own. */
const applied = (before: number, one: BulkChange): number => {
  switch (one.mode) {
    case "set":
      return one.endDate
    case "neverShorten":
      return before < one.endDate ? one.endDate : before
    case "extendBy":
      return before + one.by > lastEndDate ? lastEndDate : before + one.by
  }
}

describe("an adjustment", () => {
  it("is what the bulk extension does to a date", () => {
    fc.assert(
      fc.property(date, change, (before, one) => {
        expect(adjust(before, adjustmentOf(one))).toBe(applied(before, one))
      }),
    )
  })

  it("that is composed of two is the same as one after the other", () => {
    const adjustment = fc
      .array(change, { minLength: 1, maxLength: 3 })
      .map((changes) => changes.map(adjustmentOf).reduce(composeAdjustments))
    fc.assert(
      fc.property(date, adjustment, adjustment, (before, first, second) => {
        const both = adjust(before, composeAdjustments(first, second))
        expect(both).toBe(adjust(adjust(before, first), second))
      }),
    )
  })
})

const user = fc.nat({ max: 3 })

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("Own" as const), user, date }) },
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("Bulk" as const), change }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Undo" as const), which: fc.nat() }) },
)

describe("a log", () => {
  it("gives each member the date that all changes but the undone ones give, in their order", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), change, (steps, further) => {
        let log: Array<LoggedBulkExtension & { readonly change: BulkChange }> = []
        const own = new Map<number, OrderedEndDate>()
        for (const [order, one] of steps.entries()) {
          switch (one._tag) {
            case "Own":
              own.set(one.user, { endDate: one.date, order })
              break
            case "Bulk":
              log.push({
                order,
                change: one.change,
                adjustment: adjustmentOf(one.change),
                isUndone: false,
              })
              break
            case "Undo": {
              const undone = log[one.which % Math.max(1, log.length)]
              log = log.map((entry) => (entry === undone ? { ...entry, isUndone: true } : entry))
            }
          }
        }
        const composed = composeLog(log)
        for (const placed of own.values()) {
          const expected = log
            .filter(({ isUndone, order }) => !isUndone && order > placed.order)
            .reduce<number>((before, entry) => applied(before, entry.change), placed.endDate)
          for (const same of [composed, composeWith(composed, undefined)]) {
            expect(effectiveEndDate(same, placed)).toBe(expected)
          }
          const later = composeWith(composed, further)
          expect(effectiveEndDate(later, placed)).toBe(applied(expected, further))
        }
      }),
    )
  })
})
