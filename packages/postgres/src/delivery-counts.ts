/**
 * Counts attempts by minute and by 15 minutes. A process counts in memory, and adds its counts to the tables
 * every 10 seconds, so that settlements write no row for this. A killed process loses its last counts.
 */

import { answerTimeBuckets } from "@tenure/core/internal"
import {
  type ActivityCell,
  type AnswerTimes,
  type Attempt,
  type Outbox,
  ProjectNotFound,
  type StoreUnavailable,
  type WebhookId,
  WebhookNotFound,
  answerTimeBucket,
  fillCells,
  lastDay,
  lastHour,
  sumAnswerTimes,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Semaphore from "effect/Semaphore"
import { type Executor, readsOf } from "./connection/executor.ts"
import { runPeriodically } from "./connection/housekeeping.ts"
import { deleteSome, isInProject, quickCommit } from "./sql/clauses.ts"
import {
  type Integer,
  integersParam,
  millisOf,
  textParam,
  textsParam,
  uuidParam,
  uuidsParam,
} from "./sql/values.ts"

/** A process's counts for a webhook since it last wrote them. */
interface PendingCount {
  delivered: number
  failed: number
  readonly answerTimes: Array<number>
}

type Pending = ReadonlyMap<WebhookId, PendingCount>

/**
 * Adds counts for the webhooks `$1`: successful attempts `$2`, failed ones `$3`, and a histogram of durations
 * `$4`. Drops counts for deleted webhooks. All statements lock rows in the same order, which avoids
 * deadlocks; the row that all processes share comes last.
 */
const addCounts = (schema: string): string => `
  -- A server crash loses only a few counts.
  WITH ${quickCommit},
  asked AS MATERIALIZED (
    SELECT w.project_number, a.webhook_id, a.delivered, a.failed, a.answer_times::integer[] AS answer_times
    FROM quick, unnest($1::uuid[], $2::integer[], $3::integer[], $4::text[])
      AS a (webhook_id, delivered, failed, answer_times)
    JOIN ${schema}.webhooks w ON w.id = a.webhook_id
  ),
  quarters AS (
    INSERT INTO ${schema}.delivery_quarters AS q
      (project_number, webhook_id, at, delivered, failed, answer_times)
    SELECT project_number, webhook_id, date_bin('15 minutes', statement_timestamp(), 'epoch'), delivered, failed, answer_times
    FROM asked ORDER BY project_number, webhook_id
    ON CONFLICT (project_number, webhook_id, at) DO UPDATE
    SET delivered = q.delivered + excluded.delivered, failed = q.failed + excluded.failed,
        answer_times = ARRAY(
          SELECT t.one + t.other
          FROM unnest(q.answer_times, excluded.answer_times) WITH ORDINALITY AS t (one, other, n) ORDER BY t.n
        )
    RETURNING 1
  )
  INSERT INTO ${schema}.delivery_minutes AS m (project_number, at, delivered, failed)
  SELECT number, date_bin('1 minute', statement_timestamp(), 'epoch'), sum(delivered), sum(failed)
  FROM asked CROSS JOIN LATERAL (VALUES (project_number), (0)) AS counted (number)
  -- Reads the quarters, so that they are written first: PostgreSQL runs unread expressions at the end.
  WHERE (SELECT count(*) FROM quarters) >= 0
  GROUP BY number ORDER BY number DESC
  ON CONFLICT (project_number, at) DO UPDATE
  SET delivered = m.delivered + excluded.delivered, failed = m.failed + excluded.failed
`

/** The parameters for `addCounts`. */
const addCountsParams = (counts: ReadonlyArray<readonly [WebhookId, PendingCount]>) => [
  uuidsParam(counts.map(([webhookId]) => webhookId)),
  integersParam(counts.map(([, { delivered }]) => delivered)),
  integersParam(counts.map(([, { failed }]) => failed)),
  textsParam(counts.map(([, { answerTimes }]) => `{${answerTimes.join(",")}}`)),
]

// A time that is stable during the statement, so that an index finds the cells `c` since then.
const isSince = (length: string): string =>
  `c.at > statement_timestamp() - interval '${length}' AND c.at <= statement_timestamp()`

const cell = `json_build_object('at', ${millisOf("c.at")}, 'delivered', c.delivered, 'failed', c.failed)`

/** Returns a row with the minutes in the project `$1`, if it exists, or overall if that is NULL. */
export const readMinutes = (schema: string): string => `
  SELECT ${millisOf("statement_timestamp()")} AS now, coalesce((
    SELECT json_agg(${cell}) FROM ${schema}.delivery_minutes c
    WHERE c.project_number = p.number AND ${isSince("60 minutes")}
  ), '[]')::text AS cells
  FROM (
    SELECT 0::bigint AS number WHERE $1::text IS NULL
    UNION ALL
    SELECT number FROM ${schema}.projects WHERE id = $1::text
  ) p
`

/** Returns a row with the quarters for the webhook `$2` in the project `$1`, if it exists. */
export const readQuarters = (schema: string): string => `
  SELECT ${millisOf("statement_timestamp()")} AS now, coalesce(q.cells, '[]')::text AS cells,
         coalesce(q.answer_times, '[]')::text AS answer_times
  FROM ${schema}.webhooks w
  CROSS JOIN LATERAL (
    SELECT json_agg(${cell}) AS cells, json_agg(c.answer_times) AS answer_times
    FROM ${schema}.delivery_quarters c
    WHERE c.project_number = w.project_number AND c.webhook_id = w.id AND ${isSince("24 hours")}
  ) q
  WHERE w.id = $2::uuid AND w.${isInProject(schema)}
`

/** A row from `readMinutes`. */
interface MinutesRow {
  readonly now: Integer
  /** An array of `ActivityCell` as JSON. */
  readonly cells: string
}

/** A row from `readQuarters`. */
interface QuartersRow extends MinutesRow {
  /** An array of `AnswerTimes` as JSON. */
  readonly answer_times: string
}

const cellsOf = ({ cells: json }: MinutesRow): ReadonlyArray<ActivityCell> => JSON.parse(json)

const answerTimesOf = ({ answer_times: json }: QuartersRow): AnswerTimes => {
  const all: ReadonlyArray<AnswerTimes> = JSON.parse(json)
  return sumAnswerTimes(all)
}

/**
 * Deletes up to 1000 old cells from a table, including those from before the clock was set back. Returns one
 * row for each.
 */
const deleteOld = (schema: string, table: string, kept: string): string =>
  deleteSome(
    schema,
    table,
    // A time that is stable during the statement, so that the index finds the cells.
    `at < statement_timestamp() - interval '${kept}' OR at > statement_timestamp() + interval '1 hour'`,
  )

/** Deletes minutes older than an hour, up to 1000. Returns one row for each. */
export const deleteOldMinutes = (schema: string): string =>
  deleteOld(schema, "delivery_minutes", "61 minutes")

/** Deletes 15-minute counts older than a day, up to 1000. Returns one row for each. */
export const deleteOldQuarters = (schema: string): string =>
  deleteOld(schema, "delivery_quarters", "24 hours 15 minutes")

/** The time between two writes. */
const pause = "10 seconds"

// The maximum number of webhooks in a statement.
const maxInStatement = 500

/** The maximum number of webhooks with unwritten counts. Attempts for others are not counted meanwhile. */
const maxPending = 10_000

/** The counter in this process, and the counts from all processes. */
interface DeliveryCounts extends Pick<Outbox["Service"], "activity" | "minutes"> {
  /** Counts a settled attempt. */
  readonly add: (webhookId: WebhookId, isDelivered: boolean, attempt: Attempt) => void
}

/**
 * Makes the counter. Writes its counts every 10 seconds, before they are read, and when the scope closes. If
 * a write fails, its counts are part of the next one; if only the response was lost, they count twice.
 */
export const makeDeliveryCounts = Effect.fnUntraced(function* (executor: Executor) {
  const { schema } = executor
  const sql = {
    add: addCounts(schema),
    minutes: readMinutes(schema),
    quarters: readQuarters(schema),
  }
  const turn = yield* Semaphore.make(1)
  let pending = new Map<WebhookId, PendingCount>()

  const countOf = (webhookId: WebhookId): PendingCount | undefined => {
    const known = pending.get(webhookId)
    if (known !== undefined || pending.size >= maxPending) return known
    const count = {
      delivered: 0,
      failed: 0,
      answerTimes: Array.from({ length: answerTimeBuckets }, () => 0),
    }
    pending.set(webhookId, count)
    return count
  }

  /** Takes back counts that could not be written. */
  const putBack = (counts: Iterable<readonly [WebhookId, PendingCount]>): void => {
    for (const [webhookId, { answerTimes, delivered, failed }] of counts) {
      const count = countOf(webhookId)
      if (count === undefined) continue
      count.delivered += delivered
      count.failed += failed
      for (const [bucket, more] of answerTimes.entries()) {
        count.answerTimes[bucket] = (count.answerTimes[bucket] ?? 0) + more
      }
    }
  }

  /** Writes counts in parts. */
  const write = Effect.fnUntraced(function* (counts: Pending) {
    const left = [...counts]
    while (left.length > 0) {
      const part = left.slice(0, maxInStatement)
      yield* executor
        .executeApart(sql.add, addCountsParams(part), { owner: "activity" })
        .pipe(Effect.onError(() => Effect.sync(() => putBack(left))))
      left.splice(0, part.length)
    }
  })

  const flush: Effect.Effect<void, StoreUnavailable> = Effect.suspend(() => {
    const counts = pending
    pending = new Map()
    return write(counts)
  }).pipe(turn.withPermit)

  /**
   * Writes the counts in a fiber that is not interrupted, and waits up to 2 seconds: after that, a reader
   * gets what is there.
   */
  const tryToFlush = Effect.flatMap(Effect.forkDetach(flush), (fiber) =>
    Effect.timeoutOption(Fiber.await(fiber), "2 seconds"),
  )

  yield* runPeriodically(pause, Effect.as(flush, []))
  yield* Effect.addFinalizer(() => tryToFlush)

  const counts: DeliveryCounts = {
    add: (webhookId, isDelivered, { durationMillis }) => {
      const count = countOf(webhookId)
      if (count === undefined) return
      count[isDelivered ? "delivered" : "failed"]++
      const bucket = answerTimeBucket(durationMillis)
      count.answerTimes[bucket] = (count.answerTimes[bucket] ?? 0) + 1
    },

    activity: Effect.fnUntraced(function* ({ projectId, webhookId }) {
      yield* tryToFlush
      const [row] = yield* executor.execute<QuartersRow>(
        sql.quarters,
        [textParam(projectId), uuidParam(webhookId)],
        { owner: readsOf(projectId) },
      )
      if (row === undefined) return yield* new WebhookNotFound({ webhookId })
      return {
        quarters: fillCells(lastDay, Number(row.now), cellsOf(row)),
        answerTimes: answerTimesOf(row),
      }
    }),

    minutes: Effect.fnUntraced(function* (projectId) {
      yield* tryToFlush
      const [row] = yield* executor.execute<MinutesRow>(sql.minutes, [textParam(projectId)], {
        owner: projectId === undefined ? "activity" : readsOf(projectId),
      })
      if (row === undefined) {
        return yield* projectId === undefined
          ? Effect.die("all projects together always have minutes")
          : new ProjectNotFound({ projectId })
      }
      return fillCells(lastHour, Number(row.now), cellsOf(row))
    }),
  }
  return counts
})
