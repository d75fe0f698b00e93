import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import {
  type SeenEvents,
  cursorPrefix,
  fitsPage,
  formatFeedCursor,
  formatPartialCursor,
  parseFeedCursor,
} from "../src/feed.ts"

// The longest.
const epoch = { number: 2 ** 31 - 1, identity: "ffffffffffff" }
const id = "01890a5d-ac96-774b-bcce-b302099a8057"

const seen = fc
  .record({
    at: fc.nat(4_000_000_000),
    xmin: fc.bigInt(1n, 2n ** 60n),
    gaps: fc.array(fc.bigInt(1n, 30n), { maxLength: 1900, size: "max" }),
  })
  .map(({ at, gaps, xmin }): SeenEvents => {
    let last = xmin
    const running = [xmin, ...gaps.map((gap) => (last += gap))]
    return { at, snapshot: { xmin, xmax: last + 1n, running } }
  })

describe("a cursor", () => {
  it("holds two snapshots with 1,900 running transactions", () => {
    fc.assert(
      fc.property(seen, seen, (base, until) => {
        const prefix = cursorPrefix(epoch, base, until)
        expect(fitsPage(base)).toBe(base)
        expect(formatPartialCursor(prefix, 2n ** 63n - 1n, id).length).toBeLessThanOrEqual(8192)
        expect(parseFeedCursor(formatFeedCursor(epoch, base))).toEqual({
          epoch,
          base,
          within: undefined,
        })
      }),
      { numRuns: 50 },
    )
  })

  it("holds no more of the oldest if there are more, however far they are apart", () => {
    const gap = fc.constantFrom(1n, 40n, 2n ** 20n)
    fc.assert(
      fc.property(fc.array(gap, { minLength: 4000, maxLength: 5000 }), (gaps) => {
        let last = 1n
        const running = [1n, ...gaps.map((one) => (last += one))]
        const all = { at: 4_000_000_000, snapshot: { xmin: 1n, xmax: last + 1n, running } }
        const { snapshot } = fitsPage(all)
        const count = snapshot.running.length
        expect(snapshot.running).toEqual(running.slice(0, count))
        expect(snapshot.xmax).toBe(running[count])
        const part = { ...all, snapshot }
        const cursor = formatPartialCursor(cursorPrefix(epoch, part, part), 2n ** 63n - 1n, id)
        expect(cursor.length).toBeLessThanOrEqual(8192)
      }),
      { numRuns: 20 },
    )
  })
})
