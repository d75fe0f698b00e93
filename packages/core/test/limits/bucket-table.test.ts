import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Micros, Millis } from "../../src/base/time.ts"
import { ApiKeyId } from "../../src/base/values.ts"
import {
  type LimitedClient,
  bucketPolicy,
  makeBucketTable,
  makeExpiryTable,
  remainingTokens,
} from "../../src/limits/buckets.ts"

const minute = 60_000_000
const perMinute = bucketPolicy({ limit: 100, window: Millis(60_000) })
const policies = { address: perMinute, key: perMinute, burst: perMinute }
const start = Micros(1_795_000_000_000_000)
const after = (micros: number): Micros => Micros(start + micros)

const addressOnly = (address: string): LimitedClient => ({ address, keyId: undefined })
const client = (name: string): LimitedClient => ({ address: name, keyId: ApiKeyId(name) })

describe("a bucket table", () => {
  it("removes full buckets while others are added", () => {
    const table = makeBucketTable()
    for (let one = 0; one < 10_000; one++) table.take(client(`old ${one}`), policies, start)
    expect(table.size()).toBe(20_000)
    for (let one = 0; one < 4000; one++) {
      table.take(client(`new ${one}`), policies, after(minute))
    }
    expect(table.size()).toBeLessThan(8200)
  })

  it("keeps buckets that are not full, however many are added", () => {
    const table = makeBucketTable()
    for (let take = 0; take < 100; take++) table.take(client("exhausted"), policies, start)
    for (let one = 0; one < 10_000; one++) {
      table.take(client(`client ${one}`), policies, after(one))
    }
    expect(table.take(client("exhausted"), policies, after(10_000)).admitted).toBe(false)
  })

  it("keeps a key until both of its buckets are full", () => {
    const slow = bucketPolicy({ limit: 1, window: Millis(3_600_000) })
    const table = makeBucketTable()
    const takes = [
      { ...policies, burst: slow },
      { ...policies, key: slow },
    ]
    for (const [index, either] of takes.entries()) {
      table.take(client(`slow ${index}`), either, start)
      for (let one = 0; one < 100; one++) {
        table.take(client(`client ${index} ${one}`), policies, after(minute))
      }
      expect(table.take(client(`slow ${index}`), either, after(minute)).admitted).toBe(false)
    }
  })

  it("holds at most its limit of addresses and its limit of keys", () => {
    const table = makeBucketTable(100)
    for (let one = 0; one < 1000; one++) {
      table.take(client(String(one)), policies, start)
      expect(table.size()).toBeLessThanOrEqual(200)
    }
  })

  it("evicts no key under a flood of addresses", () => {
    const table = makeBucketTable(10)
    table.take(client("known"), policies, start)
    for (let one = 0; one < 1000; one++) table.take(addressOnly(`flood ${one}`), policies, start)
    const { key } = table.take(client("known"), policies, start)
    expect(remainingTokens(key, start, perMinute)).toBe(98)
  })

  it("takes from all buckets of a client or from none", () => {
    const table = makeBucketTable()
    const small = bucketPolicy({ limit: 1, window: Millis(60_000) })
    for (const [index, one] of (["address", "key", "burst"] as const).entries()) {
      const caller = client(String(index))
      const mixed = { ...policies, [one]: small }
      const admitted = table.take(caller, mixed, start)
      const refused = table.take(caller, mixed, start)
      expect(admitted.admitted).toBe(true)
      expect(refused).toEqual({ ...admitted, admitted: false })
    }
  })

  it("keeps nothing of a key that a request does not have, whose buckets are full", () => {
    const table = makeBucketTable()
    expect(table.take(addressOnly("a"), policies, start)).toMatchObject({
      key: start,
      burst: start,
    })
    expect(table.size()).toBe(1)
  })

  it("keeps nothing of a client whose first request is refused", () => {
    const table = makeBucketTable()
    const once = bucketPolicy({ limit: 1, window: Millis(60_000) })
    const one = client("one")
    table.take(one, { address: once, key: once, burst: once }, start)
    const refused = [
      table.take({ ...one, address: "other" }, { ...policies, key: once }, start),
      table.take({ ...one, keyId: ApiKeyId("other") }, { ...policies, address: once }, start),
    ]
    expect(refused.map(({ admitted }) => admitted)).toEqual([false, false])
    expect(table.size()).toBe(2)
  })

  it("refills within one increment after the clock was set back", () => {
    const table = makeBucketTable()
    for (let take = 0; take < 101; take++) table.take(client("a"), policies, after(10 * minute))
    expect(table.take(client("a"), policies, start).admitted).toBe(false)
    expect(table.take(client("a"), policies, after(perMinute.increment)).admitted).toBe(true)
  })
})

