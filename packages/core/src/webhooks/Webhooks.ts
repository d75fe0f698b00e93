/** The service for webhooks, which hosts and the API call. */

import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Argument from "../base/Argument.ts"
import type * as Instant from "../base/Instant.ts"
import type { InvalidInput } from "../base/InvalidInput.ts"
import * as Once from "../base/Once.ts"
import * as Origin from "../base/Origin.ts"
import { owned } from "../base/Own.ts"
import type { ProjectId, ProjectNotFound } from "../base/Project.ts"
import * as Setting from "../base/Setting.ts"
import { StoreUnavailable } from "../base/StoreUnavailable.ts"
import * as Event from "../events/Event.ts"
import * as EventTypes from "../events/EventTypes.ts"
import { Hooks } from "../events/Hooks.ts"
import { AddressPolicy, permitsHost } from "./AddressPolicy.ts"
import { Dispatcher } from "./Dispatcher.ts"
import { Encryption, type SecretUnreadable } from "./Encryption.ts"
import {
  type Delivery,
  type DeliveryState,
  deliveryStates,
  Outbox,
  type Replay,
  type WebhookRef,
} from "./Outbox.ts"
import {
  type Health,
  type StoredWebhook,
  type Webhook,
  type WebhookDisabled,
  WebhookId,
  type WebhookLimitReached,
  WebhookNotFound,
} from "./Webhook.ts"
import * as WebhookSignature from "./WebhookSignature.ts"
import { WebhookStore } from "./WebhookStore.ts"
import { WebhookTransport } from "./WebhookTransport.ts"
import * as WebhookUrl from "./WebhookUrl.ts"

