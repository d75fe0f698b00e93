/** A cache of empty buckets, which spares the store requests that would be refused. */

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

/** An empty bucket of a client. */
export interface EmptyBucket {
  /** Which of the buckets it is. */
  readonly name: keyof BucketPolicies
  readonly policy: BucketPolicy
  /** When it will have a token, by the monotonic clock of this process. */
  readonly until: Micros
  /** When it will be full, by the same clock. */
  readonly full: Micros
  /** Whether a bucket of the key is empty: this one, or another one. */
  readonly isByKey: boolean
}

/**
 * A cache of empty buckets. While a bucket is known to be empty, requests that need a token from it are refused without
 * asking the store. That is exact, because takes by other processes can only lengthen the wait. All times are by the
 * monotonic clock of this process.
 */
export interface EmptyBucketCache {
  /** Returns the bucket of an address, if it is known to be empty. */
  readonly findAddress: (address: string, now: Micros) => EmptyBucket | undefined
  /** Returns the bucket of a client that is known to be empty longest. */
  readonly find: (client: LimitedClient, now: Micros) => EmptyBucket | undefined
  /** Caches the buckets that are empty after a take. Returns the one that is empty longest. */
  readonly record: (client: LimitedClient, take: TakeResult, now: Micros) => EmptyBucket | undefined
}

/** The refusal that lasts longer; the first one if both end together. */
const longer = (
  one: EmptyBucket | undefined,
  other: EmptyBucket | undefined,
): EmptyBucket | undefined =>
  one === undefined || (other !== undefined && other.until > one.until) ? other : one

/** The refusal to report of a client whose key and address may have empty buckets. */
const longest = (
  ofKey: EmptyBucket | undefined,
  ofAddress: EmptyBucket | undefined,
): EmptyBucket | undefined => {
  const one = longer(ofKey, ofAddress)
  return one === undefined || ofKey === undefined || one.isByKey ? one : { ...one, isByKey: true }
}

const maxIds = 100_000

// The columns of a bucket: when it will have a token, and when it will be full.
const refusalCacheUntil = 0
const refusalCacheFull = 1
const width = 2

/** Where one of the client's buckets is cached. */
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
