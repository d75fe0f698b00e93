/** Webhooks on PostgreSQL. */

import type { Occasion } from "@tenure/core/Origin"
import type { WebhookRef } from "@tenure/core/Outbox"
import { ProjectNotFound } from "@tenure/core/Project"
import { StoredSecret } from "@tenure/core/StoredSecret"
import { type StoredWebhook, WebhookLimitReached, WebhookNotFound } from "@tenure/core/Webhook"
import type { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import { occasionParams } from "../audit/fragments.sql.ts"
import { type Executor, readsOf } from "../connection/Executor.ts"
import { instant, text, uuid } from "../connection/parameters.ts"
import type { Answers } from "../idempotency/Answers.ts"
import { formOf, type Forms, forms } from "../idempotency/fragments.sql.ts"
import type { Notifications } from "../outbox/Notifications.ts"
import { addSigningKey } from "./addSigningKey.sql.ts"
import { type AddedRow, addWebhook, addWebhookParams } from "./addWebhook.sql.ts"
import { enableWebhook } from "./enableWebhook.sql.ts"
import { findWebhook } from "./findWebhook.sql.ts"
import { toWebhook, type WebhookRow } from "./fragments.sql.ts"
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
    rotateSecret: forms(schema, rotateSecret, 7),
    addSigningKey: addSigningKey(schema),
    enable: forms(schema, enableWebhook, 5),
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

  /**
   * Changes a webhook that exists, by a statement that then returns a row.
   *
   * @param further - the parameters between the ids and the occasion
   */
  const change = (
    statement: Forms,
    { projectId, webhookId }: WebhookRef,
    further: ReadonlyArray<unknown>,
    occasion: Occasion,
  ) => {
    const params = [text(projectId), uuid(webhookId), ...further, ...occasionParams(occasion)]
    const form = formOf(statement, params, occasion.once)
    return answers.change(
      occasion.once,
      Effect.flatMap(executor.execute(...form, { owner: projectId }), (rows) =>
        rows.length === 0 ? Effect.fail(new WebhookNotFound({ webhookId })) : Effect.void,
      ),
    )
  }

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
      const [row] = yield* executor.execute<WebhookRow>(sql.find, params, {
        owner: readsOf(projectId),
      })
      return row === undefined
        ? yield* new WebhookNotFound({ webhookId })
        : toWebhook(projectId, row)
    }),

    rotateSecret: (projectId, webhookId, { previousUntil, secret }, occasion) =>
      change(
        sql.rotateSecret,
        { projectId, webhookId },
        [text(secret), instant(previousUntil)],
        occasion,
      ),

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

    enable: (projectId, webhookId, occasion) =>
      change(sql.enable, { projectId, webhookId }, [], occasion),

    remove: (projectId, webhookId, occasion) =>
      change(sql.remove, { projectId, webhookId }, [text(notifications.channel)], occasion),
  }
}
