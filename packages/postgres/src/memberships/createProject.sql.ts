import type { Occasion } from "@tenure/core/Origin"
import type { ProjectId } from "@tenure/core/Project"
import { noProject, occasionParams, recording } from "../audit/fragments.sql.ts"
import { instants, text, texts } from "../connection/parameters.ts"
import type { OncePart } from "../idempotency/fragments.sql.ts"

/** Creates a project, unless it exists. Returns one row, unless the idempotency key is known. */
export const createProject = (schema: string, once: OncePart): string => `
  WITH asked AS MATERIALIZED (SELECT $1::text AS id WHERE true ${once.condition}),
  created AS (
    INSERT INTO ${schema}.projects (id) SELECT id FROM asked ON CONFLICT DO NOTHING
    RETURNING ${noProject} AS project_number, id AS subject
  ),${recording(schema, "created", 2, "'project_created'")}${once.keeping("asked", undefined, noProject)}
  SELECT FROM asked
`

/** The parameters of `createProject`. */
export const createProjectParams = (projectId: ProjectId, occasion: Occasion) => [
  text(projectId),
  ...occasionParams(occasion),
]

/** A project to create, and who asked for it. */
export interface Creation {
  readonly projectId: ProjectId
  readonly occasion: Occasion
}

/** Creates projects, except for those that exist. In the order of their ids, so that two of these do not deadlock. */
export const createProjects = (schema: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT DISTINCT ON (id) id, at, request_id, key_id
    FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[]) AS a (id, at, request_id, key_id)
    ORDER BY id
  ),
  inserted AS (
    INSERT INTO ${schema}.projects (id) SELECT id FROM asked ORDER BY id ON CONFLICT DO NOTHING
    RETURNING id
  ),
  created AS (
    SELECT ${noProject} AS project_number, id AS subject, at, request_id, key_id
    FROM inserted JOIN asked USING (id)
  ),${recording(schema, "created", undefined, "'project_created'")}
  SELECT
`

/** The parameters of `createProjects`. */
export const createProjectsParams = (creations: ReadonlyArray<Creation>) => [
  texts(creations.map(({ projectId }) => projectId)),
  instants(creations.map(({ occasion }) => occasion.at)),
  texts(creations.map(({ occasion }) => occasion.origin.requestId)),
  texts(creations.map(({ occasion }) => occasion.origin.keyId)),
]
