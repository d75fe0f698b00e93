import * as BucketTable from "@tenure/core/BucketTable"
import * as TokenBucket from "@tenure/core/TokenBucket"
import { describe, expect, it } from "vitest"

const minute = 60_000_000
const perMinute = TokenBucket.policy({ limit: 100, windowMillis: 60_000 })
const start = 1_795_000_000_000_000

const bucket = (key: string) => ({ key, policy: perMinute })

describe("a bucket table", () => {
  it("forgets full buckets as it goes, without a timer", () => {
    const table = BucketTable.make()
    for (let client = 0; client < 10_000; client++) table.take([bucket(`old ${client}`)], start)
    expect(table.size()).toBe(10_000)
    for (let client = 0; client < 4000; client++) {
      table.take([bucket(`new ${client}`)], start + minute)
    }
    expect(table.size()).toBeLessThan(4100)
  })

  it("keeps what is not full however often it sweeps", () => {
    const table = BucketTable.make()
    for (let take = 0; take < 100; take++) table.take([bucket("throttled")], start)
    for (let client = 0; client < 10_000; client++) {
      table.take([bucket(`client ${client}`)], start + client)
    }
    expect(table.take([bucket("throttled")], start + 10_000).admitted).toBe(false)
  })

  it("never holds more than its limit", () => {
    const table = BucketTable.make(100)
    for (let client = 0; client < 1000; client++) {
      table.take([bucket(`a ${client}`), bucket(`b ${client}`), bucket(`c ${client}`)], start)
      expect(table.size()).toBeLessThanOrEqual(100)
    }
  })

  it("gives a throttled client nothing back under a flood of fresh ones", () => {
    const table = BucketTable.make(1000)
    for (let take = 0; take < 100; take++) table.take([bucket("throttled")], start)
    let admitted = 0
    for (let client = 0; client < 1_000_000; client++) {
      table.take([bucket(`flood ${client}`)], start + client)
      if (client % 1000 === 0) {
        admitted += table.take([bucket("throttled")], start + client).admitted ? 1 : 0
      }
    }
    // A second has passed, in which one token and two thirds came back.
    expect(admitted).toBe(1)
  })

  it("takes from all buckets or from none", () => {
    const table = BucketTable.make()
    const small = { key: "small", policy: TokenBucket.policy({ limit: 1, windowMillis: 60_000 }) }
    expect(table.take([bucket("large"), small], start).admitted).toBe(true)
    const refused = table.take([bucket("large"), small], start)
    expect(refused.admitted).toBe(false)
    expect(TokenBucket.remaining(refused.tats[0], start, perMinute)).toBe(99)
  })
})
