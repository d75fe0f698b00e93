/** Webhooks on PostgreSQL. */

import { EventType } from "@tenure/core/Event"
import { type ProjectId, ProjectNotFound } from "@tenure/core/Project"
import { type Webhook, WebhookId, WebhookLimitReached, WebhookNotFound } from "@tenure/core/Webhook"
import { Secret, SigningKey } from "@tenure/core/WebhookSignature"
import type { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import * as Statements from "../statements/webhooks.ts"
import type { Database } from "./database.ts"
import type { Nudge } from "./nudge.ts"
import { instant, integer, text, texts, uuid } from "./parameters.ts"

interface WebhookRow {
  readonly id: string | null
  readonly url: string
  readonly secret: string
  readonly previous_secret: string | null
  readonly previous_until: Date | null
  readonly signing_key: string | null
  readonly event_types: ReadonlyArray<string> | null
  readonly created_at: Date
  readonly disabled_at: Date | null
}

const previousOf = ({ previous_secret, previous_until }: WebhookRow): Webhook["previous"] =>
  previous_secret === null || previous_until === null
    ? undefined
    : { secret: Secret(previous_secret), until: Number(previous_until) }

const toWebhook = (projectId: ProjectId, id: string, row: WebhookRow): Webhook => ({
  id: WebhookId(id),
  projectId,
  url: row.url,
  secret: Secret(row.secret),
  previous: previousOf(row),
  signingKey: row.signing_key === null ? undefined : SigningKey(row.signing_key),
  eventTypes: row.event_types?.map(EventType),
  createdAt: Number(row.created_at),
  disabledAt: row.disabled_at === null ? undefined : Number(row.disabled_at),
})

/** Makes the store. */
export const make = (database: Database, nudge: Nudge): WebhookStore["Service"] => {
  const { schema } = database
  const sql = {
    add: Statements.addWebhook(schema),
    list: Statements.listWebhooks(schema),
    rotate: Statements.rotateSecret(schema),
    sign: Statements.signWebhook(schema),
    enable: Statements.enableWebhook(schema),
    remove: Statements.removeWebhook(schema),
  }
  return {
    add: Effect.fnUntraced(function* (
      { createdAt, eventTypes, id, projectId, secret, url },
      limit,
    ) {
      const [row] = yield* database.join<{ added: boolean; project_exists: boolean }>(sql.add, [
        uuid(id),
        text(projectId),
        text(url),
        text(secret),
        instant(createdAt),
        integer(limit),
        eventTypes === undefined ? text(undefined) : texts(eventTypes),
      ])
      if (row?.added === true) return
      return yield* row?.project_exists === true
        ? new WebhookLimitReached({ limit })
        : new ProjectNotFound({ projectId })
    }),

    list: Effect.fnUntraced(function* (projectId) {
      const rows = yield* database.join<WebhookRow>(sql.list, [text(projectId)])
      if (rows.length === 0) return yield* new ProjectNotFound({ projectId })
      return rows.flatMap((row) => (row.id === null ? [] : [toWebhook(projectId, row.id, row)]))
    }),

    rotate: Effect.fnUntraced(function* (projectId, webhookId, { previousUntil, secret }) {
      const rows = yield* database.join(sql.rotate, [
        text(projectId),
        uuid(webhookId),
        text(secret),
        instant(previousUntil),
      ])
      if (rows.length === 0) return yield* new WebhookNotFound({ webhookId })
    }),

    sign: Effect.fnUntraced(function* (projectId, webhookId, key) {
      const [row] = yield* database.join<{ readonly signing_key: string }>(sql.sign, [
        text(projectId),
        uuid(webhookId),
        text(key),
      ])
      return row === undefined
        ? yield* new WebhookNotFound({ webhookId })
        : SigningKey(row.signing_key)
    }),

    enable: Effect.fnUntraced(function* (projectId, webhookId) {
      const rows = yield* database.join(sql.enable, [text(projectId), uuid(webhookId)])
      if (rows.length === 0) return yield* new WebhookNotFound({ webhookId })
    }),

    remove: Effect.fnUntraced(function* (projectId, webhookId) {
      const rows = yield* database.join(sql.remove, [
        text(projectId),
        uuid(webhookId),
        text(nudge.channel),
      ])
      if (rows.length === 0) return yield* new WebhookNotFound({ webhookId })
    }),
  }
}
