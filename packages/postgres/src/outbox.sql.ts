/** Statements that publish events, list deliveries, and count the backlog. */

import { userPrefixLength } from "@tenure/core/internal"
import {
  type Attempt,
  type Backlog,
  type Delivery,
  type Event,
  EventId,
  EventType,
  type PublishedEvent,
  WebhookId,
  userOf,
} from "@tenure/core/store"
import { deliveriesInRuns, latestInRuns, newestInRuns, positionInRuns } from "./delivered-runs.ts"
import { type KeyClause, eventAndDeliveries, isInProject, memberOf } from "./sql/clauses.ts"
import {
  type Integer,
  instantParam,
  instantsParam,
  jsonOf,
  millisOf,
  nilUuid,
  textParam,
  textsParam,
  toMillis,
  uuidParam,
  uuidsParam,
} from "./sql/values.ts"

/** Delivery states, in groups that have their own indexes. */
export const statesOf = {
  fresh: "= 'fresh'",
  /** Open deliveries that a claim or an attempt has touched: they are due again, or wait. */
  known: "IN ('ready', 'blocked', 'later')",
  failed: "= 'failed'",
} as const

const open = [statesOf.fresh, statesOf.known]

/** Selects a webhook's deliveries in some states, up to a number in each group, in index order. */
const deliveriesIn = (
  schema: string,
  webhookId: string,
  states: ReadonlyArray<string>,
  max: string,
): string =>
  states
    .map(
      (state) => `
          (
            SELECT FROM ${schema}.deliveries d
            WHERE d.webhook_id = ${webhookId} AND d.state ${state} ORDER BY d.position LIMIT ${max}
          )`,
    )
    .join(" UNION ALL ")

/** Counts a webhook's open deliveries, up to a number. */
export const countOpen = (schema: string, webhookId: string, max: number): string => `(
      SELECT count(*) FROM (${deliveriesIn(schema, webhookId, open, String(max))}
        LIMIT ${max}
      ) counted
    )::integer`

/**
 * The webhooks with deliveries in some states, up to `$1`. Steps from one to the next by indexes, however
 * many deliveries there are.
 */
const webhooksWith = (schema: string, name: string, states: ReadonlyArray<string>): string => `
  ${name} (webhook_id, step) AS (
    SELECT '${nilUuid}'::uuid, 0
    UNION ALL
    SELECT n.webhook_id, w.step + 1
    FROM ${name} w
    CROSS JOIN LATERAL (
      SELECT least(${states
        .map(
          (state) =>
            `(SELECT d.webhook_id FROM ${schema}.deliveries d
               WHERE d.state ${state} AND d.webhook_id > w.webhook_id
               ORDER BY d.webhook_id LIMIT 1)`,
        )
        .join(", ")}) AS webhook_id
    ) n
    WHERE w.step < $1::integer AND n.webhook_id IS NOT NULL
  )`

/** Whether deliveries to a webhook are sent as soon as they are due: it exists, and is enabled. */
const sends = (schema: string, webhookId: string): string =>
  `(SELECT e.disabled_at IS NULL FROM ${schema}.webhooks e WHERE e.id = ${webhookId})`

/**
 * Whether a webhook still exists. Deliveries to a removed one stay until a claim meets them, or are kept, but
 * are not sent.
 */
const exists = (schema: string, webhookId: string): string =>
  `(SELECT true FROM ${schema}.webhooks e WHERE e.id = ${webhookId})`

/** Counts deliveries in some states for the webhooks `name`, up to `$1`. */
const counted = (schema: string, name: string, states: ReadonlyArray<string>): string => `
    (
      SELECT count(*) FROM (
        SELECT FROM ${name} w
        CROSS JOIN LATERAL (${deliveriesIn(schema, "w.webhook_id", states, "$1::integer")}
        ) kept
        WHERE ${exists(schema, "w.webhook_id")}
        LIMIT $1::integer
      ) counted
    )::integer`

