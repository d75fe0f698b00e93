/** Ratios between contestants that take turns, and how certain they are. */

import { describe, expect, it } from "vitest"
import { inPairs, ratioOf } from "../../benchmark/rounds.ts"

describe("ratioOf", () => {
  it("has the median within its confidence interval, whatever the order and the outliers", () => {
    const ratios = Array.from({ length: 100 }, (_, index) => (index * 37) % 100)
    expect(ratioOf([...ratios, 1e9])).toEqual({ median: 50, least: 40, most: 60 })
  })

  it("is as wide as all of a few values", () => {
    expect(ratioOf([2, 1])).toEqual({ median: 1, least: 1, most: 2 })
  })
})

describe("inPairs", () => {
  it("compares the two of a pair, whose order alternates", async () => {
    const ran: Array<string> = []
    // The machine becomes slower with each pair.
    let speed = 1024
    const contestant = (name: string, factor: number) => ({
      name,
      run: async () => {
        ran.push(name)
        if (ran.length % 2 === 1) speed /= 2
        return { rate: factor * speed, cpu: NaN }
      },
    })
    const { median } = await inPairs(contestant("one", 3), contestant("other", 2), {
      rounds: 4,
      seconds: 1,
    })
    expect(ran.slice(2).join(" ")).toBe("one other other one one other other one")
    expect(median).toBe(1.5)
  })
})
