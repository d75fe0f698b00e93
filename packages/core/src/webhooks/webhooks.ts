/** The webhook service: registers webhooks, lists and replays deliveries. */

import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import {
  type IdempotencyConflict,
  type IdempotencyKeyInput,
  type OriginInput,
  attachIdempotencyKey,
  notifyReplay,
  readChangeContext,
} from "../base/change-context.ts"
import { type InvalidInput, StoreUnavailable } from "../base/errors.ts"
import {
  invalidArgument,
  readArgument,
  readBranded,
  readInstantArgument,
  readPageSize,
  readProjectId,
} from "../base/input.ts"
import * as Setting from "../base/setting.ts"
import type { InstantInput } from "../base/time.ts"
import { type ProjectId, type ProjectNotFound, copyOwn, getOwn } from "../base/values.ts"
import {
  EventId,
  Hooks,
  knownEventTypes,
  eventTypesOption,
  makeEvent,
  newEventId,
} from "../events/event.ts"
import {
  type ActivityCell,
  type DeliveryProgress,
  answerTimePercentile,
} from "./delivery-activity.ts"
import { Dispatcher } from "./dispatcher.ts"
import { Encryption, SecretUnreadable } from "./encryption.ts"
import {
  type AttemptPosition,
  type Delivery,
  type DeliveryState,
  Outbox,
  type RedeliveryFilter,
  type WebhookRef,
  deliveryStates,
} from "./outbox.ts"
import {
  type VerificationKey,
  type WebhookSecret,
  generateSigningKey,
  secretFromBytes,
  verificationKeyOf,
} from "./signature.ts"
import { WebhookStore } from "./store.ts"
import {
  AddressPolicy,
  type InvalidWebhookUrl,
  WebhookTransport,
  type WebhookUrlRules,
  decodeWebhookUrl,
  permitsHost,
} from "./transport.ts"
import {
  type Health,
  type PublicWebhook,
  type ShownWebhook,
  type StoredWebhook,
  type Webhook,
  type WebhookDisabled,
  WebhookId,
  type WebhookLimitReached,
  WebhookNotFound,
} from "./webhook.ts"

/** Decodes a webhook id. Text other than a UUID cannot be one. */
const decodeWebhookId = (
  text: string,
): Effect.Effect<WebhookId, WebhookNotFound | InvalidInput> => {
  if (typeof text !== "string") return invalidArgument("webhookId", "the id of a webhook")
  const id = text.toLowerCase()
  return WebhookId.is(id)
    ? Effect.succeed(id)
    : Effect.fail(new WebhookNotFound({ webhookId: text }))
}

/** Decodes a webhook's ids. Fails with `WebhookNotFound` if they cannot belong to any. */
const readWebhookIds = Effect.fnUntraced(function* (ids: WebhookIds) {
  const { projectId, webhookId } = copyOwn(ids)
  return {
    webhookId: yield* decodeWebhookId(webhookId),
    projectId: yield* readProjectId(projectId),
  } satisfies WebhookRef
})

/** Reads the change context for a change to a webhook. The other parameters describe the change. */
const readWebhookChange = Effect.fnUntraced(function* (
  change: string,
  ids: RepeatableIds,
  origin?: OriginInput,
  ...further: ReadonlyArray<unknown>
) {
  const { idempotencyKey, projectId, webhookId } = copyOwn(ids)
  const occasion = yield* readChangeContext(origin)
  return yield* attachIdempotencyKey(
    occasion,
    idempotencyKey,
    change,
    projectId,
    webhookId,
    ...further,
  )
})

/** Registers, lists and deletes webhooks, and makes their secrets. */

/** The methods to register, change and show webhooks. */
type Registry = Pick<
  Webhooks["Service"],
  "create" | "list" | "health" | "find" | "delete" | "rotateSecret" | "addSigningKey" | "enable"
>

const secretLife = Setting.duration({ least: 0, most: 30 * 86_400_000 })

