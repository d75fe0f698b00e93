import { describe, expect, it } from "vitest"
import { Micros, Millis } from "../../src/base/time.ts"
import { ApiKeyId } from "../../src/base/values.ts"
import {
  type LimitedClient,
  bucketPolicy,
  makeBucketTable,
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

  it("gives an exhausted client no tokens back under a flood of new ones", () => {
    const table = makeBucketTable(1000)
    const exhausted = addressOnly("exhausted")
    for (let take = 0; take < 100; take++) table.take(exhausted, policies, start)
    let admitted = 0
    for (let one = 0; one < 1_000_000; one++) {
      table.take(addressOnly(`flood ${one}`), policies, after(one))
      if (one % 1000 === 0) {
        admitted += table.take(exhausted, policies, after(one)).admitted ? 1 : 0
      }
    }
    // In the second that has passed, one token and two thirds of another came back.
    expect(admitted).toBe(1)
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

  it("refills within one increment after the clock was set back", () => {
    const table = makeBucketTable()
    for (let take = 0; take < 101; take++) table.take(client("a"), policies, after(10 * minute))
    expect(table.take(client("a"), policies, start).admitted).toBe(false)
    expect(table.take(client("a"), policies, after(perMinute.increment)).admitted).toBe(true)
  })
})
