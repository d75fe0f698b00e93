/** What a suite needs to know of the store that it certifies. */

import type { Stores } from "@tenure/core/Tenure"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"

/** A port that a store can implement. */
export type Port = "MembershipStore" | "WebhookStore" | "ApiKeyStore" | "Outbox" | "RateLimitStore"

/** A store to certify. */
export interface StoreHarness {
  /** Builds all stores, empty, and independent of the stores of earlier builds. */
  readonly layer: Layer.Layer<Stores, unknown>
  /** Moves the stores' clock forward. */
  readonly advance: (millis: number) => Effect.Effect<void>
  /** The ports to certify. By default all of them. */
  readonly ports?: ReadonlyArray<Port> | undefined
}
