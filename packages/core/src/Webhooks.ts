/** Webhooks: registering, listing, deleting and trying out. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { AddressPolicy, permitsHost } from "./AddressPolicy.ts"
import { Dispatcher } from "./Dispatcher.ts"
import * as Event from "./Event.ts"
import { Hooks } from "./Hooks.ts"
import * as Input from "./internal/input.ts"
import * as Uuid from "./internal/uuid.ts"
import type { InvalidInput } from "./InvalidInput.ts"
import { type Delivery, type DeliveryState, Outbox, type WebhookRef } from "./Outbox.ts"
import type { ProjectNotFound } from "./Project.ts"
import * as Setting from "./Setting.ts"
import type { StoreUnavailable } from "./StoreUnavailable.ts"
import {
  InvalidWebhookUrl,
  type Webhook,
  type WebhookDisabled,
  WebhookId,
  type WebhookLimitReached,
  WebhookNotFound,
} from "./Webhook.ts"
import * as WebhookSignature from "./WebhookSignature.ts"
import { WebhookStore } from "./WebhookStore.ts"

/** Options of the service. */
export interface Options {
  /** Refuse URLs with http; `false` by default. */
  readonly requireHttps?: boolean | undefined
  /** How many webhooks a project may have; 50 by default. */
  readonly maxPerProject?: number | undefined
}

type Failure = InvalidInput | StoreUnavailable

/** A webhook of a project. */
export interface WebhookIds {
  readonly projectId: string
  readonly webhookId: string
}

/** Registers, lists and deletes webhooks, and shows what was sent to them. */
export class Webhooks extends Context.Service<
  Webhooks,
  {
    /** Registers a URL, with an id and a secret of its own. */
    readonly create: (webhook: {
      readonly projectId: string
      /** What a client sent; anything but a URL is refused. */
      readonly url: unknown
      /** The types of events that it is to get; all by default. */
      readonly eventTypes?: ReadonlyArray<string> | undefined
    }) => Effect.Effect<
      Webhook,
      Failure | InvalidWebhookUrl | WebhookLimitReached | ProjectNotFound
    >

    /** Lists the webhooks of a project, oldest first. */
    readonly list: (
      projectId: string,
    ) => Effect.Effect<ReadonlyArray<Webhook>, Failure | ProjectNotFound>

    /**
     * Deletes a webhook. What waits for it is cancelled and what is in flight is aborted: once this
     * has succeeded, no attempt starts.
     */
    readonly delete: (webhook: WebhookIds) => Effect.Effect<void, Failure | WebhookNotFound>

    /**
     * Gives a webhook a new secret, which is returned. For a time, 24 hours by default, the one that
     * it had signs as well, so that receivers with either can verify.
     */
    readonly rotateSecret: (
      webhook: WebhookIds & { readonly keepOldFor?: Duration.Input | undefined },
    ) => Effect.Effect<WebhookSignature.Secret, Failure | WebhookNotFound>

    /**
     * Has a webhook sign with a key pair besides its secret (`v1a`), from now on; gives the key that
     * verifies, the same each time.
     */
    readonly verificationKey: (
      webhook: WebhookIds,
    ) => Effect.Effect<WebhookSignature.VerificationKey, Failure | WebhookNotFound>

    /** Enables a webhook that was disabled. What has failed meanwhile can be replayed. */
    readonly enable: (webhook: WebhookIds) => Effect.Effect<void, Failure | WebhookNotFound>

    /** Sends a `webhook.ping` to one webhook; gives the id of the event. */
    readonly ping: (
      webhook: WebhookIds,
    ) => Effect.Effect<Event.EventId, Failure | WebhookNotFound | WebhookDisabled>

    /**
     * Lists up to `limit` deliveries (100 by default, 10,000 at most) of a webhook with their
     * attempts, newest first: those in the given state, those older than the one of an event.
     */
    readonly deliveries: (
      page: WebhookIds & {
        readonly state?: DeliveryState | undefined
        readonly olderThan?: string | undefined
        readonly limit?: number | undefined
      },
    ) => Effect.Effect<ReadonlyArray<Delivery>, Failure>

    /**
     * Delivers an event once more that was delivered or has failed; gives `false` if there is no such
     * delivery, or it still waits.
     */
    readonly replay: (
      delivery: WebhookIds & { readonly eventId: string },
    ) => Effect.Effect<boolean, Failure | WebhookNotFound | WebhookDisabled>

    /**
     * Delivers once more what has failed, of events since an instant (milliseconds since the epoch);
     * gives the number of deliveries.
     */
    readonly replayFailed: (
      selection: WebhookIds & { readonly since: number },
    ) => Effect.Effect<number, Failure | WebhookNotFound | WebhookDisabled>
  }
>()("@tenure/core/Webhooks") {
  static readonly layer = (
    options: Options = {},
  ): Layer.Layer<Webhooks, InvalidInput, WebhookStore | Outbox | Dispatcher | AddressPolicy> =>
    Layer.effect(Webhooks, make(options))
}

const day = 86_400_000

const maxUrlLength = 2048

// What a URL parser would drop or repair in silence is not what the client meant.
const repaired = /[\p{Cc}\p{Cf}\p{Cs}\p{Z}\\]|^(?!https?:\/\/[^/])/iu

const invalidUrl = (message: string) => Effect.fail(new InvalidWebhookUrl({ message }))

const webhookIdOf = (text: string): Effect.Effect<WebhookId, WebhookNotFound> => {
  const id = String(text).toLowerCase()
  return WebhookId.is(id)
    ? Effect.succeed(id)
    : Effect.fail(new WebhookNotFound({ webhookId: text }))
}

