/** Removes erased persons from audit rows, events and responses, a part at a time. */

import { ProjectId, UserId } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Executor } from "./connection/executor.ts"
import { eraseInRuns } from "./delivered-runs.ts"
import {
  type KeyClause,
  endedRows,
  isInProject,
  lockedProject,
  publishChange,
  requested,
  sequenceRound,
} from "./sql/clauses.ts"
import {
  type Integer,
  instantParam,
  integerParam,
  millisOf,
  nilUuid,
  textParam,
  textsParam,
  uuidParam,
} from "./sql/values.ts"

/**
 * Removes the user `$2` from up to 1000 audit rows in the project `$1`, and the reasons, which may name the
 * person. Rows about moves name two users.
 *
 * @param condition - a further condition on a row `o`
 */
const erasing = (schema: string, condition: string): string => {
  const rowsWhere = (isNamed: string): string => `
      SELECT o.seq, o.id FROM ${schema}.audit o
      WHERE o.${isInProject(schema)} AND ${isNamed} AND ${condition}`
  return `
    UPDATE ${schema}.audit
    SET user_id = nullif(user_id, $2::text), other_user_id = nullif(other_user_id, $2::text), reason = NULL
    WHERE ${isInProject(schema)} AND (seq, id) IN (${rowsWhere("o.user_id = $2::text")}
      UNION ALL${rowsWhere("o.other_user_id = $2::text")}
      LIMIT 1000
    )
    RETURNING 1`
}

/**
 * Ends a membership, if there is one, removes the user from the first audit rows, and records the erasure,
 * whose remainder follows. Returns one row with the end's `seq` and the number of deliveries, if the project
 * exists.
 */
export const eraseMembership = (schema: string, idempotency: KeyClause): string => `
  WITH ${requested},
  ${lockedProject(schema, idempotency.condition)},
  ${endedRows(schema)},
  erased AS (${erasing(schema, "EXISTS (SELECT FROM project)")}
  ),
  audited AS (
    INSERT INTO ${schema}.audit (project_number, seq, action, at, request_id, key_id)
    SELECT p.number, ${sequenceRound("p.seq")}, 'person_erased', a.at, a.request_id, a.key_id FROM asked a, project p
  ),
  pending AS (
    INSERT INTO ${schema}.erasures (project_number, user_id, at)
    SELECT p.number, a.user_id, a.at FROM asked a, project p
    ON CONFLICT (project_number, user_id) DO UPDATE SET at = excluded.at, begun_in = excluded.begun_in
  ),
  changed AS (SELECT a.*, e.project_number, e.seq FROM asked a, ended e),
  ${publishChange(schema, "changed")}${idempotency.keeping("project", "round(extract(epoch FROM $4::timestamptz) * 1000)::bigint::text", "number")}
  SELECT (SELECT seq FROM ended) AS seq, (SELECT count(*) FROM delivered)::integer AS deliveries
  FROM project
`

// Whether a row was written before or at `$3`, or that is NULL.
const isUntil = (row: string): string => `($3::timestamptz IS NULL OR ${row}.at <= $3::timestamptz)`

/** Removes the user from the next audit rows up to the time `$3`. Returns one row if there may be more. */
const eraseAudit = (schema: string): string => `
  WITH erased AS (${erasing(schema, isUntil("o"))}
  )
  SELECT FROM erased HAVING count(*) = 1000
`

// Receivers' responses may contain the user id, too.
const withoutResponses = `(
      SELECT jsonb_agg(CASE WHEN t.one #> '{result,body}' IS NULL THEN t.one
             ELSE jsonb_set(t.one, '{result,body}', '""') END ORDER BY t.n)
      FROM jsonb_array_elements(d.attempts) WITH ORDINALITY t (one, n)
    )`

// Whether a delivery `d` belongs to an event in `old`. An array is looked up in the index, however many
// deliveries the planner expects.
const isOfOld = "d.event_id = ANY (ARRAY(SELECT id FROM old))"

const isOfMembership = (type: string): string => `${type} LIKE 'membership.%'`

// A pattern for each `user_id` in an event body that is this user, and for what a move has written. Same rule
// as `userIn` in core.
const userIn = (type: string, user: string): string =>
  `'"(user_id' || CASE WHEN ${isOfMembership(type)} THEN '|moved_to|moved_from' ELSE '' END || ')":('
   || regexp_replace(to_json((${user})::text)::text, '[^A-Za-z0-9]', '\\\\\\&', 'g')
   || CASE WHEN ${user} ~ '^[0-9]+$' THEN '|' || ${user} ELSE '' END || ')(?=[,}])'`

/** An expression for whether an event body has a user id. Same rule as `mentionsUser` in core. */
export const mentionsUser = (body: string, type: string, user: string): string =>
  `${body} ~ (${userIn(type, user)})`

/** An expression for the body of an event about a membership, in which the first match of a pattern becomes NULL. */
const withNull = (body: string, type: string, field: string, value: string): string =>
  `regexp_replace(${body}, CASE WHEN ${isOfMembership(type)} THEN '"${field}":${value}' ELSE '$^' END, '"${field}":null')`

