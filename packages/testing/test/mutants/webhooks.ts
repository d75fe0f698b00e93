/** Stores of webhooks that are wrong. */

import {
  type ProjectId,
  type StoredWebhook,
  type WebhookId,
  WebhookLimitReached,
  WebhookNotFound,
  WebhookStore,
  replayedResponse,
} from "@tenure/core/store"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { mutantsOf } from "./Mutant.ts"

type Store = WebhookStore["Service"]

type Found = Effect.Success<ReturnType<Store["find"]>>

/** Changes the webhooks that are listed. */
const listing =
  (change: (all: ReadonlyArray<Found>) => ReadonlyArray<Found>) =>
  ({ list }: Store): Partial<Store> => ({
    list: (projectId) => Effect.map(list(projectId), change),
  })

/** Changes webhooks as they are added. */
const adding =
  (change: (webhook: StoredWebhook) => StoredWebhook) =>
  ({ add }: Store): Partial<Store> => ({
    add: (webhook, limit, occasion) => add(change(webhook), limit, occasion),
  })

const noLimit = 1_000_000

/** Changes the webhooks that are found. */
const finding =
  (change: (found: Found) => Found) =>
  ({ find }: Store): Partial<Store> => ({
    find: (...ids) => Effect.map(find(...ids), change),
  })

