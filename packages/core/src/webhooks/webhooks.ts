/** The webhook service: registers webhooks, lists and replays deliveries. */

import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type ChangeContext, type OriginInput, notifyReplay } from "../base/change-context.ts"
import { checkNames } from "../base/field-names.ts"
import { type Repeatable, changingMethod, readingMethod } from "../base/host-method.ts"
import { invalidArgument, ofProject } from "../base/input.ts"
import type { Decoded, HostInputOf } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import type { ProjectNotFound } from "../base/values.ts"
import { EventId, Hooks, knownEventTypes, makeEvent, newEventId } from "../events/event.ts"
import { makeCancel } from "./cancel.ts"
import { type ActivityCell, answerTimePercentile } from "./delivery-activity.ts"
import type { Dispatcher } from "./dispatcher.ts"
import {
  cancellation,
  deliveriesPage,
  manyReplays,
  newWebhook,
  ofWebhook,
  oneReplay,
  replayPage,
  rotation,
  webhookNames,
  webhookUpdate,
} from "./inputs.ts"
import { type Delivery, Outbox, type WebhookRef } from "./outbox.ts"
import { formatReplayCursor, makeReplays, replaySelection } from "./replay.ts"
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
  webhooksOptions,
} from "./webhook-registry.ts"
import type { WebhookNotFound } from "./webhook.ts"
import { type WebhookDisabled } from "./webhook.ts"

/** Returns the cursor that does not belong to the order of a page, if there is one. */
const misplacedCursor = ({ attemptedBefore, olderThan, order }: Decoded<typeof deliveriesPage>) => {
  if (order === "created") return attemptedBefore && "attemptedBefore"
  return olderThan && "olderThan"
}

/** Makes the acts that show and replay deliveries. */
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

  return {
    deliveries: Effect.fnUntraced(function* (page: Decoded<typeof deliveriesPage>) {
      const { attemptedBefore: before, limit, olderThan, order, state, ...webhook } = page
      const misplaced = misplacedCursor(page)
      if (misplaced !== undefined)
        return yield* invalidArgument(misplaced, "absent with this order")
      if (order === "latestAttempt")
        return yield* outbox.attempted(webhook, { state, limit, before })
      const found = yield* outbox.deliveries(webhook, { state, limit, olderThan })
      // An unknown event has nothing after it, as the oldest one.
      if (found.length === 0 && olderThan !== undefined) yield* requireDelivery(webhook, olderThan)
      return found
    }),

    activity: Effect.fnUntraced(function* (webhook: WebhookRef) {
      const { answerTimes, quarters } = yield* outbox.activity(webhook)
      return {
        quarters,
        p50Millis: answerTimePercentile(answerTimes, 0.5),
        p99Millis: answerTimePercentile(answerTimes, 0.99),
      }
    }),

    projectActivity: ({ projectId }: Decoded<typeof ofProject>) => outbox.minutes(projectId),

    replay: Effect.fnUntraced(function* (
      { eventId, ...webhook }: Decoded<typeof oneReplay>,
      { idempotency }: ChangeContext,
    ) {
      const replayed = yield* outbox.replay(webhook, eventId, idempotency)
      if (typeof replayed === "number") return replayed > 0
      yield* notifyReplay({ idempotency }, replayed)
      return Number(replayed.answer) > 0
    }),

    replayPage: Effect.fnUntraced(function* (
      { projectId, webhookId, ...asked }: Decoded<typeof replayPage>,
      { idempotency }: ChangeContext,
    ) {
      const webhook = { projectId, webhookId }
      const selection = replaySelection(asked)
      const { next, replayed } = yield* replays.page({ webhook, selection, idempotency })
      return { replayed, next: next && formatReplayCursor(next) }
    }),

    replayMany: (
      { projectId, webhookId, ...asked }: Decoded<typeof manyReplays>,
      { idempotency }: ChangeContext,
    ) =>
      replays.all({
        webhook: { projectId, webhookId },
        selection: replaySelection(asked),
        idempotency,
      }),

    cancel: makeCancel(outbox),

    ping: Effect.fnUntraced(function* (
      { projectId, webhookId }: WebhookRef,
      { at, idempotency }: ChangeContext,
    ) {
      const event = makeEvent({
        id: newEventId(crypto, at),
        projectId,
        type: knownEventTypes.ping,
        at,
        data: { project_id: projectId, webhook_id: webhookId },
      })
      const replayed = yield* outbox.publishTo(event, webhookId, idempotency)
      if (replayed !== undefined) {
        yield* notifyReplay({ idempotency }, replayed)
        return EventId(replayed.answer)
      }
      yield* hooks.event(event)
      return event.id
    }),
  }
})

