import type { ApiKey } from "@tenure/core/ApiKey"
import { instant, text, texts } from "../connection/parameters.ts"
import { columns, type KeyRow, projectsOf } from "./fragments.sql.ts"

/**
 * Adds a key. If a key with the same digest exists, opens the projects to that key instead, unless
 * it is revoked. Returns one row: the key, or the id of a missing project.
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
    -- Changes nothing, but locks and returns the existing key.
    ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest
    RETURNING ${columns}
  ),
  opened AS (
    INSERT INTO ${schema}.api_key_projects (key_id, project_id)
    SELECT k.id, p.id FROM key k, unnest($6::text[]) AS p (id) WHERE k.revoked_at IS NULL
    ON CONFLICT DO NOTHING
  )
  SELECT m.id AS missing, ${columns},
         ARRAY(${projectsOf(schema)} UNION SELECT unnest($6::text[])) AS projects
  FROM (VALUES (1)) AS one LEFT JOIN missing m ON true LEFT JOIN key k ON true
`

/** The parameters of `addKey`. */
export const addKeyParams = (key: ApiKey) => [
  text(key.id),
  text(key.digest),
  instant(key.createdAt),
  instant(key.expiresAt),
  instant(key.revokedAt),
  texts([...key.projects]),
]

/** The row of `addKey`. */
export interface AddedRow extends KeyRow {
  readonly missing: string | null
}
