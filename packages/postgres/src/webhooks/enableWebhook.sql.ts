import * as Concurrency from "@tenure/core/Concurrency"
import { recording } from "../audit/fragments.sql.ts"

/** Enables a webhook that is disabled. Returns one row if the webhook exists. */
export const enableWebhook = (schema: string): string => `
  WITH enabled AS (
    UPDATE ${schema}.webhooks
    SET disabled_at = NULL, failures = 0, failing_since = NULL, held_until = NULL,
        concurrency = ${Concurrency.initial}
    WHERE id = $2::uuid AND project_id = $1::text AND disabled_at IS NOT NULL
    RETURNING project_id, id::text AS subject
  ),${recording(schema, "enabled", 3, "'webhook_enabled'")}
  SELECT id FROM ${schema}.webhooks WHERE id = $2::uuid AND project_id = $1::text
`
