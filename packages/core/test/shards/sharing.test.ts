import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { rotate, shareEvenly } from "../../src/shards/shard-map.ts"

const totals = fc.nat(10_000)
const counts = fc.integer({ min: 1, max: 50 })

it("shares everything, as equally as whole numbers allow, the larger ones first", () => {
  fc.assert(
    fc.property(totals, counts, (total, count) => {
      const all = shareEvenly(total, count)
      expect(all).toHaveLength(count)
      expect(all.reduce((sum, one) => sum + one, 0)).toBe(total)
      const [most = 0, least = 0] = [all[0], all.at(-1)]
      expect(most - least).toBeLessThanOrEqual(1)
      expect(all.toSorted((one, other) => other - one)).toEqual(all)
    }),
  )
})

it("has everybody come first in turn", () => {
  fc.assert(
    fc.property(totals, counts, (turn, count) => {
      const items = Array.from({ length: count }, (_, index) => index)
      const all = rotate(items, turn)
      expect(all[0]).toBe(turn % count)
      expect(all.toSorted((one, other) => one - other)).toEqual(items)
      expect(all.every((one, index) => one === (turn + index) % count)).toBe(true)
    }),
  )
  expect(rotate([], 3)).toEqual([])
})
