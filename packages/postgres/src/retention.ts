/**
 * Retention: creates the next daily partitions, and deletes old events, deliveries, audit rows and
 * idempotency keys.
 */

import { Setting } from "@tenure/core/internal"
import * as Effect from "effect/Effect"
import type { Executor } from "./connection/executor.ts"
import { runPeriodically } from "./connection/housekeeping.ts"
import { deleteOldMinutes, deleteOldQuarters } from "./delivery-counts.ts"
import { makeErasures } from "./erasure.ts"
import { deleteFullBuckets } from "./rate-limits.ts"
import { deleteSome } from "./sql/clauses.ts"
import { daysParam } from "./sql/values.ts"

/**
 * Creates the partitions for today and the next two days, with the function in the migrations. Returns one
 * row for each day that had none.
 */
export const createDays = (schema: string): string => `SELECT * FROM ${schema}.create_days()`

/** Closes past days, with the function in the migrations. Returns one row for each. */
const closeDays = (schema: string): string => `SELECT * FROM ${schema}.close_days()`

/**
 * Drops the oldest day that ended more than `$1` days ago, with the function in the migrations. Returns one
 * row if it has dropped one.
 */
export const dropDay = (schema: string): string => `
  SELECT * FROM ${schema}.drop_day($1::double precision * interval '1 day')
`

/**
 * Begins an audit part if one is due while rows are kept for `$1` days, with the function in the migrations.
 * Returns one row for each of its two steps.
 */
export const beginAudit = (schema: string): string => `
  SELECT * FROM ${schema}.begin_audit($1::double precision * interval '1 day')
`

/**
 * Drops the oldest audit part if everything in it is older than `$1` days, with the function in the
 * migrations. Returns one row if it has dropped one.
 */
export const dropAudit = (schema: string): string => `
  SELECT * FROM ${schema}.drop_audit($1::double precision * interval '1 day')
`

/**
 * Deletes up to 1000 failed deliveries whose events are older than `$1` days. Returns one row for each.
 *
 * An event's age is known from its id only if that is a UUIDv7.
 */
export const deleteOldFailedDeliveries = (schema: string): string => `
  WITH old AS MATERIALIZED (
    SELECT d.event_id, d.webhook_id FROM ${schema}.deliveries d
    WHERE d.event_id < ${schema}.first_id(
        (statement_timestamp() AT TIME ZONE 'UTC') - $1::double precision * interval '1 day'
      )
      AND d.state = 'failed' AND substr(d.event_id::text, 15, 1) = '7'
    ORDER BY d.event_id
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
  )
  DELETE FROM ${schema}.deliveries d USING old
  WHERE d.event_id = old.event_id AND d.webhook_id = old.webhook_id
  RETURNING d.event_id
`

/**
 * Deletes up to 1000 events older than `$1` days that are in no daily partition, with their deliveries, if
 * none is open. Returns one row for each event.
 */
export const deleteOldEvents = (schema: string): string => `
  WITH old AS MATERIALIZED (
    SELECT e.id FROM ${schema}.events_default e
    -- A time that is stable during the statement, so that the index finds the old events.
    WHERE e.at < statement_timestamp() - $1::double precision * interval '1 day'
      AND NOT EXISTS (
        SELECT FROM ${schema}.deliveries d
        WHERE d.event_id = e.id AND d.state <> 'failed'
      )
    ORDER BY e.at
    LIMIT 1000
  ),
  failed AS (
    DELETE FROM ${schema}.deliveries WHERE event_id IN (SELECT id FROM old)
  ),
  ended AS (
    DELETE FROM ${schema}.finished_deliveries_default WHERE event_id IN (SELECT id FROM old)
  ),
  runs AS (
    DELETE FROM ${schema}.delivered_runs_default WHERE first_event IN (SELECT id FROM old)
  )
  DELETE FROM ${schema}.events_default WHERE id IN (SELECT id FROM old)
  RETURNING id
`

/**
 * Purges deleted projects, with the function `forget_projects` in the migrations, which describes it. Returns
 * one row if there may be more.
 */
