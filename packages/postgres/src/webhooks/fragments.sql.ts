/** What the statements that read webhooks share. */

import { EventType } from "@tenure/core/Event"
import type { ProjectId } from "@tenure/core/Project"
import { StoredSecret } from "@tenure/core/StoredSecret"
import { type StoredWebhook, WebhookId } from "@tenure/core/Webhook"

/** The columns of `WebhookRow`, of a webhook `w`. */
export const webhookColumns = `w.id, w.url, w.secret, w.previous_secret, w.previous_until,
         w.signing_key, w.event_types, w.created_at, w.disabled_at`

/** A row with the columns of a webhook. */
export interface WebhookRow {
  readonly id: string
  readonly url: string
  readonly secret: string
  readonly previous_secret: string | null
  readonly previous_until: Date | null
  readonly signing_key: string | null
  readonly event_types: ReadonlyArray<string> | null
  readonly created_at: Date
  readonly disabled_at: Date | null
}

const previousOf = ({ previous_secret, previous_until }: WebhookRow): StoredWebhook["previous"] =>
  previous_secret === null || previous_until === null
    ? undefined
    : { secret: StoredSecret(previous_secret), until: Number(previous_until) }

/** Converts a row to a webhook. */
export const toWebhook = (projectId: ProjectId, row: WebhookRow): StoredWebhook => ({
  id: WebhookId(row.id),
  projectId,
  url: row.url,
  secret: StoredSecret(row.secret),
  previous: previousOf(row),
  signingKey: row.signing_key === null ? undefined : StoredSecret(row.signing_key),
  eventTypes: row.event_types?.map(EventType),
  createdAt: Number(row.created_at),
  disabledAt: row.disabled_at === null ? undefined : Number(row.disabled_at),
})
