/** Webhooks in memory. */

import { WebhookLimitReached, WebhookNotFound } from "@tenure/core/Webhook"
import type { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import type { State } from "./state.ts"

/** Makes the store. */
export const make = (state: State): WebhookStore["Service"] => ({
  add: (webhook, limit) =>
    Effect.flatMap(state.project(webhook.projectId), ({ webhooks }) => {
      if (webhooks.size >= limit) return Effect.fail(new WebhookLimitReached({ limit }))
      webhooks.set(webhook.id, webhook)
      return Effect.void
    }),

  list: (projectId) =>
    Effect.map(state.project(projectId), ({ webhooks }) => [...webhooks.values()]),

  enable: (projectId, webhookId) =>
    Effect.suspend(() => {
      const webhooks = state.findProject(projectId)?.webhooks
      const webhook = webhooks?.get(webhookId)
      if (webhook === undefined) return Effect.fail(new WebhookNotFound({ webhookId }))
      webhooks?.set(webhookId, { ...webhook, disabledAt: undefined })
      state.deliveries.reopen(webhookId)
      return Effect.void
    }),

  remove: (projectId, webhookId) =>
    Effect.suspend(() => {
      if (state.findProject(projectId)?.webhooks.delete(webhookId) !== true) {
        return Effect.fail(new WebhookNotFound({ webhookId }))
      }
      state.deliveries.close(webhookId, "cancelled")
      return Effect.void
    }),
})
