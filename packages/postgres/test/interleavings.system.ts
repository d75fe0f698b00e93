/**
 * Interleavings by design: while an operation stands at a place in one of its statements, another one runs. Together
 * they have the effect that they have one after the other, in some order. `npm run interleavings` runs them all, and
 * this test a sample.
 */

import fc from "fast-check"
import { afterEach, describe, expect, inject, it } from "vitest"
import { explain, judge, stopsOf, warmUp } from "./interleavings/judging.ts"
import { operations } from "./interleavings/operations.ts"
import { type Scene, type World, makeWorld, scenes } from "./interleavings/world.ts"

const worlds: Array<World> = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.end()
})

const worldOf = async (scene: Scene, sabotage?: string): Promise<World> => {
  const world = await makeWorld(inject("databaseUrl"), scene, 501, sabotage)
  worlds.push(world)
  await warmUp(world)
  return world
}

const named = (name: string) =>
  operations.find((one) => one.name === name) ?? expect.fail(`no operation ${name}`)

type Example = readonly [first: string, second: string, gates: ReadonlyArray<number>]

/** What was wrong once, and at which gates. */
const examples: Readonly<Record<Scene, ReadonlyArray<Example>>> = {
  "own date": [
    ["extend if expected", "extend all a little, never shorten", [0, 2]],
    ["extend once", "extend once in another project", [0, 5]],
    ["register webhook", "delete project", [0, 1]],
    ["import", "transaction of the host", [1, 3, 5]],
  ],
  "date of a bulk extension": [["announce ends", "extend all, never shorten", [0, 2, 4]]],
  "last number of a round": [["extend", "extend all", [0, 2]]],
  pause: [["resume", "extend all by a duration", [0, 1, 2]]],
  "pause that is over": [["announce ends", "extend all by a duration", [0, 1, 2, 3]]],
}

describe("an operation that runs within another", () => {
  it.each(scenes)("has the effect of one before or after it: %s", async (scene) => {
    const world = await worldOf(scene)
    const operation = fc.constantFrom(...operations)
    const gates = fc.array(fc.nat(), { minLength: 4, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(operation, operation, gates, async (first, second, numbers) => {
        const stops = await stopsOf(world, first)
        const chosen = numbers.flatMap((n) => stops[n % stops.length] ?? [])
        const { violations } = await judge(world, { first, second }, chosen)
        expect(violations.map(explain)).toEqual([])
      }),
      {
        // The command `npm run interleavings` tries all.
        numRuns: examples[scene].length + 2,
        endOnFailure: true,
        examples: examples[scene].map(([first, second, numbers]) => [
          named(first),
          named(second),
          [...numbers],
        ]),
      },
    )
  })
})

// Faults in the tables, and operations that they make wrong.
const sabotage = `
  -- An end date is read by the snapshot of the statement, which is older than the lock.
  ALTER FUNCTION date_after_bulk_extensions STABLE;
  -- An idempotency key is stored twice.
  ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_pkey
`

describe("gates", () => {
  it("find what is wrong between two operations", async () => {
    const world = await worldOf("date of a bulk extension", sabotage)
    for (const [first, second] of [
      ["announce ends", "extend all, never shorten"],
      ["extend if expected", "extend all a little, never shorten"],
      ["grant to a member", "extend all, never shorten"],
      ["extend once", "extend once in another project"],
    ] as const) {
      const pair = { first: named(first), second: named(second) }
      const { violations } = await judge(world, pair, await stopsOf(world, pair.first), 1)
      expect(violations, first).not.toEqual([])
    }
  })
})
