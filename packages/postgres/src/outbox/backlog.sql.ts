import type { Backlog } from "@tenure/core/Outbox"
import { nilUuid } from "../connection/parameters.ts"

/**
 * The webhooks with deliveries in some states, up to `$1` of them. Steps from one to the next by an index,
 * however many deliveries there are.
 */
const webhooksWith = (schema: string, name: string, states: string): string => `
  ${name} (webhook_id, step) AS (
    SELECT '${nilUuid}'::uuid, 0
    UNION ALL
    SELECT n.webhook_id, w.step + 1
    FROM ${name} w
    CROSS JOIN LATERAL (
      SELECT d.webhook_id FROM ${schema}.deliveries d
      WHERE d.state ${states} AND d.webhook_id > w.webhook_id
      ORDER BY d.webhook_id LIMIT 1
    ) n
    WHERE w.step < $1::integer
  )`

/**
 * Whether a webhook was not removed. Deliveries to one that was stay until a claim meets them, or are kept, but
 * nobody sends them.
 */
const exists = (schema: string, webhookId: string): string =>
  `(SELECT true FROM ${schema}.webhooks e WHERE e.id = ${webhookId})`

/** Counts the deliveries in some states of the webhooks `name`, up to `$1`, in the order of an index. */
const counted = (schema: string, name: string, states: string): string => `
    (
      SELECT count(*) FROM (
        SELECT FROM ${name} w
        CROSS JOIN LATERAL (
          SELECT FROM ${schema}.deliveries d
          WHERE d.state ${states} AND d.webhook_id = w.webhook_id AND ${exists(schema, "w.webhook_id")}
          ORDER BY d.position LIMIT $1::integer
        ) kept
        LIMIT $1::integer
      ) counted
    )::integer`

const open = "IN ('ready', 'later', 'leased')"

/**
 * Returns one row with how much is left to deliver and what was given up. It counts up to `$1`, and steps
 * through up to `$1` webhooks with open deliveries, with ready ones, to the oldest of each, and with
 * failed ones.
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
  ),${webhooksWith(schema, "waiting", open)},${webhooksWith(schema, "failing", "= 'failed'")}
  SELECT ${counted(schema, "waiting", open)} AS waiting,
    1000 * extract(epoch FROM clock_timestamp() - least(
      (SELECT min(o.due_at) FROM oldest o WHERE ${exists(schema, "o.webhook_id")}),
      (
        SELECT d.due_at FROM ${schema}.deliveries d
        WHERE (d.state = 'later' OR d.state = 'leased') AND ${exists(schema, "d.webhook_id")}
        ORDER BY d.due_at LIMIT 1
      )
    ))::double precision AS due_for, ${counted(schema, "failing", "= 'failed'")} AS failed_deliveries,
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
