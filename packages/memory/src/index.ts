/**
 * All storage ports of Tenure in memory: for tests, for trying Tenure out, and for hosts that can
 * afford to lose everything when the process ends.
 */

import { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import { FeedStore } from "@tenure/core/FeedStore"
import type { InvalidInput } from "@tenure/core/InvalidInput"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { Outbox } from "@tenure/core/Outbox"
import { ProjectDirectory } from "@tenure/core/ProjectDirectory"
import { RateLimitStore } from "@tenure/core/RateLimitStore"
import * as Setting from "@tenure/core/Setting"
import type { Stores } from "@tenure/core/Tenure"
import { TicketStore } from "@tenure/core/TicketStore"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Cursors from "./Cursors.ts"
import * as State from "./State.ts"
import * as ApiKeys from "./stores/ApiKeys.ts"
import * as Directory from "./stores/Directory.ts"
import * as Feed from "./stores/Feed.ts"
import * as Memberships from "./stores/Memberships.ts"
import * as MemoryOutbox from "./stores/Outbox.ts"
import * as RateLimits from "./stores/RateLimits.ts"
import * as Tickets from "./stores/Tickets.ts"
import * as Webhooks from "./stores/Webhooks.ts"

/** Bounds of what is kept. */
export const options = Setting.struct({
  /**
   * How many rows of each project's audit trail, and how many events and finished deliveries, are
   * kept. Older ones are dropped. Pending deliveries are all kept. Default: `10000`.
   */
  history: Setting.withDefault(Setting.count(), 10_000),
  /**
   * Addresses, and as many keys, whose token buckets are kept. At the limit, the fullest of a few
   * sampled buckets is dropped. Default: `100000`.
   */
  maxBuckets: Setting.withDefault(Setting.count(), 100_000),
  /** How many idempotency keys of each API key are kept. At the limit, old ones are dropped. Default: `10000`. */
  maxIdempotencyKeys: Setting.withDefault(Setting.count(), 10_000),
  /** How long to keep idempotency keys, up to twice as long. Default: `"24 hours"`. */
  idempotencyRetention: Setting.withDefault(Setting.millis(), "24 hours"),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

/**
 * Makes all stores, empty and independent of any others. Fails with `InvalidInput`, which names the
 * option and says what is valid, if an option is invalid.
 *
 * @example
 * ```ts
 * import { Tenure } from "tenure"
 * import { memory } from "tenure/memory"
 *
 * const tenure = await Tenure.make({ stores: memory() })
 * ```
 */
export const memory = (given: Options = {}): Layer.Layer<Stores, InvalidInput> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const settings = yield* Setting.read(options, given)
      const { history, idempotencyRetention, maxBuckets, maxIdempotencyKeys } = settings
      const answers = { perOwner: maxIdempotencyKeys, millis: idempotencyRetention }
      const state = State.make(history, answers, Cursors.make(yield* WebCrypto))
      return Context.make(MembershipStore, Memberships.make(state)).pipe(
        Context.add(WebhookStore, Webhooks.make(state)),
        Context.add(ApiKeyStore, ApiKeys.make(state)),
        Context.add(Outbox, MemoryOutbox.make(state)),
        Context.add(FeedStore, Feed.make(state)),
        Context.add(RateLimitStore, RateLimits.make(maxBuckets)),
        Context.add(TicketStore, Tickets.make()),
        Context.add(ProjectDirectory, Directory.make(state)),
      )
    }),
  )
