/** The storage port for token buckets. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { StoreUnavailable } from "./StoreUnavailable.ts"
import type { Policy } from "./TokenBucket.ts"

/** One bucket that a request draws on. */
export interface Bucket {
  readonly key: string
  readonly policy: Policy
}

/** The outcome of a take. */
export interface Take {
  /** Whether every bucket gave a token. If one refused, none has lost any. */
  readonly admitted: boolean
  /** The store's clock, in whole microseconds since the epoch. */
  readonly now: number
  /** For each bucket, in order, when it is full again: after the take, or unchanged by a refusal. */
  readonly tats: ReadonlyArray<number>
}

/**
 * Keeps token buckets, each as the one number that `TokenBucket` describes. A bucket that is not
 * kept is full, so that full ones can be forgotten.
 */
export class RateLimitStore extends Context.Service<
  RateLimitStore,
  {
    /**
     * Takes a token from every bucket or from none, atomically: of takes at the same time, exactly
     * as many are admitted as there are tokens. The keys of one take are distinct.
     */
    readonly take: (buckets: ReadonlyArray<Bucket>) => Effect.Effect<Take, StoreUnavailable>
  }
>()("@tenure/core/RateLimitStore") {}
