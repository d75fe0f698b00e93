/** Reads what the database holds in the end. */

import type { State } from "./history.ts"
import type { Session } from "./world/database.ts"

const millis = (column: string): string =>
  `(extract(epoch FROM ${column}) * 1000)::float8 AS ${column}`

interface Membership {
  readonly project_id: string
  readonly user_id: string
  readonly end_date: number
}

interface Audit {
  readonly project_id: string
  readonly user_id: string | null
  readonly action: string
  readonly from_date: number | null
  readonly to_date: number | null
  readonly extend_by: number | null
  readonly subject: string | null
  readonly request_id: string | null
}

interface Event {
  readonly id: string
  readonly project_id: string
  readonly type: string
  readonly body: string
}

interface Delivery {
  readonly event_id: string
  readonly webhook_id: string
  readonly state: string
  readonly attempts: number
}

interface Webhook {
  readonly id: string
  readonly project_id: string
  readonly url: string
  readonly secret: string
  readonly is_disabled: boolean
}

/** Reads the tables. */
export const readState = async ({ query }: Session): Promise<State> => {
  const memberships = await query<Membership>(
    `SELECT project_id, user_id, ${millis("end_date")} FROM tenure.memberships_current`,
  )
  const audit = await query<Audit>(
    `SELECT p.id AS project_id, user_id, action, ${millis("from_date")}, ${millis("to_date")},
            ${millis("extend_by")}, subject, request_id
     FROM tenure.audit a JOIN tenure.projects p ON p.number = a.project_number
     WHERE subject IS NULL OR action LIKE 'bulk\\_%' ORDER BY a.seq, a.id`,
  )
  const events = await query<Event>(
    `SELECT e.id, p.id AS project_id, type, body
     FROM tenure.events e JOIN tenure.projects p ON p.number = e.project_number`,
  )
  const deliveries = await query<Delivery>(
    `SELECT event_id, webhook_id, state, claim_count AS attempts FROM tenure.deliveries
     UNION ALL
     SELECT event_id, webhook_id, state, jsonb_array_length(attempts) FROM tenure.finished_deliveries
     UNION ALL
     SELECT event_id, webhook_id, 'delivered', 1 FROM tenure.delivered_runs, unnest(event_ids) event_id
     WHERE event_id IS NOT NULL`,
  )
  const webhooks = await query<Webhook>(
    `SELECT w.id, p.id AS project_id, url, secret, disabled_at IS NOT NULL AS is_disabled
     FROM tenure.webhooks w JOIN tenure.projects p ON p.number = w.project_number`,
  )
  return {
    memberships: memberships.map((row) => ({
      projectId: row.project_id,
      userId: row.user_id,
      endDate: Math.round(row.end_date),
    })),
    audit: audit.map((row) => ({
      projectId: row.project_id,
      userId: row.user_id ?? undefined,
      action: row.action,
      from: row.from_date === null ? undefined : Math.round(row.from_date),
      to: row.to_date === null ? undefined : Math.round(row.to_date),
      extendBy: row.extend_by === null ? undefined : Math.round(row.extend_by),
      bulkExtensionId: row.subject ?? undefined,
      requestId: row.request_id ?? undefined,
    })),
    events: events.map(({ body, id, project_id: projectId, type }) => ({
      id,
      projectId,
      type,
      body,
    })),
    deliveries: deliveries.map(({ attempts, event_id: eventId, state, webhook_id: webhookId }) => ({
      eventId,
      webhookId,
      state,
      attempts,
    })),
    webhooks: webhooks.map((row) => ({
      id: row.id,
      projectId: row.project_id,
      url: row.url,
      secret: row.secret,
      isDisabled: row.is_disabled,
    })),
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

/** Returns whether the end of a membership may still have to be announced, because an alarm has come. */
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
