import type { Event } from "@tenure/core/Event"
import type { WebhookId } from "@tenure/core/Webhook"
import { instant, text, uuid } from "../connection/parameters.ts"
import type { OncePart } from "../idempotency/fragments.sql.ts"
import { isInProject } from "../projects.sql.ts"

/**
 * Stores an event and its delivery to one webhook, unless the webhook is disabled. Returns one row,
 * with whether the webhook is disabled, if it exists.
 */
export const publishTo = (schema: string, once: OncePart): string => `
  WITH asked AS (
    SELECT $2::uuid AS event_id, $3::text AS event_type, $4::timestamptz AS at, $5::text AS body
  ),
  webhook AS (
    SELECT id, project_number, disabled_at IS NOT NULL AS is_disabled FROM ${schema}.webhooks
    WHERE id = $6::uuid AND ${isInProject(schema)} ${once.condition}
  ),
  published AS (
    INSERT INTO ${schema}.events (id, project_number, type, at, body)
    SELECT a.event_id, w.project_number, a.event_type, a.at, a.body
    FROM asked a, webhook w WHERE NOT w.is_disabled
  ),
  delivered AS (
    INSERT INTO ${schema}.deliveries (event_id, webhook_id, due_at)
    SELECT a.event_id, w.id, clock_timestamp() FROM asked a, webhook w WHERE NOT w.is_disabled
  )${once.keeping("webhook WHERE NOT is_disabled", "$2::text")}
  SELECT is_disabled FROM webhook
`

/** The parameters of `publishTo`. */
export const publishToParams = (event: Event, webhookId: WebhookId) => [
  text(event.projectId),
  uuid(event.id),
  text(event.type),
  instant(event.at),
  text(event.body),
  uuid(webhookId),
]
