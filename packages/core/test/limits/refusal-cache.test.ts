import { describe, expect, it } from "vitest"
import { Micros, Millis } from "../../src/base/time.ts"
import { ApiKeyId } from "../../src/base/values.ts"
import { type LimitedClient, type TakeResult, bucketPolicy } from "../../src/limits/buckets.ts"
import { makeEmptyBucketCache } from "../../src/limits/rate-limiter.ts"

// One token a second for an address, one in two seconds for a key, and bursts of one in three.
const perSeconds = (seconds: number) => bucketPolicy({ limit: 1, window: Millis(1000 * seconds) })
const policies = { address: perSeconds(1), key: perSeconds(2), burst: perSeconds(3) }

const known: LimitedClient = { address: "1", keyId: ApiKeyId("a") }
const addressOnly: LimitedClient = { address: "1", keyId: undefined }

const seconds = (count: number): Micros => Micros(count * 1_000_000)

/** A take at an instant after which the buckets will be full so many seconds later. */
const takeAt = (
  now: number,
  full: Partial<Record<"address" | "key" | "burst", number>>,
): TakeResult => ({
  admitted: false,
  now: seconds(now),
  address: seconds(now + (full.address ?? 0)),
  key: seconds(now + (full.key ?? 0)),
  burst: seconds(now + (full.burst ?? 0)),
})

describe("the cache of empty buckets", () => {
  it("returns the bucket that is empty longest, until it has a token", () => {
    const cache = makeEmptyBucketCache(policies)
    const empty = { address: 1, key: 2, burst: 3 }
    expect(cache.record(known, takeAt(10, empty), seconds(10))).toEqual({
      name: "burst",
      policy: policies.burst,
      until: seconds(13),
      full: seconds(13),
      isByKey: true,
    })
    expect(cache.find(known, seconds(10))?.policy).toBe(policies.burst)
    expect(cache.find(addressOnly, seconds(10))?.policy).toBe(policies.address)
    expect(cache.find(known, Micros(seconds(13) - 1))?.policy).toBe(policies.burst)
    expect(cache.find(known, seconds(13))).toBeUndefined()
    expect(cache.find(addressOnly, seconds(11))).toBeUndefined()
  })

  it("returns the key's bucket, or the burst's, if others are empty as long", () => {
    const cache = makeEmptyBucketCache({ ...policies, key: perSeconds(3), address: perSeconds(3) })
    const take = takeAt(10, { address: 3, key: 3, burst: 3 })
    expect(cache.record(known, take, seconds(10))?.name).toBe("key")
    expect(cache.find(known, seconds(10))?.name).toBe("key")
    const other = { address: "2", keyId: ApiKeyId("b") }
    cache.record(other, takeAt(10, { address: 3, burst: 3 }), seconds(10))
    expect(cache.find(other, seconds(10))?.name).toBe("burst")
    expect(cache.find(known, seconds(10))).toMatchObject({ name: "key", full: seconds(13) })
  })

  it("does not cache buckets that have tokens", () => {
    const cache = makeEmptyBucketCache(policies)
    expect(cache.record(known, takeAt(10, {}), seconds(10))).toBeUndefined()
    expect(cache.find(known, seconds(10))).toBeUndefined()
  })

  it("measures waits by the store's clock, and their ends by that of this process", () => {
    const cache = makeEmptyBucketCache(policies)
    expect(cache.record(known, takeAt(500, { key: 2 }), seconds(10))).toEqual({
      name: "key",
      policy: policies.key,
      until: seconds(12),
      full: seconds(12),
      isByKey: true,
    })
  })

  it("tells whether a bucket of the key is empty, even if that of the address is empty longer", () => {
    const long = { ...policies, address: perSeconds(5) }
    const both = makeEmptyBucketCache(long)
    both.record(known, takeAt(10, { address: 5, key: 2 }), seconds(10))
    expect(both.find(known, seconds(11))).toMatchObject({ policy: long.address, isByKey: true })
    expect(both.find(known, seconds(13))).toMatchObject({ policy: long.address, isByKey: false })
    expect(both.findAddress(known.address, seconds(11))?.isByKey).toBe(false)
  })
})
