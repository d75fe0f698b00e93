/** Removes persons who are erased from what was written of them, a part at a time. */

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
 * A statement that removes the user `$2` from up to a thousand audit rows of the project `$1`, with the
 * reasons, which may name the person. Rows of moves name two users.
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
 * Ends a membership, if there is one, removes the user from the first audit rows, and records that the person
 * is erased, and that the rest is to follow. Returns one row, with the seq of the end and the number of deliveries, if the project exists.
 */
export const eraseMembership = (schema: string, once: KeyClause): string => `
  WITH ${requested},
  ${lockedProject(schema, once.condition)},
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
  ${publishChange(schema, "changed")}${once.keeping("project", "round(extract(epoch FROM $4::timestamptz) * 1000)::bigint::text", "number")}
  SELECT (SELECT seq FROM ended) AS seq, (SELECT count(*) FROM delivered)::integer AS deliveries
  FROM project
`

// Whether a row was written until `$3`, or that is NULL.
const isUntil = (row: string): string => `($3::timestamptz IS NULL OR ${row}.at <= $3::timestamptz)`

/** Removes the user from the next audit rows that were written until `$3`. Returns one row if there may be more. */
const eraseAudit = (schema: string): string => `
  WITH erased AS (${erasing(schema, isUntil("o"))}
  )
  SELECT FROM erased HAVING count(*) = 1000
`

// The responses of receivers may have the user id, too.
const withoutResponses = `(
      SELECT jsonb_agg(CASE WHEN t.one #> '{result,body}' IS NULL THEN t.one
             ELSE jsonb_set(t.one, '{result,body}', '""') END ORDER BY t.n)
      FROM jsonb_array_elements(d.attempts) WITH ORDINALITY t (one, n)
    )`

// Whether a delivery `d` is of one of the events of `old`. An array is looked up in the index, however many
// deliveries the planner expects.
const isOfOld = "d.event_id = ANY (ARRAY(SELECT id FROM old))"

const isOfMembership = (type: string): string => `${type} LIKE 'membership.%'`

// Matches each `user_id` that is a user, in the body of an event, and what a move has written, as `userIn` of core does.
const userIn = (type: string, user: string): string =>
  `'"(user_id' || CASE WHEN ${isOfMembership(type)} THEN '|moved_to|moved_from' ELSE '' END || ')":('
   || regexp_replace(to_json((${user})::text)::text, '[^A-Za-z0-9]', '\\\\\\&', 'g')
   || CASE WHEN ${user} ~ '^[0-9]+$' THEN '|' || ${user} ELSE '' END || ')(?=[,}])'`

/** An expression for whether the body of an event has a user id, as `mentionsUser` of core says. */
export const mentionsUser = (body: string, type: string, user: string): string =>
  `${body} ~ (${userIn(type, user)})`

/** An expression for text that, in the body of an event of a membership, has the first match of a pattern as NULL. */
const withNull = (body: string, type: string, field: string, value: string): string =>
  `regexp_replace(${body}, CASE WHEN ${isOfMembership(type)} THEN '"${field}":${value}' ELSE '$^' END, '"${field}":null')`

const jsonText = '"([^"\\\\]|\\\\.)*"'

/** An expression for the body of an event without a user id, as `eraseUser` of core says. */
export const bodyWithoutUser = (body: string, type: string, user: string): string => {
  const withoutId = `regexp_replace(${body}, ${userIn(type, user)}, '"\\1":null', 'g')`
  const withoutMetadata = withNull(withoutId, type, "metadata", `\\{([,:]?${jsonText})*\\}`)
  return withNull(withoutMetadata, type, "reason", jsonText)
}

/** The common table expression `erased`: removes the user `$2` from the events of `old`. */
const erasedEvents = (schema: string): string => `
  erased AS (
    UPDATE ${schema}.events e
    SET body = ${bodyWithoutUser("e.body", "e.type", "$2::text")}
    WHERE e.id = ANY (ARRAY(SELECT id FROM old))
  ),`

