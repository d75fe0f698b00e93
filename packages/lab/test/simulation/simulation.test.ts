import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { sabotages } from "../../simulation/sabotages.ts"
import { simulate } from "../../simulation/simulate.ts"

const program = fileURLToPath(new URL("../../simulation/main.ts", import.meta.url))

describe("the simulation", () => {
  it("repeats a seed to the letter", async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const [one, other] = [
        await simulate(seed, { isTold: true }),
        await simulate(seed, { isTold: true }),
      ]
      expect(one).toEqual(other)
      expect(one.told.length).toBeGreaterThan(10)
    }
  })

  it("tells the same whether or not it is listened to", async () => {
    const silent = await simulate(7)
    const { told, ...loud } = await simulate(7, { isTold: true })
    expect({ ...silent, told: undefined }).toEqual({ ...loud, told: undefined })
    expect(told).not.toEqual([])
  })

  // `npm run simulate` runs ten thousand, which take a minute of two processors.
  const last = process.env["THOROUGH"] === "1" ? 2000 : 200

  it(`finds nothing wrong in ${last} seeds`, async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      "-C",
      "@tenure/source",
      program,
      "--seeds",
      `1-${last}`,
    ])
    expect(stdout).toMatch(/seeds .* 0 failed\n$/)
  }, 600_000)
})

describe("a system that is broken on purpose is found out:", () => {
  for (const sabotage of sabotages) {
    const { invariant, name, within } = sabotage
    it(`${name}, within ${within} seeds`, async () => {
      for (let seed = 1; seed <= within; seed++) {
        const { violations } = await simulate(seed, { sabotage })
        if (violations.some((violation) => violation.invariant === invariant)) return
      }
      expect.fail(`${invariant} was found in no seed`)
    })
  }
})
