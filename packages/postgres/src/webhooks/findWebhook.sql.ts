import { isInProject } from "../projects.sql.ts"
import { webhookColumns } from "./fragments.sql.ts"

/** Returns one row with a webhook and how its latest attempts went, if it exists. */
export const findWebhook = (schema: string): string => `
  SELECT ${webhookColumns}
  FROM ${schema}.webhooks w
  WHERE w.id = $2::uuid AND ${isInProject(schema)}
`
