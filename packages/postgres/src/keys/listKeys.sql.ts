import { columns, projectsOf } from "./fragments.sql.ts"

/** Returns all keys, oldest first. */
export const listKeys = (schema: string): string => `
  SELECT ${columns}, ARRAY(${projectsOf(schema)}) AS projects
  FROM ${schema}.api_keys k ORDER BY k.position
`
