/** Statements that settle claims: what attempts did to deliveries and webhooks, and what announces it. */

import { concurrencyRange } from "@tenure/core/internal"
import {
  type Attempt,
  type AttemptResult,
  type Claim,
  type EventId,
  type EventType,
  type SettleResult,
  announcementsOf,
} from "@tenure/core/store"
import { insertRuns, recordOf } from "./delivered-runs.ts"
import { endLeases, leaseParams } from "./leases.ts"
import { type AcceptedItemRow, eventAndDeliveries, sequenceRound } from "./sql/clauses.ts"
import { bigintsParam, floatsParam, textParam, textsParam, uuidsParam } from "./sql/values.ts"

// Whether the row `d` is the delivery that the claim `a` is for.
const isOf = "d.event_id = a.delivered_id AND d.webhook_id = a.webhook_id"

const attemptRecord = (schema: string): string =>
  recordOf(schema, "a.started_at", "a.duration", "a.result")

// Whether this is the first attempt.
const isFirst = "attempts = '[]'"

// Whole milliseconds, which a cursor can have.
const now = "date_trunc('milliseconds', clock_timestamp())"

const { least: minConcurrency, most: maxConcurrency } = concurrencyRange

/**
 * An expression for a webhook's concurrency after successful and failed attempts, as if the successes had
 * come first. Same rules as `concurrencyAfterSuccess` and `concurrencyAfterFailure` in core.
 */
export const concurrencyAfter = (concurrency: string, succeeded: string, failed: string): string =>
  `greatest(${minConcurrency}, least(${maxConcurrency}, ${concurrency} + ${succeeded}) >> least(${failed}, 30))`

const settledColumns = "n, webhook_id, member, outcome, hold_millis, project_number"

/**
 * A batch's announcement for a webhook: `chosen` selects it by the locked webhook, `published` stores its
 * events, and `result` selects what `settle` returns.
 */
interface Announcing {
  readonly chosen: string
  readonly published: string
  readonly result: string
}

/** Unblocks the next delivery for the member in `s`, if it has one, and returns whether there is one. */
const unblockNext = (schema: string): string =>
  `s.member IS NOT NULL AND ${schema}.unblock_next(s.webhook_id, s.member) AS has_next`

/** For batches without announcements, which most are, `settle` need not open the event tables. */
const announcingNothing = (schema: string): Announcing => ({
  chosen: `
  chosen AS (SELECT NULL::uuid AS webhook_id, NULL::integer AS percent, NULL::boolean AS disables WHERE false)`,
  published: "",
  result: `s.n::integer, 'Settled' AS result, 0 AS deliveries, ${unblockNext(schema)} FROM settled s`,
})

const announcing = (schema: string): Announcing => ({
  chosen: `
  announcements AS (
    SELECT c.*, s.webhook_id, s.project_number, s.outcome = 'disabled' AS disables
    FROM ROWS FROM (jsonb_to_recordset($11::jsonb) AS (
      settlement integer, percent integer, failing_since timestamptz, event_id uuid, event_type text,
      at timestamptz, body text
    )) WITH ORDINALITY
    AS c (settlement, percent, failing_since, event_id, event_type, at, body, n)
    JOIN settled s ON s.n = c.settlement
  ),
  -- Among several settlements, only one announces a webhook or disables it.
  chosen AS MATERIALIZED (
    SELECT DISTINCT ON (a.webhook_id) a.*
    FROM announcements a JOIN locked l ON l.webhook_id = a.webhook_id
    WHERE l.disabled_at IS NULL AND (
      a.failing_since IS NULL
      OR a.failing_since = l.failing_since AND a.percent > l.failing_percent AND l.succeeded = 0
    )
    ORDER BY a.webhook_id, a.disables DESC, a.percent DESC, a.n
  )`,
  published: `,
  announced AS MATERIALIZED (
    SELECT a.* FROM announcements a JOIN chosen c ON c.settlement = a.settlement
  ),
  audited AS (
    INSERT INTO ${schema}.audit (project_number, seq, subject, action, at)
    SELECT c.project_number, ${sequenceRound("p.seq")}, c.webhook_id::text, 'webhook_disabled', c.at
    FROM chosen c JOIN ${schema}.projects p ON p.number = c.project_number
    WHERE c.disables
  ),${eventAndDeliveries(schema, "announced", { condition: "w.id <> s.webhook_id" })}`,
  result: `s.n::integer,
         CASE WHEN c.disables THEN 'WebhookDisabled' WHEN c.n IS NOT NULL THEN 'WebhookFailing'
              ELSE 'Settled' END AS result,
         (SELECT count(*) FROM delivered)::integer AS deliveries, ${unblockNext(schema)}
  FROM settled s LEFT JOIN chosen c ON c.settlement = s.n`,
})

