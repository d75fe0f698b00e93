/** What the store suite needs from those who run it. */

import type { StorePorts } from "@tenure/core/store"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"

/** Every port Tenure needs. */
export const ports = [
  "MembershipStore",
  "WebhookStore",
  "ApiKeyStore",
  "Outbox",
  "FeedStore",
  "RateLimitStore",
  "TicketStore",
] as const

/** A port's name. */
export type Port = (typeof ports)[number]

/**
 * A store to certify.
 *
 * @typeParam Host - the layer's services besides the stores, such as a database client
 */
export interface StoreHarness<Host = never> {
  /** Builds all stores, empty. Stores without state in the process can be built once, and emptied. */
  readonly layer: Layer.Layer<StorePorts | Host, unknown>
  /** Moves the stores' clock forward, or back by a negative number: a clock can be set. */
  readonly advance: (millis: number) => Effect.Effect<void>
  /**
   * How far a take's instants may be off, in milliseconds, because several clocks are involved.
   * Default: 0.
   */
  readonly clockErrorMillis?: number | undefined
  /** Whether projects are in several databases, each with its own idempotency keys. Default: `false`. */
  readonly hasSeveralDatabases?: boolean | undefined
  /**
   * Whether bulk extensions become part of the members' own dates at once, as in a host's table: then none can be
   * undone. Default: `false`.
   */
  readonly settlesAtOnce?: boolean | undefined
  /** Whether the `MembershipStore` announces ends: whether it has `expiry`. Default: `true`. */
  readonly announcesEnds?: boolean | undefined
  /** How many inputs each property gets. Fewer for stores composed from others. Default: 50. */
  readonly runs?: number | undefined
  /** The ports to certify. Default: all. */
  readonly ports?: ReadonlyArray<Port> | undefined
  /**
   * Runs work in a transaction from the host, and rolls it back if the work fails. With it, the suites
   * also certify that stores take part in such transactions.
   */
  readonly transaction?:
    | (<A, E>(
        work: Effect.Effect<A, E, StorePorts>,
      ) => Effect.Effect<A, unknown, StorePorts | Host>)
    | undefined
  /** Whether the host can have only one open transaction. Default: `false`. */
  readonly hasOneTransaction?: boolean | undefined
}

/** Receives the tests declared by suites. */
export interface Registry {
  readonly describe: (name: string, declare: () => void) => void
  readonly it: (name: string, test: Effect.Effect<unknown, unknown>) => void
}
