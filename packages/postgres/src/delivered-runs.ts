/** Runs: one row for deliveries to a webhook that were recorded together, when their first attempts succeeded. */

import { nilUuid } from "./sql/values.ts"

// All positions in a run are in one range with this size.
const positionsInRange = 8192

/** An expression for an attempt's record, an `Attempt` in core. */
export const recordOf = (schema: string, start: string, duration: string, result: string): string =>
  `${schema}.record_of(${start}, ${duration}, ${result})`

/** Inserts runs for the deliveries in a batch. The selection has the columns in `settle`. */
export const insertRuns = (schema: string, selection: string, now: string): string => `
    INSERT INTO ${schema}.delivered_runs
      (project_number, webhook_id, first_event, first_position, last_position, attempted_at, result, event_ids, positions,
       starts, durations)
    SELECT project_number, webhook_id, (array_agg(delivered_id ORDER BY delivered_id))[1], min(position), max(position),
           ${now}, result, array_agg(delivered_id), array_agg(position), array_agg(started_at), array_agg(duration)
    FROM (${selection}) d
    GROUP BY project_number, webhook_id, result, ${schema}.run_start(delivered_id), position / ${positionsInRange}`

/** Joins runs `r` with their deliveries `o`. */
const joinDeliveries = `
    CROSS JOIN LATERAL unnest(r.event_ids, r.positions, r.starts, r.durations)
    WITH ORDINALITY AS o (event_id, position, started_at, duration, n)`

/** An event's result in the run `r`. */
const resultOf = (schema: string, event: string): string =>
  `CASE WHEN ${event} = ANY (r.erased_ids) THEN ${schema}.without_body(r.result) ELSE r.result END`

const attemptsOf = (schema: string, o: string): string =>
  `jsonb_build_array(${recordOf(schema, `${o}.started_at`, `${o}.duration`, `${o}.result`)})`

// The columns in each part of a list.
const listed = (schema: string): string =>
  `d.event_id, d.position, d.attempted_at, NULL::timestamptz AS next_attempt_at, ${attemptsOf(schema, "d")} AS attempts,
    'delivered' AS state`

const selected = (schema: string): string =>
  `o.event_id, o.position, r.attempted_at, o.started_at, o.duration, ${resultOf(schema, "o.event_id")} AS result`

/**
 * The newest deliveries in runs, for webhook `$2`'s list: `$5` before the position in `older` or, if `$4` is
 * NULL, the newest overall. None if `$3` is another state.
 */
export const newestInRuns = (schema: string): string => {
  const before = `CASE WHEN $4::uuid IS NULL THEN 9223372036854775807 ELSE (SELECT position FROM older) END`
  const ofWebhook = `
        SELECT * FROM ${schema}.delivered_runs r
        WHERE r.webhook_id = $2::uuid AND ($3::text IS NULL OR $3::text = 'delivered')`
  return `
  (
    SELECT ${listed(schema)} FROM (
      SELECT ${selected(schema)} FROM (
        -- Runs with positions on both sides, and as many others as can be on the page.
        (${ofWebhook} AND r.last_position >= (SELECT position FROM older)
          AND r.last_position < (SELECT position FROM older) + ${positionsInRange})
        UNION ALL (${ofWebhook} AND r.last_position < ${before} ORDER BY r.last_position DESC LIMIT $5::integer)
      ) r ${joinDeliveries}
      WHERE o.event_id IS NOT NULL AND o.position < ${before}
      ORDER BY o.position DESC LIMIT $5::integer
    ) d
  )`
}

/**
 * The latest attempted deliveries in runs, for webhook `$2`'s list: `$6` before the one for event `$5`
 * attempted at `$4` or, if these are NULL, the latest overall. None if `$3` is another state.
 */
export const latestInRuns = (schema: string): string => {
  const before = `coalesce($4::timestamptz, 'infinity')`
  const ofWebhook = `
        SELECT * FROM ${schema}.delivered_runs r
        WHERE r.webhook_id = $2::uuid AND r.last_position IS NOT NULL AND ($3::text IS NULL OR $3::text = 'delivered')`
  return `
  (
    SELECT ${listed(schema)} FROM (
      SELECT ${selected(schema)} FROM (
        (${ofWebhook} AND r.attempted_at = $4::timestamptz)
        UNION ALL (${ofWebhook} AND r.attempted_at < ${before}
          ORDER BY r.attempted_at DESC FETCH FIRST ($6::integer) ROWS WITH TIES)
      ) r ${joinDeliveries}
      WHERE o.event_id IS NOT NULL AND (r.attempted_at, o.event_id) < (${before}, coalesce($5::uuid, '${nilUuid}'))
      ORDER BY r.attempted_at DESC, o.event_id DESC LIMIT $6::integer
    ) d
  )`
}

