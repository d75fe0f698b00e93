/** What the statements about API keys share. */

import { type ApiKey, ApiKeyId, TokenDigest } from "@tenure/core/ApiKey"
import type { Within } from "@tenure/core/ApiKeyStore"
import { ProjectId } from "@tenure/core/Project"
import type { Role } from "@tenure/core/Role"
import { text, texts } from "../connection/parameters.ts"
import { type Integer, millisOf, toMillis } from "../connection/results.ts"

/** The columns of a key `k`. */
export const columns = `k.id, k.digest, k.role, k.name, k.opens_all,
         ${millisOf("k.created_at")} AS created_at, ${millisOf("k.expires_at")} AS expires_at,
         ${millisOf("k.revoked_at")} AS revoked_at, ${millisOf("k.last_used_at")} AS last_used_at`

/** A query for the ids of the projects that a key `k` opens. */
export const projectsOf = (schema: string): string =>
  `SELECT p.id FROM ${schema}.api_key_projects o
   JOIN ${schema}.known_projects p ON p.number = o.project_number WHERE o.key_id = k.id`

/** Whether the projects that a key `k` opens are at least one, and all among those of a parameter. */
export const isWithin = (schema: string, param: string): string => `(
    ${param}::text[] IS NULL
    OR NOT k.opens_all AND ${param}::text[] @> ARRAY(${projectsOf(schema)})
    AND EXISTS (${projectsOf(schema)})
  )`

/** The parameter of `isWithin`. */
export const withinParam = (within: Within) =>
  within === "all" ? text(undefined) : texts([...within])

/** A row with these columns and projects. */
export interface KeyRow {
  readonly id: string
  readonly digest: string
  readonly role: Role
  readonly name: string | null
  readonly opens_all: boolean
  /** An array of text as JSON. */
  readonly projects: string
  readonly created_at: Integer
  readonly expires_at: Integer | null
  readonly revoked_at: Integer | null
  readonly last_used_at: Integer | null
}

/** Reads the ids of projects from a JSON array. */
export const projectsIn = (json: string): ReadonlySet<ProjectId> => {
  const ids: ReadonlyArray<string> = JSON.parse(json)
  return new Set(ids.map(ProjectId))
}

/** Converts a row to a key. */
export const toKey = (row: KeyRow): ApiKey => ({
  id: ApiKeyId(row.id),
  digest: TokenDigest(row.digest),
  role: row.role,
  name: row.name ?? undefined,
  projects: row.opens_all ? "all" : projectsIn(row.projects),
  createdAt: Number(row.created_at),
  expiresAt: toMillis(row.expires_at),
  revokedAt: toMillis(row.revoked_at),
  lastUsedAt: toMillis(row.last_used_at),
})
