/** What the statements about API keys share. */

import { type ApiKey, ApiKeyId, TokenDigest } from "@tenure/core/ApiKey"
import type { Within } from "@tenure/core/ApiKeyStore"
import { ProjectId } from "@tenure/core/Project"
import type { Role } from "@tenure/core/Role"
import { text, texts } from "../connection/parameters.ts"

/** The columns of a key `k`. */
export const columns =
  "k.id, k.digest, k.role, k.name, k.opens_all, k.created_at, k.expires_at, k.revoked_at, k.last_used_at"

/** A query for the ids of the projects that a key `k` opens. */
export const projectsOf = (schema: string): string =>
  `SELECT o.project_id FROM ${schema}.api_key_projects o WHERE o.key_id = k.id`

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
  readonly projects: ReadonlyArray<string>
  readonly created_at: Date
  readonly expires_at: Date | null
  readonly revoked_at: Date | null
  readonly last_used_at: Date | null
}

const millis = (date: Date | null): number | undefined => (date === null ? undefined : Number(date))

/** Converts a row to a key. */
export const toKey = (row: KeyRow): ApiKey => ({
  id: ApiKeyId(row.id),
  digest: TokenDigest(row.digest),
  role: row.role,
  name: row.name ?? undefined,
  projects: row.opens_all ? "all" : new Set(row.projects.map(ProjectId)),
  createdAt: Number(row.created_at),
  expiresAt: millis(row.expires_at),
  revokedAt: millis(row.revoked_at),
  lastUsedAt: millis(row.last_used_at),
})