/** Decrypts a webhook's secrets. */
const opened = Effect.fnUntraced(function* (
  encryption: Encryption,
  stored: StoredWebhook & Health,
) {
  const { previous, signingKey } = stored
  const owner: WebhookRef = { projectId: stored.projectId, webhookId: stored.id }
  return {
    ...stored,
    secret: yield* encryption.secret(owner, stored.secret),
    previous: previous && {
      ...previous,
      secret: yield* encryption.secret(owner, previous.secret),
    },
    signingKey: signingKey && (yield* encryption.signingKey(owner, signingKey)),
  } satisfies Webhook & Health
})

/** Decrypts a webhook's readable secrets. Fails if a key cannot be loaded now. */
const shown = Effect.fnUntraced(function* (
  encryption: Encryption,
  stored: StoredWebhook & Health,
): Effect.fn.Return<ShownWebhook & Health, SecretUnreadable> {
  const all = yield* Effect.result(opened(encryption, stored))
  if (Result.isSuccess(all)) return { ...all.success, problem: undefined }
  if (all.failure.fault === "KeyNotLoaded") return yield* all.failure
  const { previous: _, signingKey: __, ...others } = stored
  const owner: WebhookRef = { projectId: stored.projectId, webhookId: stored.id }
  return {
    ...others,
    secret: yield* Effect.orElseSucceed(encryption.secret(owner, stored.secret), () => undefined),
    previous: undefined,
    signingKey: undefined,
    problem: all.failure.problem,
  }
})

/** A webhook without readable secrets is as useless as an unavailable store. */
const asUnavailable = <A, E, R>(work: Effect.Effect<A, E | SecretUnreadable, R>) =>
  Effect.catchTag(work, "SecretUnreadable", (cause) => {
    const problem = cause instanceof SecretUnreadable ? cause.message : undefined
    return Effect.fail(new StoreUnavailable({ cause, problem }))
  })

/** Nothing waits or was attempted: a webhook that was deleted between two reads. */
const noProgress: DeliveryProgress = {
  latestAttempt: undefined,
  waiting: 0,
  nextAttemptAt: undefined,
}