/** A delivery to send again. */
export interface Replaying extends HostInputOf<typeof oneReplay>, Repeatable {}

/** Many events to send again. */
export interface ReplayingMany extends HostInputOf<typeof manyReplays>, Repeatable {}

/** Many events to send again, page by page. */
export interface ReplayingPage extends HostInputOf<typeof replayPage>, Repeatable {}

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

/** Waiting deliveries to cancel. */
export interface Cancelling extends HostInputOf<typeof cancellation>, Repeatable {}

/** A page of a webhook's deliveries. */
export interface DeliveriesPage extends HostInputOf<typeof deliveriesPage> {}

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

    /**
     * Cancels what waits for a webhook, except attempts in flight, and returns the number of deliveries.
     * Each can be sent again by `replay`, and by nothing else. The feed and `onEvent` cannot be called back.
     * Fails with `WebhookNotFound`.
     *
     * @param deliveries.types - only events of these types
     * @param deliveries.since - only events from this time on
     * @param deliveries.until - only events before this time
     * @param deliveries.userId - only events about this user
     *
     * @example
     * ```ts
     * import type { Tenure } from "tenure"
     *
     * export const holdMails = (tenure: Tenure, webhookId: string, mistakeAt: Date) =>
     *   tenure.webhooks.cancel({ projectId: "p1", webhookId, since: mistakeAt })
     * ```
     */
    readonly cancel: (
      deliveries: Cancelling,
      origin?: OriginInput,
    ) => Effect.Effect<number, ChangeFailure | WebhookNotFound>
  }
>()("@tenure/core/Webhooks") {
  static readonly layer = (
    settings: WebhooksSettings = Setting.parse(webhooksOptions),
  ): Layer.Layer<
    Webhooks | WebhookActs,
    never,
    WebhookStore | Outbox | Dispatcher | AddressPolicy | WebhookTransport
  > =>
    Layer.provideMerge(
      Layer.effect(Webhooks, Effect.map(WebhookActs, makeMethods)),
      Layer.effect(WebhookActs, makeActs(settings)),
    )
}

const makeActs = Effect.fnUntraced(function* (settings: WebhooksSettings) {
  return { ...(yield* makeRegistry(settings)), ...(yield* makeRedelivery) }
})

/** What the methods do once their arguments are read. The HTTP API reads them from requests. */
export class WebhookActs extends Context.Service<
  WebhookActs,
  Effect.Success<ReturnType<typeof makeActs>>
>()("@tenure/core/WebhookActs") {}

const makeMethods = (acts: WebhookActs["Service"]): Webhooks["Service"] => {
  const deliveries = readingMethod(deliveriesPage, acts.deliveries)
  return checkNames<Webhooks["Service"]>(webhookNames, {
    create: changingMethod("create", newWebhook, acts.create),
    list: readingMethod(ofProject, acts.list),
    health: readingMethod(ofProject, acts.health),
    find: readingMethod(ofWebhook, acts.find),
    update: changingMethod("update", webhookUpdate, acts.update),
    delete: changingMethod("delete", ofWebhook, acts.delete),
    rotateSecret: changingMethod("rotateSecret", rotation, acts.rotateSecret),
    addSigningKey: changingMethod("addSigningKey", ofWebhook, acts.addSigningKey),
    enable: changingMethod("enable", ofWebhook, acts.enable),
    activity: readingMethod(ofWebhook, acts.activity),
    projectActivity: readingMethod(ofProject, acts.projectActivity),
    // The list of a webhook that cannot exist is empty, as that of one that was deleted.
    deliveries: (page) =>
      Effect.catchTag(deliveries(page), "WebhookNotFound", () => Effect.succeed([])),
    replay: changingMethod("replay", oneReplay, acts.replay),
    replayMany: changingMethod("replayMany", manyReplays, acts.replayMany),
    replayPage: changingMethod("replayMany", replayPage, acts.replayPage),
    cancel: changingMethod("cancel", cancellation, acts.cancel),
    ping: changingMethod("ping", ofWebhook, acts.ping),
  })
}
