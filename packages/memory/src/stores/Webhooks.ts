/** Webhooks in memory. */

import type { OtherAction } from "@tenure/core/Membership"
import type { Occasion } from "@tenure/core/Origin"
import type { WebhookRef } from "@tenure/core/Outbox"
import { type StoredWebhook, WebhookLimitReached, WebhookNotFound } from "@tenure/core/Webhook"
import type { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import * as Deliveries from "../deliveries/Deliveries.ts"
import * as State from "../State.ts"

/** Changes a webhook that exists. It is the same object if nothing changes. */
const change = (
  state: State.State,
  ref: WebhookRef,
  update: (webhook: StoredWebhook) => StoredWebhook,
  action: OtherAction,
  occasion: Occasion,
): Effect.Effect<StoredWebhook, WebhookNotFound> =>
  Effect.map(State.webhookOf(state, ref), (webhook) => {
    const changed = update(webhook)
    if (changed === webhook) return webhook
    State.setWebhook(state, changed)
    State.audit(state, ref.projectId, action, ref.webhookId, occasion)
    return changed
  })

const withHealth = ({ deliveries }: State.State, webhook: StoredWebhook) => ({
  ...webhook,
  ...Deliveries.healthOf(deliveries, webhook.id),
})

/** Makes the store. */
export const make = (state: State.State): WebhookStore["Service"] => ({
  ping: Effect.void,

  add: (webhook, limit, occasion) =>
    state.answers.change(
      occasion.once,
      webhook.projectId,
      Effect.flatMap(State.projectOf(state, webhook.projectId), ({ webhooks }) => {
        if (webhooks.size >= limit) return Effect.fail(new WebhookLimitReached({ limit }))
        webhooks.set(webhook.id, webhook)
        State.audit(state, webhook.projectId, "webhook_created", webhook.id, occasion)
        return Effect.void
      }),
      () => webhook.id,
    ),

  list: (projectId) =>
    Effect.map(State.projectOf(state, projectId), ({ webhooks }) =>
      [...webhooks.values()].map((webhook) => withHealth(state, webhook)),
    ),

  find: (projectId, webhookId) =>
    Effect.map(State.webhookOf(state, { projectId, webhookId }), (webhook) =>
      withHealth(state, webhook),
    ),

  rotateSecret: (projectId, webhookId, { previousUntil, secret }, occasion) =>
    state.answers.change(
      occasion.once,
      projectId,
      Effect.asVoid(
        change(
          state,
          { projectId, webhookId },
          (webhook) => ({
            ...webhook,
            secret,
            previous: { secret: webhook.secret, until: previousUntil },
          }),
          "secret_rotated",
          occasion,
        ),
      ),
      () => String(previousUntil),
    ),

  addSigningKey: (projectId, webhookId, key, occasion) =>
    Effect.map(
      change(
        state,
        { projectId, webhookId },
        (webhook) => (webhook.signingKey === undefined ? { ...webhook, signingKey: key } : webhook),
        "signing_key_added",
        occasion,
      ),
      ({ signingKey }) => signingKey ?? key,
    ),

  enable: (projectId, webhookId, occasion) =>
    state.answers.change(
      occasion.once,
      projectId,
      Effect.asVoid(
        change(
          state,
          { projectId, webhookId },
          (webhook) =>
            webhook.disabledAt === undefined ? webhook : { ...webhook, disabledAt: undefined },
          "webhook_enabled",
          occasion,
        ),
      ),
    ),

  remove: (projectId, webhookId, occasion) =>
    state.answers.change(
      occasion.once,
      projectId,
      Effect.suspend(() => {
        if (!State.removeWebhook(state, { projectId, webhookId })) {
          return Effect.fail(new WebhookNotFound({ webhookId }))
        }
        State.audit(state, projectId, "webhook_deleted", webhookId, occasion)
        return Effect.void
      }),
    ),
})
