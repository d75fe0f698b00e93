/** Caches empty buckets, to refuse requests without asking the store. */

import { type Micros, addMicros, subtractMicros } from "../base/time.ts"
import type { ApiKeyId } from "../base/values.ts"
import {
  type BucketPolicies,
  type BucketPolicy,
  type ExpiryTable,
  type LimitedClient,
  type TakeResult,
  makeExpiryTable,
  waitMicros,
} from "./buckets.ts"

/** A client's empty bucket. */
export interface EmptyBucket {
  /** The bucket's kind. */
  readonly name: keyof BucketPolicies
  readonly policy: BucketPolicy
  /** When it will have a token, by this process's monotonic clock. */
  readonly until: Micros
  /** When it will be full, by the same clock. */
  readonly full: Micros
  /** Whether any key bucket is empty: this one, or another. */
  readonly isByKey: boolean
}

/**
 * Caches empty buckets. While a bucket is known to be empty, requests for its tokens are refused
 * without asking the store. The result is exact, because takes by other processes can only lengthen the
 * wait. All times are by this process's monotonic clock.
 */
export interface EmptyBucketCache {
  /** Returns an address's bucket, if it is known to be empty. */
  readonly findAddress: (address: string, now: Micros) => EmptyBucket | undefined
  /** Returns a client's bucket with the longest known wait. */
  readonly find: (client: LimitedClient, now: Micros) => EmptyBucket | undefined
  /** Caches the buckets left empty by a take. Returns the one with the longest wait. */
  readonly record: (client: LimitedClient, take: TakeResult, now: Micros) => EmptyBucket | undefined
}

/** The longer refusal; the first one if both end together. */
const longer = (
  one: EmptyBucket | undefined,
  other: EmptyBucket | undefined,
): EmptyBucket | undefined =>
  one === undefined || (other !== undefined && other.until > one.until) ? other : one

/** The refusal to report to a client with possibly empty buckets for its key and address. */
const longest = (
  ofKey: EmptyBucket | undefined,
  ofAddress: EmptyBucket | undefined,
): EmptyBucket | undefined => {
  const one = longer(ofKey, ofAddress)
  return one === undefined || ofKey === undefined || one.isByKey ? one : { ...one, isByKey: true }
}

const maxIds = 100_000

// A bucket's columns: when it will have a token, and when it will be full.
const refusalCacheUntil = 0
const refusalCacheFull = 1
const width = 2

/** The cached place for one client bucket. */
interface Bucket {
  readonly name: keyof BucketPolicies
  readonly table: ExpiryTable
  /** Its first column. */
  readonly offset: number
  readonly policy: BucketPolicy
  readonly isByKey: boolean
}

/** Returns a bucket if it is known to be empty at `now`. */
const findOne = (
  { isByKey, name, offset, policy, table }: Bucket,
  row: number | undefined,
  now: Micros,
): EmptyBucket | undefined => {
  if (row === undefined) return undefined
  const end = table.get(row, offset + refusalCacheUntil)
  return now < end
    ? { name, policy, until: end, full: table.get(row, offset + refusalCacheFull), isByKey }
    : undefined
}

/**
 * Caches a bucket if it is empty after a take.
 *
 * @param tat - when it will be full, by the store's clock
 */
const recordOne = (
  { isByKey, name, offset, policy, table }: Bucket,
  id: string,
  tat: Micros,
  storeNow: Micros,
  now: Micros,
): EmptyBucket | undefined => {
  const wait = waitMicros(tat, storeNow, policy)
  if (wait === 0) return undefined
  const refusal = {
    name,
    policy,
    until: addMicros(now, wait),
    full: addMicros(now, subtractMicros(tat, storeNow)),
    isByKey,
  }
  const row = table.find(id) ?? table.add(id, now)
  table.set(row, offset + refusalCacheUntil, refusal.until)
  table.set(row, offset + refusalCacheFull, refusal.full)
  return refusal
}

/** Makes an empty cache for at most 100,000 addresses and 100,000 keys. */
export const makeEmptyBucketCache = (policies: BucketPolicies): EmptyBucketCache => {
  const addresses = makeExpiryTable(width, maxIds)
  const keys = makeExpiryTable(2 * width, maxIds)
  const ofAddress: Bucket = {
    name: "address",
    table: addresses,
    offset: 0,
    policy: policies.address,
    isByKey: false,
  }
  const ofKey: Bucket = { name: "key", table: keys, offset: 0, policy: policies.key, isByKey: true }
  const ofBurst: Bucket = {
    name: "burst",
    table: keys,
    offset: width,
    policy: policies.burst,
    isByKey: true,
  }

  const findAddress = (address: string, now: Micros): EmptyBucket | undefined =>
    findOne(ofAddress, addresses.find(address), now)

  const findKey = (keyId: ApiKeyId, now: Micros): EmptyBucket | undefined => {
    const row = keys.find(keyId)
    return longer(findOne(ofKey, row, now), findOne(ofBurst, row, now))
  }

  return {
    findAddress,
    find: ({ address, keyId }, now) =>
      longest(keyId === undefined ? undefined : findKey(keyId, now), findAddress(address, now)),
    record: ({ address, keyId }, take, now) => {
      const byAddress = recordOne(ofAddress, address, take.address, take.now, now)
      if (keyId === undefined) return byAddress
      const byKey = recordOne(ofKey, keyId, take.key, take.now, now)
      const byBurst = recordOne(ofBurst, keyId, take.burst, take.now, now)
      return longest(longer(byKey, byBurst), byAddress)
    },
  }
}
