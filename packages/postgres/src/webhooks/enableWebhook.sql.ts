import * as Concurrency from "@tenure/core/Concurrency"
import { recording } from "../audit/fragments.sql.ts"
import type { OncePart } from "../idempotency/fragments.sql.ts"
import { isInProject } from "../projects.sql.ts"

/** Enables a webhook that is disabled. Returns one row if the webhook exists. */
export const enableWebhook = (schema: string, once: OncePart): string => `
  WITH found AS MATERIALIZED (
    SELECT id, project_number FROM ${schema}.webhooks
    WHERE id = $2::uuid AND ${isInProject(schema)} ${once.condition}
  ),
  enabled AS (
    UPDATE ${schema}.webhooks
    SET disabled_at = NULL, failures = 0, failing_since = NULL, held_until = NULL,
        concurrency = ${Concurrency.initial}
    WHERE id IN (SELECT id FROM found) AND disabled_at IS NOT NULL
    RETURNING project_number, id::text AS subject
  ),${recording(schema, "enabled", 3, "'webhook_enabled'")}${once.keeping("found")}
  SELECT id FROM found
`
