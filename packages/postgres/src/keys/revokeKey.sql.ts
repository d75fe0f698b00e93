import { isWithin } from "./fragments.sql.ts"

/**
 * Revokes a key, unless it is revoked already. Returns one row if the key exists, within the projects
 * $3.
 */
export const revokeKey = (schema: string): string => `
  UPDATE ${schema}.api_keys k SET revoked_at = coalesce(k.revoked_at, $2::timestamptz)
  WHERE k.id = $1::text AND ${isWithin(schema, "$3")}
  RETURNING k.id
`
