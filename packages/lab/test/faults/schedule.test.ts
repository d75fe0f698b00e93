import { describe, expect, it } from "vitest"
import { kindNames, kinds } from "../../faults/kinds.ts"
import { calmMillis, describe as tell, schedule } from "../../faults/schedule.ts"

const places = {
  servers: ["s1", "s2"],
  restarted: ["s1", "s2"],
  processes: ["s1", "s2", "host"],
  projects: ["p1", "p2", "p3"],
  hasRedis: true,
} as const

const seeds = Array.from({ length: 200 }, (_, index) => index + 1)

describe("a schedule", () => {
  it("is the same for the same seed, and another one for another", () => {
    expect(schedule(7, 20, places)).toEqual(schedule(7, 20, places))
    expect(schedule(7, 20, places)).not.toEqual(schedule(8, 20, places))
  })

  it("leaves a calm after each episode and at the end", () => {
    for (const seed of seeds) {
      let calmFrom = 0
      for (const episode of schedule(seed, 20, places).episodes) {
        expect(Math.min(...episode.map(({ at }) => at))).toBeGreaterThanOrEqual(calmFrom)
        calmFrom = calmMillis + Math.max(...episode.map(({ at, millis }) => at + millis))
      }
      expect(calmFrom).toBeLessThanOrEqual(20_000)
    }
  })

  it("hits every kind in a few seeds, if there is time for it", () => {
    for (const seconds of [10, 20]) {
      const faults = seeds
        .slice(0, kindNames.length)
        .flatMap((seed) => schedule(seed, seconds, places).episodes.flat())
      const possible = kindNames.filter((kind) => kinds[kind].seconds[0] < seconds - 6)
      expect(new Set(faults.map(({ kind }) => kind))).toEqual(new Set(possible))
    }
  })

  it("does not take down twice what is down", () => {
    for (const seed of seeds) {
      for (const episode of schedule(seed, 20, places).episodes) {
        const servers = episode.filter(
          ({ kind }) => kinds[kind].takesDown && kinds[kind].hits === "server",
        )
        const targets = servers.map(({ target }) => target)
        expect(new Set(targets).size).toBe(targets.length)
      }
    }
  })

  it("restarts one server alone in a long run, all of the time", () => {
    for (const seed of [1, 2]) {
      const { episodes } = schedule(seed, 1800, places, 5000)
      const faults = episodes.flat()
      const restarted = faults.filter(({ kind }) => /serverKilled|serverTerminated/.test(kind))
      expect(new Set(restarted.map(({ target }) => target))).toEqual(new Set(["s1"]))
      expect(Math.max(...faults.map(({ at }) => at))).toBeGreaterThan(1_750_000)
    }
  })

  it("breaks Redis only where there is one", () => {
    for (const seed of seeds) {
      const { episodes, hasLimiter } = schedule(seed, 300, places)
      const hits = new Set(episodes.flat().map(({ kind }) => kinds[kind].hits))
      expect(hits.has("limiter")).toBe(hasLimiter)
    }
  })

  it("is told in a line", () => {
    expect(tell(schedule(1, 20, places))).toMatch(/^[^\n]*\d\.\d s \w+/)
  })
})
