import { recording } from "../audit/fragments.sql.ts"

/** Replaces the secret of a webhook, and keeps the old one for a time. Returns one row if the webhook exists. */
export const rotateSecret = (schema: string): string => `
  WITH rotated AS (
    UPDATE ${schema}.webhooks
    SET secret = $3::text, previous_secret = secret, previous_until = $4::timestamptz
    WHERE id = $2::uuid AND project_id = $1::text
    RETURNING project_id, id::text AS subject
  ),${recording(schema, "rotated", 5, "'secret_rotated'")}
  SELECT subject FROM rotated
`