const jsonText = '"([^"\\\\]|\\\\.)*"'

/** An expression for an event body without a user id. Same rule as `eraseUser` in core. */
export const bodyWithoutUser = (body: string, type: string, user: string): string => {
  const withoutId = `regexp_replace(${body}, ${userIn(type, user)}, '"\\1":null', 'g')`
  const withoutMetadata = withNull(withoutId, type, "metadata", `\\{([,:]?${jsonText})*\\}`)
  return withNull(withoutMetadata, type, "reason", jsonText)
}

/** The common table expression `erased`: removes the user `$2` from the events in `old`. */
const erasedEvents = (schema: string): string => `
  erased AS (
    UPDATE ${schema}.events e
    SET body = ${bodyWithoutUser("e.body", "e.type", "$2::text")}
    WHERE e.id = ANY (ARRAY(SELECT id FROM old))
  ),`

/**
 * Removes receivers' responses to events about the user `$2` up to the time `$3` and, with `events`, the user
 * from these events, as `Erasure` in core says. Reads the next 1000 events in the project, after the event
 * `$6` in transaction `$5` and epoch `$4`; if `$7` is not NULL, only from transactions before that one, which
 * is in the current epoch. Returns one row with the last event, if there may be more.
 */
const eraseEvents = (schema: string, events: string): string => `
  WITH page AS MATERIALIZED (
    SELECT e.epoch, e.xid, e.id, e.at, e.type, e.body FROM ${schema}.events e
    WHERE ${isInProject(schema)} AND (e.epoch, e.xid, e.id) > ($4::integer, $5::text::xid8, $6::uuid)
      AND ($7::text IS NULL OR e.epoch < (SELECT s.epoch FROM ${schema}.feed_state s) OR e.xid < $7::text::xid8)
    ORDER BY e.epoch, e.xid, e.id LIMIT 1000
  ),
  old AS MATERIALIZED (
    SELECT p.id FROM page p
    WHERE ${isUntil("p")} AND ${mentionsUser("p.body", "p.type", "$2::text")}
  ),
${events}
  attempted AS MATERIALIZED (
    SELECT d.event_id, d.webhook_id FROM ${schema}.deliveries d
    WHERE ${isOfOld} AND (d.attempts <> '[]' OR d.member IS NOT NULL AND d.state = 'failed')
    -- All statements lock deliveries in the same order, which avoids deadlocks.
    ORDER BY d.event_id, d.webhook_id
    FOR UPDATE
  ),
  open AS (
    UPDATE ${schema}.deliveries d
    SET attempts = coalesce(${withoutResponses}, '[]'),
        -- An open delivery keeps its place among the member's deliveries until it ends.
        member = CASE WHEN d.state <> 'failed' THEN d.member END
    FROM attempted a WHERE d.event_id = a.event_id AND d.webhook_id = a.webhook_id
  ),
  ended AS (
    UPDATE ${schema}.finished_deliveries d SET attempts = ${withoutResponses}
    WHERE ${isOfOld} AND d.attempts <> '[]'
  ),${eraseInRuns(schema)}
  SELECT epoch, xid::text, id::text FROM (
    SELECT p.*, row_number() OVER (ORDER BY p.epoch, p.xid, p.id) AS n FROM page p
  ) p WHERE p.n = 1000
`

/** The event before all others, for `eraseEvents`. */
const beforeFirst: EventPlace = { epoch: 0, xid: "0", id: nilUuid }

/** The parameters for `eraseAudit`. */
const eraseAuditParams = ({ at, projectId, userId }: Erased) => [
  textParam(projectId),
  textParam(userId),
  instantParam(at),
]

/** The parameters for `eraseEvents`. */
const eraseEventsParams = (erased: Erased, after: EventPlace) => [
  ...eraseAuditParams(erased),
  integerParam(after.epoch),
  textParam(after.xid),
  uuidParam(after.id),
  textParam(erased.begunIn),
]

/**
 * Returns the open transactions that have written events: those in `$1`, or all except the current one. Their
 * events are not visible yet.
 */
const listPublishing = (schema: string): string => `
  SELECT DISTINCT l.virtualtransaction AS id FROM pg_locks l
  WHERE l.locktype = 'relation' AND l.relation = '${schema}.events'::regclass
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.mode = 'RowExclusiveLock' AND l.pid IS DISTINCT FROM pg_backend_pid()
    AND ($1::text[] IS NULL OR l.virtualtransaction = ANY ($1))
`

/** The row from `listPublishing`. */
interface PublishingRow {
  readonly id: string
}

/** Returns user `$2`'s incomplete erasure in the project `$1`, if there is one. */
const findErasure = (schema: string): string => `
  SELECT $1::text AS project_id, user_id, ${millisOf("at")} AS at, begun_in::text FROM ${schema}.erasures
  WHERE ${isInProject(schema)} AND user_id = $2::text
`

/**
 * Returns an incomplete erasure, if there is one older than all open transactions, so that the events which
 * were published before it are visible now.
 */
