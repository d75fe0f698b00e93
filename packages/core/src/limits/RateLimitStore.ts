/** The storage port for token buckets. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ApiKeyId } from "../base/ApiKeyId.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import type { Micros } from "../base/Units.ts"
import type { Policy } from "./TokenBucket.ts"

/** Whom a request is counted for. An address has one bucket, a key has two. */
export interface Client {
  /** The client's IP address, or a group of addresses such as an IPv6 network. */
  readonly address: string
  /** The API key, if the request has a valid one. */
  readonly keyId: ApiKeyId | undefined
}

/** The policies of the buckets. */
export interface Policies {
  /** For the bucket of an address. */
  readonly address: Policy
  /** For the bucket of a key. */
  readonly key: Policy
  /** For the bucket of a key that limits bursts. */
  readonly burst: Policy
}

/**
 * The outcome of a take. `address`, `key` and `burst` are the instants at which the client's buckets
 * will be full. A client without a key has full buckets `key` and `burst`.
 *
 * All instants are by one clock of the store, of which only differences matter: it need not count
 * from the epoch.
 */
export interface Take {
  /** Whether every bucket had a token. If one had none, no bucket has lost any. */
  readonly admitted: boolean
  /** The time by the store's clock, as the other instants. */
  readonly now: Micros
  readonly address: Micros
  readonly key: Micros
  readonly burst: Micros
}

/**
 * Stores token buckets, each as the one number that `TokenBucket` describes. A bucket that is not
 * stored is full, so full ones can be deleted.
 */
export class RateLimitStore extends Context.Service<
  RateLimitStore,
  {
    /** Succeeds if the store answers and takes changes. */
    readonly ping: Effect.Effect<void, StoreUnavailable>

    /**
     * Takes a token from every bucket of a client, or from none if one of them is empty. The take is
     * atomic: concurrent takes admit exactly as many requests as there are tokens.
     *
     * A bucket that is full later than its span from now was stored before the clock was set back. It
     * counts as empty and is stored as such, even if the take is refused.
     */
    readonly take: (client: Client, policies: Policies) => Effect.Effect<Take, StoreUnavailable>
  }
>()("@tenure/core/RateLimitStore") {}
