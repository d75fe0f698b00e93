/** What a suite needs to know of the store that it certifies. */

import type { Stores } from "@tenure/core/Tenure"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"

/** A port that a store can implement. */
export type Port =
  | "MembershipStore"
  | "WebhookStore"
  | "ApiKeyStore"
  | "Outbox"
  | "FeedStore"
  | "RateLimitStore"
  | "TicketStore"
  | "ProjectDirectory"

/**
 * A store to certify.
 *
 * @typeParam Host - what the layer provides besides the stores, such as a client of the database
 */
export interface StoreHarness<Host = never> {
  /** Builds all stores, empty. Stores that remember nothing in the process can be built once, and emptied. */
  readonly layer: Layer.Layer<Stores | Host, unknown>
  /** Moves the stores' clock forward, or back by a negative number: a clock can be set. */
  readonly advance: (millis: number) => Effect.Effect<void>
  /**
   * How far the instants of a take may be off, in milliseconds, because several clocks take part in it.
   * Default: 0.
   */
  readonly clockErrorMillis?: number | undefined
  /** Whether projects are in several databases, each with idempotency keys of its own. Default: `false`. */
  readonly hasSeveralDatabases?: boolean | undefined
  /** With how many inputs each property is tried. Fewer for stores that consist of others. Default: 50. */
  readonly runs?: number | undefined
  /** The ports to certify. By default all but `ProjectDirectory`, which only the first of several stores needs. */
  readonly ports?: ReadonlyArray<Port> | undefined
  /**
   * Runs work in a transaction of the host, which is undone if the work fails. With it, the suites
   * also certify that the stores take part in such transactions.
   */
  readonly transaction?:
    | (<A, E>(work: Effect.Effect<A, E, Stores>) => Effect.Effect<A, unknown, Stores | Host>)
    | undefined
  /** Whether only one transaction of the host can be open at a time. Default: `false`. */
  readonly hasOneTransaction?: boolean | undefined
}
