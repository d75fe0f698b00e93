import * as Concurrency from "@tenure/core/Concurrency"

/** Enables a webhook. Returns one row if the webhook exists. */
export const enableWebhook = (schema: string): string => `
  UPDATE ${schema}.webhooks
  SET disabled_at = NULL, failures = 0, failing_since = NULL, held_until = NULL,
      concurrency = ${Concurrency.initial}
  WHERE id = $2::uuid AND project_id = $1::text
  RETURNING id
`
