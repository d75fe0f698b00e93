import type { Occasion } from "@tenure/core/Origin"
import type { StoredWebhook } from "@tenure/core/Webhook"
import { occasionParams, recording } from "../audit/fragments.sql.ts"
import { instant, integer, text, texts, uuid } from "../connection/parameters.ts"
import type { OncePart } from "../idempotency/fragments.sql.ts"

/**
 * Adds a webhook, unless the project has reached its limit. Returns whether the webhook was added,
 * and whether the project exists, which is known once it is locked: it may have been deleted meanwhile.
 */
export const addWebhook = (schema: string, once: OncePart): string => `
  WITH project AS MATERIALIZED (
    SELECT number, webhooks FROM ${schema}.projects WHERE id = $2::text FOR NO KEY UPDATE
  ),
  counted AS (
    UPDATE ${schema}.projects p SET webhooks = p.webhooks + 1 FROM project
    WHERE p.number = project.number AND project.webhooks < $6::integer ${once.condition}
    RETURNING p.number
  ),
  added AS (
    INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at, event_types)
    SELECT $1::uuid, number, $3::text, $4::text, $5::timestamptz, $7::text[] FROM counted
    RETURNING project_number, id::text AS subject
  ),${recording(schema, "added", 8, "'webhook_created'")}${once.keeping("added", "subject")}
  SELECT EXISTS (SELECT FROM added) AS added,
         EXISTS (SELECT FROM project) AS project_exists
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
