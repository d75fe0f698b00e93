/** What is decided before cells are moved: whether it is possible, how to go on, and where they belong. */

import * as FastCheck from "fast-check"
import { describe, expect, it } from "vitest"
import { planRebalance } from "../src/ops/cells.ts"
import { decideMove } from "../src/ops/move-cell.ts"
import { type SourceState, type TargetState, findProblems } from "../src/ops/move-checks.ts"

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

  it("tells all that is missing", () => {
    expect(problems({})).toEqual([])
    expect(problems({}, { needs_password: true }, "postgres://a:b@c/d")).toEqual([])
    for (const [found, word] of [
      [problems({ database: "2 5" }), "same database"],
      [problems({ wal_level: "replica" }), "wal_level = logical"],
      [problems({ may_replicate: false }), "REPLICATION"],
      [problems({ may_publish: false }), "GRANT CREATE"],
      [problems({ owns_schema: false }), "own the tables"],
      [problems({ free_slots: 1 }), "max_replication_slots"],
      [problems({}, { may_subscribe: false }), "pg_create_subscription"],
      [problems({}, { needs_password: true }), "password"],
      [problems({}, { free_workers: 1 }), "max_logical_replication_workers"],
    ] as const)
      expect(found).toEqual([expect.stringContaining(word)])
  })

  it("decides how to go on by what there is at both ends", () => {
    const next = (isAtSource: boolean, isDecided: boolean) =>
      (["absent", "closed", "open"] as const).map((there) =>
        decideMove({ isAtSource, isDecided, target: there }),
      )
    expect(next(true, false)).toEqual(["begin", "undo", "refuse"])
    expect(next(false, true)).toEqual(["refuse", "complete", "complete"])
    expect(next(false, false)).toEqual(["refuse", "refuse", "refuse"])
    expect(next(true, true)).toEqual(["refuse", "refuse", "refuse"])
  })
})

describe("the plan of a rebalance", () => {
  const all = ["a", "b", "c", "d"]
  const cells = FastCheck.array(
    FastCheck.record({
      server: FastCheck.constantFrom(...all, "gone"),
      moving_to: FastCheck.option(FastCheck.constantFrom(...all)),
      bytes: FastCheck.option(FastCheck.nat(100)),
    }),
    { minLength: 1, maxLength: 20 },
  ).map((made) => made.map((cell, number) => ({ ...cell, number })))
  const some = FastCheck.subarray(all, { minLength: 1 })

  it("leaves each server with as many cells as any other, or one more, by as few moves as that takes", () => {
    FastCheck.assert(
      FastCheck.property(cells, some, (made, on) => {
        const given = made.map((cell) =>
          cell.moving_to === null || on.includes(cell.moving_to)
            ? cell
            : { ...cell, moving_to: null },
        )
        const plan = planRebalance(given, on)
        const begun = given.flatMap(({ moving_to: to, number, server: from }) =>
          to === null ? [] : [{ number, from, to }],
        )
        expect(plan.slice(0, begun.length)).toEqual(begun)
        const placed = new Map(
          given.map(({ moving_to, number, server }) => [number, moving_to ?? server]),
        )
        const before = on.map((name) => [...placed.values()].filter((one) => one === name).length)
        for (const { from, number, to } of plan.slice(begun.length)) {
          expect(placed.get(number)).toBe(from)
          placed.set(number, to)
        }
        const after = on.map((name) => [...placed.values()].filter((one) => one === name).length)
        expect(after.reduce((sum, count) => sum + count, 0)).toBe(given.length)
        expect(Math.max(...after) - Math.min(...after)).toBeLessThanOrEqual(1)
        // What is missing where it is missing: the larger shares are where the most cells are.
        const shares = before
          .toSorted((a, b) => b - a)
          .map(
            (count, index) =>
              [
                count,
                Math.floor(given.length / on.length) + (index < given.length % on.length ? 1 : 0),
              ] as const,
          )
        const fewest = shares.reduce((sum, [count, share]) => sum + Math.max(0, share - count), 0)
        expect(plan.length - begun.length).toBe(fewest)
      }),
    )
  })
})
