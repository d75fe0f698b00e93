/** The outbox on PostgreSQL: publishes events, and settles, lists and replays deliveries. */

import {
  type Event,
  EventNotFound,
  type IdempotencyKey,
  type Outbox,
  ProjectNotFound,
  StoreUnavailable,
  WebhookDisabled,
  type WebhookId,
  WebhookNotFound,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { makeCancellations } from "./cancellations.ts"
import { makeClaiming } from "./claims.ts"
import { hasRowAt, makeBatcher } from "./connection/batch.ts"
import { type Executor, readsOf } from "./connection/executor.ts"
import { makeDeliveryCounts } from "./delivery-counts.ts"
import { makeDeliveryProgress } from "./delivery-progress.ts"
import type { IdempotencyStore } from "./idempotency.ts"
import type { Notifications } from "./notifications.ts"
import * as statements from "./outbox.sql.ts"
import { makeReplays } from "./replays.ts"
import * as settlements from "./settlements.sql.ts"
import { type AcceptedItemRow, hasDeliveries, pickForm, withAndWithoutKey } from "./sql/clauses.ts"
import { instantParam, integerParam, textParam, uuidParam, uuidsParam } from "./sql/values.ts"

// Under load, successes are settled this often, at a fraction of the cost of settling each alone.
const gatherMillis = 25

/** A settlement, and whether something waits for it. */
interface GatheredSettling extends settlements.Settling {
  readonly isUrgent: boolean
}

/** Makes the outbox. */
export const makePostgresOutbox = Effect.fnUntraced(function* (
  executor: Executor,
  notifications: Notifications,
  idempotencyStore: IdempotencyStore,
) {
  const { schema } = executor
  const sql = {
    publish: withAndWithoutKey(schema, statements.publish, 5),
    publishTo: withAndWithoutKey(schema, statements.publishTo, 6),
    listDeliveries: statements.listDeliveries(schema),
    listAttempted: statements.listAttempted(schema),
    findEvent: statements.findEvent(schema),
    settle: settlements.settle(schema),
    endDisabled: settlements.endDisabled(schema),
    backlog: statements.backlog(schema),
  }
  const claiming = yield* makeClaiming(executor, notifications)
  const { add: countAttempt, ...activity } = yield* makeDeliveryCounts(executor)

  const notifyAfterCommit = executor.afterCommit(notifications.notify)

  /** Settles claims. Returns a result for each. */
  const settleMany = Effect.fnUntraced(function* (all: ReadonlyArray<settlements.Settling>) {
    const rows = yield* executor.executeApart<settlements.SettledRow>(
      ...settlements.pickSettle(sql.settle, all),
    )
    if (hasDeliveries(rows) || rows.some((row) => row.has_next)) yield* notifications.notify
    const disabled = all.filter(({ settlement }) => settlement._tag === "Disabled")
    if (disabled.length > 0) {
      const webhookIds = disabled.map((one) => one.claim.webhook.webhookId)
      yield* executor.executeApart(sql.endDisabled, [uuidsParam(webhookIds)])
    }
    return settlements.settledOf(all, rows)
  })

  /** Publishes events, or one event with an idempotency key. Returns for each whether its project exists. */
  const publishMany = Effect.fnUntraced(function* (
    events: ReadonlyArray<Event>,
    idempotency?: IdempotencyKey,
  ) {
    const form = pickForm(sql.publish, statements.publishParams(events), idempotency)
    const rows = yield* executor.execute<AcceptedItemRow>(...form, { owner: "events" })
    if (hasDeliveries(rows)) yield* notifyAfterCommit
    return hasRowAt(events, rows)
  })

  const publishGathered = yield* makeBatcher({
    run: (events: ReadonlyArray<Event>) => publishMany(events),
    keysOf: (event: Event) => [event.id],
    isItemError: () => false,
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  const settleGathered = yield* makeBatcher({
    run: settleMany,
    isItemError: () => false,
    keysOf: (one: GatheredSettling) => [`${one.claim.event.id} ${one.claim.webhook.webhookId}`],
    maxBatch: 256,
    maxInFlight: 2,
    leastBeside: 192,
    gathering: { millis: gatherMillis, isUrgent: ({ isUrgent }) => isUrgent },
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  const publishOne = Effect.fnUntraced(function* (
    event: Event,
    idempotency: IdempotencyKey | undefined,
  ) {
    const isFound =
      idempotency !== undefined || (yield* executor.isInTransaction)
        ? (yield* publishMany([event], idempotency))[0]
        : yield* publishGathered(event)
    if (isFound !== true) return yield* new ProjectNotFound({ projectId: event.projectId })
  })

  const publishToOne = Effect.fnUntraced(function* (
    event: Event,
    webhookId: WebhookId,
    idempotency: IdempotencyKey | undefined,
  ) {
    const form = pickForm(sql.publishTo, statements.publishToParams(event, webhookId), idempotency)
    const [row] = yield* executor.execute<{ readonly is_disabled: boolean }>(...form, {
      owner: event.projectId,
    })
    if (row === undefined) return yield* new WebhookNotFound({ webhookId })
    if (row.is_disabled) return yield* new WebhookDisabled({ webhookId })
    yield* notifyAfterCommit
  })

  const outbox: Outbox["Service"] = {
    ping: executor.ping,

    publish: (event, idempotency) =>
      idempotencyStore.change(idempotency, publishOne(event, idempotency)),

    publishTo: (event, webhookId, idempotency) =>
      idempotencyStore.change(idempotency, publishToOne(event, webhookId, idempotency)),

    claim: claiming.claim,

    settle: Effect.fnUntraced(function* (claimed, settlement) {
      const isDelivered = settlement._tag === "Delivered"
      const isUrgent = !isDelivered || claiming.isOrdered(claimed)
      const settled = yield* settleGathered({ claim: claimed, settlement, isUrgent })
      claiming.settled(claimed)
      if (settled !== "Lapsed" && settlement._tag === "Released") yield* notifications.notify
      if (isDelivered) claiming.served(claimed.webhook.webhookId)
      if (settled !== "Lapsed" && settlement._tag !== "Released") {
        countAttempt(claimed.webhook.webhookId, isDelivered, settlement.attempt)
      }
      return settled
    }),

    nextChange: notifications.next,

    deliveries: Effect.fnUntraced(function* ({ projectId, webhookId }, page) {
      const params = [
        textParam(projectId),
        uuidParam(webhookId),
        textParam(page.state),
        uuidParam(page.olderThan),
        integerParam(page.limit),
      ]
      const rows = yield* executor.execute<statements.DeliveryRow>(sql.listDeliveries, params, {
        owner: readsOf(projectId),
      })
      return rows.map((row) => statements.toDelivery(webhookId, row))
    }),

    attempted: Effect.fnUntraced(function* ({ projectId, webhookId }, page) {
      const params = [
        textParam(projectId),
        uuidParam(webhookId),
        textParam(page.state),
        instantParam(page.before?.attemptedAt),
        uuidParam(page.before?.eventId),
        integerParam(page.limit),
      ]
      const rows = yield* executor.execute<statements.DeliveryRow>(sql.listAttempted, params, {
        owner: readsOf(projectId),
      })
      return rows.map((row) => statements.toDelivery(webhookId, row))
    }),

    ...makeDeliveryProgress(executor),
    ...activity,

    find: Effect.fnUntraced(function* (projectId, eventId) {
      const params = [textParam(projectId), uuidParam(eventId)]
      const [row] = yield* executor.execute<statements.EventRow>(sql.findEvent, params, {
        owner: readsOf(projectId),
      })
      return row === undefined
        ? yield* new EventNotFound({ eventId })
        : statements.toPublishedEvent({ projectId, id: eventId }, row)
    }),

    ...makeReplays(executor, notifications, idempotencyStore),
    ...makeCancellations(executor, notifications, idempotencyStore),

    backlog: (max) =>
      Effect.map(
        executor.execute<statements.BacklogRow>(sql.backlog, [integerParam(max)], {
          owner: "backlog",
        }),
        statements.toBacklog,
      ),
  }
  return outbox
})