/**
 * Removes the responses of receivers to events of the user `$2` until `$3` from their deliveries and, with `events`, the
 * user from these events, as `Erasure` of the core says. Looks at the next thousand events of the project, after the
 * event `$6` of the transaction `$5` in the epoch `$4`; if `$7` is not NULL, of transactions before that one, which is of the current epoch.
 * Returns one row with the last of them, if there may be more.
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
        -- One that is open has its place until it ends.
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

/** The parameters of `eraseAudit`. */
const eraseAuditParams = ({ at, projectId, userId }: Erased) => [
  textParam(projectId),
  textParam(userId),
  instantParam(at),
]

/** The parameters of `eraseEvents`. */
const eraseEventsParams = (erased: Erased, after: EventPlace) => [
  ...eraseAuditParams(erased),
  integerParam(after.epoch),
  textParam(after.xid),
  uuidParam(after.id),
  textParam(erased.begunIn),
]

/**
 * Returns the transactions that have written events and are open: those of `$1`, or all others than the one
 * that asks. What they have published is not seen yet.
 */
const listPublishing = (schema: string): string => `
  SELECT DISTINCT l.virtualtransaction AS id FROM pg_locks l
  WHERE l.locktype = 'relation' AND l.relation = '${schema}.events'::regclass
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.mode = 'RowExclusiveLock' AND l.pid IS DISTINCT FROM pg_backend_pid()
    AND ($1::text[] IS NULL OR l.virtualtransaction = ANY ($1))
`

/** The row of `listPublishing`. */
interface PublishingRow {
  readonly id: string
}

/** Returns the erasure of the user `$2` in the project `$1` that is not complete, if there is one. */
const findErasure = (schema: string): string => `
  SELECT $1::text AS project_id, user_id, ${millisOf("at")} AS at, begun_in::text FROM ${schema}.erasures
  WHERE ${isInProject(schema)} AND user_id = $2::text
`

/**
 * Returns an erasure that is not complete, if there is one since whose beginning all transactions are over that were
 * open then: what they have published is seen now.
 */
const findErasureDue = (schema: string): string => `
  SELECT p.id AS project_id, e.user_id, ${millisOf("e.at")} AS at, e.begun_in::text
  FROM ${schema}.erasures e
  JOIN ${schema}.projects p ON p.number = e.project_number
  WHERE e.begun_in < pg_snapshot_xmin(pg_current_snapshot())
  ORDER BY e.begun_in LIMIT 1
`

/** The row of both statements. */
interface ErasureRow {
  readonly project_id: string
  readonly user_id: string
  readonly at: Integer
  readonly begun_in: string
}

/** Records that the erasure of the user `$2` in the project `$1` is complete, unless it has begun anew since `$3`. */
const completeErasure = (schema: string): string => `
  DELETE FROM ${schema}.erasures
  WHERE ${isInProject(schema)} AND user_id = $2::text AND begun_in = $3::text::xid8
`

/** Who is erased, with all or with what was written until a time or before a transaction. */
interface Erased {
  readonly projectId: ProjectId
  readonly userId: UserId
  /** Until when, in milliseconds since the epoch. */
  readonly at: number | undefined
  /** Before which transaction events were written. */
  readonly begunIn?: string | undefined
}

/** The row of `eraseMembership`. */
export interface ErasedRow {
  /** NULL if there was no membership. */
  readonly seq: Integer | null
  readonly deliveries: number
}

/** The row of `eraseEvents`: the place of an event among those of its project. */
interface EventPlace {
  readonly epoch: number
  readonly xid: string
  readonly id: string
}

// For how long an erasure waits for the transactions that have published events and are still open.
const patience = { interval: "20 millis", times: 50 } as const

/** Makes the functions of one schema. */
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
      // It waits for replays under way, and does not see what these send again. The next statement does.
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

  /** Waits for a while until what has been published so far is seen. Returns whether it is. */
  const settled = Effect.gen(function* () {
    const open = yield* publishing(undefined)
    if (open.length === 0) return true
    const left = yield* Effect.repeat(publishing(open), {
      until: (ids) => ids.length === 0,
      times: patience.times,
      schedule: Schedule.spaced(patience.interval),
    })
    return left.length === 0
  })

  return {
    /**
     * Removes a person whose erasure has begun. What transactions have published that stay open for longer is left
     * to `eraseDue`: so is all that a transaction of the host leaves that erases a person.
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

    /** Completes an erasure that is left. Returns one row if there was one. */
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
