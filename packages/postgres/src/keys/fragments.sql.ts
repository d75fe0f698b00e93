/** What the statements about API keys share. */

import { type ApiKey, ApiKeyId, TokenDigest } from "@tenure/core/ApiKey"
import { ProjectId } from "@tenure/core/Project"

/** The columns of a key `k`. */
export const columns = "k.id, k.digest, k.created_at, k.expires_at, k.revoked_at"

/** A query for the ids of the projects that a key `k` opens. */
export const projectsOf = (schema: string): string =>
  `SELECT o.project_id FROM ${schema}.api_key_projects o WHERE o.key_id = k.id`

/** A row with these columns and projects. */
export interface KeyRow {
  readonly id: string
  readonly digest: string
  readonly projects: ReadonlyArray<string>
  readonly created_at: Date
  readonly expires_at: Date | null
  readonly revoked_at: Date | null
}

const millis = (date: Date | null): number | undefined => (date === null ? undefined : Number(date))

/** Converts a row to a key. */
export const toKey = (row: KeyRow): ApiKey => ({
  id: ApiKeyId(row.id),
  digest: TokenDigest(row.digest),
  projects: new Set(row.projects.map(ProjectId)),
  createdAt: Number(row.created_at),
  expiresAt: millis(row.expires_at),
  revokedAt: millis(row.revoked_at),
})
