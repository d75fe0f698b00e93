/** Whether requests can be answered. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ApiKeyStore } from "./keys/ApiKeyStore.ts"
import type * as RateLimiter from "./limits/RateLimiter.ts"
import { RateLimitStore } from "./limits/RateLimitStore.ts"
import { MembershipStore } from "./memberships/MembershipStore.ts"
import { Outbox } from "./webhooks/Outbox.ts"
import { WebhookStore } from "./webhooks/WebhookStore.ts"

type Limits = Pick<RateLimiter.Settings, "onStoreFailure">

type Stores = MembershipStore | WebhookStore | ApiKeyStore | Outbox | RateLimitStore

/** Tells whether requests can be answered. */
export class Readiness extends Context.Service<
  Readiness,
  {
    /** Whether every store that requests need answers its ping, within 5 seconds. */
    readonly isReady: Effect.Effect<boolean>
  }
>()("@tenure/core/Readiness") {
  static readonly layer = (limits: Limits): Layer.Layer<Readiness, never, Stores> =>
    Layer.effect(Readiness, make(limits))
}

const timeout = "5 seconds"

const make = Effect.fnUntraced(function* ({ onStoreFailure }: Limits) {
  const stores = [
    yield* MembershipStore,
    yield* WebhookStore,
    yield* ApiKeyStore,
    yield* Outbox,
    // Otherwise requests are answered even if this store is down.
    ...(onStoreFailure === "closed" ? [yield* RateLimitStore] : []),
  ]
  // Ports of one store share one ping, which then runs once.
  const pings = new Set(stores.map(({ ping }) => ping))
  return {
    isReady: Effect.all(pings, { concurrency: "unbounded", discard: true }).pipe(
      Effect.matchCause({ onSuccess: () => true, onFailure: () => false }),
      Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.succeed(false) }),
    ),
  }
})
