import { noProject, recording } from "../audit/fragments.sql.ts"
import type { OncePart } from "../idempotency/fragments.sql.ts"
import { isWithin } from "./fragments.sql.ts"

/**
 * Revokes a key, unless it is revoked already. Returns one row if the key exists, within the projects
 * $2.
 */
export const revokeKey = (schema: string, once: OncePart): string => `
  WITH found AS MATERIALIZED (
    SELECT k.id, k.revoked_at FROM ${schema}.api_keys k
    WHERE k.id = $1::text AND ${isWithin(schema, "$2")} ${once.condition}
    FOR NO KEY UPDATE OF k
  ),
  revoked AS (
    UPDATE ${schema}.api_keys k SET revoked_at = $3::timestamptz
    FROM found f WHERE k.id = f.id AND f.revoked_at IS NULL
    RETURNING ${noProject} AS project_number, k.id AS subject
  ),${recording(schema, "revoked", 3, "'key_revoked'")}${once.keeping("found", undefined, noProject)}
  SELECT id FROM found
`
