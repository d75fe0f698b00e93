import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import * as Snapshot from "../src/feed/Snapshot.ts"

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
    const at = (xmax: number, all: ReadonlyArray<number>): Snapshot.Snapshot => {
      const found = all.filter((xid) => xid < xmax).toSorted((a, b) => a - b)
      return { xmin: BigInt(found[0] ?? xmax), xmax: BigInt(xmax), running: found.map(BigInt) }
    }
    const still = running.filter((xid) => !ended.includes(xid))
    return { base: at(earlierEnd, running), now: at(earlierEnd + length, still) }
  })

const xids = Array.from({ length: 3 * most }, (_, index) => BigInt(index + 1))
const xid = fc.constantFrom(...xids)

/** A snapshot as PostgreSQL takes it. */
const expectValid = (snapshot: Snapshot.Snapshot): void => {
  const { running, xmax, xmin } = snapshot
  expect(running).toEqual(running.toSorted((a, b) => Number(a - b)))
  expect(xmin).toBe(running[0] ?? xmax)
  expect((running.at(-1) ?? 0n) < xmax).toBe(true)
}

describe("a snapshot", () => {
  it("advances by what a later one sees, up to a transaction and no further", () => {
    fc.assert(
      fc.property(snapshots, xid, ({ base, now }, last) => {
        const advanced = Snapshot.advance(base, now, last)
        expectValid(advanced)
        for (const one of xids) {
          const isSeen = Snapshot.sees(base, one) || (one <= last && Snapshot.sees(now, one))
          expect(Snapshot.sees(advanced, one)).toBe(isSeen)
        }
        expect(advanced.xmax <= base.xmax || advanced.xmax <= last + 1n).toBe(true)
      }),
    )
  })

  it("is an earlier one before a transaction, and a later one from there on", () => {
    fc.assert(
      fc.property(snapshots, xid, ({ base, now }, first) => {
        const later = Snapshot.later(base, now, first)
        expectValid(later)
        for (const one of xids.filter((of) => of < base.xmax)) {
          expect(Snapshot.sees(later, one)).toBe(Snapshot.sees(one < first ? base : now, one))
        }
      }),
    )
  })

  it("can leave out a transaction that it sees", () => {
    fc.assert(
      fc.property(snapshots, xid, ({ now }, out) => {
        fc.pre(Snapshot.sees(now, out))
        const without = Snapshot.without(now, out)
        expectValid(without)
        for (const one of xids) {
          expect(Snapshot.sees(without, one)).toBe(one !== out && Snapshot.sees(now, one))
        }
      }),
    )
  })
})
