/** The feed while transactions run at the same time, in 20 orders, and the snapshots in its cursors. */

import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import {
  type SeenEvents,
  type Snapshot,
  cursorPrefix,
  fitsPage,
  formatFeedCursor,
  formatPartialCursor,
  mergeSnapshot,
  parseFeedCursor,
  snapshotSees,
} from "../src/feed.ts"
import { feedOrderSuite } from "./reading-feeds.ts"

feedOrderSuite(20)

describe("a snapshot", () => {
  const most = 12
  const xids = Array.from({ length: 3 * most }, (_, index) => BigInt(index + 1))
  const some = fc.uniqueArray(fc.integer({ min: 1, max: 2 * most }))

  /** A snapshot, and a later one from the same history. */
  const snapshots = fc
    .record({
      earlierEnd: fc.integer({ min: 1, max: most }),
      length: fc.nat(most),
      running: some,
      ended: some,
    })
    .map(({ earlierEnd, ended, length, running }) => {
      const at = (xmax: number, all: ReadonlyArray<number>): Snapshot => {
        const found = all.filter((xid) => xid < xmax).toSorted((a, b) => a - b)
        return { xmin: BigInt(found[0] ?? xmax), xmax: BigInt(xmax), running: found.map(BigInt) }
      }
      const still = running.filter((xid) => !ended.includes(xid))
      return { base: at(earlierEnd, running), now: at(earlierEnd + length, still) }
    })

  it("advances by what a later one sees, up to a transaction and no further", () => {
    fc.assert(
      fc.property(snapshots, fc.constantFrom(...xids), ({ base, now }, last) => {
        const advanced = mergeSnapshot(base, now, last)
        const { running, xmax, xmin } = advanced
        // As PostgreSQL takes it.
        expect(running).toEqual(running.toSorted((a, b) => Number(a - b)))
        expect(xmin).toBe(running[0] ?? xmax)
        expect((running.at(-1) ?? 0n) < xmax).toBe(true)
        for (const one of xids) {
          const isSeen = snapshotSees(base, one) || (one <= last && snapshotSees(now, one))
          expect(snapshotSees(advanced, one)).toBe(isSeen)
        }
        expect(xmax <= base.xmax || xmax <= last + 1n).toBe(true)
      }),
    )
  })
})

describe("a cursor", () => {
  // The longest.
  const epoch = { number: 2 ** 31 - 1, identity: "ffffffffffff" }
  const partial = (base: SeenEvents, until: SeenEvents) =>
    formatPartialCursor(
      cursorPrefix(epoch, base, until),
      2n ** 63n - 1n,
      "01890a5d-ac96-774b-bcce-b302099a8057",
    )

  /** What was seen while transactions ran, whose numbers grow by these gaps. */
  const seenWith = (at: number, xmin: bigint, gaps: ReadonlyArray<bigint>): SeenEvents => {
    let last = xmin
    const running = [xmin, ...gaps.map((gap) => (last += gap))]
    return { at, snapshot: { xmin, xmax: last + 1n, running } }
  }

  it("holds two snapshots with 1,900 running transactions", () => {
    const gaps = fc.array(fc.bigInt(1n, 30n), { maxLength: 1900, size: "max" })
    const seen = fc
      .tuple(fc.nat(4_000_000_000), fc.bigInt(1n, 2n ** 60n), gaps)
      .map((all) => seenWith(...all))
    fc.assert(
      fc.property(seen, seen, (base, until) => {
        expect(fitsPage(base)).toBe(base)
        expect(partial(base, until).length).toBeLessThanOrEqual(8192)
        const parsed = parseFeedCursor(formatFeedCursor(epoch, base))
        expect(parsed).toEqual({ epoch, base, within: undefined })
      }),
      { numRuns: 50 },
    )
  })

  it("holds no more of the oldest if there are more, however far they are apart", () => {
    const gap = fc.constantFrom(1n, 40n, 2n ** 20n)
    fc.assert(
      fc.property(fc.array(gap, { minLength: 4000, maxLength: 5000 }), (gaps) => {
        const all = seenWith(4_000_000_000, 1n, gaps)
        const part = fitsPage(all)
        const count = part.snapshot.running.length
        expect(part.snapshot.running).toEqual(all.snapshot.running.slice(0, count))
        expect(part.snapshot.xmax).toBe(all.snapshot.running[count])
        expect(partial(part, part).length).toBeLessThanOrEqual(8192)
      }),
      { numRuns: 20 },
    )
  })
})
