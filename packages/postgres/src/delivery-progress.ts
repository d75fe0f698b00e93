/** Shows how far webhooks' deliveries have got, and which webhooks need attention. */

import {
  type Attempt,
  type DeliveryProgress,
  EventId,
  type LatestAttempt,
  type Outbox,
  ProjectId,
  type TroubledWebhook,
  WebhookId,
  compareTroubles,
  maxCountedBacklog,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "./connection/executor.ts"
import { latestOfWebhookInRuns } from "./delivered-runs.ts"
import { countOpen, statesOf } from "./outbox.sql.ts"
import { isInProject } from "./sql/clauses.ts"
import {
  type Integer,
  integerParam,
  millisOf,
  textParam,
  toMillis,
  uuidsParam,
} from "./sql/values.ts"

/** Selects webhook `w`'s latest attempted delivery in a state, by an index. */
const latestIn = (schema: string, table: string, state: string): string => `
      (
        SELECT d.event_id, d.attempted_at, d.attempts FROM ${schema}.${table} d
        WHERE d.webhook_id = w.id AND d.state ${state}
          -- Leaves out times in the future, from before the clock was set back.
          AND d.attempted_at < statement_timestamp() + interval '1 second'
        ORDER BY d.attempted_at DESC LIMIT 1
      )`

/** Joins each webhook `w` with its progress `g`. Each part has an index. */
const joinProgress = (schema: string): string => `
  CROSS JOIN LATERAL (
    SELECT ${countOpen(schema, "w.id", maxCountedBacklog)} AS waiting, (
      -- A pause that began in the future is from before the clock was set back.
      SELECT ${millisOf("greatest(n.at, CASE WHEN w.paused_since > clock_timestamp() + interval '1 second' THEN NULL ELSE w.paused_until END)")}
      FROM (
        SELECT least(
          (
            SELECT r.next_attempt_at FROM ${schema}.due_of(w.id, 128) r
            -- The next claim will block deliveries whose turn has not come.
            WHERE r.member IS NULL
              OR (w.id, r.member) NOT IN (SELECT c.webhook_id, c.member FROM ${schema}.claimed_members() c)
                 AND ${schema}.lowest_before(w.id, r.member, r.position) IS NULL
            ORDER BY r.is_replay, r.next_attempt_at, r.position LIMIT 1
          ),
          (
            SELECT d.next_attempt_at FROM ${schema}.deliveries d
            WHERE d.webhook_id = w.id AND d.state = 'later' ORDER BY d.next_attempt_at LIMIT 1
          )
        ) AS at
      ) n
      WHERE n.at IS NOT NULL AND w.disabled_at IS NULL
    ) AS next_attempt_at
  ) g
  LEFT JOIN LATERAL (
    SELECT a.event_id, (a.attempts -> -1)::text AS attempt
    FROM (${[
      latestIn(schema, "deliveries", statesOf.known),
      latestIn(schema, "deliveries", statesOf.failed),
      latestIn(schema, "finished_deliveries", "= 'delivered'"),
      latestIn(schema, "finished_deliveries", "= 'cancelled'"),
      latestOfWebhookInRuns(schema),
    ].join(" UNION ALL ")}
    ) a
    ORDER BY a.attempted_at DESC LIMIT 1
  ) l ON true`

const progressColumns = "g.waiting, g.next_attempt_at, l.event_id, l.attempt"

/** Returns a row for each webhook in `$2` that is in the project `$1`. */
export const readProgress = (schema: string): string => `
  SELECT w.id, ${progressColumns}
  FROM ${schema}.webhooks w ${joinProgress(schema)}
  WHERE w.id = ANY ($2::uuid[]) AND w.${isInProject(schema)}
`

/** The columns with a webhook's progress. */
interface ProgressColumns {
  readonly waiting: number
  readonly next_attempt_at: Integer | null
  readonly event_id: string | null
  /** An `Attempt` as JSON. */
  readonly attempt: string | null
}

/** A row from `readProgress`. */
interface ProgressRow extends ProgressColumns {
  readonly id: string
}

const latestOf = ({ attempt, event_id }: ProgressColumns): LatestAttempt | undefined => {
  if (attempt === null || event_id === null) return undefined
  const { result, ...made }: Attempt = JSON.parse(attempt)
  return {
    ...made,
    eventId: EventId(event_id),
    result: result._tag === "Answered" ? { ...result, body: "" } : result,
  }
}

const toProgress = (row: ProgressColumns): DeliveryProgress => ({
  latestAttempt: latestOf(row),
  waiting: row.waiting,
  nextAttemptAt: toMillis(row.next_attempt_at),
})

/** Selects up to `$1` webhooks in trouble, in index order. */
const troubledBy = (
  schema: string,
  trouble: TroubledWebhook["trouble"],
  since: string,
  order: string,
): string => `
    (
      SELECT p.id AS project_id, w.*, '${trouble}' AS trouble, ${since} AS since
      FROM ${schema}.webhooks w
      JOIN ${schema}.projects p ON p.number = w.project_number
      WHERE ${since} IS NOT NULL AND ${trouble === "failing" ? "w.disabled_at IS NULL" : "w.disabled_by = 'failures'"}
      ORDER BY ${since} ${order}, w.id LIMIT $1::integer
    )`

/** Returns up to `$1` webhooks that are failing or that failures have disabled, failing ones first. */
export const listTroubled = (schema: string): string => `
  SELECT w.project_id, w.id, w.url, w.description, w.trouble, ${millisOf("w.since")} AS since, ${progressColumns}
  FROM (
    SELECT * FROM (${troubledBy(schema, "failing", "w.failing_since", "ASC")}
      UNION ALL ${troubledBy(schema, "disabled", "w.disabled_at", "DESC")}
    ) parts
    ORDER BY trouble DESC, CASE trouble WHEN 'failing' THEN since END ASC, since DESC, id LIMIT $1::integer
  ) w ${joinProgress(schema)}
`

/** A row from `listTroubled`. */
interface TroubledRow extends ProgressRow {
  readonly project_id: string
  readonly url: string
  readonly description: string | null
  readonly trouble: TroubledWebhook["trouble"]
  readonly since: Integer
}

const toTroubled = (row: TroubledRow): TroubledWebhook => ({
  projectId: ProjectId(row.project_id),
  webhookId: WebhookId(row.id),
  url: row.url,
  description: row.description ?? undefined,
  trouble: row.trouble,
  since: Number(row.since),
  ...toProgress(row),
})

/** Makes the operations that show how webhooks are doing. */
export const makeDeliveryProgress = (
  executor: Executor,
): Pick<Outbox["Service"], "progress" | "troubled"> => {
  const { schema } = executor
  const sql = { progress: readProgress(schema), troubled: listTroubled(schema) }
  return {
    progress: (projectId, webhookIds) =>
      Effect.map(
        executor.execute<ProgressRow>(
          sql.progress,
          [textParam(projectId), uuidsParam([...webhookIds])],
          { owner: readsOf(projectId) },
        ),
        (rows) => new Map(rows.map((row) => [WebhookId(row.id), toProgress(row)])),
      ),

    troubled: (max) =>
      Effect.map(
        executor.execute<TroubledRow>(sql.troubled, [integerParam(max)], { owner: "backlog" }),
        (rows) => rows.map(toTroubled).toSorted(compareTroubles),
      ),
  }
}
