import { webhookColumns, type WebhookRow } from "./fragments.sql.ts"

/**
 * Returns the webhooks of a project, oldest first. Returns one empty row if the project has none,
 * and no row if the project does not exist.
 */
export const listWebhooks = (schema: string): string => `
  SELECT ${webhookColumns}
  FROM ${schema}.projects p
  LEFT JOIN ${schema}.webhooks w ON w.project_number = p.number
  WHERE p.id = $1::text
  ORDER BY w.position
`

/** A row of `listWebhooks`. */
export type ListedRow = WebhookRow | { readonly id: null }

/** Tells whether a row has a webhook. */
export const isWebhook = (row: ListedRow): row is WebhookRow => row.id !== null