/**
 * The common table expressions `leases` and `late`: the time since which a delivery waits for a dispatcher,
 * by the same rule as `isAwaited` in core, among `oldest` and up to `$1` others.
 */
const late = (schema: string): string => `
  leases AS MATERIALIZED (
    SELECT l.webhook_id, sum(cardinality(l.positions)) AS claimed FROM ${schema}.leases l
    WHERE l.until > clock_timestamp()
    GROUP BY l.webhook_id
  ), late AS (
    SELECT min(greatest(due.at, w.paused_until)) AS since
    FROM (
      SELECT o.webhook_id, o.next_attempt_at AS at FROM oldest o WHERE o.next_attempt_at IS NOT NULL
      UNION ALL
      (
        SELECT d.webhook_id, d.next_attempt_at FROM ${schema}.deliveries d
        WHERE d.state = 'later' AND d.next_attempt_at <= clock_timestamp()
        ORDER BY d.next_attempt_at LIMIT $1::integer
      )
      UNION ALL
      SELECT l.webhook_id, l.until FROM ${schema}.leases l WHERE l.until <= clock_timestamp()
    ) due
    LEFT JOIN leases l USING (webhook_id)
    -- Looks up each webhook by its id, however many there are.
    CROSS JOIN LATERAL (
      SELECT e.paused_until FROM ${schema}.webhooks e
      WHERE e.id = due.webhook_id AND e.disabled_at IS NULL
        AND CASE WHEN e.failures > 0 OR e.ordered IS NOT NULL THEN l.claimed IS NULL
            ELSE 2 * coalesce(l.claimed, 0) < e.concurrency END
        AND (e.rate IS NULL OR ${schema}.rate_tokens_of(
          e.id, e.rate, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
        ) > 0)
      OFFSET 0
    ) w
  )`

/**
 * Returns one row with the backlog and the failures. It counts up to `$1`, and steps through up to `$1`
 * webhooks with open deliveries, with ready ones (reading each one's oldest that is not replayed), and with
 * failed ones.
 */
export const backlog = (schema: string): string => `
  WITH RECURSIVE due (webhook_id, step) AS (
    SELECT '${nilUuid}'::uuid, 0
    UNION ALL
    SELECT n.webhook_id, w.step + 1
    FROM due w CROSS JOIN LATERAL ${schema}.next_due_webhook(w.webhook_id) AS n (webhook_id)
    WHERE w.step < $1::integer AND n.webhook_id IS NOT NULL
  ),
  oldest AS (
    SELECT w.webhook_id, CASE WHEN NOT d.is_replay THEN d.next_attempt_at END AS next_attempt_at
    FROM due w CROSS JOIN LATERAL ${schema}.due_of(w.webhook_id, 1) d
  ),${webhooksWith(schema, "waiting", open)},${webhooksWith(schema, "failing", [statesOf.failed])},${late(schema)}
  SELECT ${counted(schema, "waiting", open)} AS waiting,
    ${millisOf(`(clock_timestamp() - least(
      (SELECT min(o.next_attempt_at) FROM oldest o WHERE ${sends(schema, "o.webhook_id")}),
      (
        SELECT d.next_attempt_at FROM ${schema}.deliveries d
        WHERE d.state = 'later' AND ${sends(schema, "d.webhook_id")}
        ORDER BY d.next_attempt_at LIMIT 1
      ),
      (SELECT min(l.until) FROM ${schema}.leases l WHERE ${sends(schema, "l.webhook_id")})
    ))`)} AS due_for, ${millisOf("(clock_timestamp() - (SELECT since FROM late))")} AS late_for, ${counted(schema, "failing", [statesOf.failed])} AS failed_deliveries,
    (
      SELECT count(*) FROM (
        SELECT FROM ${schema}.webhooks w WHERE w.disabled_by = 'failures' ORDER BY w.disabled_at LIMIT $1::integer
      ) disabled
    )::integer AS disabled_webhooks
`

