import { jsonOf } from "../connection/results.ts"
import { columns, isWithin, projectsOf } from "./fragments.sql.ts"

/**
 * Returns at most $2 keys, oldest first, of those within the projects $3: from the key $1 on, or all if
 * that is NULL. If $1 is not one of them, it is not the first.
 */
export const listKeys = (schema: string): string => `
  SELECT ${columns}, ${jsonOf(`ARRAY(${projectsOf(schema)})`)} AS projects
  FROM ${schema}.api_keys k
  WHERE k.position >= CASE WHEN $1::text IS NULL THEN 0
                          ELSE (SELECT a.position FROM ${schema}.api_keys a WHERE a.id = $1::text)
                     END
    AND ${isWithin(schema, "$3")}
  ORDER BY k.position
  LIMIT $2::integer
`
