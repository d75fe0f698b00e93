/** The rule of bulk extensions, compared with making one change after the other. */

import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type Ledger,
  applyChange,
  bulkDate,
  datesOf,
  drawChanges,
} from "../../../testing/src/stores/memberships/changes.ts"
import {
  EndDate,
  type LoggedBulkExtension,
  type OrderedEndDate,
  adjust,
  adjustmentOf,
  composeAdjustments,
  composeLog,
  composeWith,
  effectiveEndDate,
} from "../../src/memberships/end-date.ts"
import { UserId } from "../../src/memberships/membership.ts"

// Some are near the end of time.
const date = fc
  .oneof(fc.nat({ max: 5 }), fc.integer({ min: 2_932_893, max: 2_932_896 }))
  .map((days) => EndDate(days * 86_400_000))

const users = fc.constantFrom(...["1", "2", "3", "4"].map(UserId))
const { bulk, extendAll, grant, undo } = drawChanges(users, date)

describe("an adjustment", () => {
  it("is what the bulk extension does to a date", () => {
    fc.assert(
      fc.property(date, bulk, (before, one) => {
        expect(adjust(before, adjustmentOf(one))).toBe(bulkDate(before, one))
      }),
    )
  })

  it("that is composed of two is the same as one after the other", () => {
    const adjustment = fc
      .array(bulk, { minLength: 1, maxLength: 3 })
      .map((changes) => changes.map(adjustmentOf).reduce(composeAdjustments))
    fc.assert(
      fc.property(date, adjustment, adjustment, (before, first, second) => {
        const both = adjust(before, composeAdjustments(first, second))
        expect(both).toBe(adjust(adjust(before, first), second))
      }),
    )
  })
})

const step = fc.oneof(
  { weight: 3, arbitrary: grant },
  { weight: 3, arbitrary: extendAll },
  { weight: 1, arbitrary: undo },
)

describe("a log", () => {
  it("gives each member the date that all changes but the undone ones give, in their order", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), bulk, (steps, further) => {
        let ledger: Ledger = []
        let log: Array<LoggedBulkExtension> = []
        const own = new Map<UserId, OrderedEndDate>()
        for (const [order, one] of steps.entries()) {
          ledger = applyChange(ledger, one)[0]
          switch (one._tag) {
            case "Grant":
              own.set(one.userId, { endDate: one.endDate, order })
              break
            case "ExtendAll":
              log.push({ order, adjustment: adjustmentOf(one.bulk), isUndone: false })
              break
            case "Undo": {
              const undone = log[one.which % Math.max(1, log.length)]
              log = log.map((entry) => (entry === undone ? { ...entry, isUndone: true } : entry))
            }
          }
        }
        const composed = composeLog(log)
        const later = composeWith(composed, further)
        for (const [userId, endDate] of datesOf(ledger)) {
          const placed = own.get(userId) ?? expect.fail("nobody was granted this")
          for (const same of [composed, composeWith(composed, undefined)]) {
            expect(effectiveEndDate(same, placed)).toBe(endDate)
          }
          expect(effectiveEndDate(later, placed)).toBe(bulkDate(endDate, further))
        }
      }),
    )
  })
})
