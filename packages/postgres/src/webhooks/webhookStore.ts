/** Webhooks on PostgreSQL. */

import type { Occasion } from "@tenure/core/Origin"
import { type ProjectId, ProjectNotFound } from "@tenure/core/Project"
import { StoredSecret } from "@tenure/core/StoredSecret"
import {
  type StoredWebhook,
  type WebhookId,
  WebhookLimitReached,
  WebhookNotFound,
} from "@tenure/core/Webhook"
import type { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import { occasionParams } from "../audit/fragments.sql.ts"
import { type Executor, readsOf } from "../connection/Executor.ts"
import { instant, text, uuid } from "../connection/parameters.ts"
import type { Answers } from "../idempotency/Answers.ts"
import { formOf, forms } from "../idempotency/fragments.sql.ts"
import type { Notifications } from "../outbox/Notifications.ts"
import { addSigningKey } from "./addSigningKey.sql.ts"
import { type AddedRow, addWebhook, addWebhookParams } from "./addWebhook.sql.ts"
import { enableWebhook } from "./enableWebhook.sql.ts"
import { findWebhook, type FoundRow, toFound } from "./findWebhook.sql.ts"
import { toWebhook } from "./fragments.sql.ts"
import { isWebhook, type ListedRow, listWebhooks } from "./listWebhooks.sql.ts"
import { removeWebhook } from "./removeWebhook.sql.ts"
import { rotateSecret } from "./rotateSecret.sql.ts"

/** Makes the store. */
export const make = (
  executor: Executor,
  notifications: Notifications,
  answers: Answers,
): WebhookStore["Service"] => {
  const { schema } = executor
  const sql = {
    add: forms(schema, addWebhook, 10),
    list: listWebhooks(schema),
    find: findWebhook(schema),
    rotateSecret: rotateSecret(schema),
    addSigningKey: addSigningKey(schema),
    enable: enableWebhook(schema),
    remove: forms(schema, removeWebhook, 6),
  }

  const add = Effect.fnUntraced(function* (
    webhook: StoredWebhook,
    limit: number,
    occasion: Occasion,
  ) {
    const { projectId } = webhook
    const form = formOf(sql.add, addWebhookParams(webhook, limit, occasion), occasion.once)
    const [row] = yield* executor.execute<AddedRow>(...form, { owner: projectId })
    if (row?.added === true) return undefined
    return yield* row?.project_exists === true
      ? new WebhookLimitReached({ limit })
      : new ProjectNotFound({ projectId })
  })

  const remove = Effect.fnUntraced(function* (
    projectId: ProjectId,
    webhookId: WebhookId,
    occasion: Occasion,
  ) {
    const params = [
      text(projectId),
      uuid(webhookId),
      text(notifications.channel),
      ...occasionParams(occasion),
    ]
    const form = formOf(sql.remove, params, occasion.once)
    const rows = yield* executor.execute(...form, { owner: projectId })
    if (rows.length === 0) return yield* new WebhookNotFound({ webhookId })
  })

  return {
    ping: executor.ping,

    add: (webhook, limit, occasion) => answers.change(occasion.once, add(webhook, limit, occasion)),

    list: Effect.fnUntraced(function* (projectId) {
      const rows = yield* executor.execute<ListedRow>(sql.list, [text(projectId)], {
        owner: readsOf(projectId),
      })
      if (rows.length === 0) return yield* new ProjectNotFound({ projectId })
      return rows.filter(isWebhook).map((row) => toWebhook(projectId, row))
    }),

    find: Effect.fnUntraced(function* (projectId, webhookId) {
      const params = [text(projectId), uuid(webhookId)]
      const [row] = yield* executor.execute<FoundRow>(sql.find, params, {
        owner: readsOf(projectId),
      })
      return row === undefined ? yield* new WebhookNotFound({ webhookId }) : toFound(projectId, row)
    }),

    rotateSecret: Effect.fnUntraced(function* (projectId, webhookId, rotation, occasion) {
      const params = [
        text(projectId),
        uuid(webhookId),
        text(rotation.secret),
        instant(rotation.previousUntil),
        ...occasionParams(occasion),
      ]
      const rows = yield* executor.execute(sql.rotateSecret, params, { owner: projectId })
      if (rows.length === 0) return yield* new WebhookNotFound({ webhookId })
    }),

    addSigningKey: Effect.fnUntraced(function* (projectId, webhookId, key, occasion) {
      const params = [text(projectId), uuid(webhookId), text(key), ...occasionParams(occasion)]
      const [row] = yield* executor.execute<{ readonly signing_key: string }>(
        sql.addSigningKey,
        params,
        { owner: projectId },
      )
      return row === undefined
        ? yield* new WebhookNotFound({ webhookId })
        : StoredSecret(row.signing_key)
    }),

    enable: Effect.fnUntraced(function* (projectId, webhookId, occasion) {
      const params = [text(projectId), uuid(webhookId), ...occasionParams(occasion)]
      const rows = yield* executor.execute(sql.enable, params, { owner: projectId })
      if (rows.length === 0) return yield* new WebhookNotFound({ webhookId })
    }),

    remove: (projectId, webhookId, occasion) =>
      answers.change(occasion.once, remove(projectId, webhookId, occasion)),
  }
}
