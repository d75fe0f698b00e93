/** The buckets of a client. */

import type { Client, Policies } from "@tenure/core/RateLimitStore"
import type * as TokenBucket from "@tenure/core/TokenBucket"

/** A bucket, and its key in the table. */
export interface Bucket {
  readonly key: string
  readonly policy: TokenBucket.Policy
}

/** The buckets of a client: the one of its address, and the two of its key if it has one. */
export const bucketsOf = (
  { address, keyId }: Client,
  policies: Policies,
): ReadonlyArray<Bucket> => {
  const ofAddress = { key: `address:${address}`, policy: policies.address }
  if (keyId === undefined) return [ofAddress]
  const ofKey = { key: `key:${keyId}`, policy: policies.key }
  return [ofAddress, ofKey, { key: `burst:${keyId}`, policy: policies.burst }]
}
