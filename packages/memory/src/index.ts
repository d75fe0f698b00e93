/**
 * All storage ports in memory: for tests, for trying Tenure out, and for hosts that can lose everything
 * when the process ends.
 */

import { Setting } from "@tenure/core/internal"
import {
  ApiKeyStore,
  FeedStore,
  MembershipStore,
  Outbox,
  RateLimitStore,
  type Store,
  TicketStore,
  WebhookStore,
  makeInProcessRateLimits,
} from "@tenure/core/store"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeCursorCipher } from "./cursors.ts"
import { makeMemoryFeedStore } from "./feed.ts"
import { makeMemoryApiKeyStore, makeMemoryTicketStore } from "./keys.ts"
import { makeMemoryMembershipStore } from "./memberships.ts"
import { makeState } from "./state.ts"
import { makeMemoryOutbox, makeMemoryWebhookStore } from "./webhooks.ts"

export const memoryOptions = Setting.object({
  /**
   * How many rows to keep in each project's audit trail, and how many events and finished deliveries.
   * Older ones are dropped. Pending deliveries are all kept. Default: `10000`.
   */
  history: Setting.withDefault(Setting.integer(), 10_000),
  /**
   * For how many addresses, and as many keys, to keep token buckets. At the limit, the fullest among a
   * few sampled buckets is dropped. Default: `100000`.
   */
  maxBuckets: Setting.withDefault(Setting.integer(), 100_000),
  /**
   * How many idempotency keys to keep per API key. At the limit, old ones are dropped. Default:
   * `10000`.
   */
  maxIdempotencyKeys: Setting.withDefault(Setting.integer(), 10_000),
  /** How long to keep idempotency keys, up to twice as long. Default: `"24 hours"`. */
  idempotencyRetention: Setting.withDefault(Setting.duration(), "24 hours"),
})

/** The options as a host passes them. */
export interface MemoryOptions extends Setting.InputOf<typeof memoryOptions> {}

/**
 * Creates new, empty stores. Fails with `InvalidInput` if an option is invalid: the error names the
 * option and the valid values.
 * @example
 * ```ts
 * import { createTenure } from "tenure"
 * import { memory } from "tenure/memory"
 *
 * const tenure = await createTenure({ stores: memory() })
 * ```
 */
export const memory = (given: MemoryOptions = {}): Store =>
  Layer.effectContext(
    Effect.gen(function* () {
      const settings = yield* Setting.decode(memoryOptions, given)
      const { history, idempotencyRetention, maxBuckets, maxIdempotencyKeys } = settings
      const answers = { perOwner: maxIdempotencyKeys, millis: idempotencyRetention }
      const state = makeState(history, answers, makeCursorCipher(yield* WebCrypto))
      return Context.make(MembershipStore, makeMemoryMembershipStore(state)).pipe(
        Context.add(WebhookStore, makeMemoryWebhookStore(state)),
        Context.add(ApiKeyStore, makeMemoryApiKeyStore(state)),
        Context.add(Outbox, makeMemoryOutbox(state)),
        Context.add(FeedStore, makeMemoryFeedStore(state)),
        Context.add(RateLimitStore, makeInProcessRateLimits(maxBuckets)),
        Context.add(TicketStore, makeMemoryTicketStore()),
      )
    }),
  )