/**
 * Records attempts and their effects on deliveries and webhooks. Each array has one element per attempt.
 * Returns a row for each attempt whose claim still holds: its position, from 1, its result, the number of
 * deliveries for announcements, and whether the member's next delivery is claimable now.
 *
 * - `$3` and `$4`: the lease, and the delivery's position
 * - `$5`: the outcome, which is `delivered`, `later`, `failed`, `disabled` or `released`
 * - `$6`, `$7` and `$8`: when the attempt started, how long it took, and its result as JSON; or NULL
 * - `$9` and `$10`: how long the delivery waits, and how long its webhook is on hold, in milliseconds
 * - `$11`: events that announce failing and disabled webhooks, as a JSON array of `Announcement`
 */
const settleWith = (schema: string, { chosen, published, result }: Announcing): string => `
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[],
                         $7::double precision[], $8::text[], $9::bigint[], $10::bigint[])
    WITH ORDINALITY AS a
      (delivered_id, webhook_id, lease, position, outcome, started_at, duration, result, delay_millis, hold_millis, n)
  ),${endLeases(schema)},
  ended AS (
    DELETE FROM ${schema}.deliveries d USING held a
    -- A deleted webhook has no deliveries to settle.
    JOIN ${schema}.webhooks w ON w.id = a.webhook_id
    WHERE a.outcome = 'delivered' AND ${isOf}
    RETURNING a.*, w.project_number, d.member, d.attempts
  ),
  kept AS (
    INSERT INTO ${schema}.finished_deliveries (event_id, webhook_id, position, state, attempted_at, attempts)
    SELECT delivered_id, webhook_id, position, 'delivered', ${now}, attempts || ${attemptRecord(schema)}
    FROM ended a WHERE NOT (${isFirst})
  ),
  runs AS (${insertRuns(schema, `SELECT * FROM ended WHERE ${isFirst}`, now)}
  ),
  changed AS (
    UPDATE ${schema}.deliveries d
    SET state = CASE
          WHEN a.outcome IN ('failed', 'disabled') OR w.disabled_by = 'failures' THEN 'failed'
          WHEN a.outcome = 'released' THEN d.state
          ELSE 'later'
        END,
        next_attempt_at = CASE WHEN a.outcome = 'released' THEN d.next_attempt_at
                          ELSE clock_timestamp() + a.delay_millis * interval '1 millisecond' END,
        attempted_at = CASE WHEN a.result IS NULL THEN d.attempted_at ELSE ${now} END,
        attempts = CASE WHEN a.result IS NULL THEN d.attempts
                   ELSE d.attempts || ${attemptRecord(schema)} END,
        claim_count = d.claim_count + CASE WHEN a.outcome = 'released' THEN 0 ELSE 1 END
    FROM held a
    JOIN ${schema}.webhooks w ON w.id = a.webhook_id
    WHERE a.outcome <> 'delivered' AND ${isOf}
    RETURNING a.*, w.project_number, d.member
  ),
  settled AS (
    SELECT ${settledColumns} FROM ended UNION ALL SELECT ${settledColumns} FROM changed
  ),
  outcomes AS (
    SELECT webhook_id, (count(*) FILTER (WHERE outcome = 'delivered'))::integer AS succeeded,
           (count(*) FILTER (WHERE outcome IN ('later', 'failed', 'disabled')))::integer AS failed,
           max(hold_millis) * interval '1 millisecond' AS hold
    FROM settled GROUP BY webhook_id
  ),
  -- All statements lock webhooks in the same order, too.
  locked AS MATERIALIZED (
    SELECT w.disabled_at, w.failing_since, w.failing_percent, s.*
    FROM ${schema}.webhooks w JOIN outcomes s ON s.webhook_id = w.id
    WHERE s.failed > 0 OR s.succeeded > 0 AND (w.failures > 0 OR w.concurrency < ${maxConcurrency})
    ORDER BY w.id FOR NO KEY UPDATE OF w
  ),${chosen},
  paced AS (
    UPDATE ${schema}.webhooks w
    SET failures = CASE WHEN s.succeeded > 0 THEN 0 ELSE w.failures + s.failed END,
        failing_since = CASE WHEN s.succeeded > 0 THEN NULL
                        ELSE coalesce(w.failing_since, ${now}) END,
        failing_percent = CASE WHEN w.failing_since IS NULL THEN 0
                          ELSE coalesce(c.percent, w.failing_percent) END,
        paused_until = CASE WHEN s.succeeded > 0 THEN NULL
                     -- A time in the future is from before the clock was set back.
                     WHEN w.paused_since > clock_timestamp() THEN clock_timestamp() + s.hold
                     ELSE greatest(w.paused_until, clock_timestamp() + s.hold) END,
        paused_since = clock_timestamp(),
        concurrency = ${concurrencyAfter("w.concurrency", "s.succeeded", "s.failed")},
        disabled_at = CASE WHEN c.disables THEN clock_timestamp() ELSE w.disabled_at END,
        disabled_by = CASE WHEN c.disables THEN 'failures' ELSE w.disabled_by END
    FROM locked s LEFT JOIN chosen c ON c.webhook_id = s.webhook_id
    WHERE w.id = s.webhook_id
  )${published}
  SELECT ${result}
`

