/** Token buckets in the memory of one process, bounded in number. */

import { add, type Micros } from "../base/Units.ts"
import * as InstantTable from "./InstantTable.ts"
import type { Client, Policies, Take } from "./RateLimitStore.ts"
import * as TokenBucket from "./TokenBucket.ts"

/** A table of token buckets. */
export interface BucketTable {
  /** Takes a token from every bucket of a client at `now`, or from none if one of them is empty. */
  readonly take: (client: Client, policies: Policies, now: Micros) => Take
  /** The number of addresses and keys in the table. */
  readonly size: () => number
}

// The columns of an address, and those of a key.
const addressColumn = 0
const keyColumn = 0
const burstColumn = 1

/** The current `tat` of a bucket, which is full if its row does not exist. */
const currentTat = (
  table: InstantTable.InstantTable,
  row: number | undefined,
  column: number,
  now: Micros,
  policy: TokenBucket.Policy,
): Micros =>
  TokenBucket.current(row === undefined ? undefined : table.get(row, column), now, policy)

/** Decides on a take, by the current `tat` of each bucket. */
const decide = (
  policies: Policies,
  hasKey: boolean,
  now: Micros,
  address: Micros,
  key: Micros,
  burst: Micros,
): Take => {
  const admitted =
    TokenBucket.wait(address, now, policies.address) === 0 &&
    TokenBucket.wait(key, now, policies.key) === 0 &&
    TokenBucket.wait(burst, now, policies.burst) === 0
  return {
    admitted,
    now,
    address: admitted ? add(address, policies.address.increment) : address,
    key: admitted && hasKey ? add(key, policies.key.increment) : key,
    burst: admitted && hasKey ? add(burst, policies.burst.increment) : burst,
  }
}

/**
 * Makes an empty table for at most `limit` addresses and as many keys, 100,000 by default.
 *
 * A full bucket need not be stored, so each bucket that is added removes a few full ones. A table at
 * its limit examines a few buckets and evicts the one that will be full soonest. A flood of new
 * addresses therefore evicts its own buckets, rarely that of an exhausted address, and never a key's.
 */
export const make = (limit = 100_000): BucketTable => {
  const addresses = InstantTable.make(1, limit)
  const keys = InstantTable.make(2, limit)

  return {
    size: () => addresses.size() + keys.size(),
    // Every request runs this: it looks each row up once, and allocates only the outcome.
    take: ({ address, keyId }, policies, now) => {
      const addressRow = addresses.find(address)
      const keyRow = keyId === undefined ? undefined : keys.find(keyId)
      const take = decide(
        policies,
        keyId !== undefined,
        now,
        currentTat(addresses, addressRow, addressColumn, now, policies.address),
        currentTat(keys, keyRow, keyColumn, now, policies.key),
        currentTat(keys, keyRow, burstColumn, now, policies.burst),
      )
      // A refusal adds no row. It changes an existing one only after the clock was set back.
      if (take.admitted || addressRow !== undefined) {
        addresses.set(addressRow ?? addresses.add(address, now), addressColumn, take.address)
      }
      if (keyId !== undefined && (take.admitted || keyRow !== undefined)) {
        const row = keyRow ?? keys.add(keyId, now)
        keys.set(row, keyColumn, take.key)
        keys.set(row, burstColumn, take.burst)
      }
      return take
    },
  }
}
