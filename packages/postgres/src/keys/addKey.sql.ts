import type { ApiKey } from "@tenure/core/ApiKey"
import { flag, instant, text, texts } from "../connection/parameters.ts"
import { columns, type KeyRow, projectsOf } from "./fragments.sql.ts"

/**
 * Adds a key. If a key with the same digest exists, opens the projects to that key instead, unless
 * it is revoked or has another role. Returns one row: the key, or the id of a missing project.
 */
export const addKey = (schema: string): string => `
  WITH missing AS (
    SELECT id FROM unnest($9::text[]) AS asked (id)
    WHERE NOT EXISTS (SELECT FROM ${schema}.projects p WHERE p.id = asked.id)
    LIMIT 1
  ),
  key AS (
    INSERT INTO ${schema}.api_keys AS k
      (id, digest, role, name, opens_all, created_at, expires_at, revoked_at)
    SELECT $1::text, $2::text, $3::text, $4::text, $5::boolean,
           $6::timestamptz, $7::timestamptz, $8::timestamptz
    WHERE NOT EXISTS (SELECT FROM missing)
    -- Locks and returns the existing key, even if nothing changes.
    ON CONFLICT (digest) DO UPDATE SET opens_all =
      k.opens_all OR excluded.opens_all AND k.role = excluded.role AND k.revoked_at IS NULL
    RETURNING ${columns}
  ),
  opened AS (
    INSERT INTO ${schema}.api_key_projects (key_id, project_id)
    SELECT k.id, p.id FROM key k, unnest($9::text[]) AS p (id)
    WHERE k.role = $3::text AND k.revoked_at IS NULL
    ON CONFLICT DO NOTHING
  )
  SELECT m.id AS missing, ${columns},
         ARRAY(${projectsOf(schema)} UNION SELECT unnest($9::text[])) AS projects
  FROM (VALUES (1)) AS one LEFT JOIN missing m ON true LEFT JOIN key k ON true
`

/** The parameters of `addKey`. */
export const addKeyParams = (key: ApiKey) => [
  text(key.id),
  text(key.digest),
  text(key.role),
  text(key.name),
  flag(key.projects === "all"),
  instant(key.createdAt),
  instant(key.expiresAt),
  instant(key.revokedAt),
  texts(key.projects === "all" ? [] : [...key.projects]),
]

/** The row of `addKey`. */
export interface AddedRow extends KeyRow {
  readonly missing: string | null
}