/** The two forms that `settle` has. */
interface SettleForms {
  readonly silent: string
  /** With `$11`. */
  readonly announcing: string
}

/** The statement for batches without announcements, and for all others. */
export const settle = (schema: string): SettleForms => ({
  silent: settleWith(schema, announcingNothing(schema)),
  announcing: settleWith(schema, announcing(schema)),
})

/** A row from `settle`. */
export interface SettledRow extends AcceptedItemRow {
  readonly result: Exclude<SettleResult, "Lapsed">
  /** Whether the member's next delivery, to an ordered webhook, is claimable now. */
  readonly has_next: boolean
}

/** For each claim in a batch, the result of its settlement. */
export const settledOf = (
  all: ReadonlyArray<Settling>,
  rows: ReadonlyArray<SettledRow>,
): ReadonlyArray<SettleResult> => {
  const settled = new Map(rows.map((row) => [row.n, row.result] as const))
  return all.map((_, index) => settled.get(index + 1) ?? "Lapsed")
}

/** A claim, and how it is settled. */
export interface Settling {
  readonly claim: Claim
  readonly settlement: AttemptResult
}

const outcomes = {
  Delivered: "delivered",
  Retry: "later",
  Failed: "failed",
  Disabled: "disabled",
  Released: "released",
} as const

/** Replaces characters that PostgreSQL cannot store in JSON: NUL and unpaired surrogates. */
const storable = (_key: string, value: unknown): unknown =>
  typeof value === "string" ? value.replace(/[\0\p{Cs}]/gu, "\ufffd") : value

const attemptOf = (settlement: AttemptResult): Attempt | undefined =>
  settlement._tag === "Released" ? undefined : settlement.attempt

const delayOf = (settlement: AttemptResult): bigint =>
  settlement._tag === "Retry" ? BigInt(Math.ceil(settlement.delayMillis)) : 0n

const holdOf = (settlement: AttemptResult): bigint =>
  settlement._tag === "Retry" || settlement._tag === "Failed"
    ? BigInt(Math.ceil(settlement.holdMillis))
    : 0n

/** An event for `settle`, with the position of its settlement, from 1. Events from one settlement are in order. */
interface Announcement {
  readonly settlement: number
  /** With `failing_since`, as in `FailingAnnouncement`; missing if the receiver is gone. */
  readonly percent?: number | undefined
  readonly failing_since?: string | undefined
  readonly event_id: EventId
  readonly event_type: EventType
  readonly at: string
  readonly body: string
}

const toAnnouncements = ({ settlement }: Settling, index: number): ReadonlyArray<Announcement> => {
  const failing = "failing" in settlement ? settlement.failing : undefined
  return announcementsOf(settlement).map(({ at, body, id, type }) => ({
    settlement: index + 1,
    percent: failing?.percent,
    failing_since: failing && new Date(failing.failingSince).toISOString(),
    event_id: id,
    event_type: type,
    at: new Date(at).toISOString(),
    body,
  }))
}

const settleParams = (all: ReadonlyArray<Settling>) => {
  const attempts = all.map(({ settlement }) => attemptOf(settlement))
  return [
    uuidsParam(all.map((one) => one.claim.event.id)),
    uuidsParam(all.map((one) => one.claim.webhook.webhookId)),
    ...leaseParams(all.map(({ claim }) => claim)),
    textsParam(all.map(({ settlement }) => outcomes[settlement._tag])),
    bigintsParam(attempts.map((attempt) => attempt && BigInt(attempt.at))),
    floatsParam(attempts.map((attempt) => attempt?.durationMillis)),
    textsParam(attempts.map((attempt) => attempt && JSON.stringify(attempt.result, storable))),
    bigintsParam(all.map(({ settlement }) => delayOf(settlement))),
    bigintsParam(all.map(({ settlement }) => holdOf(settlement))),
  ]
}

/** Picks the form of `settle` for a batch, and returns it with its parameters. */
export const pickSettle = (
  forms: SettleForms,
  all: ReadonlyArray<Settling>,
): readonly [statement: string, params: ReadonlyArray<unknown>] => {
  const params = settleParams(all)
  const announcements = all.flatMap(toAnnouncements)
  return announcements.length === 0
    ? [forms.silent, params]
    : [forms.announcing, [...params, textParam(JSON.stringify(announcements))]]
}

/** Ends the waiting deliveries to webhooks in `$1` that failures have disabled. */
export const endDisabled = (schema: string): string => `
  UPDATE ${schema}.deliveries d SET state = 'failed'
  FROM ${schema}.webhooks w
  WHERE w.id = ANY ($1::uuid[]) AND w.disabled_by = 'failures' AND d.webhook_id = w.id
    AND d.state <> 'failed' AND d.position NOT IN (SELECT ${schema}.leased())
`
