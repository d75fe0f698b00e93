/** Revokes a key, unless it is revoked already. Returns one row if the key exists. */
export const revokeKey = (schema: string): string => `
  UPDATE ${schema}.api_keys SET revoked_at = coalesce(revoked_at, $2::timestamptz)
  WHERE id = $1::text
  RETURNING id
`
