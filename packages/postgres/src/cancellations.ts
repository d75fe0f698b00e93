/** Cancels what waits for a webhook. */

import {
  type CancelSelection,
  type ChangeContext,
  NotInTransaction,
  type Outbox,
  WebhookNotFound,
  type WebhookRef,
  cancelledChanges,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import type { Executor } from "./connection/executor.ts"
import type { IdempotencyStore } from "./idempotency.ts"
import type { Notifications } from "./notifications.ts"
import {
  type KeyClause,
  auditRow,
  changeContextParams,
  isInProject,
  pickForm,
  withAndWithoutKey,
} from "./sql/clauses.ts"
import {
  type Integer,
  bigintParam,
  flagParam,
  instantParam,
  integerParam,
  textParam,
  textsParam,
  uuidParam,
} from "./sql/values.ts"

/** Returns the webhook `$2` in the project `$1` with the position of its last open delivery, if it exists. */
const findLast = (schema: string): string => `
  SELECT greatest(
    (SELECT max(f.position) FROM ${schema}.deliveries f WHERE f.webhook_id = w.id AND f.state = 'fresh'),
    (SELECT max(o.position) FROM ${schema}.deliveries o
     WHERE o.webhook_id = w.id AND o.state IN ('ready', 'blocked', 'later'))
  ) AS last
  FROM ${schema}.webhooks w WHERE w.id = $2::uuid AND w.${isInProject(schema)}
`

/** Cancels a page of deliveries with the function in the migrations, which describes it. */
const cancelPage = (schema: string): string => `
  SELECT cancelled, next_position, has_next FROM ${schema}.cancel_deliveries(
    $1::uuid, $2::timestamptz, $3::timestamptz, $4::text[],
    CASE WHEN $5::text IS NOT NULL THEN ${schema}.member_of('"user_id":' || $5) END,
    $6::bigint, $7::bigint, $8::integer, $9::boolean)
`

/**
 * Records that `$3` deliveries to the webhook `$2` were cancelled, if any was. Returns one row if the webhook exists.
 */
const record = (schema: string, idempotency: KeyClause): string => `
  WITH webhook AS (
    SELECT w.project_number, w.id::text AS subject FROM ${schema}.webhooks w
    WHERE w.id = $2::uuid AND w.${isInProject(schema)} ${idempotency.condition}
  ),${auditRow(
    schema,
    "(SELECT * FROM webhook WHERE $3::integer > 0)",
    5,
    "'deliveries_cancelled'",
    "$4::text",
  )}${idempotency.keeping("webhook", "$3::text")}
  SELECT 1 FROM webhook
`

interface PageRow {
  readonly cancelled: number
  /** Null at the end. */
  readonly next_position: Integer | null
  readonly has_next: boolean
}

// Claims wait while a page is cancelled.
const pageSize = 2000

/** Makes the operation that cancels deliveries. */
export const makeCancellations = (
  executor: Executor,
  notifications: Notifications,
  idempotencyStore: IdempotencyStore,
): Pick<Outbox["Service"], "cancel"> => {
  const { schema } = executor
  const sql = {
    findLast: findLast(schema),
    page: cancelPage(schema),
    record: withAndWithoutKey(schema, record, 7),
  }

  const cancelAll = Effect.fnUntraced(function* (
    { projectId, webhookId }: WebhookRef,
    { isDryRun, since, types, until, userId }: CancelSelection,
    context: ChangeContext,
  ) {
    const options = { owner: projectId, isLong: true }
    const of = [textParam(projectId), uuidParam(webhookId)]
    const [webhook] = yield* executor.execute<{ readonly last: Integer | null }>(
      sql.findLast,
      of,
      options,
    )
    if (webhook === undefined) return yield* new WebhookNotFound({ webhookId })
    const last = BigInt(webhook.last ?? 0)
    let total = 0
    let after: bigint | undefined = 0n
    while (after !== undefined && after < last) {
      const params: ReadonlyArray<unknown> = [
        uuidParam(webhookId),
        instantParam(since),
        instantParam(until),
        types === undefined ? textParam(undefined) : textsParam(types),
        textParam(userId && JSON.stringify(userId)),
        bigintParam(after),
        bigintParam(last),
        integerParam(pageSize),
        flagParam(isDryRun),
      ]
      const rows: ReadonlyArray<PageRow> = yield* executor.execute<PageRow>(
        sql.page,
        params,
        options,
      )
      const next: Integer | null = rows[0]?.next_position ?? null
      total += rows[0]?.cancelled ?? 0
      after = next === null ? undefined : BigInt(next)
      if (rows[0]?.has_next === true) yield* executor.afterCommit(notifications.notify)
    }
    if (isDryRun) return total
    const form = pickForm(
      sql.record,
      [
        ...of,
        integerParam(total),
        textParam(JSON.stringify(cancelledChanges(total))),
        ...changeContextParams(context),
      ],
      context.idempotency,
    )
    const [recorded] = yield* executor.execute(...form, options)
    // It was removed meanwhile, or the key is known.
    if (recorded === undefined) return yield* new WebhookNotFound({ webhookId })
    return total
  })

  return {
    cancel: Effect.fnUntraced(function* (webhook, selection, context) {
      // Claims and settlements would wait until it ends.
      if (!selection.isDryRun && (yield* executor.isInTransaction)) {
        return yield* Effect.die(new NotInTransaction())
      }
      const { idempotency } = context
      // What was published since the first request with this key is left.
      const known = idempotency && (yield* idempotencyStore.recall(idempotency))
      return (
        known ??
        (yield* idempotencyStore.change(idempotency, cancelAll(webhook, selection, context)))
      )
    }),
  }
}
