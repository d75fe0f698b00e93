/** A cell moves to another server: what is decided before, and one move. The system suite moves cells under load, and kills moves. */

import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { planRebalance } from "../src/ops/cells.ts"
import { decideMove } from "../src/ops/move-cell.ts"
import { type SourceState, type TargetState, findProblems } from "../src/ops/move-checks.ts"
import { twoServers } from "./moving-cells.ts"

describe("a move", () => {
  const { leftovers, move, open, places, projectIn } = twoServers()

  it("loses nothing", async () => {
    const { memberships } = await open()
    const projectId = projectIn(0)
    const member = { projectId, userId: "1001" }
    await memberships.createProject(projectId)
    const granted = await memberships.grant({ ...member, endDate: "2099-01-01T00:00:00.000Z" })
    expect(await move(0, "second")).toBe(true)
    expect((await places())[0]).toEqual({ server: "second", moving_to: null, moved_from: null })
    expect(await memberships.find(member)).toEqual(granted)
    expect(await leftovers()).toEqual([])
  })
})

describe("before a move", () => {
  const source: SourceState = {
    database: "1 5",
    wal_level: "logical",
    may_replicate: true,
    may_publish: true,
    owns_schema: true,
    free_slots: 2,
    free_senders: 2,
  }
  const target: TargetState = {
    database: "2 5",
    may_subscribe: true,
    needs_password: false,
    free_workers: 2,
  }
  const problems = (
    from: Partial<SourceState>,
    to: Partial<TargetState> = {},
    url = "postgres://a@b/c",
  ) =>
    findProblems(
      { source: "first", target: "second" },
      { ...source, ...from },
      { ...target, ...to },
      url,
    )

  it("nothing is missing where all is well", () => {
    expect(problems({})).toEqual([])
    expect(problems({}, { needs_password: true }, "postgres://a:b@c/d")).toEqual([])
  })

  it.each<[string, Partial<SourceState>, Partial<TargetState>?]>([
    ["same database", { database: "2 5" }],
    ["wal_level = logical", { wal_level: "replica" }],
    ["REPLICATION", { may_replicate: false }],
    ["GRANT CREATE", { may_publish: false }],
    ["own the tables", { owns_schema: false }],
    ["max_replication_slots", { free_slots: 1 }],
    ["pg_create_subscription", {}, { may_subscribe: false }],
    ["password", {}, { needs_password: true }],
    ["max_logical_replication_workers", {}, { free_workers: 1 }],
  ])("what is missing is told: %s", (word, from, to) => {
    expect(problems(from, to)).toEqual([expect.stringContaining(word)])
  })

  it.each([
    [true, false, ["begin", "undo", "refuse"]],
    [false, true, ["refuse", "complete", "complete"]],
    [false, false, ["refuse", "refuse", "refuse"]],
    [true, true, ["refuse", "refuse", "refuse"]],
  ])(
    "what to do is decided by what there is at both ends, at the source: %s, decided: %s",
    (isAtSource, isDecided, next) => {
      const decided = (["absent", "closed", "open"] as const).map((there) =>
        decideMove({ isAtSource, isDecided, target: there }),
      )
      expect(decided).toEqual(next)
    },
  )
})

describe("the plan of a rebalance", () => {
  const all = ["a", "b", "c", "d"]
  const cells = fc
    .array(
      fc.record({
        server: fc.constantFrom(...all, "gone"),
        moving_to: fc.option(fc.constantFrom(...all)),
        bytes: fc.option(fc.nat(100)),
      }),
      { minLength: 1, maxLength: 20 },
    )
    .map((made) => made.map((cell, number) => ({ ...cell, number })))

  it("leaves each server with as many cells as any other, or one more, by as few moves as that takes", () => {
    fc.assert(
      fc.property(cells, fc.subarray(all, { minLength: 1 }), (made, on) => {
        const given = made.map(({ moving_to: to, ...cell }) => ({
          ...cell,
          moving_to: to === null || on.includes(to) ? to : null,
        }))
        const plan = planRebalance(given, on)
        const begun = given.flatMap(({ moving_to: to, number, server: from }) =>
          to === null ? [] : [{ number, from, to }],
        )
        expect(plan.slice(0, begun.length)).toEqual(begun)
        const placed = new Map(
          given.map(({ moving_to, number, server }) => [number, moving_to ?? server]),
        )
        const counts = () =>
          on.map((name) => [...placed.values()].filter((one) => one === name).length)
        const before = counts()
        for (const { from, number, to } of plan.slice(begun.length)) {
          expect(placed.get(number)).toBe(from)
          placed.set(number, to)
        }
        const after = counts()
        expect(after.reduce((sum, count) => sum + count, 0)).toBe(given.length)
        expect(Math.max(...after) - Math.min(...after)).toBeLessThanOrEqual(1)
        // What is missing where it is missing: the larger shares are where the most cells are.
        const share = Math.floor(given.length / on.length)
        const fewest = before
          .toSorted((a, b) => b - a)
          .reduce((sum, count, index) => {
            const isLarger = index < given.length % on.length
            return sum + Math.max(0, share + (isLarger ? 1 : 0) - count)
          }, 0)
        expect(plan.length - begun.length).toBe(fewest)
      }),
    )
  })
})
