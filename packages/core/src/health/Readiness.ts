/** Whether the stores answer, and whether requests can be answered. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Record from "effect/Record"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import { ApiKeyStore } from "../keys/ApiKeyStore.ts"
import type * as RateLimiter from "../limits/RateLimiter.ts"
import { RateLimitStore } from "../limits/RateLimitStore.ts"
import { MembershipStore } from "../memberships/MembershipStore.ts"
import { Outbox } from "../webhooks/Outbox.ts"
import { WebhookStore } from "../webhooks/WebhookStore.ts"

type Limits = Pick<RateLimiter.Settings, "onStoreFailure">

type Stores = MembershipStore | WebhookStore | ApiKeyStore | Outbox | RateLimitStore

/** A store, by what it keeps. */
export type StoreName = "memberships" | "webhooks" | "apiKeys" | "deliveries" | "rateLimits"

/** Tells whether the stores answer. */
export class Readiness extends Context.Service<
  Readiness,
  {
    /** Whether every store that requests need answers its ping, within 5 seconds. */
    readonly isReady: Effect.Effect<boolean>
    /** Whether each store answers its ping, within 5 seconds. */
    readonly stores: Effect.Effect<Readonly<Record<StoreName, boolean>>>
  }
>()("@tenure/core/Readiness") {
  static readonly layer = (limits: Limits): Layer.Layer<Readiness, never, Stores> =>
    Layer.effect(Readiness, make(limits))
}

type Ping = Effect.Effect<void, StoreUnavailable>

/** Whether a ping succeeds in time. */
const succeeds = (ping: Ping): Effect.Effect<boolean> =>
  ping.pipe(
    Effect.matchCause({ onSuccess: () => true, onFailure: () => false }),
    Effect.timeoutOrElse({ duration: "5 seconds", orElse: () => Effect.succeed(false) }),
  )

/** Tells which of some stores answer their pings in time. A ping that several of them share runs once. */
export const askAll = <Name extends string>(
  pings: Readonly<Record<Name, Ping>>,
): Effect.Effect<Record<Name, boolean>> => {
  const distinct = [...new Set(Record.values(pings))]
  return Effect.map(Effect.forEach(distinct, succeeds, { concurrency: "unbounded" }), (answers) =>
    Record.map(pings, (ping) => answers[distinct.indexOf(ping)] === true),
  )
}

const make = Effect.fnUntraced(function* ({ onStoreFailure }: Limits) {
  const pings: Readonly<Record<StoreName, Ping>> = {
    memberships: (yield* MembershipStore).ping,
    webhooks: (yield* WebhookStore).ping,
    apiKeys: (yield* ApiKeyStore).ping,
    deliveries: (yield* Outbox).ping,
    rateLimits: (yield* RateLimitStore).ping,
  }
  const { rateLimits: _, ...others } = pings
  // Otherwise requests are answered even if the store of rate limits is down.
  const needed = Object.values(onStoreFailure === "closed" ? pings : others)
  return {
    isReady: succeeds(Effect.all(new Set(needed), { concurrency: "unbounded", discard: true })),
    stores: askAll(pings),
  }
})