const refOf = Effect.fnUntraced(function* (ids: WebhookIds) {
  const webhookId = yield* webhookIdOf(ids.webhookId)
  const projectId = yield* Input.projectId(ids.projectId)
  return { projectId, webhookId } satisfies WebhookRef
})

const make = Effect.fnUntraced(function* (options: Options) {
  const store = yield* WebhookStore
  const outbox = yield* Outbox
  const hooks = yield* Hooks
  const dispatcher = yield* Dispatcher
  const policy = yield* AddressPolicy
  const crypto = yield* WebCrypto
  const maxPerProject = yield* Setting.count(
    "webhooks.maxPerProject",
    options.maxPerProject ?? 50,
    {
      least: 0,
      most: 1_000_000,
    },
  )
  const requireHttps = yield* Setting.flag("webhooks.requireHttps", options.requireHttps ?? false)

  const checkUrl = (input: unknown): Effect.Effect<string, InvalidWebhookUrl> => {
    if (typeof input !== "string") return invalidUrl("url is required and must be a string")
    if (input.length > maxUrlLength) {
      return invalidUrl(`url must be at most ${maxUrlLength} characters`)
    }
    const url = repaired.test(input) ? null : URL.parse(input)
    if (url === null) return invalidUrl("url must be a valid absolute http or https URL")
    if (requireHttps && url.protocol !== "https:") return invalidUrl("url must use https")
    if (url.username !== "" || url.password !== "") {
      return invalidUrl("url must not contain credentials")
    }
    return permitsHost(policy, url.hostname)
      ? Effect.succeed(input)
      : invalidUrl("url must not point to a private address")
  }

  const freshSecret = () =>
    WebhookSignature.secretFromBytes(crypto.getRandomValues(new Uint8Array(32)))

  return Webhooks.of({
    create: Effect.fnUntraced(function* (input) {
      const webhook: Webhook = {
        id: WebhookId(crypto.randomUUID()),
        projectId: yield* Input.projectId(input.projectId),
        url: yield* checkUrl(input.url),
        secret: freshSecret(),
        previous: undefined,
        signingKey: undefined,
        eventTypes: input.eventTypes && (yield* Effect.forEach(input.eventTypes, Input.eventType)),
        createdAt: yield* Clock.currentTimeMillis,
        disabledAt: undefined,
      }
      yield* store.add(webhook, maxPerProject)
      return webhook
    }),

    list: (projectId) => Effect.flatMap(Input.projectId(projectId), store.list),

    delete: Effect.fnUntraced(function* (ids) {
      const { projectId, webhookId } = yield* refOf(ids)
      // Where the store does not say whether the webhook was removed, it may have been.
      yield* store.remove(projectId, webhookId).pipe(
        Effect.tap(() => dispatcher.cancel(webhookId)),
        Effect.tapErrorTag("StoreUnavailable", () => dispatcher.cancel(webhookId)),
        Effect.uninterruptible,
      )
    }),

    rotateSecret: Effect.fnUntraced(function* ({ keepOldFor = "24 hours", ...ids }) {
      const { projectId, webhookId } = yield* refOf(ids)
      const kept = yield* Setting.millis("keepOldFor", keepOldFor, { least: 0, most: 30 * day })
      const secret = freshSecret()
      const previousUntil = (yield* Clock.currentTimeMillis) + kept
      yield* store.rotate(projectId, webhookId, { secret, previousUntil })
      return secret
    }),

    verificationKey: Effect.fnUntraced(function* (ids) {
      const { projectId, webhookId } = yield* refOf(ids)
      const fresh = yield* WebhookSignature.generateSigningKey
      return WebhookSignature.verificationKeyOf(yield* store.sign(projectId, webhookId, fresh))
    }),

    enable: Effect.fnUntraced(function* (ids) {
      const { projectId, webhookId } = yield* refOf(ids)
      yield* store.enable(projectId, webhookId)
    }),

    deliveries: Effect.fnUntraced(function* ({ limit = 100, olderThan, state, ...ids }) {
      const webhook = yield* Effect.catchTag(refOf(ids), "WebhookNotFound", () =>
        Effect.succeed(undefined),
      )
      const page = {
        state,
        olderThan: olderThan === undefined ? undefined : yield* Input.eventId(olderThan),
        limit: yield* Input.limit(limit),
      }
      // An id that is none has no deliveries.
      return webhook === undefined ? [] : yield* outbox.deliveries(webhook, page)
    }),

    replay: Effect.fnUntraced(function* ({ eventId, ...ids }) {
      const webhook = yield* refOf(ids)
      const which = { _tag: "One", eventId: yield* Input.eventId(eventId) } as const
      return (yield* outbox.replay(webhook, which)) > 0
    }),

    replayFailed: Effect.fnUntraced(function* ({ since, ...ids }) {
      const webhook = yield* refOf(ids)
      const at = yield* Input.instant("since", since)
      return yield* outbox.replay(webhook, { _tag: "FailedSince", at })
    }),

    ping: Effect.fnUntraced(function* (ids) {
      const { projectId, webhookId } = yield* refOf(ids)
      const at = yield* Clock.currentTimeMillis
      const event = Event.make({
        id: Event.EventId(Uuid.v7(crypto, at)),
        projectId,
        type: Event.types.ping,
        at,
        data: { project_id: projectId, webhook_id: webhookId },
      })
      yield* outbox.publishTo(event, webhookId)
      yield* hooks.event(event)
      return event.id
    }),
  })
})