/** The row from `backlog`. */
export interface BacklogRow {
  readonly waiting: number
  /** Milliseconds; negative if the next delivery is due later, null without deliveries. */
  readonly due_for: Integer | null
  /** The same for deliveries that wait for a dispatcher. */
  readonly late_for: Integer | null
  readonly failed_deliveries: number
  readonly disabled_webhooks: number
}

const ageOf = (millis: Integer | null): number | undefined =>
  millis === null || Number(millis) < 0 ? undefined : Number(millis)

/** Converts a `backlog` row. */
export const toBacklog = ([row]: ReadonlyArray<BacklogRow>): Backlog => ({
  waiting: row?.waiting ?? 0,
  dueForMillis: ageOf(row?.due_for ?? null),
  lateForMillis: ageOf(row?.late_for ?? null),
  failedDeliveries: row?.failed_deliveries ?? 0,
  disabledWebhooks: row?.disabled_webhooks ?? 0,
})

/**
 * Returns one row with the event `$2` and its deliveries, if it belongs to the project `$1`. The deliveries
 * are one value, so that the body is returned once.
 */
export const findEvent = (schema: string): string => `
  SELECT e.type, ${millisOf("e.at")} AS at, e.body, (
    SELECT coalesce(jsonb_agg(jsonb_build_object(
             'webhook_id', d.webhook_id, 'state', d.state, 'attempts', d.attempts,
             'attempted_at', floor(extract(epoch FROM d.attempted_at) * 1000),
             'next_attempt_at', floor(extract(epoch FROM d.next_attempt_at) * 1000)
           ) ORDER BY d.position), '[]')
    FROM (
      SELECT o.webhook_id, o.position, o.attempted_at, o.next_attempt_at, o.attempts,
             CASE WHEN o.state = 'failed' THEN 'failed'
                  -- Looks up each webhook by its id, however many there are.
                  WHEN (SELECT w.id FROM ${schema}.webhooks w WHERE w.id = o.webhook_id) IS NULL
                  THEN 'cancelled'
                  ELSE 'waiting' END AS state
      FROM ${schema}.deliveries o WHERE o.event_id = $2::uuid
      UNION ALL
      SELECT webhook_id, position, attempted_at, NULL, attempts, state
      FROM ${schema}.finished_deliveries WHERE event_id = $2::uuid
      UNION ALL ${deliveriesInRuns(schema)}
    ) d
  )::text AS deliveries
  FROM ${schema}.events e
  WHERE e.id = $2::uuid AND ${isInProject(schema)}
`

/** A row from `findEvent`. */
export interface EventRow {
  readonly type: string
  readonly at: Integer
  readonly body: string
  /** A JSON array of `ReadDelivery`. */
  readonly deliveries: string
}

interface ReadDelivery extends Pick<Delivery, "attempts" | "state"> {
  readonly webhook_id: string
  readonly attempted_at: number | null
  /** Null if it was delivered or cancelled. */
  readonly next_attempt_at: number | null
}

/** Converts a `findEvent` row. */
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
    deliveries: deliveries.map(
      ({ attempted_at, attempts, next_attempt_at, state, webhook_id }) => ({
        eventId: id,
        type,
        webhookId: WebhookId(webhook_id),
        createdAt: Number(at),
        userId: userOf(body),
        state,
        attemptedAt: attempted_at ?? undefined,
        dueAt: next_attempt_at ?? Number(at),
        attempts,
      }),
    ),
  }
}

type Table = "deliveries" | "finished_deliveries"

/** The columns in each part of a list. Delivered and cancelled deliveries have no due time. */
const partColumns = (table: Table, state: string): string =>
  `d.event_id, d.position, d.attempted_at, ${
    table === "deliveries" ? "d.next_attempt_at" : "NULL"
  } AS next_attempt_at, d.attempts, ${state} AS state`

/**
 * Returns webhook `$2`'s newest deliveries before the position in `older` or, if `$4` is NULL, the newest
 * overall. Each condition has an index in this order.
 *
 * @param where - the state in the table
 * @param state - the state as it is returned, in SQL; `$3` selects one or is NULL
 */
