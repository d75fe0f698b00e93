/** The storage port for tickets. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import type { TokenDigest } from "./ApiKey.ts"
import type { Ticket, TicketLimitReached } from "./Ticket.ts"

/** What bounds the tickets of a key. */
export interface TicketBounds {
  /** How long a ticket lives, in milliseconds, by the store's clock. */
  readonly lifeMillis: number
  /** How many tickets of a key may live at a time. */
  readonly most: number
}

/**
 * Stores tickets for a minute, with digests in their place. A store may lose them: whoever has a lost one
 * asks for another. It takes no part in transactions of the host.
 */
export class TicketStore extends Context.Service<
  TicketStore,
  {
    /**
     * Adds a ticket. Fails with `TicketLimitReached` if as many of its key live as may, also of those that are
     * added at the same time.
     */
    readonly add: (
      ticket: Ticket,
      bounds: TicketBounds,
    ) => Effect.Effect<void, TicketLimitReached | StoreUnavailable>

    /**
     * Removes a ticket and returns it; returns `undefined` if it is unknown or has expired. Of several
     * calls for one ticket, at the same time or in several processes, only one gets it.
     */
    readonly take: (digest: TokenDigest) => Effect.Effect<Ticket | undefined, StoreUnavailable>
  }
>()("@tenure/core/TicketStore") {}