/** Makes the methods. */
const makeRegistry = Effect.fnUntraced(function* ({
  maxPerProject,
  requireHttps,
}: WebhooksSettings) {
  const store = yield* WebhookStore
  const outbox = yield* Outbox
  const dispatcher = yield* Dispatcher
  const policy = yield* AddressPolicy
  const transport = yield* WebhookTransport
  const crypto = yield* WebCrypto
  const encryption = yield* Encryption

  const urlRules: WebhookUrlRules = {
    requireHttps,
    sendsHttpToNames: transport.sendsHttpToNames,
    permitsHost: (hostname) => permitsHost(policy, hostname),
  }

  const freshSecret = () => secretFromBytes(crypto.getRandomValues(new Uint8Array(32)))

  /** Returns a webhook with its secrets, and how its latest attempts went. */
  const find = Effect.fnUntraced(function* (projectId: ProjectId, webhookId: WebhookId) {
    return yield* asUnavailable(opened(encryption, yield* store.find(projectId, webhookId)))
  })

  /** Tells whether a webhook's secret can be read. Fails if a key cannot be loaded now. */
  const canRead = (stored: StoredWebhook): Effect.Effect<boolean, SecretUnreadable> =>
    encryption.secret({ projectId: stored.projectId, webhookId: stored.id }, stored.secret).pipe(
      Effect.as(true),
      Effect.catchIf(
        ({ fault }) => fault !== "KeyNotLoaded",
        () => Effect.succeed(false),
      ),
    )

  return {
    create: Effect.fnUntraced(function* (input, origin) {
      const { eventTypes, idempotencyKey, projectId, url } = copyOwn(input)
      const occasion = yield* readChangeContext(origin)
      const webhook: Webhook = {
        id: WebhookId(crypto.randomUUID()),
        projectId: yield* readProjectId(projectId),
        url: yield* Effect.fromResult(decodeWebhookUrl(url, urlRules)),
        secret: freshSecret(),
        previous: undefined,
        signingKey: undefined,
        eventTypes: yield* readArgument("eventTypes", eventTypesOption, eventTypes),
        createdAt: occasion.at,
        disabledAt: undefined,
      }
      const owner = { projectId: webhook.projectId, webhookId: webhook.id }
      const secret = yield* asUnavailable(encryption.seal(owner, webhook.secret))
      const stored = { ...webhook, secret, previous: undefined, signingKey: undefined }
      const keyed = yield* attachIdempotencyKey(
        occasion,
        idempotencyKey,
        "create",
        owner.projectId,
        webhook.url,
        eventTypes,
      )
      const replayed = yield* store.add(stored, maxPerProject, keyed)
      if (replayed === undefined) return webhook
      yield* notifyReplay(keyed, replayed)
      return yield* find(owner.projectId, WebhookId(replayed.answer))
    }),

    list: Effect.fnUntraced(function* (project) {
      const { projectId } = copyOwn(project)
      const stored = yield* store.list(yield* readProjectId(projectId))
      return yield* asUnavailable(Effect.forEach(stored, (one) => shown(encryption, one)))
    }),

    health: Effect.fnUntraced(function* (project) {
      const { projectId } = copyOwn(project)
      const id = yield* readProjectId(projectId)
      const stored = yield* store.list(id)
      const progress = yield* outbox.progress(
        id,
        stored.map((one) => one.id),
      )
      return stored.map(({ previous: _, secret: __, signingKey: ___, ...others }) => ({
        ...others,
        ...(progress.get(others.id) ?? noProgress),
      }))
    }),

    find: Effect.fnUntraced(function* (ids) {
      const { projectId, webhookId } = yield* readWebhookIds(ids)
      const webhook = yield* asUnavailable(
        shown(encryption, yield* store.find(projectId, webhookId)),
      )
      const progress = yield* outbox.progress(projectId, [webhookId])
      return { ...webhook, ...(progress.get(webhookId) ?? noProgress) }
    }),

    delete: Effect.fnUntraced(function* (ids, origin) {
      const { projectId, webhookId } = yield* readWebhookIds(ids)
      const occasion = yield* readWebhookChange("delete", ids, origin)
      // The webhook may have been removed even if the store does not say so.
      yield* store.remove(projectId, webhookId, occasion).pipe(
        Effect.tap((replayed) =>
          replayed === undefined ? dispatcher.cancel(webhookId) : notifyReplay(occasion, replayed),
        ),
        Effect.tapErrorTag("StoreUnavailable", () => dispatcher.cancel(webhookId)),
        Effect.uninterruptible,
      )
    }),

    rotateSecret: Effect.fnUntraced(function* (rotation, origin) {
      const { keepOldFor = "24 hours", ...ids } = copyOwn(rotation)
      const { projectId, webhookId } = yield* readWebhookIds(ids)
      const kept = yield* readArgument("keepOldFor", secretLife, keepOldFor)
      const secret = freshSecret()
      const occasion = yield* readWebhookChange("rotateSecret", ids, origin, kept)
      const isReadable = yield* asUnavailable(canRead(yield* store.find(projectId, webhookId)))
      // An unreadable old secret signs nothing.
      const previousUntil = isReadable ? occasion.at + kept : occasion.at
      const sealed = yield* asUnavailable(encryption.seal({ projectId, webhookId }, secret))
      const sealedRotation = { secret: sealed, previousUntil }
      const replayed = yield* store.rotateSecret(projectId, webhookId, sealedRotation, occasion)
      if (replayed === undefined) return { secret, previousUntil }
      yield* notifyReplay(occasion, replayed)
      const present = yield* find(projectId, webhookId)
      return { secret: present.secret, previousUntil: Number(replayed.answer) }
    }),

    addSigningKey: Effect.fnUntraced(function* (ids, origin) {
      const owner = yield* readWebhookIds(ids)
      const occasion = yield* readChangeContext(origin)
      const fresh = yield* generateSigningKey
      const sealed = yield* encryption.seal(owner, fresh)
      const stored = yield* store.addSigningKey(owner.projectId, owner.webhookId, sealed, occasion)
      return verificationKeyOf(yield* encryption.signingKey(owner, stored))
    }, asUnavailable),

    enable: Effect.fnUntraced(function* (ids, origin) {
      const { projectId, webhookId } = yield* readWebhookIds(ids)
      const occasion = yield* readWebhookChange("enable", ids, origin)
      yield* notifyReplay(occasion, yield* store.enable(projectId, webhookId, occasion))
    }),
  } satisfies Registry
})

