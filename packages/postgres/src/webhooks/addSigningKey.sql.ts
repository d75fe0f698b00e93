/** Adds a signing key to a webhook, unless it has one. Returns the key that the webhook has then. */
export const addSigningKey = (schema: string): string => `
  UPDATE ${schema}.webhooks SET signing_key = coalesce(signing_key, $3::text)
  WHERE id = $2::uuid AND project_id = $1::text
  RETURNING signing_key
`
