/** Replays events: sends one or many to a webhook again. */

import {
  EventId,
  EventNotFound,
  type IdempotencyKey,
  type Outbox,
  type ReplayPage,
  type ReplaySelection,
  StoreUnavailable,
  WebhookDisabled,
  WebhookNotFound,
  type WebhookRef,
  maxReplayRead,
  maxReplayed,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import type { Executor } from "./connection/executor.ts"
import { makeFairSemaphore } from "./connection/fair-semaphore.ts"
import { takeFromRun } from "./delivered-runs.ts"
import type { IdempotencyStore } from "./idempotency.ts"
import type { Notifications } from "./notifications.ts"
import {
  type KeyClause,
  isInProject,
  memberOf,
  pickForm,
  withAndWithoutKey,
} from "./sql/clauses.ts"
import {
  flagParam,
  instantParam,
  integerParam,
  textParam,
  textsParam,
  uuidParam,
} from "./sql/values.ts"

/**
 * Starts event `$3`'s delivery again if it has ended or waits for its next attempt, unless the webhook is
 * disabled. A delivered one is open again, and keeps its place in the list, as in the function `replay`.
 * Returns one row, with whether the webhook is disabled and the number of deliveries, if the webhook exists.
 */
export const replayOne = (schema: string, idempotency: KeyClause): string => `
  WITH webhook AS (
    SELECT id, project_number, ordered, disabled_at IS NOT NULL AS is_disabled FROM ${schema}.webhooks
    WHERE id = $2::uuid AND ${isInProject(schema)} ${idempotency.condition}
  ),
  taken AS (
    DELETE FROM ${schema}.finished_deliveries d
    USING webhook w, ${schema}.events e
    WHERE d.webhook_id = w.id AND NOT w.is_disabled AND d.event_id = $3::uuid AND e.id = $3::uuid
    RETURNING d.event_id, d.webhook_id, d.position, d.attempted_at, d.attempts, ${memberOf(schema, "e.body")} AS member
  ),
${takeFromRun(schema, memberOf(schema, "e.body"))},
  returned AS (
    INSERT INTO ${schema}.deliveries
      (event_id, webhook_id, position, state, next_attempt_at, attempted_at, attempts, member)
    OVERRIDING SYSTEM VALUE
    SELECT event_id, webhook_id, position, 'ready', clock_timestamp(), attempted_at, attempts, member
    FROM (
      SELECT * FROM taken
      UNION ALL SELECT event_id, webhook_id, position, attempted_at, attempts, member FROM taken_of_run
    ) t
    RETURNING event_id
  ),
  restarted AS (
    UPDATE ${schema}.deliveries d
    SET state = 'ready', next_attempt_at = clock_timestamp(), claim_count = 0, is_replay = false,
        member = CASE d.state WHEN 'failed' THEN ${memberOf(schema, "e.body")} ELSE d.member END
    FROM webhook w, ${schema}.events e
    WHERE d.webhook_id = w.id AND NOT w.is_disabled AND e.id = d.event_id
      AND d.event_id = $3::uuid
      -- A delivery that is due stays as it is, whether a claim has made it ready or not.
      AND (d.state = 'failed' OR d.state = 'later' AND d.next_attempt_at > clock_timestamp())
    RETURNING d.event_id
  ),
  counted AS (
    SELECT project_number, is_disabled,
           (SELECT count(*) FROM (SELECT FROM restarted UNION ALL SELECT FROM returned) r)::integer AS replayed
    FROM webhook
  )${idempotency.keeping("counted WHERE NOT is_disabled", "replayed::text")}
  SELECT is_disabled, replayed FROM counted
`

/**
 * Sends many events again with the function `replay` in the migrations, which describes it. Returns its row,
 * if the webhook exists.
 */
export const replayMany = (schema: string, idempotency: KeyClause): string => `
  WITH project AS MATERIALIZED (
    SELECT p.number FROM ${schema}.projects p WHERE p.id = $1::text ${idempotency.condition}
  ),
  page AS MATERIALIZED (
    SELECT p.number AS project_number, r.*
    FROM project p
    CROSS JOIN LATERAL ${schema}.replay(p.number, $2, $3, $4::text[], $5, $6, $7, $8, $9, $10) r
  )${idempotency.keeping("page WHERE replayed IS NOT NULL", "concat_ws('.', replayed, next_id, last_id)")}
  SELECT is_disabled, replayed, next_id, last_id FROM page
`

/** The parameters for `replayMany`. */
export const replayManyParams = (
  { projectId, webhookId }: WebhookRef,
  { isDryRun, kinds, position, since, types }: ReplaySelection,
) => [
  textParam(projectId),
  uuidParam(webhookId),
  instantParam(since),
  types === undefined ? textParam(undefined) : textsParam(types),
  textsParam(kinds),
  uuidParam(position?.after),
  uuidParam(position?.until),
  integerParam(maxReplayRead),
  integerParam(maxReplayed),
  flagParam(isDryRun),
]

interface ReplayOneRow {
  readonly is_disabled: boolean
  readonly replayed: number
}

interface ReplayManyRow {
  readonly is_disabled: boolean
  /** Null if the webhook is disabled, or an event in the position is gone. */
  readonly replayed: number | null
  readonly next_id: string | null
  readonly last_id: string | null
}

// One per project at a time, and two overall, because each may write 10,000 rows.
const maxReplays = 2

// As long as other long calls take.
const maxWaitMillis = 30_000

const crowded = new StoreUnavailable({ cause: "too many replays wait" })

/** Lets replays take turns. Replays to one webhook lock each other out, and would hold connections while they wait. */
const makeTurns = (isInTransaction: Executor["isInTransaction"]) => {
  const turns = makeFairSemaphore(maxReplays)
  return <A>(
    projectId: string,
    replay: Effect.Effect<A, StoreUnavailable>,
  ): Effect.Effect<A, StoreUnavailable> =>
    Effect.flatMap(isInTransaction, (isJoined) => {
      // The replay that has the turn may wait for this transaction.
      if (isJoined) return replay
      const latest = performance.now() + maxWaitMillis
      const inTime = Effect.suspend(() =>
        performance.now() > latest ? Effect.fail(crowded) : replay,
      )
      return Effect.mapError(turns.take(projectId, inTime), (error) =>
        error === "crowded" ? crowded : error,
      )
    })
}

/** Makes the replay operations. */
export const makeReplays = (
  executor: Executor,
  notifications: Notifications,
  idempotencyStore: IdempotencyStore,
): Pick<Outbox["Service"], "replay" | "replayMany"> => {
  const { schema } = executor
  const sql = {
    one: withAndWithoutKey(schema, replayOne, 3),
    many: withAndWithoutKey(schema, replayMany, 10),
  }
  const notifyAfterCommit = executor.afterCommit(notifications.notify)
  const inTurn = makeTurns(executor.isInTransaction)

  const one = Effect.fnUntraced(function* (
    { projectId, webhookId }: WebhookRef,
    eventId: EventId,
    idempotency: IdempotencyKey | undefined,
  ) {
    const params = [textParam(projectId), uuidParam(webhookId), uuidParam(eventId)]
    const form = pickForm(sql.one, params, idempotency)
    const [row] = yield* executor.execute<ReplayOneRow>(...form, { owner: projectId })
    if (row === undefined) return yield* new WebhookNotFound({ webhookId })
    if (row.is_disabled) return yield* new WebhookDisabled({ webhookId })
    if (row.replayed > 0) yield* notifyAfterCommit
    return row.replayed
  })

  const many = Effect.fnUntraced(function* (
    webhook: WebhookRef,
    selection: ReplaySelection,
    idempotency: IdempotencyKey | undefined,
  ) {
    const { projectId, webhookId } = webhook
    const form = pickForm(sql.many, replayManyParams(webhook, selection), idempotency)
    const [row] = yield* inTurn(
      projectId,
      executor.execute<ReplayManyRow>(...form, { owner: projectId }),
    )
    if (row === undefined) return yield* new WebhookNotFound({ webhookId })
    if (row.is_disabled) return yield* new WebhookDisabled({ webhookId })
    const { last_id: until, next_id: after, replayed } = row
    if (replayed === null) {
      return yield* new EventNotFound({ eventId: selection.position?.after ?? "" })
    }
    if (replayed > 0 && !selection.isDryRun) yield* notifyAfterCommit
    const next =
      after === null || until === null
        ? undefined
        : { after: EventId(after), until: EventId(until) }
    return { replayed, next } satisfies ReplayPage
  })

  return {
    replay: (webhook, eventId, idempotency) =>
      idempotencyStore.change(idempotency, one(webhook, eventId, idempotency)),
    replayMany: (webhook, selection, idempotency) =>
      idempotencyStore.change(idempotency, many(webhook, selection, idempotency)),
  }
}