/** Stores of webhooks that are wrong. */
export const webhooks = mutantsOf(WebhookStore, {
  "ignores the idempotency keys of new webhooks": ({ add }) => ({
    add: (webhook, limit, { once: _, ...occasion }) => add(webhook, limit, occasion),
  }),

  "answers the id of a new webhook to an idempotency key that is known": ({ add }) => ({
    add: (webhook, limit, occasion) =>
      Effect.map(
        add(webhook, limit, occasion),
        (added) => added && { ...added, answer: webhook.id },
      ),
  }),

  "looks for the idempotency key of a new webhook before its turn": ({ add }) => {
    const known = new Map<string, WebhookId>()
    return {
      add: Effect.fnUntraced(function* (webhook, limit, { once, ...occasion }) {
        const id = known.get(once?.key ?? "")
        yield* Effect.yieldNow
        if (id !== undefined) return replayedResponse(id)
        yield* add(webhook, limit, occasion)
        if (once !== undefined) known.set(once.key, webhook.id)
      }),
    }
  },

  "ignores the idempotency keys of rotations": ({ rotateSecret }) => ({
    rotateSecret: (projectId, webhookId, rotation, { once: _, ...occasion }) =>
      rotateSecret(projectId, webhookId, rotation, occasion),
  }),

  "rounds the time that a rotation answers": ({ rotateSecret }) => ({
    rotateSecret: (...rotation) =>
      Effect.map(
        rotateSecret(...rotation),
        (known) =>
          known && replayedResponse(String(Math.floor(Number(known.answer) / 1000) * 1000)),
      ),
  }),

  "ignores the idempotency keys of webhooks that are enabled": ({ enable }) => ({
    enable: (projectId, webhookId, { once: _, ...occasion }) =>
      enable(projectId, webhookId, occasion),
  }),

  "ignores the idempotency keys of removals": ({ remove }) => ({
    remove: (projectId, webhookId, { once: _, ...occasion }) =>
      remove(projectId, webhookId, occasion),
  }),

  "lists the newest first": listing((all) => all.toReversed()),

  "rounds times to seconds": adding((webhook) => ({
    ...webhook,
    createdAt: Math.floor(webhook.createdAt / 1000) * 1000,
  })),

  "normalizes URLs": adding((webhook) => ({ ...webhook, url: new URL(webhook.url).href })),

  "takes a webhook for no events to be for all": adding((webhook) => ({
    ...webhook,
    eventTypes: webhook.eventTypes?.length === 0 ? undefined : webhook.eventTypes,
  })),

  "forgets the event types when a secret is rotated": listing((all) =>
    all.map((webhook) =>
      webhook.previous === undefined ? webhook : { ...webhook, eventTypes: undefined },
    ),
  ),

  "finds webhooks of other projects": ({ add, find }) => {
    const owners = new Map<WebhookId, ProjectId>()
    return {
      add: (webhook, limit, occasion) => {
        owners.set(webhook.id, webhook.projectId)
        return add(webhook, limit, occasion)
      },
      find: (projectId, webhookId) => find(owners.get(webhookId) ?? projectId, webhookId),
    }
  },

  "finds webhooks that were removed": ({ find }) => {
    const found = new Map<WebhookId, Found>()
    return {
      find: (projectId, webhookId) =>
        find(projectId, webhookId).pipe(
          Effect.tap((webhook) => Effect.sync(() => found.set(webhookId, webhook))),
          Effect.catchTag("WebhookNotFound", (error) => {
            const known = found.get(webhookId)
            return known?.projectId === projectId ? Effect.succeed(known) : Effect.fail(error)
          }),
        ),
    }
  },

  "counts no failures": finding((found) => ({ ...found, failures: 0 })),

  "counts no failures in lists": listing((all) =>
    all.map((webhook) => ({ ...webhook, failures: 0 })),
  ),

  "does not say since when a webhook fails": finding((found) => ({
    ...found,
    failingSince: undefined,
  })),

  "dates the last failure in place of the first": ({ find }) => ({
    find: Effect.fnUntraced(function* (...ids) {
      const found = yield* find(...ids)
      return found.failures > 1 ? { ...found, failingSince: yield* Clock.currentTimeMillis } : found
    }),
  }),

  "forgets the failures of webhooks that are disabled": finding((found) =>
    found.disabledAt === undefined ? found : { ...found, failures: 0 },
  ),

  "forgets the failures of webhooks that are enabled once more": ({ enable, find }) => {
    const enabled = new Set<WebhookId>()
    return {
      enable: (projectId, webhookId, occasion) => {
        enabled.add(webhookId)
        return enable(projectId, webhookId, occasion)
      },
      find: (projectId, webhookId) =>
        Effect.map(find(projectId, webhookId), (found) =>
          enabled.has(webhookId) ? { ...found, failures: 0, failingSince: undefined } : found,
        ),
    }
  },

  "adds one webhook too many": ({ add }) => ({
    add: (webhook, limit, occasion) => add(webhook, limit + 1, occasion),
  }),

  "checks the limit before its turn": ({ add, list }) => ({
    add: Effect.fnUntraced(function* (webhook, limit, occasion) {
      const known = yield* list(webhook.projectId)
      yield* Effect.yieldNow
      if (known.length >= limit) return yield* new WebhookLimitReached({ limit })
      yield* add(webhook, noLimit, occasion)
    }),
  }),

  "counts the webhooks of all projects": ({ add }) => {
    let count = 0
    return {
      add: (webhook, limit, occasion) => {
        if (count >= limit) return Effect.fail(new WebhookLimitReached({ limit }))
        count++
        return add(webhook, noLimit, occasion)
      },
    }
  },

  "counts webhooks that were removed": ({ add }) => {
    const counts = new Map<ProjectId, number>()
    return {
      add: (webhook, limit, occasion) => {
        const count = counts.get(webhook.projectId) ?? 0
        if (count >= limit) return Effect.fail(new WebhookLimitReached({ limit }))
        counts.set(webhook.projectId, count + 1)
        return add(webhook, noLimit, occasion)
      },
    }
  },

  "drops the previous secret at once": ({ rotateSecret }) => ({
    rotateSecret: (projectId, webhookId, { secret }, occasion) =>
      rotateSecret(projectId, webhookId, { secret, previousUntil: 0 }, occasion),
  }),

  "signs with the previous secret for ever": ({ rotateSecret }) => ({
    rotateSecret: (projectId, webhookId, { secret }, occasion) =>
      rotateSecret(projectId, webhookId, { secret, previousUntil: Infinity }, occasion),
  }),

  "returns a signing key that it does not store": ({ addSigningKey }) => ({
    addSigningKey: (projectId, webhookId, key, occasion) =>
      Effect.as(addSigningKey(projectId, webhookId, key, occasion), key),
  }),

  "looks for a signing key before its turn": ({ addSigningKey, list }) => ({
    addSigningKey: Effect.fnUntraced(function* (projectId, webhookId, key, occasion) {
      const known = yield* Effect.orDie(list(projectId))
      yield* Effect.yieldNow
      yield* addSigningKey(projectId, webhookId, key, occasion)
      return known.find(({ id }) => id === webhookId)?.signingKey ?? key
    }),
  }),

  "fails to enable a webhook that is enabled": ({ enable, list }) => ({
    enable: Effect.fnUntraced(function* (projectId, webhookId, occasion) {
      const known = yield* Effect.orDie(list(projectId))
      if (known.some(({ disabledAt, id }) => id === webhookId && disabledAt === undefined)) {
        return yield* new WebhookNotFound({ webhookId })
      }
      yield* enable(projectId, webhookId, occasion)
    }),
  }),

  "enables unknown webhooks": ({ enable }) => ({
    enable: (...ids) => Effect.ignore(enable(...ids)),
  }),

  "removes webhooks of other projects": ({ add, remove }) => {
    const owners = new Map<WebhookId, ProjectId>()
    return {
      add: (webhook, limit, occasion) => {
        owners.set(webhook.id, webhook.projectId)
        return add(webhook, limit, occasion)
      },
      remove: (projectId, webhookId, occasion) =>
        remove(owners.get(webhookId) ?? projectId, webhookId, occasion),
    }
  },

  "delivers to webhooks that were removed": ({ add, list }) => {
    const removed = new Set<WebhookId>()
    return {
      add: (webhook, limit, occasion) => add(webhook, limit + removed.size, occasion),
      remove: Effect.fnUntraced(function* (projectId, webhookId) {
        const known = yield* Effect.orDie(list(projectId))
        if (removed.has(webhookId) || !known.some(({ id }) => id === webhookId)) {
          return yield* new WebhookNotFound({ webhookId })
        }
        removed.add(webhookId)
      }),
      list: (projectId) =>
        Effect.map(list(projectId), (all) => all.filter(({ id }) => !removed.has(id))),
    }
  },

  "cancels the deliveries of other webhooks when one is removed": ({ add, list, remove }) => ({
    remove: Effect.fnUntraced(function* (projectId, webhookId, occasion) {
      yield* remove(projectId, webhookId, occasion)
      for (const other of yield* Effect.orDie(list(projectId))) {
        yield* remove(projectId, other.id, occasion)
        yield* Effect.orDie(add(other, noLimit, occasion))
      }
    }),
  }),
})
