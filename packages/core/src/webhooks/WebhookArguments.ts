/** Reads the arguments that the calls of webhooks share. */

import * as Effect from "effect/Effect"
import * as Argument from "../base/Argument.ts"
import type { InvalidInput } from "../base/InvalidInput.ts"
import * as Once from "../base/Once.ts"
import * as Origin from "../base/Origin.ts"
import { owned } from "../base/Own.ts"
import type { WebhookRef } from "./Outbox.ts"
import { WebhookId, WebhookNotFound } from "./Webhook.ts"
import type { RepeatableIds, WebhookIds } from "./Webhooks.ts"

/** Decodes the id of a webhook. Text that is not a UUID cannot be the id of any. */
const decodeWebhookId = (
  text: string,
): Effect.Effect<WebhookId, WebhookNotFound | InvalidInput> => {
  if (typeof text !== "string") return Argument.invalid("webhookId", "the id of a webhook")
  const id = text.toLowerCase()
  return WebhookId.is(id)
    ? Effect.succeed(id)
    : Effect.fail(new WebhookNotFound({ webhookId: text }))
}

/** Decodes the ids of a webhook. Fails with `WebhookNotFound` if they cannot be those of any. */
export const decodeIds = Effect.fnUntraced(function* (ids: WebhookIds) {
  const { projectId, webhookId } = owned(ids)
  return {
    webhookId: yield* decodeWebhookId(webhookId),
    projectId: yield* Argument.projectId(projectId),
  } satisfies WebhookRef
})

/** Reads the occasion of a change of a webhook, which the other parameters describe. */
export const occasionOf = Effect.fnUntraced(function* (
  change: string,
  ids: RepeatableIds,
  origin?: Origin.Input,
  ...further: ReadonlyArray<unknown>
) {
  const { idempotencyKey, projectId, webhookId } = owned(ids)
  const occasion = yield* Origin.occasionOf(origin)
  return yield* Once.on(occasion, idempotencyKey, change, projectId, webhookId, ...further)
})
