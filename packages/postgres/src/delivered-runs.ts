/** Deliveries whose first attempt went well: one row for those of a webhook that were recorded together. */

import { nilUuid } from "./sql/values.ts"

// Positions of one run are in the same range of this size.
const positionsInRange = 8192

/** An expression for the record of an attempt, an `Attempt` of core. */
export const recordOf = (schema: string, start: string, duration: string, result: string): string =>
  `${schema}.record_of(${start}, ${duration}, ${result})`

/** Inserts runs of deliveries of a batch. The selection has the columns of `settle`. */
export const insertRuns = (schema: string, selection: string, now: string): string => `
    INSERT INTO ${schema}.delivered_runs
      (project_number, webhook_id, first_event, first_position, last_position, attempted_at, result, event_ids, positions,
       starts, durations)
    SELECT project_number, webhook_id, (array_agg(delivered_id ORDER BY delivered_id))[1], min(position), max(position),
           ${now}, result, array_agg(delivered_id ORDER BY delivered_id), array_agg(position ORDER BY delivered_id),
           array_agg(started_at ORDER BY delivered_id), array_agg(duration ORDER BY delivered_id)
    FROM (${selection}) d
    GROUP BY project_number, webhook_id, result, ${schema}.run_start(delivered_id), position / ${positionsInRange}`

/** A join of runs `r` with their deliveries `o`. */
const joinDeliveries = `
    CROSS JOIN LATERAL unnest(r.event_ids, r.positions, r.starts, r.durations)
    WITH ORDINALITY AS o (event_id, position, started_at, duration, n)`

const attemptsOf = (schema: string, o: string): string =>
  `jsonb_build_array(${recordOf(schema, `${o}.started_at`, `${o}.duration`, `${o}.result`)})`

// The columns of a list's parts.
const listed = (schema: string): string =>
  `d.event_id, d.position, d.attempted_at, NULL::timestamptz AS next_attempt_at, ${attemptsOf(schema, "d")} AS attempts,
    'delivered' AS state`

const selected = `o.event_id, o.position, r.attempted_at, o.started_at, o.duration, r.result`

/**
 * The newest deliveries in runs, as a part of the list of the webhook `$2`: `$5` of those before the position of `older`,
 * or of all if `$4` is NULL; none if `$3` is another state.
 */
