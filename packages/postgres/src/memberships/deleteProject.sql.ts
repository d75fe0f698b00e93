import type { Occasion } from "@tenure/core/Origin"
import type { ProjectId } from "@tenure/core/Project"
import { noProject, occasionParams, recording } from "../audit/fragments.sql.ts"
import { text } from "../connection/parameters.ts"
import type { OncePart } from "../idempotency/fragments.sql.ts"

/**
 * Deletes a project, by calling the function `delete_project` of the migrations, where it is described.
 * Returns one row if the project existed.
 */
export const deleteProject = (schema: string, once: OncePart): string => `
  WITH asked AS MATERIALIZED (SELECT WHERE true ${once.condition}),
  deleted AS MATERIALIZED (
    SELECT ${noProject} AS project_number, $1::text AS subject
    FROM asked, ${schema}.delete_project($1::text, $2::text)
  ),${recording(schema, "deleted", 3, "'project_deleted'")}${once.keeping("deleted")}
  SELECT FROM deleted
`

/** The parameters of `deleteProject`. */
export const deleteProjectParams = (projectId: ProjectId, channel: string, occasion: Occasion) => [
  text(projectId),
  text(channel),
  ...occasionParams(occasion),
]
