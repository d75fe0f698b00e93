import { describe, expect, it } from "vitest"
import { longestSilence, lossesOf } from "../../faults/checks/losses.ts"
import type { Arrival, Operation, State } from "../../faults/history.ts"
import type { Follower } from "../../faults/workload/extending.ts"

it("measures a silence from its beginning to its end, also at the borders", () => {
  expect(longestSilence([1, 2, 10, 11], 0, 12)).toBe(8)
  expect(longestSilence([9, 10], 0, 11)).toBe(9)
  expect(longestSilence([1, 2], 0, 11)).toBe(9)
  expect(longestSilence([], 0, 7)).toBe(7)
  expect(longestSilence([-1, 1, 20], 0, 10)).toBe(9)
})

describe("losses", () => {
  const projectId = "p1"
  const change: Operation = {
    action: "extend",
    process: "one",
    projectId,
    userId: "1",
    endDate: 5,
    start: 0,
    end: 0,
    status: 200,
    expected: [200],
  }
  const row = { projectId, userId: "1", action: "extended", from: 4, to: 5, requestId: "r1" }
  const state: State = {
    memberships: [],
    audit: [row],
    events: [{ id: "e1", projectId, type: "membership.extended", body: "" }],
    deliveries: [],
    webhooks: [],
  }
  const arrival: Arrival = {
    url: "",
    at: 0,
    headers: { "webhook-id": "e1" },
    body: "",
    status: 204,
    ended: 0,
  }
  const got = { eventId: "e1", at: 0, isSettled: true }
  const follower: Follower = { name: "poll", projectId, got: [got], at: [], resets: 0 }
  const none = { lost: 0, undelivered: 0, missed: 0, repeated: 0, resets: 0 }

  it("are none where everything was found, delivered and followed once", () => {
    const run = { state, operations: [change], arrivals: [arrival] }
    expect(lossesOf(run, [follower])).toEqual(none)
  })

  it("are each counted", () => {
    const repeating = { ...follower, got: [got, got, got] }
    const other = { ...follower, got: [], resets: 1 }
    const operations = [change, { ...change, endDate: 6 }, { ...change, endDate: 7, userId: "2" }]
    expect(lossesOf({ state, operations, arrivals: [] }, [repeating, other])).toEqual({
      lost: 2,
      undelivered: 1,
      missed: 1,
      repeated: 2,
      resets: 1,
    })
  })
})
