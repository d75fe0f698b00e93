import { EventId, EventType } from "@tenure/core/Event"
import type { Attempt, Delivery } from "@tenure/core/Outbox"
import type { WebhookId } from "@tenure/core/Webhook"
import { type Integer, jsonOf, millisOf } from "../connection/results.ts"
import { isInProject } from "../projects.sql.ts"

type Table = "deliveries" | "ended_deliveries"

/**
 * Returns the newest deliveries of the webhook `$2` before the position of `older` or, if that is NULL,
 * of all. Each of the conditions has an index that returns them in this order.
 *
 * @param where - the state in the table
 * @param state - the state as it is returned, in SQL; `$3` selects one or is NULL
 */
const newest = (schema: string, table: Table, where: string, state: string): string => `
  (
    SELECT d.event_id, d.position, d.due_at, d.attempts, ${state} AS state
    FROM ${schema}.${table} d
    WHERE d.webhook_id = $2::uuid AND d.state ${where} AND ($3::text IS NULL OR $3::text = ${state})
      AND ($4::uuid IS NULL OR d.position < (SELECT position FROM older))
    ORDER BY d.position DESC LIMIT $5::integer
  )`

// A delivery to a deleted webhook that had not ended is cancelled.
const openState = (schema: string): string =>
  `(SELECT CASE WHEN count(*) = 0 THEN 'cancelled' ELSE 'waiting' END
    FROM ${schema}.webhooks WHERE id = $2::uuid)`

const positionIn = (schema: string, table: Table): string =>
  `SELECT position FROM ${schema}.${table} WHERE event_id = $4::uuid AND webhook_id = $2::uuid`

/** Returns `$5` deliveries to a webhook, newest first, if it belongs or belonged to the project `$1`. */
export const listDeliveries = (schema: string): string => `
  WITH older AS MATERIALIZED (
    ${positionIn(schema, "deliveries")} UNION ALL ${positionIn(schema, "ended_deliveries")}
    LIMIT 1
  ),
  newest AS MATERIALIZED (
    SELECT * FROM (
      ${[
        newest(schema, "deliveries", "IN ('ready', 'later', 'leased')", openState(schema)),
        newest(schema, "deliveries", "= 'failed'", "'failed'"),
        newest(schema, "ended_deliveries", "= 'delivered'", "'delivered'"),
        newest(schema, "ended_deliveries", "= 'cancelled'", "'cancelled'"),
      ].join(" UNION ALL ")}
    ) parts
    ORDER BY position DESC LIMIT $5::integer
  )
  SELECT n.event_id, e.type, ${millisOf("n.due_at")} AS due_at, ${jsonOf("n.attempts")} AS attempts, n.state
  FROM newest n
  JOIN ${schema}.events e ON e.id = n.event_id AND ${isInProject(schema)}
  ORDER BY n.position DESC
`

/** A row of `listDeliveries`. */
export interface DeliveryRow {
  readonly event_id: string
  readonly type: string
  readonly due_at: Integer
  /** An array of `Attempt` as JSON. */
  readonly attempts: string
  readonly state: Delivery["state"]
}

/** Converts a row to a delivery. */
export const toDelivery = (webhookId: WebhookId, row: DeliveryRow): Delivery => {
  const attempts: ReadonlyArray<Attempt> = JSON.parse(row.attempts)
  return {
    eventId: EventId(row.event_id),
    type: EventType(row.type),
    webhookId,
    state: row.state,
    dueAt: Number(row.due_at),
    attempts,
  }
}
