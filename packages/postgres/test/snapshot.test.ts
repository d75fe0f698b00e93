import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { type Snapshot, mergeSnapshot, snapshotSees } from "../src/feed.ts"

const most = 12

/** A snapshot, and a later one of the same history. */
const snapshots = fc
  .record({
    earlierEnd: fc.integer({ min: 1, max: most }),
    length: fc.nat(most),
    running: fc.uniqueArray(fc.integer({ min: 1, max: 2 * most })),
    ended: fc.uniqueArray(fc.integer({ min: 1, max: 2 * most })),
  })
  .map(({ earlierEnd, ended, length, running }) => {
    const at = (xmax: number, all: ReadonlyArray<number>): Snapshot => {
      const found = all.filter((xid) => xid < xmax).toSorted((a, b) => a - b)
      return { xmin: BigInt(found[0] ?? xmax), xmax: BigInt(xmax), running: found.map(BigInt) }
    }
    const still = running.filter((xid) => !ended.includes(xid))
    return { base: at(earlierEnd, running), now: at(earlierEnd + length, still) }
  })

const xids = Array.from({ length: 3 * most }, (_, index) => BigInt(index + 1))
const xid = fc.constantFrom(...xids)

/** A snapshot as PostgreSQL takes it. */
const expectValid = (snapshot: Snapshot): void => {
  const { running, xmax, xmin } = snapshot
  expect(running).toEqual(running.toSorted((a, b) => Number(a - b)))
  expect(xmin).toBe(running[0] ?? xmax)
  expect((running.at(-1) ?? 0n) < xmax).toBe(true)
}

describe("a snapshot", () => {
  it("advances by what a later one sees, up to a transaction and no further", () => {
    fc.assert(
      fc.property(snapshots, xid, ({ base, now }, last) => {
        const advanced = mergeSnapshot(base, now, last)
        expectValid(advanced)
        for (const one of xids) {
          const isSeen = snapshotSees(base, one) || (one <= last && snapshotSees(now, one))
          expect(snapshotSees(advanced, one)).toBe(isSeen)
        }
        expect(advanced.xmax <= base.xmax || advanced.xmax <= last + 1n).toBe(true)
      }),
    )
  })
})
