/** Webhooks on PostgreSQL. */

import { ProjectNotFound } from "@tenure/core/Project"
import { WebhookId, WebhookLimitReached, WebhookNotFound } from "@tenure/core/Webhook"
import { Secret } from "@tenure/core/WebhookSignature"
import type { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import * as Statements from "../statements/webhooks.ts"
import type { Database } from "./database.ts"
import { instant, integer, text, uuid } from "./parameters.ts"

interface WebhookRow {
  readonly id: string | null
  readonly url: string
  readonly secret: string
  readonly created_at: Date
  readonly disabled_at: Date | null
}

/** Makes the store. */
export const make = (database: Database): WebhookStore["Service"] => {
  const { schema } = database
  const sql = {
    add: Statements.addWebhook(schema),
    list: Statements.listWebhooks(schema),
    enable: Statements.enableWebhook(schema),
    remove: Statements.removeWebhook(schema),
  }
  return {
    add: Effect.fnUntraced(function* ({ createdAt, id, projectId, secret, url }, limit) {
      const [row] = yield* database.join<{ added: boolean; project_exists: boolean }>(sql.add, [
        uuid(id),
        text(projectId),
        text(url),
        text(secret),
        instant(createdAt),
        integer(limit),
      ])
      if (row?.added === true) return
      return yield* row?.project_exists === true
        ? new WebhookLimitReached({ limit })
        : new ProjectNotFound({ projectId })
    }),

    list: Effect.fnUntraced(function* (projectId) {
      const rows = yield* database.join<WebhookRow>(sql.list, [text(projectId)])
      if (rows.length === 0) return yield* new ProjectNotFound({ projectId })
      return rows.flatMap(({ created_at, disabled_at, id, secret, url }) =>
        id === null
          ? []
          : [
              {
                id: WebhookId(id),
                projectId,
                url,
                secret: Secret(secret),
                createdAt: Number(created_at),
                disabledAt: disabled_at === null ? undefined : Number(disabled_at),
              },
            ],
      )
    }),

    enable: Effect.fnUntraced(function* (projectId, webhookId) {
      const rows = yield* database.join(sql.enable, [text(projectId), uuid(webhookId)])
      if (rows.length === 0) return yield* new WebhookNotFound({ webhookId })
    }),

    remove: Effect.fnUntraced(function* (projectId, webhookId) {
      const rows = yield* database.join(sql.remove, [text(projectId), uuid(webhookId)])
      if (rows.length === 0) return yield* new WebhookNotFound({ webhookId })
    }),
  }
}
