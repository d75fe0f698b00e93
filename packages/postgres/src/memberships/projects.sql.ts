import { EndDate } from "@tenure/core/EndDate"
import type { ProjectSummary } from "@tenure/core/Membership"
import { ProjectId } from "@tenure/core/Project"
import { type Integer, millisOf } from "../connection/results.ts"
import { parked, parkedAs } from "../moving/parking.sql.ts"

const figures = `members, webhooks, ${millisOf("last_bulk_end_date")} AS last_bulk_end_date`

const columns = `id, ${figures}`

/** Returns the project `$1`, if it exists, with another id if it is parked. */
export const findProject = (schema: string): string => `
  SELECT ${columns} FROM ${schema}.projects WHERE id IN ($1::text, ${parked})
  ORDER BY id DESC
  LIMIT 1
`

/**
 * Returns at most `$2` projects after the id `$1`, of those with the ids `$3`, which are NULL for all. Of those
 * that are parked, it only returns what is asked for by its id.
 */
export const listProjects = (schema: string): string => `
  SELECT ${columns} FROM ${schema}.projects
  WHERE id > $1::text AND ($3::text[] IS NULL OR id = ANY ($3::text[]))
  UNION ALL
  SELECT substr(id, 2), ${figures} FROM ${schema}.projects
  WHERE id IN (SELECT ${parkedAs("a.id")} FROM unnest($3::text[]) a (id)) AND substr(id, 2) > $1::text
  ORDER BY id
  LIMIT $2::integer
`

/** A row of both statements. */
export interface ProjectRow {
  readonly id: string
  readonly members: Integer
  readonly webhooks: number
  readonly last_bulk_end_date: Integer | null
}

/** Converts a row. */
export const toSummary = (row: ProjectRow): ProjectSummary => ({
  id: ProjectId(row.id),
  memberships: Number(row.members),
  webhooks: row.webhooks,
  lastBulkEndDate:
    row.last_bulk_end_date === null ? undefined : EndDate(Number(row.last_bulk_end_date)),
})
