import type { ProjectId } from "@tenure/core/Project"
import type { Health, StoredWebhook } from "@tenure/core/Webhook"
import { type Integer, millisOf, toMillis } from "../connection/results.ts"
import { isInProject } from "../projects.sql.ts"
import { toWebhook, webhookColumns, type WebhookRow } from "./fragments.sql.ts"

/** Returns one row with a webhook and how its latest attempts went, if it exists. */
export const findWebhook = (schema: string): string => `
  SELECT ${webhookColumns}, w.failures, ${millisOf("w.failing_since")} AS failing_since
  FROM ${schema}.webhooks w
  WHERE w.id = $2::uuid AND ${isInProject(schema)}
`

/** The row of `findWebhook`. */
export interface FoundRow extends WebhookRow {
  readonly failures: number
  readonly failing_since: Integer | null
}

/** Converts the row. */
export const toFound = (projectId: ProjectId, row: FoundRow): StoredWebhook & Health => ({
  ...toWebhook(projectId, row),
  failures: row.failures,
  failingSince: toMillis(row.failing_since),
})
