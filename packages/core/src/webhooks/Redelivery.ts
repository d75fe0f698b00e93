/** Shows what was sent to webhooks, and sends it again. */

import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Argument from "../base/Argument.ts"
import * as Once from "../base/Once.ts"
import { owned } from "../base/Own.ts"
import * as Setting from "../base/Setting.ts"
import * as Event from "../events/Event.ts"
import { Hooks } from "../events/Hooks.ts"
import { deliveryStates, Outbox, type Replay, type WebhookRef } from "./Outbox.ts"
import { decodeIds, occasionOf } from "./WebhookArguments.ts"
import type { DeliveriesPage, RepeatableIds, Webhooks } from "./Webhooks.ts"

/** The methods of `Webhooks` that show deliveries and make new ones. */
type Redelivery = Pick<Webhooks["Service"], "deliveries" | "replay" | "replayFailed" | "ping">

const deliveryState = Setting.optional(Setting.oneOf(deliveryStates))

const decodePage = Effect.fnUntraced(function* ({ limit = 100, olderThan, state }: DeliveriesPage) {
  return {
    state: yield* Argument.read("state", deliveryState, state),
    olderThan:
      olderThan === undefined
        ? undefined
        : yield* Argument.decode("olderThan", Event.EventId, olderThan),
    limit: yield* Argument.pageSize(limit),
  }
})

/** Makes the methods. */
export const make = Effect.gen(function* () {
  const outbox = yield* Outbox
  const hooks = yield* Hooks
  const crypto = yield* WebCrypto

  /** Fails unless a webhook has a delivery of the event after which its deliveries are listed. */
  const requireDelivery = Effect.fnUntraced(function* (
    { projectId, webhookId }: WebhookRef,
    olderThan: Event.EventId,
  ) {
    const deliveries = yield* outbox.find(projectId, olderThan).pipe(
      Effect.map((event) => event.deliveries),
      Effect.catchTag("EventNotFound", () => Effect.succeed([])),
    )
    if (deliveries.some((one) => one.webhookId === webhookId)) return
    return yield* Argument.invalid("olderThan", "the id of an event with a delivery in the list")
  })

  /** Sends deliveries of a webhook again. */
  const replay = Effect.fnUntraced(function* (ids: RepeatableIds, which: Replay) {
    const webhook = yield* decodeIds(ids)
    const { once } = yield* occasionOf("replay", ids, undefined, which)
    const replayed = yield* outbox.replay(webhook, which, once)
    if (typeof replayed === "number") return replayed
    yield* Once.tell({ once }, replayed)
    return Number(replayed.answer)
  })

  return {
    deliveries: Effect.fnUntraced(function* (page) {
      const { limit, olderThan, state } = yield* decodePage(owned(page))
      const webhook = yield* Effect.catchTag(
        decodeIds(page),
        "WebhookNotFound",
        () => Effect.undefined,
      )
      if (webhook === undefined) return []
      const found = yield* outbox.deliveries(webhook, { limit, olderThan, state })
      // An unknown event has nothing after it, as the oldest one.
      if (found.length === 0 && olderThan !== undefined) yield* requireDelivery(webhook, olderThan)
      return found
    }),

    replay: Effect.fnUntraced(function* (delivery) {
      const { eventId, ...ids } = owned(delivery)
      const id = yield* Argument.decode("eventId", Event.EventId, eventId)
      return (yield* replay(ids, { _tag: "One", eventId: id })) > 0
    }),

    replayFailed: Effect.fnUntraced(function* (failed) {
      const { since, ...ids } = owned(failed)
      const at = yield* Argument.instant("since", since)
      return yield* replay(ids, { _tag: "FailedSince", at })
    }),

    ping: Effect.fnUntraced(function* (ids) {
      const { projectId, webhookId } = yield* decodeIds(ids)
      const { at, once } = yield* occasionOf("ping", ids)
      const event = Event.make({
        id: Event.freshId(crypto, at),
        projectId,
        type: Event.types.ping,
        at,
        data: { project_id: projectId, webhook_id: webhookId },
      })
      const replayed = yield* outbox.publishTo(event, webhookId, once)
      if (replayed !== undefined) {
        yield* Once.tell({ once }, replayed)
        return Event.EventId(replayed.answer)
      }
      yield* hooks.event(event)
      return event.id
    }),
  } satisfies Redelivery
})
