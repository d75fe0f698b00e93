/** Ends the waiting deliveries to those of the webhooks `$1` that are disabled. */
export const endDisabled = (schema: string): string => `
  UPDATE ${schema}.deliveries d SET state = 'failed'
  FROM ${schema}.webhooks w
  WHERE w.id = ANY ($1::uuid[]) AND w.disabled_at IS NOT NULL AND d.webhook_id = w.id
    AND d.state IN ('ready', 'later')
`
