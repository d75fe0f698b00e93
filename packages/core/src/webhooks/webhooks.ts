/** The webhook service: registers webhooks, lists and replays deliveries. */

import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import { notifyReplay } from "../base/change-context.ts"
import { checkNames } from "../base/field-names.ts"
import {
  invalidArgument,
  readArgument,
  readBranded,
  readPageSize,
  readProjectId,
} from "../base/input.ts"
import * as Setting from "../base/setting.ts"
import { type ProjectNotFound, copyOwn, getOwn } from "../base/values.ts"
import { EventId, Hooks, knownEventTypes, makeEvent, newEventId } from "../events/event.ts"
import { type ActivityCell, answerTimePercentile } from "./delivery-activity.ts"
import type { Dispatcher } from "./dispatcher.ts"
import { webhookFields } from "./inputs.ts"
import {
  type AttemptPosition,
  type Delivery,
  type DeliveryState,
  Outbox,
  type WebhookRef,
  deliveryStates,
} from "./outbox.ts"
import {
  type ReplayInput,
  type ReplayPageInput,
  formatReplayCursor,
  makeReplays,
  readReplay,
} from "./replay.ts"
import type { WebhookStore } from "./store.ts"
import type { AddressPolicy, WebhookTransport } from "./transport.ts"
import {
  type ChangeFailure,
  type Failure,
  type RepeatableIds,
  type WebhookIds,
  type WebhooksOf,
  type WebhookRegistry,
  type WebhooksSettings,
  makeRegistry,
  readWebhookChange,
  readWebhookIds,
  webhooksOptions,
} from "./webhook-registry.ts"
import type { WebhookNotFound } from "./webhook.ts"
import { type WebhookDisabled } from "./webhook.ts"

/** The methods to show and replay deliveries. */
type Redelivery = Pick<
  Webhooks["Service"],
  "activity" | "deliveries" | "ping" | "projectActivity" | "replay" | "replayMany" | "replayPage"
>

const deliveryState = Setting.optional(Setting.oneOf(deliveryStates))

/** The orders in which deliveries are listed. */
const deliveryOrders = ["created", "latestAttempt"] as const

const deliveryOrder = Setting.withDefault(Setting.oneOf(deliveryOrders), "created")

const attemptPositionOf = (given: unknown): AttemptPosition | undefined => {
  if (!Predicate.isObject(given)) return undefined
  const [attemptedAt, eventId] = [getOwn(given, "attemptedAt"), getOwn(given, "eventId")]
  return typeof attemptedAt === "number" &&
    Number.isSafeInteger(attemptedAt) &&
    typeof eventId === "string" &&
    EventId.is(eventId)
    ? { attemptedAt, eventId }
    : undefined
}

const attemptPosition = Setting.optional(
  Setting.custom<Pick<Delivery, "attemptedAt" | "eventId">, AttemptPosition>(
    "a delivery that was attempted",
    attemptPositionOf,
  ),
)

const decodePage = Effect.fnUntraced(function* ({
  attemptedBefore,
  limit = 100,
  olderThan,
  order,
  state,
}: DeliveriesPage) {
  const by = yield* readArgument("order", deliveryOrder, order)
  const page = {
    state: yield* readArgument("state", deliveryState, state),
    limit: yield* readPageSize(limit),
  }
  const before = yield* readArgument("attemptedBefore", attemptPosition, attemptedBefore)
  const older =
    olderThan === undefined ? undefined : yield* readBranded("olderThan", EventId, olderThan)
  if (by === "created") {
    if (before === undefined) return { order: by, ...page, olderThan: older }
    return yield* invalidArgument("attemptedBefore", "absent with this order")
  }
  if (older === undefined) return { order: by, ...page, before }
  return yield* invalidArgument("olderThan", "absent with this order")
})

