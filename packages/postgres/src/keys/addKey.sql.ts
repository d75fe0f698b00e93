import type { ApiKey } from "@tenure/core/ApiKey"
import type { Occasion } from "@tenure/core/Origin"
import { noProject, occasionParams, recording } from "../audit/fragments.sql.ts"
import { flag, instant, text, texts } from "../connection/parameters.ts"
import { jsonOf } from "../connection/results.ts"
import type { OncePart } from "../idempotency/fragments.sql.ts"
import { columns, type KeyRow, projectsOf } from "./fragments.sql.ts"

/**
 * Adds a key. If a key with the same digest exists, opens the projects to that key instead, unless
 * it is revoked or has another role. Returns one row: the key, or the id of a missing project; none if
 * the idempotency key is known.
 */
export const addKey = (schema: string, once: OncePart): string => `
  WITH missing AS (
    SELECT id FROM unnest($9::text[]) AS asked (id)
    WHERE NOT EXISTS (SELECT FROM ${schema}.known_projects p WHERE p.id = asked.id)
    LIMIT 1
  ),
  key AS (
    INSERT INTO ${schema}.api_keys AS k
      (id, digest, role, name, opens_all, created_at, expires_at, revoked_at)
    SELECT $1::text, $2::text, $3::text, $4::text, $5::boolean,
           $6::timestamptz, $7::timestamptz, $8::timestamptz
    WHERE NOT EXISTS (SELECT FROM missing) ${once.condition}
    -- Locks and returns the existing key, even if nothing changes.
    ON CONFLICT (digest) DO UPDATE SET opens_all =
      k.opens_all OR excluded.opens_all AND k.role = excluded.role AND k.revoked_at IS NULL
    RETURNING k.*
  ),
  opened AS (
    INSERT INTO ${schema}.api_key_projects (key_id, project_number)
    SELECT k.id, p.number FROM key k, ${schema}.known_projects p
    WHERE p.id = ANY ($9::text[]) AND k.role = $3::text AND k.revoked_at IS NULL
    ON CONFLICT DO NOTHING
    RETURNING key_id
  ),
  changed AS (
    SELECT ${noProject} AS project_number, k.id AS subject FROM key k
    -- What was there before the statement tells whether the key opens all projects only now.
    LEFT JOIN ${schema}.api_keys b ON b.id = k.id
    WHERE b.id IS NULL OR k.opens_all AND NOT b.opens_all OR EXISTS (SELECT FROM opened)
  ),${recording(schema, "changed", 10, "CASE s.subject WHEN $1 THEN 'key_issued' ELSE 'key_opened' END")}
  ${once.keeping("key k WHERE k.role = $3::text AND k.revoked_at IS NULL", "k.id", noProject)}
  SELECT m.id AS missing, ${columns},
         ${jsonOf(`ARRAY(${projectsOf(schema)} UNION SELECT unnest($9::text[]))`)} AS projects
  FROM (VALUES (1)) AS one LEFT JOIN missing m ON true LEFT JOIN key k ON true
  WHERE m.id IS NOT NULL OR k.id IS NOT NULL
`

/** The parameters of `addKey`. */
export const addKeyParams = (key: ApiKey, occasion: Occasion) => [
  text(key.id),
  text(key.digest),
  text(key.role),
  text(key.name),
  flag(key.projects === "all"),
  instant(key.createdAt),
  instant(key.expiresAt),
  instant(key.revokedAt),
  texts(key.projects === "all" ? [] : [...key.projects]),
  ...occasionParams(occasion),
]

/** The row of `addKey`. */
export interface AddedRow extends KeyRow {
  readonly missing: string | null
}
