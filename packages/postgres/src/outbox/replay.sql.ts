import type { Replay } from "@tenure/core/Outbox"
import type { OncePart } from "../idempotency/fragments.sql.ts"
import { isInProject } from "../projects.sql.ts"

// Which open or failed deliveries `d` of events `e` are started again: each condition has an index.
const conditions: Readonly<Record<Replay["_tag"], string>> = {
  One: "d.event_id = $3::uuid AND d.state IN ('failed', 'later')",
  FailedSince: "e.at >= $3::timestamptz AND d.state = 'failed'",
}

/**
 * The common table expressions `taken` and `returned`: a delivery that was delivered becomes open
 * again. Its place in the list stays.
 */
const returning = (schema: string): string => `
  taken AS (
    DELETE FROM ${schema}.ended_deliveries d
    USING webhook w, ${schema}.events e
    WHERE d.webhook_id = w.id AND NOT w.is_disabled AND d.event_id = $3::uuid AND e.id = $3::uuid
      AND d.state = 'delivered'
    RETURNING d.event_id, d.webhook_id, d.position, d.attempts
  ),
  returned AS (
    INSERT INTO ${schema}.deliveries (event_id, webhook_id, position, due_at, attempts)
    OVERRIDING SYSTEM VALUE
    SELECT event_id, webhook_id, position, clock_timestamp(), attempts FROM taken
    RETURNING event_id
  ),`

const restarted: Readonly<Record<Replay["_tag"], string>> = {
  One: "SELECT FROM replayed UNION ALL SELECT FROM returned",
  FailedSince: "SELECT FROM replayed",
}

/**
 * Starts deliveries again, unless the webhook is disabled: the delivery of the event `$3` if it has ended
 * or waits for its next attempt, or the failed deliveries of events since `$3`. Returns one row, with whether the webhook is disabled and
 * the number of deliveries, if the webhook exists.
 */
export const replay = (schema: string, which: Replay["_tag"], once: OncePart): string => `
  WITH webhook AS (
    SELECT id, project_number, disabled_at IS NOT NULL AS is_disabled FROM ${schema}.webhooks
    WHERE id = $2::uuid AND ${isInProject(schema)} ${once.condition}
  ),${which === "One" ? returning(schema) : ""}
  replayed AS (
    UPDATE ${schema}.deliveries d
    SET state = 'ready', due_at = clock_timestamp(), claims = 0
    FROM webhook w, ${schema}.events e
    WHERE d.webhook_id = w.id AND NOT w.is_disabled AND e.id = d.event_id
      AND ${conditions[which]}
    RETURNING d.event_id
  ),
  counted AS (
    SELECT project_number, is_disabled, (SELECT count(*) FROM (${restarted[which]}) r)::integer AS replayed FROM webhook
  )${once.keeping("counted WHERE NOT is_disabled", "replayed::text")}
  SELECT is_disabled, replayed FROM counted
`

/** A row of `replay`. */
export interface ReplayRow {
  readonly is_disabled: boolean
  readonly replayed: number
}
