/** Webhooks in memory. */

import type { WebhookRef } from "@tenure/core/Outbox"
import { type StoredWebhook, WebhookLimitReached, WebhookNotFound } from "@tenure/core/Webhook"
import type { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import * as Deliveries from "../deliveries/Deliveries.ts"
import * as State from "../State.ts"

/** Changes a webhook that exists. */
const change = (
  state: State.State,
  ref: WebhookRef,
  update: (webhook: StoredWebhook) => StoredWebhook,
): Effect.Effect<StoredWebhook, WebhookNotFound> =>
  Effect.map(State.webhookOf(state, ref), (webhook) => {
    const changed = update(webhook)
    State.setWebhook(state, changed)
    return changed
  })

/** Makes the store. */
export const make = (state: State.State): WebhookStore["Service"] => ({
  ping: Effect.void,

  add: (webhook, limit) =>
    Effect.flatMap(State.projectOf(state, webhook.projectId), ({ webhooks }) => {
      if (webhooks.size >= limit) return Effect.fail(new WebhookLimitReached({ limit }))
      webhooks.set(webhook.id, webhook)
      return Effect.void
    }),

  list: (projectId) =>
    Effect.map(State.projectOf(state, projectId), ({ webhooks }) => [...webhooks.values()]),

  find: (projectId, webhookId) =>
    Effect.map(State.webhookOf(state, { projectId, webhookId }), (webhook) => ({
      ...webhook,
      ...Deliveries.healthOf(state.deliveries, webhookId),
    })),

  rotateSecret: (projectId, webhookId, { previousUntil, secret }) =>
    Effect.asVoid(
      change(state, { projectId, webhookId }, (webhook) => ({
        ...webhook,
        secret,
        previous: { secret: webhook.secret, until: previousUntil },
      })),
    ),

  addSigningKey: (projectId, webhookId, key) =>
    Effect.map(
      change(state, { projectId, webhookId }, (webhook) => ({
        ...webhook,
        signingKey: webhook.signingKey ?? key,
      })),
      ({ signingKey }) => signingKey ?? key,
    ),

  enable: (projectId, webhookId) =>
    Effect.asVoid(
      change(state, { projectId, webhookId }, (webhook) => ({ ...webhook, disabledAt: undefined })),
    ),

  remove: (projectId, webhookId) =>
    Effect.suspend(() =>
      State.removeWebhook(state, { projectId, webhookId })
        ? Effect.void
        : Effect.fail(new WebhookNotFound({ webhookId })),
    ),
})
