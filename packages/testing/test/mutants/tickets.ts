/** Stores of tickets that are wrong. */

import {
  ApiKeyId,
  type Ticket,
  TicketLimitReached,
  TicketStore,
  type TokenDigest,
  digestToken,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { mutantsOf } from "./Mutant.ts"

type Store = TicketStore["Service"]

/** Changes tickets as they are taken. */
const taking =
  (change: (ticket: Ticket) => Ticket) =>
  ({ take }: Store): Partial<Store> => ({
    take: (asked) => Effect.map(take(asked), (ticket) => ticket && change(ticket)),
  })

/** Stores of tickets that are wrong. */
export const tickets = mutantsOf(TicketStore, {
  "returns a ticket twice": ({ take }) => {
    const taken = new Map<TokenDigest, Ticket>()
    return {
      take: (asked) =>
        Effect.map(take(asked), (ticket) => {
          const found = ticket ?? taken.get(asked)
          if (ticket === undefined) taken.delete(asked)
          else taken.set(asked, ticket)
          return found
        }),
    }
  },

  "returns a ticket to all who take it at the same time": ({ add, take }) => {
    const found = new Map<TokenDigest, Ticket>()
    return {
      add: (ticket, bounds) =>
        Effect.tap(add(ticket, bounds), () => Effect.sync(() => found.set(ticket.digest, ticket))),
      take: Effect.fnUntraced(function* (asked) {
        const ticket = found.get(asked)
        yield* Effect.yieldNow
        found.delete(asked)
        yield* take(asked)
        return ticket
      }),
    }
  },

  "returns a ticket that has expired": ({ add }) => ({
    add: (ticket, bounds) => add(ticket, { ...bounds, lifeMillis: 2 * bounds.lifeMillis }),
  }),

  "lets tickets expire too early": ({ add }) => ({
    add: (ticket, bounds) => add(ticket, { ...bounds, lifeMillis: bounds.lifeMillis / 2 }),
  }),

  "returns any ticket": ({ add, take }) => {
    let last: TokenDigest | undefined
    return {
      add: (ticket, bounds) => {
        last = ticket.digest
        return add(ticket, bounds)
      },
      take: (asked) => take(last ?? asked),
    }
  },

  "forgets that the host identified whose ticket it is": taking((ticket) => ({
    ...ticket,
    keyDigest: ticket.keyDigest ?? ticket.digest,
  })),

  "forgets the digest of the key": taking((ticket) => ({ ...ticket, keyDigest: undefined })),

  "opens all projects": taking((ticket) => ({ ...ticket, projects: "all" })),

  "opens no project in place of all": taking((ticket) => ({
    ...ticket,
    projects: ticket.projects === "all" ? new Set() : ticket.projects,
  })),

  "has no bound": ({ add }) => ({ add: (ticket, bounds) => add(ticket, { ...bounds, most: 1e9 }) }),

  "has one ticket more than it may": ({ add }) => ({
    add: (ticket, bounds) => add(ticket, { ...bounds, most: bounds.most + 1 }),
  }),

  "counts tickets before its turn": ({ add, take }) => {
    const living = new Map<TokenDigest, ApiKeyId>()
    return {
      add: Effect.fnUntraced(function* (ticket, bounds) {
        const count = [...living.values()].filter((keyId) => keyId === ticket.keyId).length
        yield* Effect.yieldNow
        yield* add(ticket, count < bounds.most ? { ...bounds, most: 1e9 } : bounds)
        living.set(ticket.digest, ticket.keyId)
      }),
      take: (asked) => Effect.tap(take(asked), () => Effect.sync(() => living.delete(asked))),
    }
  },

  "bounds the tickets of all keys together": ({ add, take }) => {
    const keyId = ApiKeyId("one for all")
    const added = new Map<TokenDigest, Ticket>()
    return {
      add: (ticket, bounds) => {
        added.set(ticket.digest, ticket)
        return Effect.catchTag(add({ ...ticket, keyId }, bounds), "TicketLimitReached", () =>
          Effect.fail(new TicketLimitReached(ticket)),
        )
      },
      take: (asked) => Effect.map(take(asked), (ticket) => ticket && added.get(asked)),
    }
  },

  "counts the tickets that were taken": ({ add, take }) => ({
    take: Effect.fnUntraced(function* (asked) {
      const ticket = yield* take(asked)
      if (ticket === undefined) return undefined
      const taken = { ...ticket, digest: digestToken(`taken ${asked}`) }
      yield* Effect.ignore(add(taken, { lifeMillis: 60_000, most: 1000 }))
      return ticket
    }),
  }),
})
