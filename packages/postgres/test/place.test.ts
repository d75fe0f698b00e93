import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import * as Place from "../src/feed/Place.ts"

const id = "01890a5d-ac96-774b-bcce-b302099a8057"

const seen = fc
  .record({
    at: fc.nat(4_000_000_000),
    xmin: fc.bigInt(1n, 2n ** 60n),
    gaps: fc.array(fc.bigInt(1n, 30n), { maxLength: 1900, size: "max" }),
  })
  .map(({ at, gaps, xmin }): Place.Seen => {
    let last = xmin
    const running = [xmin, ...gaps.map((gap) => (last += gap))]
    return { at, snapshot: { xmin, xmax: last + 1n, running } }
  })

describe("a cursor", () => {
  it("holds two snapshots with 1,900 running transactions", () => {
    fc.assert(
      fc.property(seen, seen, (base, until) => {
        const prefix = Place.prefixOf("e", base, until)
        expect(Place.fits(prefix)).toBe(true)
        expect(Place.cursorWithin(prefix, 2n ** 63n - 1n, id).length).toBeLessThanOrEqual(8192)
        expect(Place.parse(Place.cursorAfter("e", base))).toEqual({
          epoch: "e",
          base,
          within: undefined,
        })
      }),
      { numRuns: 50 },
    )
  })

  it("tells when the snapshots do not fit", () => {
    const running = Array.from({ length: 5000 }, (_, index) => BigInt(index + 1))
    const all = { at: 0, snapshot: { xmin: 1n, xmax: 5001n, running } }
    expect(Place.fits(Place.prefixOf("e", all, all))).toBe(false)
  })
})
