/** The storage port for token buckets. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ApiKeyId } from "./ApiKey.ts"
import type { StoreUnavailable } from "./StoreUnavailable.ts"
import type { Policy } from "./TokenBucket.ts"

/** Who a request is counted for: an address has one bucket, a key has two. */
export interface Client {
  /** An address or a group of addresses, as `ClientAddress` gives it. */
  readonly address: string
  /** The key, if the request came with a valid one. */
  readonly keyId: ApiKeyId | undefined
}

/** How much the buckets of every client hold, and how fast they fill. */
export interface Policies {
  /** Of an address. */
  readonly address: Policy
  /** Of a key, in the long run. */
  readonly key: Policy
  /** Of a key, in a short time. */
  readonly burst: Policy
}

/**
 * The outcome of a take: for each bucket of the client, when it is full again, after the take or
 * unchanged by a refusal. A client without a key has no buckets of a key; they are given as full.
 */
export interface Take {
  /** Whether every bucket gave a token. If one refused, none has lost any. */
  readonly admitted: boolean
  /** The store's clock; this and the others are whole microseconds since the epoch. */
  readonly now: number
  readonly address: number
  readonly key: number
  readonly burst: number
}

/**
 * Keeps token buckets, each as the one number that `TokenBucket` describes. A bucket that is not
 * kept is full, so that full ones can be forgotten.
 */
export class RateLimitStore extends Context.Service<
  RateLimitStore,
  {
    /**
     * Takes a token from every bucket of a client or from none, atomically: of takes at the same
     * time, exactly as many are admitted as there are tokens.
     */
    readonly take: (client: Client, policies: Policies) => Effect.Effect<Take, StoreUnavailable>
  }
>()("@tenure/core/RateLimitStore") {}
