/** The names of buckets in Redis. */

import type { ApiKeyId } from "@tenure/core/ApiKey"

/** Names buckets. */
export interface Names {
  readonly ofAddress: (address: string) => ReadonlyArray<string>
  /** The key's bucket and the one for its bursts. What is in braces places both in the same slot. */
  readonly ofKey: (keyId: ApiKeyId) => ReadonlyArray<string>
}

/** Names buckets with a common prefix. */
export const named = (prefix: string): Names => ({
  ofAddress: (address) => [`${prefix}address:${address}`],
  ofKey: (keyId) => [`${prefix}{key:${keyId}}`, `${prefix}{key:${keyId}}:burst`],
})