describe("a table of instants", () => {
  const columns = 2

  /** Adds a row with its instants. */
  const addRow = (
    table: ReturnType<typeof makeExpiryTable>,
    id: string,
    now: number,
    instants: ReadonlyArray<number>,
  ): void => {
    const row = table.add(id, Micros(now))
    for (const column of instants.keys()) expect(table.get(row, column)).toBe(0)
    for (const [column, instant] of instants.entries()) table.set(row, column, Micros(instant))
  }

  const instantsOf = (table: ReturnType<typeof makeExpiryTable>, id: string) => {
    const row = table.find(id)
    return row === undefined ? undefined : [table.get(row, 0), table.get(row, 1)].map(Number)
  }

  it("keeps each row until its instants have passed, and its instants as they are", () => {
    const pause = fc.nat({ max: 2 })
    const instants = fc.tuple(fc.nat({ max: 60 }), fc.nat({ max: 60 }))
    const rows = fc.array(fc.tuple(pause, instants), { maxLength: 60 })
    fc.assert(
      fc.property(rows, (added) => {
        const table = makeExpiryTable(columns, 60)
        const known = new Map<string, ReadonlyArray<number>>()
        let now = 0
        for (const [index, [passed, ends]] of added.entries()) {
          now += passed
          addRow(table, String(index), now, ends)
          known.set(String(index), ends)
          for (const [id, expected] of known) {
            const found = instantsOf(table, id)
            if (found === undefined) expect(Math.max(...expected)).toBeLessThanOrEqual(now)
            else expect(found).toEqual(expected)
          }
        }
        expect(table.size()).toBe(
          [...known.keys()].filter((id) => table.find(id) !== undefined).length,
        )
      }),
    )
  })

  it("removes four rows for each that is added, if their instants have passed", () => {
    const table = makeExpiryTable(columns, 100)
    for (let row = 0; row < 40; row++) addRow(table, `old ${row}`, 0, [0, 1])
    const sizes = [1, 2, 3].map((row) => {
      addRow(table, `new ${row}`, 1, [9, 9])
      return table.size()
    })
    expect(sizes).toEqual([37, 34, 31])
  })

  it("keeps the instants of more rows than it has room for at first", () => {
    const rows = 300
    const table = makeExpiryTable(columns, rows)
    for (let row = 0; row < rows; row++) addRow(table, String(row), 0, [row + 1, 2 * row])
    for (let row = 0; row < rows; row++) {
      expect(instantsOf(table, String(row))).toEqual([row + 1, 2 * row])
    }
  })

  it("evicts the row whose instants pass soonest, if it is full", () => {
    const limit = 8
    const instants = fc.uniqueArray(fc.integer({ min: 1, max: 100 }), {
      minLength: limit,
      maxLength: 3 * limit,
    })
    fc.assert(
      fc.property(instants, (ends) => {
        const table = makeExpiryTable(columns, limit)
        let kept: ReadonlyArray<number> = []
        for (const end of ends) {
          addRow(table, String(end), 0, [1, end])
          kept = [...(kept.length < limit ? kept : kept.toSorted((a, b) => a - b).slice(1)), end]
          expect(ends.filter((one) => table.find(String(one)) !== undefined)).toEqual(
            ends.filter((one) => kept.includes(one)),
          )
        }
      }),
    )
  })
})
