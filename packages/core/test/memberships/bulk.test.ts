import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  EndDate,
  type OrderedEndDate,
  addBulkExtension,
  bulkModes,
  effectiveEndDate,
  noBulkExtensions,
} from "../../src/memberships/end-date.ts"

const date = fc.nat({ max: 5 }).map((days) => EndDate(days * 86_400_000))
const user = fc.nat({ max: 3 })

const step = fc.oneof(
  fc.record({ _tag: fc.constant("Own" as const), user, date }),
  fc.record({ _tag: fc.constant("Bulk" as const), mode: fc.constantFrom(...bulkModes), date }),
)

describe("dateOf", () => {
  it("returns the date that each member has after any sequence of changes", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const expected = new Map<number, EndDate>()
        const own = new Map<number, OrderedEndDate>()
        let bulk = noBulkExtensions
        for (const [order, change] of steps.entries()) {
          if (change._tag === "Own") {
            expected.set(change.user, change.date)
            own.set(change.user, { endDate: change.date, order })
            continue
          }
          bulk = addBulkExtension(bulk, change.mode, { endDate: change.date, order })
          for (const [member, endDate] of expected) {
            if (change.mode === "set" || endDate < change.date) expected.set(member, change.date)
          }
        }
        for (const [member, placed] of own) {
          expect(effectiveEndDate(bulk, placed)).toBe(expected.get(member))
        }
      }),
    )
  })
})

describe("add", () => {
  it("keeps one floor, however often the same date or a later one is set", () => {
    let bulk = noBulkExtensions
    for (let order = 0; order < 1000; order++) {
      bulk = addBulkExtension(bulk, "neverShorten", {
        endDate: EndDate(Math.floor(order / 2)),
        order,
      })
    }
    expect(bulk.floors).toHaveLength(1)
  })
})
