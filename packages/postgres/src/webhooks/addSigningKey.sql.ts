import { recording } from "../audit/fragments.sql.ts"
import { isInProject } from "../projects.sql.ts"

/** Adds a signing key to a webhook, unless it has one. Returns the key that the webhook has then. */
export const addSigningKey = (schema: string): string => `
  WITH kept AS (
    UPDATE ${schema}.webhooks SET signing_key = coalesce(signing_key, $3::text)
    WHERE id = $2::uuid AND ${isInProject(schema)}
    RETURNING project_number, id::text AS subject, signing_key
  ),
  added AS (SELECT project_number, subject FROM kept WHERE signing_key = $3::text),
  ${recording(schema, "added", 4, "'signing_key_added'")}
  SELECT signing_key FROM kept
`
