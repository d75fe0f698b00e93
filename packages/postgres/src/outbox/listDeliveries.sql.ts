import { EventId, EventType } from "@tenure/core/Event"
import type { Attempt, Delivery } from "@tenure/core/Outbox"
import type { WebhookId } from "@tenure/core/Webhook"

/**
 * Returns deliveries to a webhook, newest first. `$3` selects one state or is NULL, and `$4` is the
 * event to continue after or NULL. A delivery to a deleted webhook that had not ended is cancelled.
 */
export const listDeliveries = (schema: string): string => `
  SELECT d.event_id, e.type, d.due_at, d.attempts, s.state
  FROM ${schema}.deliveries d
  JOIN ${schema}.events e ON e.id = d.event_id AND e.project_id = $1::text
  LEFT JOIN ${schema}.webhooks w ON w.id = d.webhook_id
  CROSS JOIN LATERAL (
    SELECT CASE
      WHEN d.state NOT IN ('ready', 'later', 'leased') THEN d.state
      WHEN w.id IS NULL THEN 'cancelled'
      ELSE 'waiting'
    END AS state
  ) s
  WHERE d.webhook_id = $2::uuid
    AND ($3::text IS NULL OR s.state = $3::text)
    AND ($4::uuid IS NULL OR d.position < (
      SELECT o.position FROM ${schema}.deliveries o
      WHERE o.event_id = $4::uuid AND o.webhook_id = $2::uuid
    ))
  ORDER BY d.position DESC
  LIMIT $5::integer
`

/** A row of `listDeliveries`. */
export interface DeliveryRow {
  readonly event_id: string
  readonly type: string
  readonly due_at: Date
  readonly attempts: ReadonlyArray<Attempt>
  readonly state: Delivery["state"]
}

/** Converts a row to a delivery. */
export const toDelivery = (webhookId: WebhookId, row: DeliveryRow): Delivery => ({
  eventId: EventId(row.event_id),
  type: EventType(row.type),
  webhookId,
  state: row.state,
  dueAt: Number(row.due_at),
  attempts: row.attempts,
})
