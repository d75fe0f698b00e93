/**
 * Records when keys were used, unless a later use is recorded. Leaves out keys that are locked, which
 * others are recording: in one order or the other, two batches would wait for each other.
 */
export const touchKeys = (schema: string): string => `
  WITH used AS (
    SELECT k.id, u.at
    FROM unnest($1::text[], $2::timestamptz[]) AS u (id, at)
    JOIN ${schema}.api_keys k ON k.id = u.id
    WHERE k.last_used_at IS NULL OR k.last_used_at < u.at
    FOR NO KEY UPDATE OF k SKIP LOCKED
  )
  UPDATE ${schema}.api_keys k SET last_used_at = u.at FROM used u WHERE k.id = u.id
`
