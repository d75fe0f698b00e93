/** Stores for keys, tickets, webhooks, feeds and token buckets that break a promise. */

import {
  type ApiKey,
  ApiKeyId,
  ApiKeyStore,
  type BucketPolicies,
  type FeedPage,
  FeedStore,
  type LimitedClient,
  Micros,
  RateLimitStore,
  type StoredWebhook,
  type Ticket,
  TicketStore,
  WebhookStore,
} from "@tenure/core/store"
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
    add: Effect.fnUntraced(function* (key, context) {
      const known = yield* find(key.digest)
      yield* Effect.yieldNow
      const stored = yield* add(key, context)
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
    add: (key, { idempotency: _, ...context }) => right.add(key, context),
  }),
  "revokes a key with an idempotency key once": ({ revoke }) => ({
    revoke: ({ idempotency: _, ...revocation }) => revoke(revocation),
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

type Store = WebhookStore["Service"]
type Found = Effect.Success<ReturnType<Store["find"]>>

const listingWebhooks =
  (change: (all: ReadonlyArray<Found>) => ReadonlyArray<Found>) =>
  ({ list }: Store): Partial<Store> => ({
    list: (projectId) => Effect.map(list(projectId), change),
  })

const addingWebhooks =
  (change: (webhook: StoredWebhook) => StoredWebhook) =>
  ({ add }: Store): Partial<Store> => ({
    add: (webhook, limit, context) => add(change(webhook), limit, context),
  })

const findingWebhooks =
  (change: (found: Found) => Found) =>
  ({ find }: Store): Partial<Store> => ({
    find: (...ids) => Effect.map(find(...ids), change),
  })

export const wrongWebhookStores = wrongStores("WebhookStore", WebhookStore, {
  "lists the webhooks of a project, oldest first": listingWebhooks((all) => all.toReversed()),
  "stores URLs and event types unchanged": {
    "normalizes URLs": addingWebhooks((webhook) => ({
      ...webhook,
      url: new URL(webhook.url).href,
    })),
    "takes no types for all types": addingWebhooks((webhook) => ({
      ...webhook,
      eventTypes: webhook.eventTypes?.length === 0 ? undefined : webhook.eventTypes,
    })),
  },
  "counts the attempts that failed since one succeeded, and says since when": findingWebhooks(
    (found) => ({
      ...found,
      failures: 0,
    }),
  ),
  "keeps the failures of a webhook that is disabled, until it is enabled": findingWebhooks(
    (found) => (found.disabled === undefined ? found : { ...found, failures: 0 }),
  ),
  "finds and enables a webhook, but none that is unknown or of another project": (right) => ({
    enable: (...ids) => Effect.ignore(right.enable(...ids)),
  }),
  "replaces the settings of a webhook, if they are as expected": ({ find, update }) => ({
    update: (ref, change, context) =>
      find(ref.projectId, ref.webhookId).pipe(
        Effect.flatMap((expected) => update(ref, { ...change, expected }, context)),
        Effect.catchTag("WebhookNotFound", () => Effect.void),
      ),
  }),
  "keeps what waits for a webhook that is disabled by request, until it is enabled": (right) => ({
    update: (ref, change, context) =>
      right.update(
        ref,
        { ...change, settings: { ...change.settings, disabled: change.expected.disabled } },
        context,
      ),
  }),
  "changes a webhook with an idempotency key once": ({ update }) => ({
    update: (ref, change, { idempotency: _, ...context }) => update(ref, change, context),
  }),
  "enforces the limit of a project across concurrent additions": ({ add }) => ({
    add: (webhook, limit, context) => add(webhook, limit + 1, context),
  }),
  "adds a webhook with an idempotency key once, and keeps no key of one that it cannot add": (
    right,
  ) => ({
    add: (webhook, limit, { idempotency: _, ...context }) => right.add(webhook, limit, context),
  }),
  "rotates a secret with an idempotency key once": ({ rotateSecret }) => ({
    rotateSecret: (projectId, webhookId, rotation, { idempotency: _, ...context }) =>
      rotateSecret(projectId, webhookId, rotation, context),
  }),
  "enables a webhook with an idempotency key once": ({ enable }) => ({
    enable: (projectId, webhookId, { idempotency: _, ...context }) =>
      enable(projectId, webhookId, context),
  }),
  "removes a webhook with an idempotency key once": ({ remove }) => ({
    remove: (projectId, webhookId, { idempotency: _, ...context }) =>
      remove(projectId, webhookId, context),
  }),
})

const paging =
  (change: (page: FeedPage) => FeedPage) =>
  ({ read }: FeedStore["Service"]): Partial<FeedStore["Service"]> => ({
    read: (projects, from, size) => Effect.map(read(projects, from, size), change),
  })

const unlimited = 1_000_000

const nothing = { events: [], isLast: true }

export const wrongFeedStores = wrongStores("FeedStore", FeedStore, {
  "returns the events of a project, oldest first, as they were published": paging((page) => ({
    ...page,
    events: page.events.slice(1),
  })),
  "returns the events of changes": ({ read }) => ({
    read: (projects, from, size) => read(projects, from === "start" ? "now" : from, size),
  }),
  "returns only what comes later from now on": ({ read }) => ({
    read: (projects, from, size) => read(projects, from === "now" ? "start" : from, size),
  }),
  "returns no more events than asked for, and none that is already in another page": paging(
    (page) => ({ ...page, isLast: true }),
  ),
  "returns about as many bytes as asked for, and always an event": ({ read }) => ({
    read: (projects, from, size) => read(projects, from, { ...size, bytes: unlimited }),
  }),
  "returns the events of several projects in one order, in pages too": ({ read }) => ({
    read: (projects, from, size) => read(projects, from, { ...size, events: unlimited }),
  }),
  "returns the latest events of a project, newest first, page after page": ({ latest }) => ({
    latest: (projectId, _, size) => latest(projectId, undefined, size),
  }),
  "returns about as many bytes as asked for, and always an event of the latest": ({ latest }) => ({
    latest: (projectId, before, size) => latest(projectId, before, { ...size, bytes: unlimited }),
  }),
  "returns none before an event that is not kept, or of another project": ({ latest }) => ({
    latest: (projectId, before, size) =>
      Effect.flatMap(latest(projectId, before, size), (page) =>
        page.events.length > 0 ? Effect.succeed(page) : latest(projectId, undefined, size),
      ),
  }),
  "fails for a project that does not exist, and has none at first": ({ latest }) => ({
    latest: (...asked) =>
      Effect.catchTag(latest(...asked), "ProjectNotFound", () => Effect.succeed(nothing)),
  }),
  "fails for projects that do not exist": ({ read }) => ({
    read: ([first], from, size) => read([first], from, size),
  }),
})

type BucketStore = RateLimitStore["Service"]

/** Takes for another client, or by other policies. */
const takingTokens =
  (change: (client: LimitedClient, by: BucketPolicies) => Parameters<BucketStore["take"]>) =>
  ({ take }: BucketStore): Partial<BucketStore> => ({
    take: (client, by) => take(...change(client, by)),
  })

export const wrongRateLimitStores = wrongStores("RateLimitStore", RateLimitStore, {
  "behaves like simple token buckets, for any sequence of takes and waits": {
    "counts nobody's takes": takingTokens((_, by) => [
      { address: crypto.randomUUID(), keyId: undefined },
      by,
    ]),
    "takes a limit for a capacity": takingTokens((client, by) => [
      client,
      { ...by, burst: { ...by.burst, capacity: by.burst.limit } },
    ]),
    "takes a token for a refusal": ({ take }) => ({
      take: Effect.fnUntraced(function* (client, by) {
        const taken = yield* take(client, by)
        return taken.admitted ? taken : yield* take({ ...client, keyId: undefined }, by)
      }),
    }),
    "has a key for those without one": takingTokens((client, by) => [
      { ...client, keyId: client.keyId ?? ApiKeyId("nobody") },
      by,
    ]),
  },
  "has separate buckets for different ids, whatever characters they contain": takingTokens(
    ({ address, keyId }, by) => [{ address: address.toLowerCase(), keyId }, by],
  ),
  "admits exactly as many concurrent takes as there are tokens": ({ take }) => {
    let shared: ReturnType<typeof take> | undefined
    return {
      take: Effect.fnUntraced(function* (client, by) {
        const own = (shared ??= yield* Effect.cached(take(client, by)))
        yield* Effect.yieldNow
        shared = undefined
        return yield* own
      }),
    }
  },
  "admits exactly as many when clients share an address or a key": takingTokens(
    ({ address, keyId }, by) => [{ address: `${address} ${keyId}`, keyId }, by],
  ),
  "returns when each bucket will be full, by the clock of the store": ({ take }) => ({
    take: (client, by) =>
      Effect.map(take(client, by), (taken) => ({ ...taken, now: Micros(taken.now - 1000) })),
  }),
})
