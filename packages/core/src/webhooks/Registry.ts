/** Registers, lists and deletes webhooks, and makes their secrets. */

import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Argument from "../base/Argument.ts"
import * as Once from "../base/Once.ts"
import * as Origin from "../base/Origin.ts"
import { owned } from "../base/Own.ts"
import type { ProjectId } from "../base/Project.ts"
import * as Setting from "../base/Setting.ts"
import { StoreUnavailable } from "../base/StoreUnavailable.ts"
import * as EventTypes from "../events/EventTypes.ts"
import { AddressPolicy, permitsHost } from "./AddressPolicy.ts"
import { Dispatcher } from "./Dispatcher.ts"
import { Encryption, type SecretUnreadable } from "./Encryption.ts"
import type { WebhookRef } from "./Outbox.ts"
import {
  type Health,
  type ShownWebhook,
  type StoredWebhook,
  type Webhook,
  WebhookId,
} from "./Webhook.ts"
import { decodeIds, occasionOf } from "./WebhookArguments.ts"
import type { Settings, Webhooks } from "./Webhooks.ts"
import * as WebhookSignature from "./WebhookSignature.ts"
import { WebhookStore } from "./WebhookStore.ts"
import { WebhookTransport } from "./WebhookTransport.ts"
import * as WebhookUrl from "./WebhookUrl.ts"

/** The methods of `Webhooks` that register webhooks, and change or show them. */
type Registry = Pick<
  Webhooks["Service"],
  "create" | "list" | "health" | "find" | "delete" | "rotateSecret" | "addSigningKey" | "enable"
>

const secretLife = Setting.millis({ least: 0, most: 30 * 86_400_000 })

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

/** Reads the secrets of a webhook that can be read. Fails if the server could read none of any webhook. */
const shown = Effect.fnUntraced(function* (
  encryption: Encryption,
  stored: StoredWebhook & Health,
): Effect.fn.Return<ShownWebhook & Health, SecretUnreadable> {
  const all = yield* Effect.result(opened(encryption, stored))
  if (Result.isSuccess(all)) return { ...all.success, problem: undefined }
  if (all.failure.isOfServer) return yield* all.failure
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

/** Without its secrets, a webhook is of no more use than a store that does not answer. */
const asUnavailable = <A, E, R>(work: Effect.Effect<A, E | SecretUnreadable, R>) =>
  Effect.catchTag(work, "SecretUnreadable", (cause) => Effect.fail(new StoreUnavailable({ cause })))

/** Makes the methods. */
export const make = Effect.fnUntraced(function* ({ maxPerProject, requireHttps }: Settings) {
  const store = yield* WebhookStore
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

  return {
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
      return yield* asUnavailable(Effect.forEach(stored, (one) => shown(encryption, one)))
    }),

    health: Effect.fnUntraced(function* (project) {
      const { projectId } = owned(project)
      const stored = yield* store.list(yield* Argument.projectId(projectId))
      return stored.map(({ previous: _, secret: __, signingKey: ___, ...others }) => others)
    }),

    find: Effect.fnUntraced(function* (ids) {
      const { projectId, webhookId } = yield* decodeIds(ids)
      return yield* asUnavailable(shown(encryption, yield* store.find(projectId, webhookId)))
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
  } satisfies Registry
})
