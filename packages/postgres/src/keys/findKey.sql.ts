import { columns, projectsOf } from "./fragments.sql.ts"

/** Returns the key whose token has the given digest. */
export const findKey = (schema: string): string => `
  SELECT ${columns}, ARRAY(${projectsOf(schema)}) AS projects
  FROM ${schema}.api_keys k WHERE k.digest = $1::text
`
