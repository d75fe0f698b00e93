/** Token buckets in the memory of one process: bounded, and swept without a timer. */

import * as Instants from "./internal/instants.ts"
import type { Client, Policies, Take } from "./RateLimitStore.ts"
import * as TokenBucket from "./TokenBucket.ts"

/** A table of token buckets. */
export interface BucketTable {
  /** Takes a token from every bucket of a client or from none, at `now` in whole microseconds. */
  readonly take: (client: Client, policies: Policies, now: number) => Take
  /** The number of addresses and keys of which something is kept. */
  readonly size: () => number
}

// The columns of a key, whose two buckets are found at once. An address has one.
const sole = 0
const long = 0
const short = 1

/** The `tat` to reckon with, of a bucket that may not be kept. */
const read = (
  table: Instants.Instants,
  row: number | undefined,
  column: number,
  now: number,
  policy: TokenBucket.Policy,
): number =>
  TokenBucket.current(row === undefined ? undefined : table.get(row, column), now, policy)

/**
 * Makes a table of the buckets of at most `limit` addresses and as many keys (100,000 by default).
 *
 * A bucket that is full is as good as none, so full ones are forgotten, a few with each that is
 * added. At the limit the one that will be full soonest of a few goes first: a flood of fresh
 * addresses evicts its own buckets, hardly ever that of an address that is exhausted, and never a
 * key's.
 */
export const make = (limit = 100_000): BucketTable => {
  const addresses = Instants.make(1, limit)
  const keys = Instants.make(2, limit)

  return {
    size: () => addresses.size() + keys.size(),
    // Each request passes here, so this looks nothing up twice and makes no object but the outcome.
    take: ({ address, keyId }, policies, now) => {
      const addressRow = addresses.find(address)
      const keyRow = keyId === undefined ? undefined : keys.find(keyId)
      const ofAddress = read(addresses, addressRow, sole, now, policies.address)
      const ofKey = read(keys, keyRow, long, now, policies.key)
      const ofBurst = read(keys, keyRow, short, now, policies.burst)
      const admitted =
        TokenBucket.wait(ofAddress, now, policies.address) === 0 &&
        TokenBucket.wait(ofKey, now, policies.key) === 0 &&
        TokenBucket.wait(ofBurst, now, policies.burst) === 0
      const hasKey = keyId !== undefined
      const take: Take = {
        admitted,
        now,
        address: admitted ? ofAddress + policies.address.increment : ofAddress,
        key: admitted && hasKey ? ofKey + policies.key.increment : ofKey,
        burst: admitted && hasKey ? ofBurst + policies.burst.increment : ofBurst,
      }
      // What a refusal changes is only what a clock that was set back has made impossible.
      if (admitted || addressRow !== undefined) {
        addresses.set(addressRow ?? addresses.add(address, now), sole, take.address)
      }
      if (hasKey && (admitted || keyRow !== undefined)) {
        const row = keyRow ?? keys.add(keyId, now)
        keys.set(row, long, take.key)
        keys.set(row, short, take.burst)
      }
      return take
    },
  }
}
