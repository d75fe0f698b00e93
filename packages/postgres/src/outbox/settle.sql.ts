import * as Concurrency from "@tenure/core/Concurrency"
import type { Event } from "@tenure/core/Event"
import type { Claim, Settled, Settlement } from "@tenure/core/Outbox"
import { bigints, instants, texts, uuids } from "../connection/parameters.ts"
import { roundOf } from "../sequence.sql.ts"
import { type AcceptedRow, publishing } from "./fragments.sql.ts"

// Whether the claim `a` of the delivery `d` still holds.
const holds = `d.event_id = a.delivered_id AND d.webhook_id = a.webhook_id
      AND d.state = 'leased' AND d.lease = a.lease AND d.due_at > clock_timestamp()`

const { least, most } = Concurrency.range

const settledColumns = `n, webhook_id, outcome, hold_millis, event_id, event_type, at, body,
      project_number, disabled_at`

/**
 * Records attempts, and what happens to their deliveries and webhooks. Each array has one element for
 * each attempt. Returns the positions, from 1, of the attempts whose claim still holds, whether each has
 * disabled its webhook, and the number of deliveries of announcements.
 *
 * - `$4`: the outcome, which is `delivered`, `later`, `failed`, `disabled` or `released`
 * - `$5`: the attempt, as JSON, or NULL
 * - `$6` and `$7`: how long the delivery waits, and how long its webhook is on hold, in milliseconds
 * - `$8` to `$11`: the event that announces a disabled webhook, or NULL
 */
