import { jsonOf } from "../connection/results.ts"
import { columns, projectsOf } from "./fragments.sql.ts"

/** Returns the keys whose tokens have the given digests. */
export const findKeys = (schema: string): string => `
  SELECT ${columns}, ${jsonOf(`ARRAY(${projectsOf(schema)})`)} AS projects
  FROM ${schema}.api_keys k WHERE k.digest = ANY ($1::text[])
`
