/** API key, ticket and project stores that break a promise. */

import { type ApiKey, ApiKeyStore, type Ticket, TicketStore } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { wrongStores } from "./wrong-store.ts"

const reading =
  (change: (key: ApiKey) => ApiKey) =>
  ({ find, list }: ApiKeyStore["Service"]): Partial<ApiKeyStore["Service"]> => ({
    find: (digest) => Effect.map(find(digest), (key) => key && change(key)),
    list: (page) => Effect.map(list(page), (keys) => keys.map(change)),
  })

const taking =
  (change: (ticket: Ticket) => Ticket) =>
  ({ take }: TicketStore["Service"]): Partial<TicketStore["Service"]> => ({
    take: (asked) => Effect.map(take(asked), (ticket) => ticket && change(ticket)),
  })

export const wrongApiKeyStores = wrongStores("ApiKeyStore", ApiKeyStore, {
  "finds a key by the digest of its token, also when it has expired": reading((key) => ({
    ...key,
    role: "client",
  })),
  "stores a key that opens all projects, and lets a key with a known token open them": reading(
    (key) => (key.projects === "all" ? { ...key, projects: new Set() } : key),
  ),
  "keeps every project of keys that are added concurrently for one token": ({ add, find }) => ({
    add: Effect.fnUntraced(function* (key, occasion) {
      const known = yield* find(key.digest)
      yield* Effect.yieldNow
      const stored = yield* add(key, occasion)
      return known === undefined ? { ...stored, id: key.id } : stored
    }),
  }),
  "revokes no key that is unknown, or opens other projects than the caller's": {
    "ignores unknown keys": ({ revoke }) => ({
      revoke: (revocation) => Effect.ignore(revoke(revocation)),
    }),
    "revokes any key": ({ revoke }) => ({
      revoke: (revocation) => revoke({ ...revocation, within: "all" }),
    }),
  },
  "adds a key with an idempotency key once, and keeps none of one that it cannot add": (right) => ({
    add: (key, { once: _, ...occasion }) => right.add(key, occasion),
  }),
  "revokes a key with an idempotency key once": ({ revoke }) => ({
    revoke: ({ once: _, ...revocation }) => revoke(revocation),
  }),
  "lists all keys, oldest first, and those that were revoked": ({ list }) => ({
    list: (page) => Effect.map(list(page), (keys) => keys.toReversed()),
  }),
  "lists keys in pages": ({ list }) => ({
    list: (page) => list({ ...page, limit: page.limit + 1 }),
  }),
  "refuses to list the keys after one that the caller may not see, as after none": (right) => ({
    list: (page) => Effect.catchTag(right.list(page), "ApiKeyNotFound", () => Effect.succeed([])),
  }),
  "returns the names of keys, of those that have one": () => ({
    names: () => Effect.succeed(new Map()),
  }),
  "records the last use of keys, and changes nothing else": reading((key) => ({
    ...key,
    lastUsedAt: undefined,
  })),
})

export const wrongTicketStores = wrongStores("TicketStore", TicketStore, {
  "returns a ticket as it was added, of an API key": taking((ticket) => ({
    ...ticket,
    keyDigest: undefined,
  })),
  "returns a ticket as it was added, of whom else the host identified": taking((ticket) => ({
    ...ticket,
    projects: "all",
  })),
  "returns a ticket until it expires": ({ add }) => ({
    add: (ticket, bounds) => add(ticket, { ...bounds, lifeMillis: bounds.lifeMillis / 2 }),
  }),
  "has as many tickets of a key as it may, of those that are added at the same time": (right) => ({
    add: (ticket, bounds) => right.add(ticket, { ...bounds, most: 1e9 }),
  }),
  "has as many tickets of a key as it may, of those that live": ({ add }) => ({
    add: (ticket, bounds) => add(ticket, { ...bounds, most: bounds.most + 1 }),
  }),
  "lets a ticket that was added while the clock was ahead live, and counts it, no longer than others":
    (right) => ({
      add: (ticket, bounds) => right.add(ticket, { ...bounds, lifeMillis: 2 * bounds.lifeMillis }),
    }),
})
