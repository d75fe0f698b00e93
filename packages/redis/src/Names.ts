/** The names of buckets in Redis. */

import type { ApiKeyId } from "@tenure/core/ApiKey"

/** Names buckets. In a cluster, what is in braces decides in which slot a bucket is. */
export interface Names {
  readonly ofAddress: (address: string) => ReadonlyArray<string>
  /** The key's bucket and the one for its bursts, in the same slot. */
  readonly ofKey: (keyId: ApiKeyId) => ReadonlyArray<string>
}

/** Names buckets with a common prefix. */
export const named = (prefix: string): Names => ({
  ofAddress: (address) => [`${prefix}address:${address}`],
  ofKey: (keyId) => [`${prefix}{key:${keyId}}`, `${prefix}{key:${keyId}}:burst`],
})
