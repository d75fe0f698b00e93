/** The names of keys in Redis. */

import type { ApiKeyId } from "@tenure/core/ApiKey"

/** Names keys. */
export interface Names {
  /** Where the bucket of an address is. */
  readonly ofAddress: (address: string) => string
  /** Where the two buckets of an API key are: its own, and the one for its bursts. */
  readonly ofKey: (keyId: ApiKeyId) => string
}

/** Names keys with a common prefix. */
export const named = (prefix: string): Names => ({
  ofAddress: (address) => `${prefix}address:${address}`,
  ofKey: (keyId) => `${prefix}key:${keyId}`,
})
