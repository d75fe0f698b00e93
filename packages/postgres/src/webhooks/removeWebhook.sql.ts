import { recording } from "../audit/fragments.sql.ts"
import type { OncePart } from "../idempotency/fragments.sql.ts"
import { isInProject } from "../projects.sql.ts"

/**
 * Removes a webhook, and sends its id on the channel `$3`. This cancels its deliveries, because a
 * claim takes none of a missing webhook. Returns one row if the webhook existed.
 */
export const removeWebhook = (schema: string, once: OncePart): string => `
  WITH removed AS (
    DELETE FROM ${schema}.webhooks WHERE id = $2::uuid AND ${isInProject(schema)} ${once.condition}
    RETURNING id, project_number, id::text AS subject
  ),
  counted AS (
    UPDATE ${schema}.projects SET webhooks = webhooks - 1
    WHERE id = $1::text AND EXISTS (SELECT FROM removed)
  ),${recording(schema, "removed", 4, "'webhook_deleted'")}${once.keeping("removed")}
  SELECT id, pg_notify($3::text, id::text) FROM removed
`