/** The methods to show and replay deliveries. */
type Redelivery = Pick<
  Webhooks["Service"],
  "activity" | "deliveries" | "ping" | "projectActivity" | "replay" | "replayFailed"
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

  /** Replays a webhook's deliveries. */
  const replay = Effect.fnUntraced(function* (ids: RepeatableIds, which: RedeliveryFilter) {
    const webhook = yield* readWebhookIds(ids)
    const { once } = yield* readWebhookChange("replay", ids, undefined, which)
    const replayed = yield* outbox.replay(webhook, which, once)
    if (typeof replayed === "number") return replayed
    yield* notifyReplay({ once }, replayed)
    return Number(replayed.answer)
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
      return (yield* replay(ids, { _tag: "One", eventId: id })) > 0
    }),

    replayFailed: Effect.fnUntraced(function* (failed) {
      const { since, ...ids } = copyOwn(failed)
      const at = yield* readInstantArgument("since", since)
      return yield* replay(ids, { _tag: "FailedSince", at })
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

/** Options for webhooks. */
export const webhooksOptions = Setting.object({
  /** Whether `http://` URLs are refused. Default: `false`. */
  requireHttps: Setting.withDefault(Setting.boolean, false),
  /** How many webhooks a project may have. Default: `50`. */
  maxPerProject: Setting.withDefault(Setting.integer({ least: 0, most: 1_000_000 }), 50),
})

/** The options as a host passes them. */
export interface WebhooksOptions extends Setting.InputOf<typeof webhooksOptions> {}

/** The options as the library uses them. */
export interface WebhooksSettings extends Setting.OutputOf<typeof webhooksOptions> {}

type Failure = InvalidInput | StoreUnavailable

type ChangeFailure = Failure | IdempotencyConflict

/** A webhook's ids as a host has them. */
export interface WebhookIds {
  readonly projectId: string
  /** A UUID, in upper or lower case. */
  readonly webhookId: string
}

/** A webhook to change. */
export interface RepeatableIds extends WebhookIds {
  /**
   * Makes the change once, however often the call is repeated within 24 hours: 1 to 255 visible ASCII
   * characters.
   */
  readonly idempotencyKey?: IdempotencyKeyInput | undefined
}

/** A webhook to register. */
export interface NewWebhook {
  /** The id of the project. */
  readonly projectId: string
  /** An absolute `http:` or `https:` URL. */
  readonly url: string
  /** The event types to send, 1 to 100. Default: all. */
  readonly eventTypes?: ReadonlyArray<string> | undefined
  /**
   * Registers the webhook once, however often the call is repeated within 24 hours: 1 to 255 visible
   * ASCII characters.
   */
  readonly idempotencyKey?: IdempotencyKeyInput | undefined
}

/** A rotation's result. */
export interface Rotated {
  readonly secret: WebhookSecret
  /** Until when the old secret also signs, in milliseconds since the epoch. */
  readonly previousUntil: number
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
  {
    /**
     * Registers a webhook. Returns it with a new id and a new secret. Fails with `InvalidWebhookUrl`,
     * `WebhookLimitReached` or `ProjectNotFound`, and with `WebhookNotFound` if the webhook was registered
     * before with the same idempotency key, and deleted since.
     */
    readonly create: (
      webhook: NewWebhook,
      origin?: OriginInput,
    ) => Effect.Effect<
      Webhook,
      ChangeFailure | InvalidWebhookUrl | WebhookLimitReached | ProjectNotFound | WebhookNotFound
    >

    /**
     * Returns a project's webhooks, oldest first, with their latest attempts' results. If a secret is
     * unreadable, because it was changed or its encryption key is gone, the webhook has none and says
     * why. Fails with `ProjectNotFound`.
     */
    readonly list: (project: {
      readonly projectId: string
    }) => Effect.Effect<ReadonlyArray<ShownWebhook & Health>, Failure | ProjectNotFound>

    /**
     * Returns a project's webhooks without secrets, and therefore without encryption keys, but with their latest attempts
     * and how many deliveries wait. Fails with `ProjectNotFound`.
     */
    readonly health: (project: {
      readonly projectId: string
    }) => Effect.Effect<
      ReadonlyArray<PublicWebhook & Health & DeliveryProgress>,
      Failure | ProjectNotFound
    >

    /**
     * Returns a webhook, with how many attempts for it have failed since one succeeded, since when, the latest attempt,
     * and how many deliveries wait. Its secrets are as in the list. Fails with `WebhookNotFound`.
     */
    readonly find: (
      webhook: WebhookIds,
    ) => Effect.Effect<ShownWebhook & Health & DeliveryProgress, Failure | WebhookNotFound>

    /**
     * Deletes a webhook, cancels its deliveries and aborts its attempts in flight. No attempt starts
     * afterwards. Fails with `WebhookNotFound`.
     */
    readonly delete: (
      webhook: RepeatableIds,
      origin?: OriginInput,
    ) => Effect.Effect<void, ChangeFailure | WebhookNotFound>

    /**
     * Replaces a webhook's secret. Returns the new one, and until when the old one also signs:
     * receivers with either can verify. An unreadable old one does not. A call repeated with its idempotency key returns the webhook's
     * current secret. Fails with `WebhookNotFound`.
     *
     * @param webhook.keepOldFor - how long the old secret signs, at most 30 days; 24 hours by default
     */
    readonly rotateSecret: (
      webhook: RepeatableIds & { readonly keepOldFor?: Setting.Length | undefined },
      origin?: OriginInput,
    ) => Effect.Effect<Rotated, ChangeFailure | WebhookNotFound>

    /**
     * Adds an Ed25519 key pair to sign with (`v1a`) in addition to the secret. Returns the verification
     * key, the same on every call. Fails with `WebhookNotFound`.
     */
    readonly addSigningKey: (
      webhook: WebhookIds,
      origin?: OriginInput,
    ) => Effect.Effect<VerificationKey, Failure | WebhookNotFound>

    /**
     * Enables a disabled webhook. Deliveries failed in the meantime can be replayed. Fails with
     * `WebhookNotFound`.
     */
    readonly enable: (
      webhook: RepeatableIds,
      origin?: OriginInput,
    ) => Effect.Effect<void, ChangeFailure | WebhookNotFound>

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
    readonly projectActivity: (project: {
      readonly projectId: string
    }) => Effect.Effect<ReadonlyArray<ActivityCell>, Failure | ProjectNotFound>

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
      delivery: RepeatableIds & { readonly eventId: string },
    ) => Effect.Effect<boolean, ChangeFailure | WebhookNotFound | WebhookDisabled>

    /**
     * Sends all failed events to a webhook again, and returns their number. Fails with
     * `WebhookNotFound` or `WebhookDisabled`.
     *
     * @param webhook.since - sends only events from this instant on
     */
    readonly replayFailed: (
      webhook: RepeatableIds & { readonly since: InstantInput },
    ) => Effect.Effect<number, ChangeFailure | WebhookNotFound | WebhookDisabled>
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
  return Webhooks.of({ ...(yield* makeRegistry(settings)), ...(yield* makeRedelivery) })
})
