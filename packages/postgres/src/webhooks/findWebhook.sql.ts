import type { ProjectId } from "@tenure/core/Project"
import type { Health, StoredWebhook } from "@tenure/core/Webhook"
import { toWebhook, webhookColumns, type WebhookRow } from "./fragments.sql.ts"

/** Returns one row with a webhook and how its latest attempts went, if it exists. */
export const findWebhook = (schema: string): string => `
  SELECT ${webhookColumns}, w.failures, w.failing_since
  FROM ${schema}.webhooks w
  WHERE w.id = $2::uuid AND w.project_id = $1::text
`

/** The row of `findWebhook`. */
export interface FoundRow extends WebhookRow {
  readonly failures: number
  readonly failing_since: Date | null
}

/** Converts the row. */
export const toFound = (projectId: ProjectId, row: FoundRow): StoredWebhook & Health => ({
  ...toWebhook(projectId, row),
  failures: row.failures,
  failingSince: row.failing_since === null ? undefined : Number(row.failing_since),
})
