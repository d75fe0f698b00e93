/**
 * A cache of empty buckets. While a bucket is known to be empty, requests that need a token from it
 * are refused without asking the store. That is exact, since takes by other processes can only
 * lengthen the wait.
 */

import type { ApiKeyId } from "../base/ApiKeyId.ts"
import { add, type Micros, subtract } from "../base/Units.ts"
import * as InstantTable from "./InstantTable.ts"
import type { Client, Policies, Take } from "./RateLimitStore.ts"
import * as TokenBucket from "./TokenBucket.ts"

/** An empty bucket of a client. */
export interface Refusal {
  /** Which of the buckets it is. */
  readonly name: keyof Policies
  readonly policy: TokenBucket.Policy
  /** When it will have a token, by the monotonic clock of this process. */
  readonly until: Micros
  /** When it will be full, by the same clock. */
  readonly full: Micros
  /** Whether a bucket of the key is empty: this one, or another one. */
  readonly isByKey: boolean
}

/** A cache of empty buckets. All times are by the monotonic clock of this process. */
export interface RefusalCache {
  /** Returns the bucket of an address, if it is known to be empty. */
  readonly findAddress: (address: string, now: Micros) => Refusal | undefined
  /** Returns the bucket of a client that is known to be empty longest. */
  readonly find: (client: Client, now: Micros) => Refusal | undefined
  /** Caches the buckets that are empty after a take. Returns the one that is empty longest. */
  readonly record: (client: Client, take: Take, now: Micros) => Refusal | undefined
}

/** The refusal that lasts longer; the first one if both end together. */
const longer = (one: Refusal | undefined, other: Refusal | undefined): Refusal | undefined =>
  one === undefined || (other !== undefined && other.until > one.until) ? other : one

/** The refusal to report of a client whose key and address may have empty buckets. */
const longest = (
  ofKey: Refusal | undefined,
  ofAddress: Refusal | undefined,
): Refusal | undefined => {
  const one = longer(ofKey, ofAddress)
  return one === undefined || ofKey === undefined || one.isByKey ? one : { ...one, isByKey: true }
}

const maxIds = 100_000

// The columns of a bucket: when it will have a token, and when it will be full.
const until = 0
const full = 1
const width = 2

/** Where one of the client's buckets is cached. */
interface Bucket {
  readonly name: keyof Policies
  readonly table: InstantTable.InstantTable
  /** Its first column. */
  readonly offset: number
  readonly policy: TokenBucket.Policy
  readonly isByKey: boolean
}

/** Returns a bucket if it is known to be empty at `now`. */
const findOne = (
  { isByKey, name, offset, policy, table }: Bucket,
  row: number | undefined,
  now: Micros,
): Refusal | undefined => {
  if (row === undefined) return undefined
  const end = table.get(row, offset + until)
  return now < end
    ? { name, policy, until: end, full: table.get(row, offset + full), isByKey }
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
): Refusal | undefined => {
  const wait = TokenBucket.wait(tat, storeNow, policy)
  if (wait === 0) return undefined
  const refusal = {
    name,
    policy,
    until: add(now, wait),
    full: add(now, subtract(tat, storeNow)),
    isByKey,
  }
  const row = table.find(id) ?? table.add(id, now)
  table.set(row, offset + until, refusal.until)
  table.set(row, offset + full, refusal.full)
  return refusal
}

/** Makes an empty cache for at most 100,000 addresses and 100,000 keys. */
export const make = (policies: Policies): RefusalCache => {
  const addresses = InstantTable.make(width, maxIds)
  const keys = InstantTable.make(2 * width, maxIds)
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

  const findAddress = (address: string, now: Micros): Refusal | undefined =>
    findOne(ofAddress, addresses.find(address), now)

  const findKey = (keyId: ApiKeyId, now: Micros): Refusal | undefined => {
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