export const settle = (schema: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::bigint[],
                         $7::bigint[], $8::uuid[], $9::text[], $10::timestamptz[], $11::text[])
    WITH ORDINALITY
    AS a (delivered_id, webhook_id, lease, outcome, attempt, delay_millis, hold_millis, event_id,
          event_type, at, body, n)
    -- All statements lock deliveries in the same order, which avoids deadlocks.
    ORDER BY delivered_id, webhook_id
  ),
  ended AS (
    DELETE FROM ${schema}.deliveries d USING asked a
    -- A deleted webhook has no deliveries to settle.
    JOIN ${schema}.webhooks w ON w.id = a.webhook_id
    WHERE a.outcome = 'delivered' AND ${holds}
    RETURNING a.*, w.project_number, w.disabled_at, d.position, d.claims, d.attempts
  ),
  kept AS (
    INSERT INTO ${schema}.ended_deliveries
      (event_id, webhook_id, position, state, due_at, claims, attempts)
    SELECT delivered_id, webhook_id, position, 'delivered', clock_timestamp(), claims,
           attempts || attempt::jsonb
    FROM ended
  ),
  changed AS (
    UPDATE ${schema}.deliveries d
    SET state = CASE
          WHEN a.outcome IN ('failed', 'disabled') OR w.disabled_at IS NOT NULL THEN 'failed'
          WHEN a.outcome = 'released' THEN 'ready'
          ELSE 'later'
        END,
        due_at = clock_timestamp() + a.delay_millis * interval '1 millisecond',
        waits_since = clock_timestamp(),
        attempts = CASE WHEN a.attempt IS NULL THEN d.attempts
                   ELSE d.attempts || a.attempt::jsonb END,
        claims = CASE WHEN a.outcome = 'released' THEN d.claims - 1 ELSE d.claims END,
        lease = NULL, dispatcher = NULL
    FROM asked a
    JOIN ${schema}.webhooks w ON w.id = a.webhook_id
    WHERE a.outcome <> 'delivered' AND ${holds}
    RETURNING a.*, w.project_number, w.disabled_at
  ),
  settled AS (
    SELECT ${settledColumns} FROM ended UNION ALL SELECT ${settledColumns} FROM changed
  ),
  outcomes AS (
    SELECT webhook_id, bool_or(outcome = 'disabled') AS disabled,
           (count(*) FILTER (WHERE outcome = 'delivered'))::integer AS succeeded,
           (count(*) FILTER (WHERE outcome IN ('later', 'failed', 'disabled')))::integer AS failed,
           max(hold_millis) * interval '1 millisecond' AS hold
    FROM settled GROUP BY webhook_id
  ),
  -- All statements lock webhooks in the same order, too. Only one of several disables a webhook.
  locked AS MATERIALIZED (
    SELECT w.id, s.disabled AND w.disabled_at IS NULL AS is_disabled_now
    FROM ${schema}.webhooks w JOIN outcomes s ON s.webhook_id = w.id
    WHERE s.failed > 0 OR s.succeeded > 0 AND (w.failures > 0 OR w.concurrency < ${most})
    ORDER BY w.id FOR NO KEY UPDATE OF w
  ),
  paced AS (
    UPDATE ${schema}.webhooks w
    SET failures = CASE WHEN s.succeeded > 0 THEN 0 ELSE w.failures + s.failed END,
        failing_since = CASE WHEN s.succeeded > 0 THEN NULL
                        ELSE coalesce(w.failing_since, clock_timestamp()) END,
        -- Whose project moves is held until that is over.
        held_until = CASE WHEN w.held_until = 'infinity' THEN w.held_until
                     WHEN s.succeeded > 0 THEN NULL
                     -- One from the future was made before the clock was set back.
                     WHEN w.held_since > clock_timestamp() THEN clock_timestamp() + s.hold
                     ELSE greatest(w.held_until, clock_timestamp() + s.hold) END,
        held_since = clock_timestamp(),
        -- As \`Concurrency\` of the core says, as if the successes had come first.
        concurrency = greatest(${least}, least(${most}, w.concurrency + s.succeeded)
                                         >> least(s.failed, 30)),
        disabled_at = CASE WHEN l.is_disabled_now THEN clock_timestamp() ELSE w.disabled_at END
    FROM locked l JOIN outcomes s ON s.webhook_id = l.id
    WHERE w.id = l.id
  ),
  announced AS MATERIALIZED (
    SELECT DISTINCT ON (webhook_id) * FROM settled
    WHERE outcome = 'disabled' AND webhook_id IN (SELECT id FROM locked WHERE is_disabled_now)
    ORDER BY webhook_id, n
  ),
  audited AS (
    INSERT INTO ${schema}.audit (project_number, seq, subject, action, at)
    SELECT a.project_number, ${roundOf("p.seq")}, a.webhook_id::text, 'webhook_disabled', a.at
    FROM announced a JOIN ${schema}.projects p ON p.number = a.project_number
  ),${publishing(schema, "announced", { condition: "w.id <> s.webhook_id" })}
  SELECT n::integer, n IN (SELECT n FROM announced) AS has_disabled,
         (SELECT count(*) FROM delivered)::integer AS deliveries
  FROM settled
`

/** A row of `settle`. */
export interface SettledRow extends AcceptedRow {
  readonly has_disabled: boolean
}

/** For each claim of a batch, what came of its settlement. */
export const settledOf = (
  all: ReadonlyArray<Settling>,
  rows: ReadonlyArray<SettledRow>,
): ReadonlyArray<Settled> => {
  const settled = new Map(
    rows.map((row) => [row.n, row.has_disabled ? "WebhookDisabled" : "Settled"] as const),
  )
  return all.map((_, index) => settled.get(index + 1) ?? "Lapsed")
}

/** A claim, and how it is settled. */
export interface Settling {
  readonly claim: Claim
  readonly settlement: Settlement
}

const outcomes = {
  Delivered: "delivered",
  Retry: "later",
  Failed: "failed",
  Disabled: "disabled",
  Released: "released",
} as const

/** Replaces what PostgreSQL cannot store in JSON: NUL characters and unpaired surrogates. */
const storable = (_key: string, value: unknown): unknown =>
  typeof value === "string" ? value.replace(/[\0\p{Cs}]/gu, "\ufffd") : value

const attemptOf = (settlement: Settlement): string | undefined =>
  settlement._tag === "Released" ? undefined : JSON.stringify(settlement.attempt, storable)

const delayOf = (settlement: Settlement): bigint =>
  settlement._tag === "Retry" ? BigInt(Math.ceil(settlement.delayMillis)) : 0n

const holdOf = (settlement: Settlement): bigint =>
  settlement._tag === "Retry" || settlement._tag === "Failed"
    ? BigInt(Math.ceil(settlement.holdMillis))
    : 0n

const announcementOf = (settlement: Settlement): Event | undefined =>
  settlement._tag === "Disabled" ? settlement.announcement : undefined

/** The parameters of `settle`. */
export const settleParams = (all: ReadonlyArray<Settling>) => {
  const announcements = all.map(({ settlement }) => announcementOf(settlement))
  return [
    uuids(all.map((one) => one.claim.event.id)),
    uuids(all.map((one) => one.claim.webhook.webhookId)),
    bigints(all.map((one) => BigInt(one.claim.lease))),
    texts(all.map(({ settlement }) => outcomes[settlement._tag])),
    texts(all.map(({ settlement }) => attemptOf(settlement))),
    bigints(all.map(({ settlement }) => delayOf(settlement))),
    bigints(all.map(({ settlement }) => holdOf(settlement))),
    uuids(announcements.map((event) => event?.id)),
    texts(announcements.map((event) => event?.type)),
    instants(announcements.map((event) => event?.at)),
    texts(announcements.map((event) => event?.body)),
  ]
}
