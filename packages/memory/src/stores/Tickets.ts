/** Tickets in memory. */

import type { TokenDigest } from "@tenure/core/ApiKey"
import * as Moment from "@tenure/core/Moment"
import { type Ticket, TicketLimitReached } from "@tenure/core/Ticket"
import type { TicketStore } from "@tenure/core/TicketStore"
import * as Effect from "effect/Effect"

interface Entry {
  readonly ticket: Ticket
  /** The ticket lives before this tick. */
  readonly until: number
}

/** Makes an empty store. */
export const make = (): TicketStore["Service"] => {
  const entries = new Map<TokenDigest, Entry>()

  /** Drops the tickets that have expired, and counts those of a key that are left. */
  const countOf = (keyId: string, now: number): number => {
    let count = 0
    for (const [digest, { ticket, until }] of entries) {
      if (until <= now) entries.delete(digest)
      else if (ticket.keyId === keyId) count++
    }
    return count
  }

  return {
    add: (ticket, { lifeMillis, most }) =>
      Moment.nowWith(({ tick }) => {
        const { digest, keyId } = ticket
        if (countOf(keyId, tick) >= most) return Effect.fail(new TicketLimitReached({ keyId }))
        entries.set(digest, { ticket, until: tick + lifeMillis })
        return Effect.void
      }),

    take: (digest) =>
      Effect.map(Moment.now, ({ tick }) => {
        const entry = entries.get(digest)
        entries.delete(digest)
        return entry !== undefined && tick < entry.until ? entry.ticket : undefined
      }),
  }
}