const findErasureDue = (schema: string): string => `
  SELECT p.id AS project_id, e.user_id, ${millisOf("e.at")} AS at, e.begun_in::text
  FROM ${schema}.erasures e
  JOIN ${schema}.projects p ON p.number = e.project_number
  WHERE e.begun_in < pg_snapshot_xmin(pg_current_snapshot())
  ORDER BY e.begun_in LIMIT 1
`

/** The row that both statements return. */
interface ErasureRow {
  readonly project_id: string
  readonly user_id: string
  readonly at: Integer
  readonly begun_in: string
}

/** Records that user `$2`'s erasure in the project `$1` is complete, unless it has begun again since `$3`. */
const completeErasure = (schema: string): string => `
  DELETE FROM ${schema}.erasures
  WHERE ${isInProject(schema)} AND user_id = $2::text AND begun_in = $3::text::xid8
`

/** The person to erase: everything, or what was written up to a time or before a transaction. */
interface Erased {
  readonly projectId: ProjectId
  readonly userId: UserId
  /** The last time to erase, in milliseconds since the epoch. */
  readonly at: number | undefined
  /** Only events from before this transaction are erased. */
  readonly begunIn?: string | undefined
}

/** The row from `eraseMembership`. */
export interface ErasedRow {
  /** NULL if there was no membership. */
  readonly seq: Integer | null
  readonly deliveries: number
}

/** The row from `eraseEvents`: an event's position in its project. */
interface EventPlace {
  readonly epoch: number
  readonly xid: string
  readonly id: string
}

// How long an erasure waits for open transactions that have published events.
const publishingWait = { interval: "20 millis", times: 50 } as const

/** Makes the functions for one schema. */
export const makeErasures = (executor: Executor) => {
  const { schema } = executor
  const sql = {
    eraseAudit: eraseAudit(schema),
    eraseResponses: eraseEvents(schema, ""),
    eraseEvents: eraseEvents(schema, erasedEvents(schema)),
    listPublishing: listPublishing(schema),
    findErasure: findErasure(schema),
    findErasureDue: findErasureDue(schema),
    completeErasure: completeErasure(schema),
  }

  const eraseRows = Effect.fnUntraced(function* (erased: Erased) {
    const options = { owner: erased.projectId, isLong: true }
    yield* Effect.repeat(executor.execute(sql.eraseAudit, eraseAuditParams(erased), options), {
      while: (rows) => rows.length > 0,
    })
    let after: EventPlace | undefined = beforeFirst
    while (after !== undefined) {
      const params = eraseEventsParams(erased, after)
      // This statement waits for replays under way, but does not see what they send. The next one does.
      yield* executor.execute(sql.eraseResponses, params, options)
      const rows: ReadonlyArray<EventPlace> = yield* executor.execute<EventPlace>(
        sql.eraseEvents,
        params,
        options,
      )
      after = rows[0]
    }
  })

  const complete = ({ projectId, userId }: Erased, begunIn: string) =>
    executor.execute(
      sql.completeErasure,
      [textParam(projectId), textParam(userId), textParam(begunIn)],
      {
        owner: projectId,
      },
    )

  const publishing = (among: ReadonlyArray<string> | undefined) =>
    Effect.map(
      executor.execute<PublishingRow>(sql.listPublishing, [among && textsParam(among)]),
      (rows) => rows.map(({ id }) => id),
    )

  /** Waits for a while until everything published so far is visible. Returns whether it is. */
  const settled = Effect.gen(function* () {
    const open = yield* publishing(undefined)
    if (open.length === 0) return true
    const left = yield* Effect.repeat(publishing(open), {
      until: (ids) => ids.length === 0,
      times: publishingWait.times,
      schedule: Schedule.spaced(publishingWait.interval),
    })
    return left.length === 0
  })

  return {
    /**
     * Removes a person whose erasure has begun. If transactions with events stay open for longer, the rest is
     * left to `eraseDue`. So is everything if a transaction of the host erases the person.
     */
    erase: Effect.fnUntraced(function* (erased: Erased) {
      const params = [textParam(erased.projectId), textParam(erased.userId)]
      const options = { owner: erased.projectId }
      const [pending] = yield* executor.execute<ErasureRow>(sql.findErasure, params, options)
      const isWhole =
        pending !== undefined && !(yield* executor.isInTransaction) && (yield* settled)
      yield* eraseRows(erased)
      if (isWhole) yield* complete(erased, pending.begun_in)
    }),

    /** Completes an erasure that was left. Returns one row if there was one. */
    eraseDue: Effect.gen(function* () {
      const rows = yield* executor.executeApart<ErasureRow>(sql.findErasureDue, [])
      for (const { at, begun_in: begunIn, project_id, user_id } of rows) {
        const person = { projectId: ProjectId(project_id), userId: UserId(user_id) }
        yield* eraseRows({ ...person, at: Number(at), begunIn })
        yield* complete({ ...person, at: undefined }, begunIn)
      }
      return rows
    }),
  }
}
