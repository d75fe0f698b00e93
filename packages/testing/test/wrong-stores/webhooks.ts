/** Webhook stores that break a promise. */

import { type StoredWebhook, WebhookStore } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { wrongStores } from "./wrong-store.ts"

type Store = WebhookStore["Service"]
type Found = Effect.Success<ReturnType<Store["find"]>>

const listing =
  (change: (all: ReadonlyArray<Found>) => ReadonlyArray<Found>) =>
  ({ list }: Store): Partial<Store> => ({
    list: (projectId) => Effect.map(list(projectId), change),
  })

const adding =
  (change: (webhook: StoredWebhook) => StoredWebhook) =>
  ({ add }: Store): Partial<Store> => ({
    add: (webhook, limit, occasion) => add(change(webhook), limit, occasion),
  })

const finding =
  (change: (found: Found) => Found) =>
  ({ find }: Store): Partial<Store> => ({
    find: (...ids) => Effect.map(find(...ids), change),
  })

export const wrongWebhookStores = wrongStores("WebhookStore", WebhookStore, {
  "lists the webhooks of a project, oldest first": listing((all) => all.toReversed()),
  "stores URLs and event types unchanged": {
    "normalizes URLs": adding((webhook) => ({ ...webhook, url: new URL(webhook.url).href })),
    "takes no types for all types": adding((webhook) => ({
      ...webhook,
      eventTypes: webhook.eventTypes?.length === 0 ? undefined : webhook.eventTypes,
    })),
  },
  "counts the attempts that failed since one succeeded, and says since when": finding((found) => ({
    ...found,
    failures: 0,
  })),
  "keeps the failures of a webhook that is disabled, until it is enabled": finding((found) =>
    found.disabled === undefined ? found : { ...found, failures: 0 },
  ),
  "finds and enables a webhook, but none that is unknown or of another project": (right) => ({
    enable: (...ids) => Effect.ignore(right.enable(...ids)),
  }),
  "replaces the settings of a webhook, if they are as expected": ({ find, update }) => ({
    update: (ref, change, occasion) =>
      find(ref.projectId, ref.webhookId).pipe(
        Effect.flatMap((expected) => update(ref, { ...change, expected }, occasion)),
        Effect.catchTag("WebhookNotFound", () => Effect.void),
      ),
  }),
  "keeps what waits for a webhook that is disabled by request, until it is enabled": (right) => ({
    update: (ref, change, occasion) =>
      right.update(
        ref,
        { ...change, settings: { ...change.settings, disabled: change.expected.disabled } },
        occasion,
      ),
  }),
  "changes a webhook with an idempotency key once": ({ update }) => ({
    update: (ref, change, { once: _, ...occasion }) => update(ref, change, occasion),
  }),
  "enforces the limit of a project across concurrent additions": ({ add }) => ({
    add: (webhook, limit, occasion) => add(webhook, limit + 1, occasion),
  }),
  "adds a webhook with an idempotency key once, and keeps no key of one that it cannot add": (
    right,
  ) => ({
    add: (webhook, limit, { once: _, ...occasion }) => right.add(webhook, limit, occasion),
  }),
  "rotates a secret with an idempotency key once": ({ rotateSecret }) => ({
    rotateSecret: (projectId, webhookId, rotation, { once: _, ...occasion }) =>
      rotateSecret(projectId, webhookId, rotation, occasion),
  }),
  "enables a webhook with an idempotency key once": ({ enable }) => ({
    enable: (projectId, webhookId, { once: _, ...occasion }) =>
      enable(projectId, webhookId, occasion),
  }),
  "removes a webhook with an idempotency key once": ({ remove }) => ({
    remove: (projectId, webhookId, { once: _, ...occasion }) =>
      remove(projectId, webhookId, occasion),
  }),
})
