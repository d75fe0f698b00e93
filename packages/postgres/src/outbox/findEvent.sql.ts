import { type Event, EventType } from "@tenure/core/Event"
import type { Delivery, PublishedEvent } from "@tenure/core/Outbox"
import { WebhookId } from "@tenure/core/Webhook"
import { type Integer, millisOf } from "../connection/results.ts"
import { isInProject } from "../projects.sql.ts"

/**
 * Returns one row with the event `$2` and its deliveries, if it belongs to the project `$1`. They are one
 * value, so that the body is returned once.
 */
export const findEvent = (schema: string): string => `
  SELECT e.type, ${millisOf("e.at")} AS at, e.body, (
    SELECT coalesce(jsonb_agg(jsonb_build_object(
             'webhook_id', d.webhook_id, 'state', d.state, 'attempts', d.attempts,
             'due_at', floor(extract(epoch FROM d.due_at) * 1000)
           ) ORDER BY d.position), '[]')
    FROM (
      SELECT o.webhook_id, o.position, o.due_at, o.attempts,
             CASE WHEN o.state = 'failed' THEN 'failed'
                  -- Looks up each webhook by its id, however many there are.
                  WHEN (SELECT w.id FROM ${schema}.webhooks w WHERE w.id = o.webhook_id) IS NULL
                  THEN 'cancelled'
                  ELSE 'waiting' END AS state
      FROM ${schema}.deliveries o WHERE o.event_id = $2::uuid
      UNION ALL
      SELECT webhook_id, position, due_at, attempts, state
      FROM ${schema}.ended_deliveries WHERE event_id = $2::uuid
    ) d
  )::text AS deliveries
  FROM ${schema}.events e
  WHERE e.id = $2::uuid AND ${isInProject(schema)}
`

/** A row of `findEvent`. */
export interface EventRow {
  readonly type: string
  readonly at: Integer
  readonly body: string
  /** An array of `ReadDelivery` as JSON. */
  readonly deliveries: string
}

interface ReadDelivery extends Pick<Delivery, "attempts" | "state"> {
  readonly webhook_id: string
  readonly due_at: number
}

/** Converts the row. */
export const toPublishedEvent = (
  { id, projectId }: Pick<Event, "id" | "projectId">,
  { at, body, deliveries: json, type: text }: EventRow,
): PublishedEvent => {
  const type = EventType(text)
  const deliveries: ReadonlyArray<ReadDelivery> = JSON.parse(json)
  return {
    id,
    projectId,
    type,
    at: Number(at),
    body,
    deliveries: deliveries.map(({ attempts, due_at, state, webhook_id }) => ({
      eventId: id,
      type,
      webhookId: WebhookId(webhook_id),
      state,
      dueAt: due_at,
      attempts,
    })),
  }
}
