import { describe, expect, it } from "vitest"
import { type Follower, longestSilence, lossesOf } from "../../failover/outcome.ts"

it("measures a silence from its beginning to its end, also at the borders", () => {
  expect(longestSilence([1, 2, 10, 11], 0, 12)).toBe(8)
  expect(longestSilence([9, 10], 0, 11)).toBe(9)
  expect(longestSilence([1, 2], 0, 11)).toBe(9)
  expect(longestSilence([], 0, 7)).toBe(7)
  expect(longestSilence([-1, 1, 20], 0, 10)).toBe(9)
})

describe("losses", () => {
  const change = { server: 0, userId: "1", endDate: 5, at: 0 }
  const event = { id: "e1", type: "membership.extended" }
  const held = { audit: [{ userId: "1", to: 5 }], events: [event] }
  const follower: Follower = {
    name: "poll",
    seen: new Set(["e1"]),
    at: [],
    repeated: 0,
    resets: 0,
  }
  const none = { lost: 0, undelivered: 0, missed: 0, repeated: 0, resets: 0 }

  it("are none where everything was found, delivered and followed once", () => {
    expect(lossesOf(held, [change], new Set(["e1"]), [follower])).toEqual(none)
  })

  it("are each counted", () => {
    const other = { ...follower, seen: new Set<string>(), repeated: 2, resets: 1 }
    const acknowledged = [change, { ...change, endDate: 6 }, { ...change, userId: "2" }]
    expect(lossesOf(held, acknowledged, new Set(), [follower, other])).toEqual({
      lost: 2,
      undelivered: 1,
      missed: 1,
      repeated: 2,
      resets: 1,
    })
  })
})
