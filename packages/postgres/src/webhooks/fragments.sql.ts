/** What the statements that read webhooks share. */

import { EventType } from "@tenure/core/Event"
import type { ProjectId } from "@tenure/core/Project"
import { StoredSecret } from "@tenure/core/StoredSecret"
import { type Health, type StoredWebhook, WebhookId } from "@tenure/core/Webhook"
import { type Integer, jsonOf, millisOf, toMillis } from "../connection/results.ts"

/** The columns of `WebhookRow`, of a webhook `w`. */
export const webhookColumns = `w.id, w.url, w.secret, w.previous_secret,
         ${millisOf("w.previous_until")} AS previous_until, w.signing_key,
         ${jsonOf("w.event_types")} AS event_types, ${millisOf("w.created_at")} AS created_at,
         ${millisOf("w.disabled_at")} AS disabled_at, w.failures,
         ${millisOf("w.failing_since")} AS failing_since`

/** A row with the columns of a webhook. */
export interface WebhookRow {
  readonly id: string
  readonly url: string
  readonly secret: string
  readonly previous_secret: string | null
  readonly previous_until: Integer | null
  readonly signing_key: string | null
  /** An array of text as JSON. */
  readonly event_types: string | null
  readonly created_at: Integer
  readonly disabled_at: Integer | null
  readonly failures: number
  readonly failing_since: Integer | null
}

const previousOf = ({ previous_secret, previous_until }: WebhookRow): StoredWebhook["previous"] =>
  previous_secret === null || previous_until === null
    ? undefined
    : { secret: StoredSecret(previous_secret), until: Number(previous_until) }

const eventTypesOf = (json: string | null): StoredWebhook["eventTypes"] => {
  if (json === null) return undefined
  const types: ReadonlyArray<string> = JSON.parse(json)
  return types.map(EventType)
}

/** Converts a row to a webhook, with how its latest attempts went. */
export const toWebhook = (projectId: ProjectId, row: WebhookRow): StoredWebhook & Health => ({
  id: WebhookId(row.id),
  projectId,
  url: row.url,
  secret: StoredSecret(row.secret),
  previous: previousOf(row),
  signingKey: row.signing_key === null ? undefined : StoredSecret(row.signing_key),
  eventTypes: eventTypesOf(row.event_types),
  createdAt: Number(row.created_at),
  disabledAt: toMillis(row.disabled_at),
  failures: row.failures,
  failingSince: toMillis(row.failing_since),
})
