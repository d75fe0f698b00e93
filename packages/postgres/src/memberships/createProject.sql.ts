import type { Occasion } from "@tenure/core/Origin"
import type { ProjectId } from "@tenure/core/Project"
import { noProject, occasionParams, recording } from "../audit/fragments.sql.ts"
import { text } from "../connection/parameters.ts"

/** Creates a project, unless it exists. */
export const createProject = (schema: string): string => `
  WITH created AS (
    INSERT INTO ${schema}.projects (id) VALUES ($1::text) ON CONFLICT DO NOTHING
    RETURNING '${noProject}' AS project_id, id AS subject
  ),${recording(schema, "created", 2, "'project_created'")}
  SELECT FROM created
`

/** The parameters of `createProject`. */
export const createProjectParams = (projectId: ProjectId, occasion: Occasion) => [
  text(projectId),
  ...occasionParams(occasion),
]
