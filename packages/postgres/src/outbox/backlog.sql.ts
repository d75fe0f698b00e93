import type { Backlog } from "@tenure/core/Outbox"
import { nilUuid } from "../connection/parameters.ts"

/**
 * Returns one row with how much is left to deliver and what was given up. It counts up to `$1`, in the
 * order of an index, and steps through up to `$1` webhooks with ready deliveries, to the oldest of each,
 * and through as many with failed ones.
 */
export const backlog = (schema: string): string => `
  WITH RECURSIVE oldest (webhook_id, due_at, step) AS (
    SELECT '${nilUuid}'::uuid, NULL::timestamptz, 0
    UNION ALL
    SELECT n.webhook_id, n.due_at, o.step + 1
    FROM oldest o
    CROSS JOIN LATERAL (
      SELECT d.webhook_id, d.due_at FROM ${schema}.deliveries d
      WHERE d.state = 'ready' AND d.webhook_id > o.webhook_id
      ORDER BY d.webhook_id, d.due_at LIMIT 1
    ) n
    WHERE o.step < $1::integer
  ),
  failing (webhook_id, step) AS (
    SELECT '${nilUuid}'::uuid, 0
    UNION ALL
    SELECT n.webhook_id, f.step + 1
    FROM failing f
    CROSS JOIN LATERAL (
      SELECT d.webhook_id FROM ${schema}.deliveries d
      WHERE d.state = 'failed' AND d.webhook_id > f.webhook_id
      ORDER BY d.webhook_id LIMIT 1
    ) n
    WHERE f.step < $1::integer
  )
  SELECT
    (
      SELECT count(*) FROM (
        SELECT FROM ${schema}.deliveries d WHERE d.state IN ('ready', 'later', 'leased')
        ORDER BY d.webhook_id, d.position LIMIT $1::integer
      ) open
    )::integer AS waiting,
    1000 * extract(epoch FROM clock_timestamp() - least(
      (SELECT min(o.due_at) FROM oldest o),
      (SELECT min(d.due_at) FROM ${schema}.deliveries d WHERE d.state = 'later' OR d.state = 'leased')
    ))::double precision AS due_for,
    (
      SELECT count(*) FROM (
        SELECT FROM failing f
        CROSS JOIN LATERAL (
          SELECT FROM ${schema}.deliveries d
          WHERE d.state = 'failed' AND d.webhook_id = f.webhook_id
            -- Those to a webhook that was removed are kept, but nobody can send them again.
            AND (SELECT true FROM ${schema}.webhooks w WHERE w.id = f.webhook_id)
          ORDER BY d.position LIMIT $1::integer
        ) kept
        LIMIT $1::integer
      ) failed
    )::integer AS failed_deliveries,
    (
      SELECT count(*) FROM (
        SELECT FROM ${schema}.webhooks w WHERE w.disabled_at IS NOT NULL ORDER BY w.id LIMIT $1::integer
      ) disabled
    )::integer AS disabled_webhooks
`

/** The row of `backlog`. */
export interface BacklogRow {
  readonly waiting: number
  /** Milliseconds; negative if the next delivery is due later, null if there is none. */
  readonly due_for: number | null
  readonly failed_deliveries: number
  readonly disabled_webhooks: number
}

const dueForMillis = (due_for: number | null): number | undefined =>
  due_for === null || due_for < 0 ? undefined : Math.floor(due_for)

/** Converts the row. */
export const toBacklog = ([row]: ReadonlyArray<BacklogRow>): Backlog => ({
  waiting: row?.waiting ?? 0,
  dueForMillis: dueForMillis(row?.due_for ?? null),
  failedDeliveries: row?.failed_deliveries ?? 0,
  disabledWebhooks: row?.disabled_webhooks ?? 0,
})
