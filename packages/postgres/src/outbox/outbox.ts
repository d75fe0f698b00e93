/** The outbox on PostgreSQL. */

import { type Event, EventNotFound } from "@tenure/core/Event"
import type { Once } from "@tenure/core/Once"
import type { Outbox, Replay, WebhookRef } from "@tenure/core/Outbox"
import { ProjectNotFound } from "@tenure/core/Project"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import { WebhookDisabled, type WebhookId, WebhookNotFound } from "@tenure/core/Webhook"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "../connection/Executor.ts"
import * as Gather from "../connection/Gather.ts"
import { instant, integer, text, uuid, uuids } from "../connection/parameters.ts"
import type { Answers } from "../idempotency/Answers.ts"
import { formOf, forms } from "../idempotency/fragments.sql.ts"
import { backlog, type BacklogRow, toBacklog } from "./backlog.sql.ts"
import * as Claiming from "./Claiming.ts"
import { endDisabled } from "./endDisabled.sql.ts"
import { type EventRow, findEvent, toPublishedEvent } from "./findEvent.sql.ts"
import { type AcceptedRow, hasDeliveries } from "./fragments.sql.ts"
import { type DeliveryRow, listDeliveries, toDelivery } from "./listDeliveries.sql.ts"
import type { Notifications } from "./Notifications.ts"
import { publish, publishParams } from "./publish.sql.ts"
import { publishTo, publishToParams } from "./publishTo.sql.ts"
import { replay, type ReplayRow } from "./replay.sql.ts"
import { settle, settledOf, type SettledRow, settleParams, type Settling } from "./settle.sql.ts"

/** Makes the outbox. */
export const make = Effect.fnUntraced(function* (
  executor: Executor,
  notifications: Notifications,
  answers: Answers,
) {
  const { schema } = executor
  const sql = {
    publish: forms(schema, publish, 5),
    publishTo: forms(schema, publishTo, 6),
    listDeliveries: listDeliveries(schema),
    findEvent: findEvent(schema),
    replay: {
      One: forms(schema, (name, once) => replay(name, "One", once), 3),
      FailedSince: forms(schema, (name, once) => replay(name, "FailedSince", once), 3),
    },
    settle: settle(schema),
    endDisabled: endDisabled(schema),
    backlog: backlog(schema),
  }
  const claiming = yield* Claiming.make(executor, notifications)

  const notifyAfterCommit = executor.afterCommit(notifications.notify)

  /** Settles claims. Returns for each what came of it. */
  const settleMany = Effect.fnUntraced(function* (all: ReadonlyArray<Settling>) {
    const rows = yield* executor.executeApart<SettledRow>(sql.settle, settleParams(all))
    if (hasDeliveries(rows)) yield* notifications.notify
    const disabled = all.filter(({ settlement }) => settlement._tag === "Disabled")
    if (disabled.length > 0) {
      const webhookIds = disabled.map((one) => one.claim.webhook.webhookId)
      yield* executor.executeApart(sql.endDisabled, [uuids(webhookIds)])
    }
    return settledOf(all, rows)
  })

  /** Publishes events, of which one alone may have a key. Returns for each whether its project exists. */
  const publishMany = Effect.fnUntraced(function* (events: ReadonlyArray<Event>, once?: Once) {
    const form = formOf(sql.publish, publishParams(events), once)
    const rows = yield* executor.execute<AcceptedRow>(...form, { owner: "events" })
    if (hasDeliveries(rows)) yield* notifyAfterCommit
    return Gather.isAmong(events, rows)
  })

  const publishGathered = yield* Gather.make({
    run: (events: ReadonlyArray<Event>) => publishMany(events),
    keysOf: (event: Event) => [event.id],
    isOwn: () => false,
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  const settleGathered = yield* Gather.make({
    run: settleMany,
    isOwn: () => false,
    keysOf: (one: Settling) => [`${one.claim.event.id} ${one.claim.webhook.webhookId}`],
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  const publishOne = Effect.fnUntraced(function* (event: Event, once: Once | undefined) {
    const isFound =
      once !== undefined || (yield* executor.isInTransaction)
        ? (yield* publishMany([event], once))[0]
        : yield* publishGathered(event)
    if (isFound !== true) return yield* new ProjectNotFound({ projectId: event.projectId })
  })

  const publishToOne = Effect.fnUntraced(function* (
    event: Event,
    webhookId: WebhookId,
    once: Once | undefined,
  ) {
    const form = formOf(sql.publishTo, publishToParams(event, webhookId), once)
    const [row] = yield* executor.execute<{ readonly is_disabled: boolean }>(...form, {
      owner: event.projectId,
    })
    if (row === undefined) return yield* new WebhookNotFound({ webhookId })
    if (row.is_disabled) return yield* new WebhookDisabled({ webhookId })
    yield* notifyAfterCommit
  })

  const replayDeliveries = Effect.fnUntraced(function* (
    { projectId, webhookId }: WebhookRef,
    which: Replay,
    once: Once | undefined,
  ) {
    const selected = which._tag === "One" ? uuid(which.eventId) : instant(which.at)
    const params = [text(projectId), uuid(webhookId), selected]
    const form = formOf(sql.replay[which._tag], params, once)
    const [row] = yield* executor.execute<ReplayRow>(...form, { owner: projectId })
    if (row === undefined) return yield* new WebhookNotFound({ webhookId })
    if (row.is_disabled) return yield* new WebhookDisabled({ webhookId })
    if (row.replayed > 0) yield* notifyAfterCommit
    return row.replayed
  })

  const outbox: Outbox["Service"] = {
    ping: executor.ping,

    publish: (event, once) => answers.change(once, publishOne(event, once)),

    publishTo: (event, webhookId, once) =>
      answers.change(once, publishToOne(event, webhookId, once)),

    claim: claiming.claim,

    settle: Effect.fnUntraced(function* (claimed, settlement) {
      const settled = yield* settleGathered({ claim: claimed, settlement })
      claiming.settled(claimed)
      if (settled !== "Lapsed" && settlement._tag === "Released") yield* notifications.notify
      if (settlement._tag === "Delivered") claiming.served(claimed.webhook.webhookId)
      return settled
    }),

    nextChange: notifications.next,

    deliveries: Effect.fnUntraced(function* ({ projectId, webhookId }, page) {
      const params = [
        text(projectId),
        uuid(webhookId),
        text(page.state),
        uuid(page.olderThan),
        integer(page.limit),
      ]
      const rows = yield* executor.execute<DeliveryRow>(sql.listDeliveries, params, {
        owner: readsOf(projectId),
      })
      return rows.map((row) => toDelivery(webhookId, row))
    }),

    find: Effect.fnUntraced(function* (projectId, eventId) {
      const params = [text(projectId), uuid(eventId)]
      const [row] = yield* executor.execute<EventRow>(sql.findEvent, params, {
        owner: readsOf(projectId),
      })
      return row === undefined
        ? yield* new EventNotFound({ eventId })
        : toPublishedEvent({ projectId, id: eventId }, row)
    }),

    replay: (webhook, which, once) => answers.change(once, replayDeliveries(webhook, which, once)),

    backlog: (most) =>
      Effect.map(
        executor.execute<BacklogRow>(sql.backlog, [integer(most)], { owner: "backlog" }),
        toBacklog,
      ),
  }
  return outbox
})
