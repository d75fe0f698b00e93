import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { ProjectId } from "../../src/base/values.ts"
import { cellNumber, rotate, shareEvenly } from "../../src/cells/cell.ts"

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

it("has a project in the same cell for ever, by the published vectors of FNV-1a", () => {
  const hashes = [
    ["a", 0xe4_0c_29_2c],
    ["foobar", 0xbf_9c_f9_68],
  ] as const
  for (const [id, hash] of hashes)
    for (const count of [1, 16, 1000]) expect(cellNumber(ProjectId(id), count)).toBe(hash % count)
})

it("spreads projects over the cells", () => {
  const found = Array.from({ length: 16 }, () => 0)
  for (let n = 0; n < 16_000; n++) {
    const number = cellNumber(ProjectId(`project-${n}`), 16)
    found[number] = (found[number] ?? 0) + 1
  }
  expect(Math.min(...found)).toBeGreaterThan(700)
  expect(Math.max(...found)).toBeLessThan(1300)
})
