import { recording } from "../audit/fragments.sql.ts"
import type { OncePart } from "../idempotency/fragments.sql.ts"
import { isInProject } from "../projects.sql.ts"

/** Replaces the secret of a webhook, and keeps the old one for a time. Returns one row if the webhook exists. */
export const rotateSecret = (schema: string, once: OncePart): string => `
  WITH rotated AS (
    UPDATE ${schema}.webhooks
    SET secret = $3::text, previous_secret = secret, previous_until = $4::timestamptz
    WHERE id = $2::uuid AND ${isInProject(schema)} ${once.condition}
    RETURNING project_number, id::text AS subject
  ),${recording(schema, "rotated", 5, "'secret_rotated'")}${once.keeping("rotated", "round(extract(epoch FROM $4::timestamptz) * 1000)::bigint::text")}
  SELECT subject FROM rotated
`