/** Makes the methods. */
const makeRedelivery = Effect.gen(function* () {
  const outbox = yield* Outbox
  const hooks = yield* Hooks
  const crypto = yield* WebCrypto
  const replays = makeReplays(outbox)

  /** Fails unless a webhook has a delivery for the event used as a cursor. */
  const requireDelivery = Effect.fnUntraced(function* (
    { projectId, webhookId }: WebhookRef,
    olderThan: EventId,
  ) {
    const deliveries = yield* outbox.find(projectId, olderThan).pipe(
      Effect.map((event) => event.deliveries),
      Effect.catchTag("EventNotFound", () => Effect.succeed([])),
    )
    if (deliveries.some((one) => one.webhookId === webhookId)) return
    return yield* invalidArgument("olderThan", "the id of an event with a delivery in the list")
  })

  /** Reads what to send again. */
  const readReplayCall = Effect.fnUntraced(function* (given: ReplayingPage) {
    const { after, dryRun, only, since, types, ...ids } = copyOwn(given)
    const webhook = yield* readWebhookIds(ids)
    const selection = yield* readReplay({ after, dryRun, only, since, types })
    const { once } = yield* readWebhookChange("replayMany", ids, undefined, selection)
    return { webhook, selection, once }
  })

  return {
    deliveries: Effect.fnUntraced(function* (page) {
      const decoded = yield* decodePage(copyOwn(page))
      const webhook = yield* Effect.catchTag(
        readWebhookIds(page),
        "WebhookNotFound",
        () => Effect.undefined,
      )
      if (webhook === undefined) return []
      if (decoded.order === "latestAttempt") return yield* outbox.attempted(webhook, decoded)
      const { olderThan } = decoded
      const found = yield* outbox.deliveries(webhook, decoded)
      // An unknown event has nothing after it, as the oldest one.
      if (found.length === 0 && olderThan !== undefined) yield* requireDelivery(webhook, olderThan)
      return found
    }),

    activity: Effect.fnUntraced(function* (ids) {
      const { answerTimes, quarters } = yield* outbox.activity(yield* readWebhookIds(ids))
      return {
        quarters,
        p50Millis: answerTimePercentile(answerTimes, 0.5),
        p99Millis: answerTimePercentile(answerTimes, 0.99),
      }
    }),

    projectActivity: Effect.fnUntraced(function* (project) {
      const { projectId } = copyOwn(project)
      return yield* outbox.minutes(yield* readProjectId(projectId))
    }),

    replay: Effect.fnUntraced(function* (delivery) {
      const { eventId, ...ids } = copyOwn(delivery)
      const id = yield* readBranded("eventId", EventId, eventId)
      const webhook = yield* readWebhookIds(ids)
      const { once } = yield* readWebhookChange("replay", ids, undefined, id)
      const replayed = yield* outbox.replay(webhook, id, once)
      if (typeof replayed === "number") return replayed > 0
      yield* notifyReplay({ once }, replayed)
      return Number(replayed.answer) > 0
    }),

    replayPage: Effect.fnUntraced(function* (page) {
      const { next, replayed } = yield* replays.page(yield* readReplayCall(page))
      return { replayed, next: next && formatReplayCursor(next) }
    }),

    replayMany: Effect.fnUntraced(function* (events) {
      return yield* replays.all(yield* readReplayCall(events))
    }),

    ping: Effect.fnUntraced(function* (ids) {
      const { projectId, webhookId } = yield* readWebhookIds(ids)
      const { at, once } = yield* readWebhookChange("ping", ids)
      const event = makeEvent({
        id: newEventId(crypto, at),
        projectId,
        type: knownEventTypes.ping,
        at,
        data: { project_id: projectId, webhook_id: webhookId },
      })
      const replayed = yield* outbox.publishTo(event, webhookId, once)
      if (replayed !== undefined) {
        yield* notifyReplay({ once }, replayed)
        return EventId(replayed.answer)
      }
      yield* hooks.event(event)
      return event.id
    }),
  } satisfies Redelivery
})

/** A delivery to send again. */
export interface Replaying extends RepeatableIds {
  /** The id of the event. */
  readonly eventId: string
}

/** Many events to send again. */
export interface ReplayingMany extends RepeatableIds, ReplayInput {}

/** Many events to send again, page by page. */
export interface ReplayingPage extends RepeatableIds, ReplayPageInput {}

/** A page of events that are sent again. */
export interface ReplayedPage {
  /** The number of events. */
  readonly replayed: number
  /** The `after` of the next page; `undefined` at the end. */
  readonly next: string | undefined
}

/** A webhook's last day. */
export interface WebhookDay {
  /** 96 cells, 15 minutes each, oldest first; the last one goes on. */
  readonly quarters: ReadonlyArray<ActivityCell>
  /**
   * The attempts' median duration in milliseconds: an estimate, wrong by 19 % at most between 4 and 16,384 ms, and 4 or
   * 16,384 beyond. `undefined` without any attempts.
   */
  readonly p50Millis: number | undefined
  /** The 99th percentile, estimated in the same way. */
  readonly p99Millis: number | undefined
}

