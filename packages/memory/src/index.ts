/**
 * Every storage port of Tenure in memory: for tests, for trying things out, and for hosts that can
 * afford to lose everything when the process ends.
 */

import { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import type { InvalidInput } from "@tenure/core/InvalidInput"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { Outbox } from "@tenure/core/Outbox"
import { RateLimitStore } from "@tenure/core/RateLimitStore"
import * as Setting from "@tenure/core/Setting"
import type { Stores } from "@tenure/core/Tenure"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ApiKeys from "./internal/apiKeyStore.ts"
import * as Memberships from "./internal/membershipStore.ts"
import * as MemoryOutbox from "./internal/outbox.ts"
import * as RateLimits from "./internal/rateLimitStore.ts"
import * as State from "./internal/state.ts"
import * as Webhooks from "./internal/webhookStore.ts"

/** Bounds of what is kept. */
export interface Options {
  /**
   * Rows of each project's audit trail, and deliveries that have ended; 10,000 by default. Older
   * ones are forgotten. Deliveries that wait are all kept.
   */
  readonly history?: number | undefined
  /**
   * Addresses, and as many keys, whose token buckets are kept; 100,000 by default. At the limit the
   * fullest of a few is forgotten.
   */
  readonly maxBuckets?: number | undefined
}

/**
 * Makes all stores, empty. They share their state with no others. Fails with `InvalidInput`, which
 * names the option, where an option is not what it has to be.
 *
 * @example
 * ```ts
 * import * as Tenure from "@tenure/core/Tenure"
 * import { memory } from "@tenure/memory"
 *
 * const tenure = await Tenure.make({ stores: memory() })
 * ```
 */
export const memory = (options: Options = {}): Layer.Layer<Stores, InvalidInput> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const state = State.make(yield* Setting.count("history", options.history ?? 10_000))
      const maxBuckets = yield* Setting.count("maxBuckets", options.maxBuckets ?? 100_000)
      return Context.make(MembershipStore, Memberships.make(state)).pipe(
        Context.add(WebhookStore, Webhooks.make(state)),
        Context.add(ApiKeyStore, ApiKeys.make(state)),
        Context.add(Outbox, MemoryOutbox.make(state)),
        Context.add(RateLimitStore, RateLimits.make(maxBuckets)),
      )
    }),
  )
