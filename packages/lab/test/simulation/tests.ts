/** Tests for the simulation in one process, with few seeds or many. */

import { describe, expect, it } from "vitest"
import type { Sabotage } from "../../simulation/sabotages.ts"
import { simulate } from "../../simulation/simulate.ts"

/** How much to run. */
interface Amount {
  /** How many seeds are run twice. */
  readonly repeated: number
  readonly sabotages: ReadonlyArray<Sabotage>
}

export const testSimulation = ({ repeated, sabotages }: Amount): void => {
  it(`repeats each of ${repeated} seeds to the letter`, async () => {
    for (let seed = 1; seed <= repeated; seed++) {
      const [one, other] = [
        await simulate(seed, { isTold: true }),
        await simulate(seed, { isTold: true }),
      ]
      expect(one).toEqual(other)
      expect(one.told.length).toBeGreaterThan(10)
    }
  })

  describe("a system that is broken on purpose is found out:", () => {
    it.each(sabotages)("$name, within $within seeds", async (sabotage) => {
      const { invariant, within } = sabotage
      for (let seed = 1; seed <= within; seed++) {
        const { violations } = await simulate(seed, { sabotage })
        if (violations.some((violation) => violation.invariant === invariant)) return
      }
      expect.fail(`${invariant} was found in no seed`)
    })
  })
}
