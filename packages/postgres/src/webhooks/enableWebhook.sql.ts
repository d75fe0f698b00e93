import * as Concurrency from "@tenure/core/Concurrency"

/** Enables a webhook that is disabled. Returns one row if the webhook exists. */
export const enableWebhook = (schema: string): string => `
  WITH enabled AS (
    UPDATE ${schema}.webhooks
    SET disabled_at = NULL, failures = 0, failing_since = NULL, held_until = NULL,
        concurrency = ${Concurrency.initial}
    WHERE id = $2::uuid AND project_id = $1::text AND disabled_at IS NOT NULL
  )
  SELECT id FROM ${schema}.webhooks WHERE id = $2::uuid AND project_id = $1::text
`
