/** Reads what the database holds in the end. */

import type { State } from "./history.ts"
import type { Session } from "./world/database.ts"

const millis = (column: string, name: string): string =>
  `round(extract(epoch FROM ${column}) * 1000)::bigint AS "${name}"`

const statements = (schema: string): Readonly<Record<keyof State, string>> => ({
  memberships: `
    SELECT project_id AS "projectId", user_id AS "userId", ${millis("end_date", "endDate")}
    FROM ${schema}.memberships_current`,
  audit: `
    SELECT p.id AS "projectId", user_id AS "userId", action, ${millis("from_date", "from")},
           ${millis("to_date", "to")}, ${millis("extend_by", "extendBy")},
           subject AS "bulkExtensionId", request_id AS "requestId"
    FROM ${schema}.audit a JOIN ${schema}.projects p ON p.number = a.project_number
    WHERE subject IS NULL OR action LIKE 'bulk\\_%' ORDER BY a.seq, a.id`,
  events: `
    SELECT e.id, p.id AS "projectId", type, body
    FROM ${schema}.events e JOIN ${schema}.projects p ON p.number = e.project_number`,
  deliveries: `
    SELECT event_id AS "eventId", webhook_id AS "webhookId", state, claim_count AS attempts
    FROM ${schema}.deliveries
    UNION ALL
    SELECT event_id, webhook_id, state, jsonb_array_length(attempts)
    FROM ${schema}.finished_deliveries
    UNION ALL
    SELECT event_id, webhook_id, 'delivered', 1
    FROM ${schema}.delivered_runs, unnest(event_ids) event_id WHERE event_id IS NOT NULL`,
  webhooks: `
    SELECT w.id, p.id AS "projectId", url, secret, disabled_at IS NOT NULL AS "isDisabled"
    FROM ${schema}.webhooks w JOIN ${schema}.projects p ON p.number = w.project_number`,
})

/** Reads a schema's tables. */
export const readState = async ({ query }: Session, schema = "tenure"): Promise<State> => {
  const read = async <K extends keyof State>(name: K): Promise<State[K]> => {
    // Without the fields that are null.
    const [row] = await query<{ readonly rows: State[K] }>(
      `SELECT coalesce(json_agg(json_strip_nulls(to_json(t))), '[]') AS rows
       FROM (${statements(schema)[name]}) t`,
    )
    if (row === undefined) throw new Error(`${name} cannot be read`)
    return row.rows
  }
  return {
    memberships: await read("memberships"),
    audit: await read("audit"),
    events: await read("events"),
    deliveries: await read("deliveries"),
    webhooks: await read("webhooks"),
  }
}

/** Returns how many deliveries to webhooks that are there have not ended. */
export const countOpen = async ({ query }: Session): Promise<number> => {
  const [row] = await query<{ readonly open: number }>(
    `SELECT count(*)::integer AS open FROM tenure.deliveries d
     JOIN tenure.webhooks w ON w.id = d.webhook_id
     WHERE d.state <> 'failed'`,
  )
  return row?.open ?? 0
}

/** Returns whether an end may still have to be announced, because a next check is due. */
export const isAnnouncing = async ({ query }: Session): Promise<boolean> => {
  const [row] = await query<{ readonly due: boolean }>(
    `SELECT EXISTS (SELECT FROM tenure.memberships WHERE next_check_at <= now())
         OR EXISTS (SELECT FROM tenure.projects WHERE next_check_at <= now())
         OR EXISTS (SELECT FROM tenure.expiry_passes) AS due`,
  )
  return row?.due ?? false
}

/**
 * Lets webhooks that have failed often try again at once, as after a minute. Their receivers are well
 * meanwhile.
 */
export const endHolds = async ({ query }: Session): Promise<void> => {
  await query(`UPDATE tenure.webhooks SET paused_until = NULL, failures = 0 WHERE failures > 0`)
}
