/** Webhooks in memory. */

import type { ProjectId } from "@tenure/core/Project"
import {
  type Webhook,
  type WebhookId,
  WebhookLimitReached,
  WebhookNotFound,
} from "@tenure/core/Webhook"
import type { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import type { State } from "./state.ts"

/** Makes the store. */
export const make = (state: State): WebhookStore["Service"] => {
  /** Changes a webhook that exists. */
  const change = (
    projectId: ProjectId,
    webhookId: WebhookId,
    update: (webhook: Webhook) => Webhook,
  ): Effect.Effect<Webhook, WebhookNotFound> =>
    Effect.suspend(() => {
      const webhooks = state.findProject(projectId)?.webhooks
      const webhook = webhooks?.get(webhookId)
      if (webhook === undefined) return Effect.fail(new WebhookNotFound({ webhookId }))
      const changed = update(webhook)
      webhooks?.set(webhookId, changed)
      state.deliveries.update(changed)
      return Effect.succeed(changed)
    })

  return {
    add: (webhook, limit) =>
      Effect.flatMap(state.project(webhook.projectId), ({ webhooks }) => {
        if (webhooks.size >= limit) return Effect.fail(new WebhookLimitReached({ limit }))
        webhooks.set(webhook.id, webhook)
        return Effect.void
      }),

    list: (projectId) =>
      Effect.map(state.project(projectId), ({ webhooks }) => [...webhooks.values()]),

    rotate: (projectId, webhookId, { previousUntil, secret }) =>
      Effect.asVoid(
        change(projectId, webhookId, (webhook) => ({
          ...webhook,
          secret,
          previous: { secret: webhook.secret, until: previousUntil },
        })),
      ),

    sign: (projectId, webhookId, key) =>
      Effect.map(
        change(projectId, webhookId, (webhook) => ({
          ...webhook,
          signingKey: webhook.signingKey ?? key,
        })),
        ({ signingKey }) => signingKey ?? key,
      ),

    enable: (projectId, webhookId) =>
      Effect.asVoid(
        change(projectId, webhookId, (webhook) => ({ ...webhook, disabledAt: undefined })),
      ),

    remove: (projectId, webhookId) =>
      Effect.suspend(() => {
        if (state.findProject(projectId)?.webhooks.delete(webhookId) !== true) {
          return Effect.fail(new WebhookNotFound({ webhookId }))
        }
        state.deliveries.close(webhookId, "cancelled")
        return Effect.void
      }),
  }
}
