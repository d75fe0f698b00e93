/** Quint: the specifications are safe, and have the simulated runs among their own. */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { openDatabase } from "../../simulation/postgres.ts"
import { sabotages } from "../../simulation/sabotages.ts"
import type { WorldOptions } from "../../simulation/world.ts"
import { checkSafety, checkTraces, fileOf } from "../../specifications/quint.ts"
import { type Trace, printTraces, traceOf } from "../../specifications/traces.ts"

const soundSeeds = 60

const tracesOf = async (
  seeds: number,
  options: Pick<WorldOptions, "database" | "sabotage"> = {},
): Promise<ReadonlyArray<Trace>> => {
  const traces: Array<Trace> = []
  for (let seed = 1; seed <= seeds; seed++) traces.push(await traceOf(seed, options))
  return traces
}

/** The sound system's, for all specifications. */
const sound = tracesOf(soundSeeds)

/** Each specification's guard, and what is there without it; and a sabotage that its runs show. */
const specifications = [
  {
    name: "deliveries",
    guard: ["      not(isLeased(one)),\n", ""],
    broken: "a delivery is settled nowhere",
  },
  {
    name: "feed",
    guard: ["if (number < least) number else least", "least"],
    broken: "the feed skips an event",
  },
  {
    name: "bulk",
    guard: ['entry.with("undone", true)', "entry"],
    broken: "an undo misses a member",
  },
] as const

describe.each(specifications)("the specification of $name", ({ broken, guard, name }) => {
  it("is safe in random runs", async () => {
    const { isRight, output } = await checkSafety(fileOf(name), 300)
    expect(output).toContain("No violation found")
    expect(isRight).toBe(true)
  })

  it("is not safe without a guard", async () => {
    const text = await readFile(fileOf(name), "utf8")
    expect(text).toContain(guard[0])
    const folder = await mkdtemp(join(tmpdir(), "specification-"))
    const file = join(folder, `${name}.qnt`)
    await writeFile(file, text.replace(guard[0], guard[1]))
    const { isRight } = await checkSafety(file, 3000)
    await rm(folder, { recursive: true })
    expect(isRight).toBe(false)
  })

  it("has the runs of the simulation among its own", async () => {
    const { isRight, output } = await checkTraces(name, await sound)
    expect(output).toContain(`${soundSeeds} passing`)
    expect(isRight).toBe(true)
  })

  it("does not have those of a system that is broken on purpose", async () => {
    const sabotage = sabotages.find((one) => one.name === broken)
    const traces = await tracesOf(60, sabotage && { sabotage })
    const { isRight, output } = await checkTraces(name, traces)
    expect(output).toContain("failed")
    expect(isRight).toBe(false)
  })
})

describe("a database that moves to another server", () => {
  it("has runs that are among those of the specifications", async () => {
    // Simulations replace the process's globals: one at a time.
    await sound
    const database = await openDatabase()
    const traces = await tracesOf(12, { database }).finally(database.close)
    expect(printTraces("feed", traces).split("move(1)").length).toBeGreaterThan(5)
    for (const name of ["feed", "bulk"] as const) {
      const { isRight, output } = await checkTraces(name, traces)
      expect(output).toContain("12 passing")
      expect(isRight).toBe(true)
    }
  }, 600_000)
})