export const newestInRuns = (schema: string): string => {
  const before = `CASE WHEN $4::uuid IS NULL THEN 9223372036854775807 ELSE (SELECT position FROM older) END`
  const ofWebhook = `
        SELECT * FROM ${schema}.delivered_runs r
        WHERE r.webhook_id = $2::uuid AND ($3::text IS NULL OR $3::text = 'delivered')`
  return `
  (
    SELECT ${listed(schema)} FROM (
      SELECT ${selected} FROM (
        -- Those with positions on both sides, and as many others as can be on the page.
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
 * The latest attempted deliveries in runs, as a part of the list of the webhook `$2`: `$6` of those before the one of the
 * event `$5` attempted at `$4`, or of all if these are NULL; none if `$3` is another state.
 */
export const latestInRuns = (schema: string): string => {
  const before = `coalesce($4::timestamptz, 'infinity')`
  const ofWebhook = `
        SELECT * FROM ${schema}.delivered_runs r
        WHERE r.webhook_id = $2::uuid AND r.last_position IS NOT NULL AND ($3::text IS NULL OR $3::text = 'delivered')`
  return `
  (
    SELECT ${listed(schema)} FROM (
      SELECT ${selected} FROM (
        (${ofWebhook} AND r.attempted_at = $4::timestamptz)
        UNION ALL (${ofWebhook} AND r.attempted_at < ${before}
          ORDER BY r.attempted_at DESC FETCH FIRST ($6::integer) ROWS WITH TIES)
      ) r ${joinDeliveries}
      WHERE o.event_id IS NOT NULL AND (r.attempted_at, o.event_id) < (${before}, coalesce($5::uuid, '${nilUuid}'))
      ORDER BY r.attempted_at DESC, o.event_id DESC LIMIT $6::integer
    ) d
  )`
}

/** The latest attempted delivery of the webhook `w` in a run, as a part of its progress. */
export const latestOfWebhookInRuns = (schema: string): string => `
      (
        SELECT d.event_id, d.attempted_at, ${attemptsOf(schema, "d")} AS attempts FROM (
          SELECT ${selected} FROM (
            SELECT * FROM ${schema}.delivered_runs r
            WHERE r.webhook_id = w.id AND r.last_position IS NOT NULL
              -- Not from the future, before the clock was set back.
              AND r.attempted_at < statement_timestamp() + interval '1 second'
            ORDER BY r.attempted_at DESC LIMIT 1
          ) r ${joinDeliveries}
          WHERE o.event_id IS NOT NULL ORDER BY o.event_id DESC LIMIT 1
        ) d
      )`

/** The position of the event `$4` in a run of the webhook `$2` in the project `$1`. */
export const positionInRuns = (schema: string): string => `
    SELECT r.positions[array_position(r.event_ids, $4::uuid)] AS position
    FROM ${schema}.projects p JOIN ${schema}.delivered_runs r ON r.project_number = p.number
    WHERE p.id = $1::text AND r.webhook_id = $2::uuid
      AND r.first_event BETWEEN ${schema}.run_start($4::uuid) AND $4::uuid AND $4::uuid = ANY (r.event_ids)`

/** The deliveries of the event `e` in runs, as a part of all its deliveries. */
export const deliveriesInRuns = (schema: string): string => `
      SELECT r.webhook_id, o.position, r.attempted_at, NULL::timestamptz AS next_attempt_at,
             jsonb_build_array(${recordOf(schema, "o.started_at", "o.duration", "r.result")}) AS attempts,
             'delivered' AS state
      FROM ${schema}.runs_of(e.project_number, e.id) r ${joinDeliveries}
      WHERE o.event_id = e.id`

/** The common table expression `left_over`: removes deliveries that another one has taken, at the places `n`, from their runs. */
const leaveRuns = (schema: string, taken: string): string => `
  left_over AS (
    UPDATE ${schema}.delivered_runs r
    SET event_ids = ${schema}.without(r.event_ids, t.places),
        last_position = ${schema}.last_position_of(${schema}.without(r.event_ids, t.places), r.positions),
        result = CASE WHEN ${schema}.last_position_of(${schema}.without(r.event_ids, t.places), r.positions) IS NOT NULL
                 THEN r.result END
    FROM (
      SELECT project_number, webhook_id, first_event, array_agg(n::integer) AS places FROM ${taken}
      GROUP BY project_number, webhook_id, first_event
    ) t
    WHERE r.project_number = t.project_number AND r.webhook_id = t.webhook_id AND r.first_event = t.first_event
  )`

/**
 * The common table expression `taken_of_run`: takes the event `$3` out of a run of the `webhook`, unless that is
 * disabled. Another statement may have taken it since this one began: then it has no row.
 */
export const takeFromRun = (schema: string, member: string): string => `
  taken_of_run AS MATERIALIZED (
    SELECT $3::uuid AS event_id, r.project_number, r.webhook_id, r.first_event, i.place AS n, r.positions[i.place] AS position,
           r.attempted_at, jsonb_build_array(${recordOf(schema, "r.starts[i.place]", "r.durations[i.place]", "r.result")}) AS attempts,
           ${member} AS member
    FROM webhook w
    JOIN ${schema}.events e ON e.id = $3::uuid
    JOIN ${schema}.delivered_runs r ON r.project_number = w.project_number AND r.webhook_id = w.id
    CROSS JOIN LATERAL (SELECT array_position(r.event_ids, $3::uuid) AS place) i
    WHERE NOT w.is_disabled AND r.first_event BETWEEN ${schema}.run_start($3::uuid) AND $3::uuid
      AND $3::uuid = ANY (r.event_ids)
    FOR UPDATE OF r
  ),${leaveRuns(schema, "taken_of_run")}`

/**
 * The common table expressions that take the deliveries of the events of `old` out of the runs of the project `$1`, and
 * keep them without the responses.
 */
export const eraseInRuns = (schema: string): string => `
  runs AS MATERIALIZED (
    SELECT r.* FROM ${schema}.delivered_runs r
    JOIN (
      SELECT DISTINCT f.project_number, f.webhook_id, f.first_event
      FROM ${schema}.projects p, old o, ${schema}.runs_of(p.number, o.id) f WHERE p.id = $1::text
    ) k USING (project_number, webhook_id, first_event)
    -- All statements lock runs in the same order, which avoids deadlocks.
    ORDER BY r.first_event, r.webhook_id
    FOR UPDATE OF r
  ),
  taken_of_runs AS MATERIALIZED (
    SELECT r.project_number, r.webhook_id, r.first_event, r.attempted_at, r.result, o.*
    FROM runs r ${joinDeliveries}
    WHERE o.event_id = ANY (ARRAY(SELECT id FROM old))
  ),${leaveRuns(schema, "taken_of_runs")},
  kept AS (
    INSERT INTO ${schema}.finished_deliveries
      (event_id, webhook_id, position, state, attempted_at, claim_count, attempts)
    SELECT event_id, webhook_id, position, 'delivered', attempted_at, 1,
           jsonb_build_array(${recordOf(
             schema,
             "started_at",
             "duration",
             `CASE WHEN result::jsonb ? 'body'
             THEN jsonb_set(result::jsonb, '{body}', '""')::text ELSE result END`,
           )})
    FROM taken_of_runs
  )`
