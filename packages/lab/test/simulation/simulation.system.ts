/** The simulation by 500 seeds, by every way to break the system, on PostgreSQL, and in other processes. */

import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Database, openDatabase } from "../../simulation/postgres.ts"
import { sabotages } from "../../simulation/sabotages.ts"
import { simulate } from "../../simulation/simulate.ts"
import { testSimulation } from "./tests.ts"

const program = fileURLToPath(new URL("../../simulation/main.ts", import.meta.url))

const run = async (...given: ReadonlyArray<string>): Promise<string> => {
  const options = ["-C", "@tenure/source", program, ...given]
  const { stdout } = await promisify(execFile)(process.execPath, options)
  return stdout
}

/** Puts the events after a move into the epoch before it. */
const restoreEpoch = `
  DO $$
  DECLARE
    earlier integer;
  BEGIN
    UPDATE tenure.feed_state SET epoch = epoch - 1 RETURNING epoch INTO earlier;
    DELETE FROM tenure.past_epochs WHERE epoch >= earlier;
    EXECUTE format('ALTER TABLE ONLY tenure.events ALTER COLUMN epoch SET DEFAULT %s', earlier);
  END $$
`

testSimulation({ repeated: 20, sabotages })

// `npm run simulate` runs ten thousand, which keep two processors busy for a minute.
it("finds nothing wrong in 500 seeds", async () => {
  expect(await run("--seeds", "1-500")).toMatch(/seeds .* 0 failed\n$/)
}, 600_000)

describe("the simulation on PostgreSQL's statements", () => {
  let database: Database
  beforeAll(async () => {
    database = await openDatabase()
  })
  afterAll(() => database.close())

  it("finds what is broken on purpose", async () => {
    const [sabotage] = sabotages
    const isFound = async (seed: number): Promise<boolean> => {
      const { violations } = await simulate(seed, { database, ...(sabotage && { sabotage }) })
      return violations.some(({ invariant }) => invariant === sabotage?.invariant)
    }
    expect([await isFound(1), await isFound(2), await isFound(3)]).toContain(true)
  })

  it("finds nothing wrong in 20 seeds", async () => {
    for (let seed = 1; seed <= 20; seed++) {
      expect((await simulate(seed, { database })).violations, `seed ${seed}`).toEqual([])
    }
  })

  it("finds a move after which the epoch is the one before", async () => {
    const broken = await openDatabase(restoreEpoch)
    const runAll = async (): Promise<void> => {
      for (let seed = 1; seed <= 60; seed++) {
        const { violations } = await simulate(seed, { database: broken })
        // Others follow from it, and may come first.
        const found = violations.find(
          ({ invariant }) => invariant === "the feed has every event once",
        )
        if (found !== undefined) throw new Error(found.text)
      }
    }
    await expect(runAll().finally(broken.close)).rejects.toThrow(/without a gap|the reader of/)
  }, 600_000)

  it("repeats a seed to the letter, in a new process", async () => {
    const tell = (): Promise<string> => run("--seed", "3", "--store", "postgres")
    const [one, other] = await Promise.all([tell(), tell()])
    expect(one).toEqual(other)
    expect(one).toContain("store      sweep")
  })
})
