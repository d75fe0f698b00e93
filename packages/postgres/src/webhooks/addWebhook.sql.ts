import type { Occasion } from "@tenure/core/Origin"
import type { StoredWebhook } from "@tenure/core/Webhook"
import { occasionParams, recording } from "../audit/fragments.sql.ts"
import { instant, integer, text, texts, uuid } from "../connection/parameters.ts"
import type { OncePart } from "../idempotency/fragments.sql.ts"

/**
 * Adds a webhook, unless the project has reached its limit. Returns whether the webhook was added,
 * and whether the project exists.
 */
export const addWebhook = (schema: string, once: OncePart): string => `
  WITH counted AS (
    UPDATE ${schema}.projects SET webhooks = webhooks + 1
    WHERE id = $2::text AND webhooks < $6::integer ${once.condition}
    RETURNING number
  ),
  added AS (
    INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at, event_types)
    SELECT $1::uuid, number, $3::text, $4::text, $5::timestamptz, $7::text[] FROM counted
    RETURNING project_number, id::text AS subject
  ),${recording(schema, "added", 8, "'webhook_created'")}${once.keeping("added", "subject")}
  SELECT EXISTS (SELECT FROM added) AS added,
         EXISTS (SELECT FROM ${schema}.projects WHERE id = $2::text) AS project_exists
`

/** The parameters of `addWebhook`. */
export const addWebhookParams = (
  { createdAt, eventTypes, id, projectId, secret, url }: StoredWebhook,
  limit: number,
  occasion: Occasion,
) => [
  uuid(id),
  text(projectId),
  text(url),
  text(secret),
  instant(createdAt),
  integer(limit),
  eventTypes === undefined ? text(undefined) : texts(eventTypes),
  ...occasionParams(occasion),
]

/** The row of `addWebhook`. */
export interface AddedRow {
  readonly added: boolean
  readonly project_exists: boolean
}
