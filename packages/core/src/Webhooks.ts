/** Webhooks: registering, listing, deleting and trying out. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { AddressPolicy, permitsHost } from "./AddressPolicy.ts"
import { Dispatcher } from "./Dispatcher.ts"
import * as Event from "./Event.ts"
import * as Input from "./internal/input.ts"
import * as Uuid from "./internal/uuid.ts"
import type { InvalidInput } from "./InvalidInput.ts"
import { Outbox } from "./Outbox.ts"
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

/** Registers, lists and deletes webhooks. */
export class Webhooks extends Context.Service<
  Webhooks,
  {
    /** Registers a URL, with an id and a secret of its own. */
    readonly create: (webhook: {
      readonly projectId: string
      /** What a client sent; anything but a URL is refused. */
      readonly url: unknown
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
    readonly delete: (webhook: {
      readonly projectId: string
      readonly webhookId: string
    }) => Effect.Effect<void, Failure | WebhookNotFound>

    /** Sends a `webhook.ping` to one webhook; gives the id of the event. */
    readonly ping: (webhook: {
      readonly projectId: string
      readonly webhookId: string
    }) => Effect.Effect<Event.EventId, Failure | WebhookNotFound | WebhookDisabled>
  }
>()("@tenure/core/Webhooks") {
  static readonly layer = (
    options: Options = {},
  ): Layer.Layer<Webhooks, InvalidInput, WebhookStore | Outbox | Dispatcher | AddressPolicy> =>
    Layer.effect(Webhooks, make(options))
}

const maxUrlLength = 2048

// What a URL parser would drop or repair in silence is not what the client meant.
const repaired = /[\p{Cc}\p{Cf}\p{Cs}\p{Z}\\]|^(?!https?:\/\/[^/])/iu

const invalidUrl = (message: string) => Effect.fail(new InvalidWebhookUrl({ message }))

const webhookId = (text: string): Effect.Effect<WebhookId, WebhookNotFound> => {
  const id = String(text).toLowerCase()
  return WebhookId.is(id)
    ? Effect.succeed(id)
    : Effect.fail(new WebhookNotFound({ webhookId: text }))
}

const make = Effect.fnUntraced(function* ({ requireHttps = false, ...options }: Options) {
  const store = yield* WebhookStore
  const outbox = yield* Outbox
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

  return Webhooks.of({
    create: Effect.fnUntraced(function* (input) {
      const webhook: Webhook = {
        id: WebhookId(crypto.randomUUID()),
        projectId: yield* Input.projectId(input.projectId),
        url: yield* checkUrl(input.url),
        secret: WebhookSignature.secretFromBytes(crypto.getRandomValues(new Uint8Array(32))),
        createdAt: yield* Clock.currentTimeMillis,
        disabledAt: undefined,
      }
      yield* store.add(webhook, maxPerProject)
      return webhook
    }),

    list: (projectId) => Effect.flatMap(Input.projectId(projectId), store.list),

    delete: Effect.fnUntraced(function* (webhook) {
      const id = yield* webhookId(webhook.webhookId)
      const projectId = yield* Input.projectId(webhook.projectId)
      // Where the store does not say whether the webhook was removed, it may have been.
      yield* store.remove(projectId, id).pipe(
        Effect.tap(() => dispatcher.cancel(id)),
        Effect.tapErrorTag("StoreUnavailable", () => dispatcher.cancel(id)),
        Effect.uninterruptible,
      )
    }),

    ping: Effect.fnUntraced(function* (webhook) {
      const id = yield* webhookId(webhook.webhookId)
      const projectId = yield* Input.projectId(webhook.projectId)
      const at = yield* Clock.currentTimeMillis
      const event = Event.make({
        id: Event.EventId(Uuid.v7(crypto, at)),
        projectId,
        type: Event.types.ping,
        at,
        data: { project_id: projectId, webhook_id: id },
      })
      yield* outbox.publishTo(event, id)
      return event.id
    }),
  })
})
