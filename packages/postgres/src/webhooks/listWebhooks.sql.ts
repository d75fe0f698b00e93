import { EventType } from "@tenure/core/Event"
import type { ProjectId } from "@tenure/core/Project"
import { StoredSecret } from "@tenure/core/StoredSecret"
import { type StoredWebhook, WebhookId } from "@tenure/core/Webhook"

/**
 * Returns the webhooks of a project, oldest first. Returns one empty row if the project has none,
 * and no row if the project does not exist.
 */
export const listWebhooks = (schema: string): string => `
  SELECT w.id, w.url, w.secret, w.previous_secret, w.previous_until, w.signing_key, w.event_types,
         w.created_at, w.disabled_at
  FROM ${schema}.projects p
  LEFT JOIN ${schema}.webhooks w ON w.project_id = p.id
  WHERE p.id = $1::text
  ORDER BY w.position
`

/** A row of `listWebhooks`, which may be empty. */
export interface WebhookRow {
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

const previousOf = ({ previous_secret, previous_until }: WebhookRow): StoredWebhook["previous"] =>
  previous_secret === null || previous_until === null
    ? undefined
    : { secret: StoredSecret(previous_secret), until: Number(previous_until) }

const toWebhook = (projectId: ProjectId, id: string, row: WebhookRow): StoredWebhook => ({
  id: WebhookId(id),
  projectId,
  url: row.url,
  secret: StoredSecret(row.secret),
  previous: previousOf(row),
  signingKey: row.signing_key === null ? undefined : StoredSecret(row.signing_key),
  eventTypes: row.event_types?.map(EventType),
  createdAt: Number(row.created_at),
  disabledAt: row.disabled_at === null ? undefined : Number(row.disabled_at),
})

/** Converts rows to webhooks, and leaves out the empty row. */
export const toWebhooks = (
  projectId: ProjectId,
  rows: ReadonlyArray<WebhookRow>,
): ReadonlyArray<StoredWebhook> =>
  rows.flatMap((row) => (row.id === null ? [] : [toWebhook(projectId, row.id, row)]))
