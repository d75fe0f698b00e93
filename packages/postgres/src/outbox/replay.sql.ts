import type { Replay } from "@tenure/core/Outbox"

// Which deliveries `d` of events `e` are started again: each condition has an index.
const conditions: Readonly<Record<Replay["_tag"], string>> = {
  One: "d.event_id = $3::uuid AND d.state IN ('failed', 'delivered')",
  FailedSince: "e.at >= $3::timestamptz AND d.state = 'failed'",
}

/**
 * Starts ended deliveries again, unless the webhook is disabled: the delivery of the event `$3`, or
 * the failed deliveries of events since `$3`. Returns one row, with whether the webhook is disabled and
 * the number of deliveries, if the webhook exists.
 */
export const replay = (schema: string, which: Replay["_tag"]): string => `
  WITH webhook AS (
    SELECT id, disabled_at IS NOT NULL AS is_disabled FROM ${schema}.webhooks
    WHERE id = $2::uuid AND project_id = $1::text
  ),
  replayed AS (
    UPDATE ${schema}.deliveries d
    SET state = 'ready', due_at = clock_timestamp(), claims = 0
    FROM webhook w, ${schema}.events e
    WHERE d.webhook_id = w.id AND NOT w.is_disabled AND e.id = d.event_id
      AND ${conditions[which]}
    RETURNING d.event_id
  )
  SELECT is_disabled, (SELECT count(*) FROM replayed)::integer AS replayed FROM webhook
`

/** A row of `replay`. */
export interface ReplayRow {
  readonly is_disabled: boolean
  readonly replayed: number
}