/** The options of webhooks. */
export const options = Setting.struct({
  /** Whether `http://` URLs are refused. Default: `false`. */
  requireHttps: Setting.withDefault(Setting.flag, false),
  /** How many webhooks a project may have. Default: `50`. */
  maxPerProject: Setting.withDefault(Setting.count({ least: 0, most: 1_000_000 }), 50),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

/** The options as the library uses them. */
export interface Settings extends Setting.Output<typeof options> {}

const secretLife = Setting.millis({ least: 0, most: 30 * 86_400_000 })

const deliveryState = Setting.optional(Setting.oneOf(deliveryStates))

type Failure = InvalidInput | StoreUnavailable

type ChangeFailure = Failure | Once.Conflict

/** The ids of a webhook, as a host has them. */
export interface WebhookIds {
  readonly projectId: string
  /** A UUID, in upper or lower case. */
  readonly webhookId: string
}

/** A webhook that a call changes. */
export interface RepeatableIds extends WebhookIds {
  /**
   * Makes the change once, however often the call is repeated within 24 hours: 1 to 255 visible
   * characters of ASCII.
   */
  readonly idempotencyKey?: Once.Input | undefined
}

/** A webhook to register. */
export interface NewWebhook {
  readonly projectId: string
  /** An absolute `http:` or `https:` URL. */
  readonly url: string
  /** The types of events to send, 1 to 100; all by default. */
  readonly eventTypes?: ReadonlyArray<string> | undefined
  /**
   * Registers the webhook once, however often the call is repeated within 24 hours: 1 to 255 visible
   * characters of ASCII.
   */
  readonly idempotencyKey?: Once.Input | undefined
}

/** The result of a rotation. */
export interface Rotated {
  readonly secret: WebhookSignature.Secret
  /** Until when the old secret also signs, in milliseconds since the epoch. */
  readonly previousUntil: number
}

/** Which deliveries of a webhook are listed. */
export interface DeliveriesPage extends WebhookIds {
  /** Lists only deliveries in this state. */
  readonly state?: DeliveryState | undefined
  /** The id of an event that the webhook has a delivery of: lists only older deliveries. */
  readonly olderThan?: string | undefined
  /** The most deliveries to return, 1 to 10,000; 100 by default. */
  readonly limit?: number | undefined
}

/**
 * Registers, lists and deletes webhooks, and shows what was sent to them. Every method fails with
 * `InvalidInput` if an argument is invalid and with `StoreUnavailable` if the store does not answer, or
 * if secrets are encrypted and the key is not available.
 *
 * The methods that change webhooks take an origin: who asked for the change and in which request. The
 * audit trail keeps it. Those that take an idempotency key fail with `IdempotencyMismatch` if the key was
 * used for another call, and with `IdempotencyInProgress` if the first call with it takes too long.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import { Webhooks } from "tenure/Webhooks"
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
      origin?: Origin.Input,
    ) => Effect.Effect<
      Webhook,
      | ChangeFailure
      | WebhookUrl.InvalidWebhookUrl
      | WebhookLimitReached
      | ProjectNotFound
      | WebhookNotFound
    >

    /**
     * Returns the webhooks of a project, oldest first, with how their latest attempts went. Fails with
     * `ProjectNotFound`.
     */
    readonly list: (project: {
      readonly projectId: string
    }) => Effect.Effect<ReadonlyArray<Webhook & Health>, Failure | ProjectNotFound>

    /**
     * Returns a webhook, with how many attempts for it have failed since one succeeded, and since
     * when. Fails with `WebhookNotFound`.
     */
    readonly find: (
      webhook: WebhookIds,
    ) => Effect.Effect<Webhook & Health, Failure | WebhookNotFound>

    /**
     * Deletes a webhook, cancels its deliveries and aborts its attempts in flight. No attempt starts
     * afterwards. Fails with `WebhookNotFound`.
     */
    readonly delete: (
      webhook: RepeatableIds,
      origin?: Origin.Input,
    ) => Effect.Effect<void, ChangeFailure | WebhookNotFound>

    /**
     * Replaces the secret of a webhook. Returns the new one, and until when the old one signs as well,
     * so that receivers with either can verify; of a call that is repeated with its idempotency key,
     * the secret that the webhook has then. Fails with `WebhookNotFound`.
     *
     * @param webhook.keepOldFor - how long the old secret signs, at most 30 days; 24 hours by default
     */
    readonly rotateSecret: (
      webhook: RepeatableIds & { readonly keepOldFor?: Setting.Length | undefined },
      origin?: Origin.Input,
    ) => Effect.Effect<Rotated, ChangeFailure | WebhookNotFound>

    /**
     * Adds an Ed25519 key pair, with which a webhook signs (`v1a`) in addition to its secret. Returns
     * the key to verify with, the same one on every call. Fails with `WebhookNotFound`.
     */
    readonly addSigningKey: (
      webhook: WebhookIds,
      origin?: Origin.Input,
    ) => Effect.Effect<WebhookSignature.VerificationKey, Failure | WebhookNotFound>

    /**
     * Enables a webhook that was disabled. Deliveries that failed in the meantime can be replayed.
     * Fails with `WebhookNotFound`.
     */
    readonly enable: (
      webhook: RepeatableIds,
      origin?: Origin.Input,
    ) => Effect.Effect<void, ChangeFailure | WebhookNotFound>

    /**
     * Sends the event `webhook.ping` to one webhook, and returns the id of the event. Fails with
     * `WebhookNotFound` or `WebhookDisabled`.
     */
    readonly ping: (
      webhook: RepeatableIds,
    ) => Effect.Effect<Event.EventId, ChangeFailure | WebhookNotFound | WebhookDisabled>

    /**
     * Returns the deliveries of a webhook with their attempts, newest first. Those of a webhook that
     * was deleted can be read as well.
     */
    readonly deliveries: (page: DeliveriesPage) => Effect.Effect<ReadonlyArray<Delivery>, Failure>

    /**
     * Sends an event again that was delivered or has failed, or now if it waits for its next attempt.
     * Returns `false` if there is no such delivery, or if it is already due or being sent. Fails with `WebhookNotFound` or `WebhookDisabled`.
     */
    readonly replay: (
      delivery: RepeatableIds & { readonly eventId: string },
    ) => Effect.Effect<boolean, ChangeFailure | WebhookNotFound | WebhookDisabled>

    /**
     * Sends the events again whose delivery to a webhook has failed, and returns their number. Fails
     * with `WebhookNotFound` or `WebhookDisabled`.
     *
     * @param webhook.since - sends only events from this instant on
     */
    readonly replayFailed: (
      webhook: RepeatableIds & { readonly since: Instant.Input },
    ) => Effect.Effect<number, ChangeFailure | WebhookNotFound | WebhookDisabled>
  }
>()("@tenure/core/Webhooks") {
  static readonly layer = (
    settings: Settings = Setting.readSync(options),
  ): Layer.Layer<
    Webhooks,
    never,
    WebhookStore | Outbox | Dispatcher | AddressPolicy | WebhookTransport
  > => Layer.effect(Webhooks, make(settings))
}

/** Decodes the id of a webhook. Text that is not a UUID cannot be the id of any. */
const decodeWebhookId = (
  text: string,
): Effect.Effect<WebhookId, WebhookNotFound | InvalidInput> => {
  if (typeof text !== "string") return Argument.invalid("webhookId", "the id of a webhook")
  const id = text.toLowerCase()
  return WebhookId.is(id)
    ? Effect.succeed(id)
    : Effect.fail(new WebhookNotFound({ webhookId: text }))
}

const decodeIds = Effect.fnUntraced(function* (ids: WebhookIds) {
  const { projectId, webhookId } = owned(ids)
  return {
    webhookId: yield* decodeWebhookId(webhookId),
    projectId: yield* Argument.projectId(projectId),
  } satisfies WebhookRef
})

/** Reads the occasion of a change of a webhook, which the other parameters describe. */
const occasionOf = Effect.fnUntraced(function* (
  change: string,
  ids: RepeatableIds,
  origin?: Origin.Input,
  ...further: ReadonlyArray<unknown>
) {
  const { idempotencyKey, projectId, webhookId } = owned(ids)
  const occasion = yield* Origin.occasionOf(origin)
  return yield* Once.on(occasion, idempotencyKey, change, projectId, webhookId, ...further)
})

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

/** Reads the secrets of a webhook. */
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

/** Without its secrets, a webhook is of no more use than a store that does not answer. */
const asUnavailable = <A, E, R>(work: Effect.Effect<A, E | SecretUnreadable, R>) =>
  Effect.catchTag(work, "SecretUnreadable", (cause) => Effect.fail(new StoreUnavailable({ cause })))

const make = Effect.fnUntraced(function* ({ maxPerProject, requireHttps }: Settings) {
  const store = yield* WebhookStore
  const outbox = yield* Outbox
  const hooks = yield* Hooks
  const dispatcher = yield* Dispatcher
  const policy = yield* AddressPolicy
  const transport = yield* WebhookTransport
  const crypto = yield* WebCrypto
  const encryption = yield* Encryption

  const urlRules: WebhookUrl.Rules = {
    requireHttps,
    sendsHttpToNames: transport.sendsHttpToNames,
    permitsHost: (hostname) => permitsHost(policy, hostname),
  }

  const freshSecret = () =>
    WebhookSignature.secretFromBytes(crypto.getRandomValues(new Uint8Array(32)))

  /** Returns a webhook with its secrets, and how its latest attempts went. */
  const find = Effect.fnUntraced(function* (projectId: ProjectId, webhookId: WebhookId) {
    return yield* asUnavailable(opened(encryption, yield* store.find(projectId, webhookId)))
  })

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

  return Webhooks.of({
    create: Effect.fnUntraced(function* (input, origin) {
      const { eventTypes, idempotencyKey, projectId, url } = owned(input)
      const occasion = yield* Origin.occasionOf(origin)
      const webhook: Webhook = {
        id: WebhookId(crypto.randomUUID()),
        projectId: yield* Argument.projectId(projectId),
        url: yield* Effect.fromResult(WebhookUrl.decode(url, urlRules)),
        secret: freshSecret(),
        previous: undefined,
        signingKey: undefined,
        eventTypes: yield* Argument.read("eventTypes", EventTypes.setting, eventTypes),
        createdAt: occasion.at,
        disabledAt: undefined,
      }
      const owner = { projectId: webhook.projectId, webhookId: webhook.id }
      const secret = yield* asUnavailable(encryption.seal(owner, webhook.secret))
      const stored = { ...webhook, secret, previous: undefined, signingKey: undefined }
      const keyed = yield* Once.on(
        occasion,
        idempotencyKey,
        "create",
        owner.projectId,
        webhook.url,
        eventTypes,
      )
      const replayed = yield* store.add(stored, maxPerProject, keyed)
      if (replayed === undefined) return webhook
      yield* Once.tell(keyed, replayed)
      return yield* find(owner.projectId, WebhookId(replayed.answer))
    }),

    list: Effect.fnUntraced(function* (project) {
      const { projectId } = owned(project)
      const stored = yield* store.list(yield* Argument.projectId(projectId))
      return yield* asUnavailable(Effect.forEach(stored, (one) => opened(encryption, one)))
    }),

    find: Effect.fnUntraced(function* (ids) {
      const { projectId, webhookId } = yield* decodeIds(ids)
      return yield* find(projectId, webhookId)
    }),

    delete: Effect.fnUntraced(function* (ids, origin) {
      const { projectId, webhookId } = yield* decodeIds(ids)
      const occasion = yield* occasionOf("delete", ids, origin)
      // The webhook may have been removed even if the store does not say so.
      yield* store.remove(projectId, webhookId, occasion).pipe(
        Effect.tap((replayed) =>
          replayed === undefined ? dispatcher.cancel(webhookId) : Once.tell(occasion, replayed),
        ),
        Effect.tapErrorTag("StoreUnavailable", () => dispatcher.cancel(webhookId)),
        Effect.uninterruptible,
      )
    }),

    rotateSecret: Effect.fnUntraced(function* (rotation, origin) {
      const { keepOldFor = "24 hours", ...ids } = owned(rotation)
      const { projectId, webhookId } = yield* decodeIds(ids)
      const kept = yield* Argument.read("keepOldFor", secretLife, keepOldFor)
      const secret = freshSecret()
      const occasion = yield* occasionOf("rotateSecret", ids, origin, kept)
      const previousUntil = occasion.at + kept
      const sealed = yield* asUnavailable(encryption.seal({ projectId, webhookId }, secret))
      const sealedRotation = { secret: sealed, previousUntil }
      const replayed = yield* store.rotateSecret(projectId, webhookId, sealedRotation, occasion)
      if (replayed === undefined) return { secret, previousUntil }
      yield* Once.tell(occasion, replayed)
      const present = yield* find(projectId, webhookId)
      return { secret: present.secret, previousUntil: Number(replayed.answer) }
    }),

    addSigningKey: Effect.fnUntraced(function* (ids, origin) {
      const owner = yield* decodeIds(ids)
      const occasion = yield* Origin.occasionOf(origin)
      const fresh = yield* WebhookSignature.generateSigningKey
      const sealed = yield* encryption.seal(owner, fresh)
      const stored = yield* store.addSigningKey(owner.projectId, owner.webhookId, sealed, occasion)
      return WebhookSignature.verificationKeyOf(yield* encryption.signingKey(owner, stored))
    }, asUnavailable),

    enable: Effect.fnUntraced(function* (ids, origin) {
      const { projectId, webhookId } = yield* decodeIds(ids)
      const occasion = yield* occasionOf("enable", ids, origin)
      yield* Once.tell(occasion, yield* store.enable(projectId, webhookId, occasion))
    }),

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
  })
})
