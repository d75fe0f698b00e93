import type { Occasion } from "@tenure/core/Origin"
import type { ProjectId } from "@tenure/core/Project"
import { noProject, occasionParams, recording } from "../audit/fragments.sql.ts"
import { text } from "../connection/parameters.ts"
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
