import type { Shown } from "@tenure/core/Membership"
import type { Occasion } from "@tenure/core/Origin"
import type { ProjectId } from "@tenure/core/Project"
import { text } from "../connection/parameters.ts"
import { occasionParams, recording } from "./fragments.sql.ts"

/** Adds an audit row. Returns one row if the project exists. */
export const recordShown = (schema: string): string => `
  WITH shown AS MATERIALIZED (
    SELECT number AS project_number, $3::text AS subject FROM ${schema}.projects WHERE id = $1::text
  ),${recording(schema, "shown", 4, "$2::text")}
  SELECT FROM shown
`

/** The parameters of `recordShown`. */
export const recordShownParams = (
  projectId: ProjectId,
  { action, subject }: Shown,
  occasion: Occasion,
) => [text(projectId), text(action), text(subject), ...occasionParams(occasion)]
