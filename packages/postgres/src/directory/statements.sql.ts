/** Statements about projects that are in other databases. */

import type { Occasion } from "@tenure/core/Origin"
import type { ProjectId } from "@tenure/core/Project"
import { noProject, occasionParams, recording } from "../audit/fragments.sql.ts"
import { text } from "../connection/parameters.ts"
import type { OncePart } from "../idempotency/fragments.sql.ts"

/** Adds a project, unless it is known. Returns one row, unless the idempotency key is known. */
export const addElsewhere = (schema: string, once: OncePart): string => `
  WITH asked AS MATERIALIZED (SELECT $1::text AS id WHERE true ${once.condition}),
  added AS (
    INSERT INTO ${schema}.elsewhere (id) SELECT id FROM asked ON CONFLICT DO NOTHING
    RETURNING ${noProject} AS project_number, id AS subject
  ),${recording(schema, "added", 2, "'project_created'")}${once.keeping("asked", undefined, noProject)}
  SELECT FROM asked
`

/** Removes a project, with the access of keys to it. Returns one row, unless the idempotency key is known. */
export const removeElsewhere = (schema: string, once: OncePart): string => `
  WITH asked AS MATERIALIZED (SELECT $1::text AS id WHERE true ${once.condition}),
  removed AS (
    DELETE FROM ${schema}.elsewhere e USING asked a WHERE e.id = a.id
    RETURNING ${noProject} AS project_number, e.id AS subject, e.number
  ),
  closed AS (
    DELETE FROM ${schema}.api_key_projects k USING removed r WHERE k.project_number = r.number
  ),${recording(schema, "removed", 2, "'project_deleted'")}${once.keeping("asked", undefined, noProject)}
  SELECT FROM asked
`

/** The parameters of both. */
export const elsewhereParams = (projectId: ProjectId, occasion: Occasion) => [
  text(projectId),
  ...occasionParams(occasion),
]

/** Returns one row if the project `$1` is in another database. */
export const findElsewhere = (schema: string): string => `
  SELECT FROM ${schema}.elsewhere WHERE id = $1::text
`

/** Returns the ids of at most `$2` projects after the id `$1`, of those in `$3`, which is NULL for all. */
export const listElsewhere = (schema: string): string => `
  SELECT id FROM ${schema}.elsewhere
  WHERE id > $1::text AND ($3::text[] IS NULL OR id = ANY ($3::text[]))
  ORDER BY id
  LIMIT $2::integer
`
