const columns = "k.id, k.digest, k.created_at, k.expires_at, k.revoked_at"

const opened = (schema: string): string =>
  `SELECT o.project_id FROM ${schema}.api_key_projects o WHERE o.key_id = k.id`

/**
 * Adds a key, or opens further projects to the one with the same digest, unless that was revoked.
 * Gives a project that does not exist, or the key.
 */
export const addKey = (schema: string): string => `
  WITH missing AS (
    SELECT id FROM unnest($6::text[]) AS asked (id)
    WHERE NOT EXISTS (SELECT FROM ${schema}.projects p WHERE p.id = asked.id)
    LIMIT 1
  ),
  key AS (
    INSERT INTO ${schema}.api_keys AS k (id, digest, created_at, expires_at, revoked_at)
    SELECT $1::text, $2::text, $3::timestamptz, $4::timestamptz, $5::timestamptz
    WHERE NOT EXISTS (SELECT FROM missing)
    -- Changes nothing, but locks the key and gives it back.
    ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest
    RETURNING k.id, k.digest, k.created_at, k.expires_at, k.revoked_at
  ),
  opened AS (
    INSERT INTO ${schema}.api_key_projects (key_id, project_id)
    SELECT k.id, p.id FROM key k, unnest($6::text[]) AS p (id) WHERE k.revoked_at IS NULL
    ON CONFLICT DO NOTHING
  )
  SELECT m.id AS missing, ${columns},
         ARRAY(${opened(schema)} UNION SELECT unnest($6::text[])) AS projects
  FROM (VALUES (1)) AS one LEFT JOIN missing m ON true LEFT JOIN key k ON true
`

/** Looks a key up by the digest of its token. */
export const findKey = (schema: string): string => `
  SELECT ${columns}, ARRAY(${opened(schema)}) AS projects
  FROM ${schema}.api_keys k WHERE k.digest = $1::text
`

/** Reads all keys, oldest first. */
export const listKeys = (schema: string): string => `
  SELECT ${columns}, ARRAY(${opened(schema)}) AS projects
  FROM ${schema}.api_keys k ORDER BY k.position
`

/** Revokes a key. Gives a row if there is one. */
export const revokeKey = (schema: string): string => `
  UPDATE ${schema}.api_keys SET revoked_at = coalesce(revoked_at, $2::timestamptz)
  WHERE id = $1::text
  RETURNING id
`