/** The latest attempted delivery in a run for the webhook `w`, to show its progress. */
export const latestOfWebhookInRuns = (schema: string): string => `
      (
        SELECT d.event_id, d.attempted_at, ${attemptsOf(schema, "d")} AS attempts FROM (
          SELECT ${selected(schema)} FROM (
            SELECT * FROM ${schema}.delivered_runs r
            WHERE r.webhook_id = w.id AND r.last_position IS NOT NULL
              -- Leaves out times in the future, from before the clock was set back.
              AND r.attempted_at < statement_timestamp() + interval '1 second'
            ORDER BY r.attempted_at DESC LIMIT 1
          ) r ${joinDeliveries}
          WHERE o.event_id IS NOT NULL ORDER BY o.event_id DESC LIMIT 1
        ) d
      )`

/** The position of event `$4` in a run for the webhook `$2` in the project `$1`. */
export const positionInRuns = (schema: string): string => `
    SELECT r.positions[array_position(r.event_ids, $4::uuid)] AS position
    FROM ${schema}.projects p JOIN ${schema}.delivered_runs r ON r.project_number = p.number
    WHERE p.id = $1::text AND r.webhook_id = $2::uuid
      AND r.first_event BETWEEN ${schema}.run_start($4::uuid) AND $4::uuid AND $4::uuid = ANY (r.event_ids)`

/** The event `e`'s deliveries in runs, to be joined with its others. */
export const deliveriesInRuns = (schema: string): string => `
      SELECT r.webhook_id, o.position, r.attempted_at, NULL::timestamptz AS next_attempt_at,
             jsonb_build_array(${recordOf(schema, "o.started_at", "o.duration", resultOf(schema, "o.event_id"))}) AS attempts,
             'delivered' AS state
      FROM ${schema}.runs_of(e.project_number, e.id) r ${joinDeliveries}
      WHERE o.event_id = e.id`

/**
 * The common table expression `taken_of_run`: takes the event `$3` out of a run for `webhook`, unless that is
 * disabled. It has no row if another statement has taken the event since this one began.
 */
export const takeFromRun = (schema: string, member: string): string => `
  taken_of_run AS MATERIALIZED (
    SELECT $3::uuid AS event_id, r.project_number, r.webhook_id, r.first_event, i.place, r.positions[i.place] AS position,
           r.attempted_at, jsonb_build_array(${recordOf(schema, "r.starts[i.place]", "r.durations[i.place]", resultOf(schema, "$3::uuid"))}) AS attempts,
           ${member} AS member
    FROM webhook w
    JOIN ${schema}.events e ON e.id = $3::uuid
    JOIN ${schema}.delivered_runs r ON r.project_number = w.project_number AND r.webhook_id = w.id
    CROSS JOIN LATERAL (SELECT array_position(r.event_ids, $3::uuid) AS place) i
    WHERE NOT w.is_disabled AND r.first_event BETWEEN ${schema}.run_start($3::uuid) AND $3::uuid
      AND $3::uuid = ANY (r.event_ids)
    FOR UPDATE OF r
  ),
  rest_of_run AS (
    UPDATE ${schema}.delivered_runs r
    SET (event_ids, last_position, result) = (SELECT l.* FROM ${schema}.rest_of(r, ARRAY[t.place], r.erased_ids) l)
    FROM taken_of_run t
    WHERE r.project_number = t.project_number AND r.webhook_id = t.webhook_id AND r.first_event = t.first_event
  )`

const erasedIds = `ARRAY(
      SELECT e.id FROM unnest(r.event_ids) e (id) WHERE e.id = ANY (r.erased_ids) OR e.id IN (SELECT id FROM old)
    )`

/** The common table expressions that remove responses from runs in `$1`, for the events in `old`. */
export const eraseInRuns = (schema: string): string => `
  runs AS MATERIALIZED (
    SELECT r.project_number, r.webhook_id, r.first_event FROM ${schema}.delivered_runs r
    JOIN (
      SELECT DISTINCT f.project_number, f.webhook_id, f.first_event
      FROM ${schema}.projects p, old o, ${schema}.runs_of(p.number, o.id) f WHERE p.id = $1::text
    ) k USING (project_number, webhook_id, first_event)
    -- All statements lock runs in the same order, which avoids deadlocks.
    ORDER BY r.first_event, r.webhook_id
    FOR UPDATE OF r
  ),
  erased_in_runs AS (
    UPDATE ${schema}.delivered_runs r
    SET erased_ids = ${erasedIds}, result = (SELECT l.result FROM ${schema}.rest_of(r, '{}', ${erasedIds}) l)
    FROM runs k
    WHERE r.project_number = k.project_number AND r.webhook_id = k.webhook_id AND r.first_event = k.first_event
  )`
