import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import { hostOrigin } from "../../src/base/change-context.ts"
import { ApiKeyId } from "../../src/base/values.ts"
import {
  decideAuditPage,
  isSelective,
  maxClockSkewMillis,
  maxSearchedRows,
  searchingHistory,
} from "../../src/memberships/audit-search.ts"
import { AuditCursor, type AuditRow } from "../../src/memberships/audit-trail.ts"

/** Returns a row with a place in the trail, at a time. */
const rowAt = (place: number, at: number): AuditRow => ({
  cursor: AuditCursor(`1.${place}`),
  projectId: undefined,
  userId: undefined,
  action: "granted",
  subject: undefined,
  origin: hostOrigin,
  keyName: undefined,
  reason: undefined,
  from: undefined,
  to: undefined,
  by: undefined,
  changes: [],
  at,
})

const [third, second, first] = [rowAt(3, 300), rowAt(2, 200), rowAt(1, 100)]
const trail = [third, second, first]

describe("a page from a search", () => {
  it("goes on after its last row if more were found than fit", () => {
    expect(decideAuditPage(trail, 10, 2, {})).toEqual({ rows: [third, second], next: "1.2" })
  })

  it("is the last one if fewer rows were read than asked for", () => {
    expect(decideAuditPage(trail, 4, 3, {})).toEqual({ rows: trail, next: undefined })
    expect(decideAuditPage([], 4, 3, {})).toEqual({ rows: [], next: undefined })
  })

  it("goes on after the last row that was read, even if none was found", () => {
    const none = { keyId: ApiKeyId("nobody") }
    expect(decideAuditPage(trail, 3, 3, none)).toEqual({ rows: [], next: "1.1" })
    expect(decideAuditPage(trail, 3, 3, { until: 300 })).toEqual({
      rows: [second, first],
      next: "1.1",
    })
  })

  it.each([
    [0, "1.1"],
    [1, undefined],
  ])("is the last one if all rows are %d ms more than the skew before `since`", (more, next) => {
    const filter = { since: third.at + maxClockSkewMillis + more }
    expect(decideAuditPage(trail, 3, 3, filter)).toEqual({ rows: [], next })
    // One row is late enough.
    const wrongClock = [rowAt(4, 0), ...trail]
    expect(decideAuditPage(wrongClock, 4, 3, filter).next).toBe(next)
  })
})

it.each([
  [{}, false],
  [{ announcements: true, keyId: undefined }, false],
  [{ announcements: false }, true],
  [{ action: "granted" }, true],
  [{ keyId: ApiKeyId("a") }, true],
  [{ requestId: "r" }, true],
  [{ since: 0 }, true],
  [{ until: 0 }, true],
] as const)("the filter %j selects rows: %j", (filter, selects) => {
  expect(isSelective(filter)).toBe(selects)
})

it("reads one row more than fits without a filter, and a bounded number with one", async () => {
  const asked: Array<number> = []
  const search = searchingHistory((_projectId, { limit }) => {
    asked.push(limit)
    return Effect.succeed([])
  })
  const page = { userId: undefined, limit: 10 }
  await Effect.runPromise(search(undefined, page))
  await Effect.runPromise(search(undefined, { ...page, until: 5 }))
  expect(asked).toEqual([11, maxSearchedRows])
})