const newest = (schema: string, table: Table, where: string, state: string): string => `
  (
    SELECT ${partColumns(table, state)}
    FROM ${schema}.${table} d
    WHERE d.webhook_id = $2::uuid AND d.state ${where} AND ($3::text IS NULL OR $3::text = ${state})
      AND ($4::uuid IS NULL OR d.position < (SELECT position FROM older))
    ORDER BY d.position DESC LIMIT $5::integer
  )`

/**
 * Returns webhook `$2`'s latest attempted deliveries before the one for event `$5` attempted at `$4` or, if
 * these are NULL, the latest overall. Each condition has an index by time.
 */
const latest = (schema: string, table: Table, where: string, state: string): string => `
  (
    SELECT ${partColumns(table, state)}
    FROM ${schema}.${table} d
    WHERE d.webhook_id = $2::uuid AND d.state ${where} AND ($3::text IS NULL OR $3::text = ${state})
      AND d.attempted_at IS NOT NULL
      AND (d.attempted_at, d.event_id)
          < (coalesce($4::timestamptz, 'infinity'), coalesce($5::uuid, '${nilUuid}'))
    ORDER BY d.attempted_at DESC, d.event_id DESC LIMIT $6::integer
  )`

// An open delivery to a deleted webhook counts as cancelled.
const openState = (schema: string): string =>
  `(SELECT CASE WHEN count(*) = 0 THEN 'cancelled' ELSE 'waiting' END
    FROM ${schema}.webhooks WHERE id = $2::uuid)`

const positionIn = (schema: string, table: Table): string =>
  `SELECT position FROM ${schema}.${table} WHERE event_id = $4::uuid AND webhook_id = $2::uuid`

/** The parts that make up a list: one for each state and table. */
const partsOf = (
  schema: string,
  part: typeof newest,
  inRuns: typeof newestInRuns,
  openStates: ReadonlyArray<string>,
): string =>
  [
    inRuns(schema),
    ...openStates.map((states) => part(schema, "deliveries", states, openState(schema))),
    part(schema, "deliveries", statesOf.failed, "'failed'"),
    part(schema, "finished_deliveries", "= 'delivered'", "'delivered'"),
    part(schema, "finished_deliveries", "= 'cancelled'", "'cancelled'"),
  ].join(" UNION ALL ")

/** Selects a `DeliveryRow` for each delivery `n` in `page`. */
const withEvents = (schema: string): string => `
  SELECT n.event_id, e.type, ${millisOf("e.at")} AS at, left(e.body, ${userPrefixLength}) AS body_start,
         ${millisOf("n.attempted_at")} AS attempted_at, ${millisOf("n.next_attempt_at")} AS next_attempt_at,
         ${jsonOf("n.attempts")} AS attempts, n.state
  FROM page n
  JOIN ${schema}.events e ON e.id = n.event_id AND ${isInProject(schema)}`

/** Returns `$5` deliveries to a webhook, newest first, if it belongs or belonged to the project `$1`. */
export const listDeliveries = (schema: string): string => `
  WITH older AS MATERIALIZED (
    ${positionIn(schema, "deliveries")} UNION ALL ${positionIn(schema, "finished_deliveries")}
    UNION ALL ${positionInRuns(schema)}
    LIMIT 1
  ),
  page AS MATERIALIZED (
    SELECT * FROM (${partsOf(schema, newest, newestInRuns, open)}) parts
    ORDER BY position DESC LIMIT $5::integer
  )
  ${withEvents(schema)}
  ORDER BY n.position DESC
`

/**
 * Returns `$6` attempted deliveries to a webhook, latest attempt first, if it belongs or belonged to the
 * project `$1`.
 */