export const purgeDeletedProjects = (schema: string): string =>
  `SELECT * FROM ${schema}.forget_projects(1000)`

/**
 * Makes old bulk extensions part of members' own dates, with the function in the migrations. Returns one row
 * if there may be more.
 */
export const settleBulkExtensions = (schema: string): string =>
  `SELECT * FROM ${schema}.settle_bulk_extensions(1000)`

/** Deletes up to 1000 idempotency keys older than `$1` days. Returns one row for each. */
export const deleteOldIdempotencyKeys = (schema: string): string =>
  deleteSome(
    schema,
    "idempotency_keys",
    // A time that is stable during the statement, so that the index finds the old keys.
    "at < statement_timestamp() - $1::double precision * interval '1 day'",
  )

const dayMillis = 86_400_000

/** Options for retention. */
export const retentionOptions = Setting.object({
  /**
   * How long to keep events, and delivered and cancelled deliveries, plus up to a day. For so long,
   * readers of the feed can go on from a cursor. Open and failed deliveries keep their events. Default:
   * `"30 days"`.
   */
  eventRetention: Setting.withDefault(Setting.duration(), "30 days"),
  /** How long to keep failed deliveries, counted from the event. Default: `"30 days"`. */
  failedRetention: Setting.withDefault(Setting.duration(), "30 days"),
  /**
   * How long to keep the audit trail. Its rows are deleted by whole days, or by thirtieths of this time if
   * these are longer. By default, forever.
   */
  auditRetention: Setting.optional(Setting.duration({ least: dayMillis, most: 3660 * dayMillis })),
  /** How long to keep idempotency keys, and what was answered to them. Default: `"24 hours"`. */
  idempotencyRetention: Setting.withDefault(Setting.duration(), "24 hours"),
})

const interval = "10 minutes"

/**
 * Creates the partitions for the next days, now and then regularly. Closes past days, and deletes what is
 * old, regularly. If a step does not get a lock, it is left for the next time.
 */
export const startRetention = Effect.fnUntraced(function* (
  executor: Executor,
  {
    auditRetention,
    eventRetention,
    failedRetention,
    idempotencyRetention,
  }: Setting.OutputOf<typeof retentionOptions>,
) {
  const { schema } = executor
  const run = (sql: string, ...params: ReadonlyArray<unknown>) =>
    executor.executeApart(sql, params, { isLong: true })
  const longest = daysParam(Math.max(eventRetention, failedRetention))
  yield* Effect.catchCause(run(createDays(schema)), (cause) =>
    Effect.logWarning("Partitions cannot be created and will be later", cause),
  )
  const ofAudit = (kept: unknown) => [run(beginAudit(schema), kept), run(dropAudit(schema), kept)]
  // In sequence, because they lock each other out.
  const partitions = Effect.all([
    run(createDays(schema)),
    run(closeDays(schema)),
    run(dropDay(schema), daysParam(eventRetention)),
    ...(auditRetention === undefined ? [] : ofAudit(daysParam(auditRetention))),
  ])
  yield* runPeriodically(
    interval,
    Effect.map(partitions, (steps) => steps.flat()),
  )
  yield* runPeriodically(
    interval,
    run(deleteOldFailedDeliveries(schema), daysParam(failedRetention)),
  )
  yield* runPeriodically(interval, run(deleteOldEvents(schema), longest))
  yield* runPeriodically("1 minute", run(purgeDeletedProjects(schema)))
  yield* runPeriodically("1 minute", run(settleBulkExtensions(schema)))
  yield* runPeriodically("1 minute", run(deleteFullBuckets(schema)))
  yield* runPeriodically(interval, run(deleteOldMinutes(schema)))
  yield* runPeriodically(interval, run(deleteOldQuarters(schema)))
  yield* runPeriodically("1 minute", makeErasures(executor).eraseDue)
  yield* runPeriodically(
    interval,
    run(deleteOldIdempotencyKeys(schema), daysParam(idempotencyRetention)),
  )
})