/** A page of a webhook's deliveries. */
export interface DeliveriesPage extends WebhookIds {
  /** `"latestAttempt"` lists only attempted deliveries, the latest attempted first. Default: `"created"`, the newest first. */
  readonly order?: "created" | "latestAttempt" | undefined
  /** With the order `"latestAttempt"`: lists only deliveries after this one, the last one of the page before. */
  readonly attemptedBefore?: Pick<Delivery, "attemptedAt" | "eventId"> | undefined
  /** Lists only deliveries in this state. */
  readonly state?: DeliveryState | undefined
  /** With the order `"created"`: an event's id. Lists only deliveries older than the webhook's delivery for this event. */
  readonly olderThan?: string | undefined
  /** The most deliveries to return, 1 to 10,000; 100 by default. */
  readonly limit?: number | undefined
}

/**
 * Registers, lists and deletes webhooks, and shows their deliveries. Every method fails with
 * `InvalidInput` if an argument is invalid, and with `StoreUnavailable` if the store does not answer,
 * or if secrets are encrypted and the server has no keys or cannot load one.
 *
 * Methods with an effect take an origin for the audit trail: who asked for the change, and in which
 * request. With an idempotency key, they fail with `IdempotencyMismatch` if the key belongs to another
 * call, and with `IdempotencyInProgress` if the first call with it takes too long.
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import { Webhooks } from "tenure/effect"
 *
 * const register = Effect.gen(function* () {
 *   const webhooks = yield* Webhooks
 *   const url = "https://example.com/hooks"
 *   const { id, secret } = yield* webhooks.create({ projectId: "p1", url })
 *   yield* webhooks.ping({ projectId: "p1", webhookId: id })
 *   return secret
 * })
 * ```
 */
export class Webhooks extends Context.Service<
  Webhooks,
  WebhookRegistry & {
    /**
     * Sends the event `webhook.ping` to one webhook, and returns the event id. Fails with
     * `WebhookNotFound` or `WebhookDisabled`.
     */
    readonly ping: (
      webhook: RepeatableIds,
    ) => Effect.Effect<EventId, ChangeFailure | WebhookNotFound | WebhookDisabled>

    /**
     * Counts a webhook's attempts in the last day by 15 minutes, over all processes. Those that another
     * process made may be missing for up to 10 seconds. Fails with `WebhookNotFound`.
     */
    readonly activity: (webhook: WebhookIds) => Effect.Effect<WebhookDay, Failure | WebhookNotFound>

    /**
     * Counts a project's attempts in the last hour by the minute, oldest first, over all processes. Fails with
     * `ProjectNotFound`.
     */
    readonly projectActivity: (
      project: WebhooksOf,
    ) => Effect.Effect<ReadonlyArray<ActivityCell>, Failure | ProjectNotFound>

    /**
     * Returns a webhook's deliveries with their attempts, newest first or by latest attempt, even after the webhook was
     * deleted.
     */
    readonly deliveries: (page: DeliveriesPage) => Effect.Effect<ReadonlyArray<Delivery>, Failure>

    /**
     * Sends a delivered or failed event again, or at once if it waits for its next attempt. Returns
     * `false` if there is no such delivery, or if it is already due or being sent. Fails with
     * `WebhookNotFound` or `WebhookDisabled`.
     */
    readonly replay: (
      delivery: Replaying,
    ) => Effect.Effect<boolean, ChangeFailure | WebhookNotFound | WebhookDisabled>

    /**
     * Sends many events to a webhook again, for example those it missed while it was disabled, and returns
     * their number. They are sent after all other events that are due for the webhook. Only events that
     * are kept can be sent. Fails with `WebhookNotFound` or `WebhookDisabled`.
     */
    readonly replayMany: (
      events: ReplayingMany,
    ) => Effect.Effect<number, ChangeFailure | WebhookNotFound | WebhookDisabled>

    /**
     * Does a part of the same, for hosts that show how far it is: reads up to 25,000 events and sends up to
     * 10,000. The last page ends with the event that was the newest at the first page. Fails with
     * `WebhookNotFound` or `WebhookDisabled`.
     */
    readonly replayPage: (
      page: ReplayingPage,
    ) => Effect.Effect<ReplayedPage, ChangeFailure | WebhookNotFound | WebhookDisabled>
  }
>()("@tenure/core/Webhooks") {
  static readonly layer = (
    settings: WebhooksSettings = Setting.parse(webhooksOptions),
  ): Layer.Layer<
    Webhooks,
    never,
    WebhookStore | Outbox | Dispatcher | AddressPolicy | WebhookTransport
  > => Layer.effect(Webhooks, make(settings))
}

const make = Effect.fnUntraced(function* (settings: WebhooksSettings) {
  const service = { ...(yield* makeRegistry(settings)), ...(yield* makeRedelivery) }
  return Webhooks.of(checkNames<Webhooks["Service"]>(webhookFields, service))
})