export const listAttempted = (schema: string): string => `
  WITH page AS MATERIALIZED (
    SELECT * FROM (${partsOf(schema, latest, latestInRuns, [statesOf.known])}) parts
    ORDER BY attempted_at DESC, event_id DESC LIMIT $6::integer
  )
  ${withEvents(schema)}
  ORDER BY n.attempted_at DESC, n.event_id DESC
`

/** A row in both lists. */
export interface DeliveryRow {
  readonly event_id: string
  readonly type: string
  readonly at: Integer
  /** The first characters of the event's body. */
  readonly body_start: string
  readonly attempted_at: Integer | null
  /** Null if it was delivered or cancelled. */
  readonly next_attempt_at: Integer | null
  /** A JSON array of `Attempt`. */
  readonly attempts: string
  readonly state: Delivery["state"]
}

/** Converts a row to a delivery. */
export const toDelivery = (webhookId: WebhookId, row: DeliveryRow): Delivery => {
  const attempts: ReadonlyArray<Attempt> = JSON.parse(row.attempts)
  return {
    eventId: EventId(row.event_id),
    type: EventType(row.type),
    webhookId,
    createdAt: Number(row.at),
    userId: userOf(row.body_start),
    state: row.state,
    attemptedAt: toMillis(row.attempted_at),
    dueAt: Number(row.next_attempt_at ?? row.at),
    attempts,
  }
}

/**
 * Stores events and their deliveries. Each array has one element per event. Returns the position, from 1, of
 * each event whose project exists, and the number of deliveries.
 */
export const publish = (schema: string, idempotency: KeyClause): string => `
  WITH found AS MATERIALIZED (
    SELECT a.*, p.number AS project_number
    FROM unnest($1::text[], $2::uuid[], $3::text[], $4::timestamptz[], $5::text[])
    WITH ORDINALITY AS a (project_id, event_id, event_type, at, body, n)
    JOIN ${schema}.projects p ON p.id = a.project_id ${idempotency.condition}
  ),${eventAndDeliveries(schema, "found")}${idempotency.keeping("found", "event_id::text")}
  SELECT n::integer, (SELECT count(*) FROM delivered)::integer AS deliveries FROM found
`

/** The parameters for `publish`. */
export const publishParams = (events: ReadonlyArray<Event>) => [
  textsParam(events.map(({ projectId }) => projectId)),
  uuidsParam(events.map(({ id }) => id)),
  textsParam(events.map(({ type }) => type)),
  instantsParam(events.map(({ at }) => at)),
  textsParam(events.map(({ body }) => body)),
]

/**
 * Stores an event and its delivery to one webhook, unless the webhook is disabled. Returns one row,
 * with whether the webhook is disabled, if it exists.
 */
export const publishTo = (schema: string, idempotency: KeyClause): string => `
  WITH asked AS (
    SELECT $2::uuid AS event_id, $3::text AS event_type, $4::timestamptz AS at, $5::text AS body
  ),
  webhook AS (
    SELECT id, project_number, ordered, disabled_at IS NOT NULL AS is_disabled FROM ${schema}.webhooks
    WHERE id = $6::uuid AND ${isInProject(schema)} ${idempotency.condition}
  ),
  published AS (
    INSERT INTO ${schema}.events (id, project_number, type, at, body)
    SELECT a.event_id, w.project_number, a.event_type, a.at, a.body
    FROM asked a, webhook w WHERE NOT w.is_disabled
  ),
  delivered AS (
    INSERT INTO ${schema}.deliveries (event_id, webhook_id, next_attempt_at, member)
    SELECT a.event_id, w.id, clock_timestamp(), ${memberOf(schema, "a.body")} FROM asked a, webhook w WHERE NOT w.is_disabled
  )${idempotency.keeping("webhook WHERE NOT is_disabled", "$2::text")}
  SELECT is_disabled FROM webhook
`

/** The parameters for `publishTo`. */
export const publishToParams = (event: Event, webhookId: WebhookId) => [
  textParam(event.projectId),
  uuidParam(event.id),
  textParam(event.type),
  instantParam(event.at),
  textParam(event.body),
  uuidParam(webhookId),
]
