/** Registers, lists, changes and deletes webhooks, and makes their secrets. */

import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import {
  type ChangeContext,
  type IdempotencyConflict,
  type OriginInput,
  type ReplayedResponse,
  notifyReplay,
  repeatUntilMade,
} from "../base/change-context.ts"
import { InvalidInput, StoreUnavailable } from "../base/errors.ts"
import type { Repeatable } from "../base/host-method.ts"
import type { ofProject } from "../base/input.ts"
import type { Decoded, HostInputOf } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import type { ProjectId, ProjectNotFound } from "../base/values.ts"
import { type DeliveryProgress } from "./delivery-activity.ts"
import { Dispatcher } from "./dispatcher.ts"
import { Encryption, SecretUnreadable } from "./encryption.ts"
import type { newWebhook, ofWebhook, rotation, webhookUpdate } from "./inputs.ts"
import { Outbox, type WebhookRef } from "./outbox.ts"
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
  type HeadersPatch,
  type OwnHeaders,
  applyHeadersPatch,
  formatHeaders,
  maxHeaders,
} from "./webhook-headers.ts"
import {
  type WebhookSettings,
  applyWebhookPatch,
  isStopping,
  settingChanges,
} from "./webhook-settings.ts"
import {
  type Health,
  type PublicWebhook,
  type ShownWebhook,
  type StoredHeaders,
  type StoredWebhook,
  type Webhook,
  WebhookId,
  type WebhookLimitReached,
  type WebhookNotFound,
} from "./webhook.ts"

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

/** Why any method may fail. */
export type Failure = InvalidInput | StoreUnavailable

/** Why any change may fail. */
export type ChangeFailure = Failure | IdempotencyConflict

/** A project's webhooks. */
export interface WebhooksOf extends HostInputOf<typeof ofProject> {}

/** A webhook's ids as a host has them. */
export interface WebhookIds extends HostInputOf<typeof ofWebhook> {}

/** A webhook to change. */
export interface RepeatableIds extends WebhookIds, Repeatable {}

/** A webhook to register. */
interface NewWebhook extends HostInputOf<typeof newWebhook>, Repeatable {}

/** A change to a webhook's settings. Others stay as they are. */
interface WebhookUpdate extends HostInputOf<typeof webhookUpdate>, Repeatable {}

/** A webhook whose secret is rotated. */
interface Rotating extends HostInputOf<typeof rotation>, Repeatable {}

/** A rotation's result. */
interface Rotated {
  /** The new secret. */
  readonly secret: WebhookSecret
  /** Until when the old secret also signs, in milliseconds since the epoch. */
  readonly previousUntil: number
}

/** The methods to register, change and show webhooks. */
export interface WebhookRegistry {
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
  readonly list: (
    project: WebhooksOf,
  ) => Effect.Effect<ReadonlyArray<ShownWebhook & Health>, Failure | ProjectNotFound>

  /**
   * Returns a project's webhooks without secrets, and therefore without encryption keys, but with their latest attempts
   * and how many deliveries wait. Fails with `ProjectNotFound`.
   */
  readonly health: (
    project: WebhooksOf,
  ) => Effect.Effect<
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
   * Changes a webhook's settings, and returns it without its secrets; these, its id and its deliveries stay. An
   * attempt that begins within a quarter of a second may still go to the old URL. Fails with `WebhookNotFound` or
   * `InvalidWebhookUrl`.
   */
  readonly update: (
    webhook: WebhookUpdate,
    origin?: OriginInput,
  ) => Effect.Effect<WebhookHealth, ChangeFailure | InvalidWebhookUrl | WebhookNotFound>

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
   */
  readonly rotateSecret: (
    webhook: Rotating,
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
   * Enables a disabled webhook, and continues with its waiting deliveries. What it missed meanwhile can be replayed.
   * Fails with `WebhookNotFound`.
   */
  readonly enable: (
    webhook: RepeatableIds,
    origin?: OriginInput,
  ) => Effect.Effect<void, ChangeFailure | WebhookNotFound>
}

/** Decrypts a webhook's secrets. */
const openWebhook = Effect.fnUntraced(function* (
  encryption: Encryption,
  stored: StoredWebhook & Health,
) {
  const { headers, previous, signingKey, ...others } = stored
  const owner: WebhookRef = { projectId: stored.projectId, webhookId: stored.id }
  return {
    ...others,
    headerNames: headers?.names ?? [],
    secret: yield* encryption.secret(owner, stored.secret),
    previous: previous && {
      ...previous,
      secret: yield* encryption.secret(owner, previous.secret),
    },
    signingKey: signingKey && (yield* encryption.signingKey(owner, signingKey)),
  } satisfies Webhook & Health
})

/** Decrypts a webhook's readable secrets. Fails if a key cannot be loaded now. */
const showWebhook = Effect.fnUntraced(function* (
  encryption: Encryption,
  stored: StoredWebhook & Health,
): Effect.fn.Return<ShownWebhook & Health, SecretUnreadable> {
  const { headers, previous: _, signingKey: __, ...others } = stored
  const owner: WebhookRef = { projectId: stored.projectId, webhookId: stored.id }
  const all = yield* openWebhook(encryption, stored).pipe(
    // Nothing is sent without them.
    Effect.tap(() =>
      headers === undefined ? Effect.void : encryption.headers(owner, headers.sealed),
    ),
    Effect.result,
  )
  if (Result.isSuccess(all)) return { ...all.success, problem: undefined }
  if (all.failure.fault === "KeyNotLoaded") return yield* all.failure
  return {
    ...others,
    headerNames: headers?.names ?? [],
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

/** Encrypts headers for the store. */
const sealHeaders = Effect.fnUntraced(function* (
  { seal }: Encryption,
  owner: WebhookRef,
  headers: OwnHeaders,
): Effect.fn.Return<StoredHeaders | undefined, SecretUnreadable> {
  if (headers.size === 0) return undefined
  return {
    names: [...headers.keys()].toSorted(),
    sealed: yield* seal(owner, formatHeaders(headers)),
  }
})

const invalidHeaders = (problem: string): InvalidInput =>
  new InvalidInput({ field: "headers", problem })

/** Returns the headers after a change: the same object if none is changed. */
const headersAfter = Effect.fnUntraced(function* (
  encryption: Encryption,
  owner: WebhookRef,
  before: StoredHeaders | undefined,
  patch: HeadersPatch,
) {
  const headers =
    before === undefined
      ? new Map<string, string>()
      : yield* Effect.catchIf(
          encryption.headers(owner, before.sealed),
          ({ fault }) => fault !== "KeyNotLoaded",
          ({ problem }) =>
            Effect.fail(
              invalidHeaders(
                `must be null first, because those of the webhook cannot be read: ${problem}`,
              ),
            ),
        )
  const after = applyHeadersPatch(headers, patch)
  if (after.size > maxHeaders) {
    return yield* invalidHeaders(
      `must leave at most ${maxHeaders} names, with those that the webhook has`,
    )
  }
  return formatHeaders(after) === formatHeaders(headers)
    ? before
    : yield* sealHeaders(encryption, owner, after)
})

/** Nothing waits or was attempted: a webhook that was deleted between two reads. */
const noProgress: DeliveryProgress = {
  latestAttempt: undefined,
  waiting: 0,
  nextAttemptAt: undefined,
}

const withoutSecrets = ({
  headers,
  previous: _,
  secret: __,
  signingKey: ___,
  ...others
}: StoredWebhook & Health): PublicWebhook & Health => ({
  ...others,
  headerNames: headers?.names ?? [],
})

type WebhookHealth = PublicWebhook & Health & DeliveryProgress

/** Returns a webhook after a change of its settings. Enabled again, it is as if no attempt had been made. */
const healthAfter = (
  before: StoredWebhook & Health,
  settings: WebhookSettings,
  { at, ...progress }: DeliveryProgress & { readonly at: number },
): WebhookHealth => {
  const shown = { ...withoutSecrets({ ...before, ...settings }), ...progress }
  if (settings.disabled !== undefined) return { ...shown, nextAttemptAt: undefined }
  if (before.disabled === undefined) return shown
  const nextAttemptAt = progress.waiting > 0 ? at : undefined
  return { ...shown, failures: 0, failingSince: undefined, nextAttemptAt }
}

/** Parses the first answer of a repeated change. JSON leaves out undefined fields. */
const parseHealth = ({ answer }: ReplayedResponse): WebhookHealth => JSON.parse(answer)

/** Makes the acts. */
export const makeRegistry = Effect.fnUntraced(function* ({
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
    return yield* asUnavailable(openWebhook(encryption, yield* store.find(projectId, webhookId)))
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
    create: Effect.fnUntraced(function* (
      asked: Decoded<typeof newWebhook>,
      context: ChangeContext,
    ) {
      const { headers = new Map(), projectId, ...settings } = asked
      const webhook: Webhook = {
        ...settings,
        id: WebhookId(crypto.randomUUID()),
        projectId,
        url: yield* Effect.fromResult(decodeWebhookUrl(settings.url, urlRules)),
        secret: freshSecret(),
        previous: undefined,
        signingKey: undefined,
        rate: settings.rate ?? undefined,
        headerNames: [...headers.keys()].toSorted(),
        createdAt: context.at,
        disabled: undefined,
      }
      const owner = { projectId, webhookId: webhook.id }
      const secret = yield* asUnavailable(encryption.seal(owner, webhook.secret))
      const { headerNames: _, ...others } = webhook
      const stored = {
        ...others,
        secret,
        previous: undefined,
        signingKey: undefined,
        headers: yield* asUnavailable(sealHeaders(encryption, owner, headers)),
      }
      const replayed = yield* store.add(stored, maxPerProject, context)
      if (replayed === undefined) return webhook
      yield* notifyReplay(context, replayed)
      // Secrets are not kept with keys.
      const present = yield* find(projectId, WebhookId(replayed.answer))
      const { createdAt, id, secret: presentSecret } = present
      return { ...webhook, id, createdAt, secret: presentSecret }
    }),

    list: Effect.fnUntraced(function* ({ projectId }: Decoded<typeof ofProject>) {
      const stored = yield* store.list(projectId)
      return yield* asUnavailable(Effect.forEach(stored, (one) => showWebhook(encryption, one)))
    }),

    health: Effect.fnUntraced(function* ({ projectId }: Decoded<typeof ofProject>) {
      const stored = yield* store.list(projectId)
      const progress = yield* outbox.progress(
        projectId,
        stored.map((one) => one.id),
      )
      return stored.map((one) => ({
        ...withoutSecrets(one),
        ...(progress.get(one.id) ?? noProgress),
      }))
    }),

    find: Effect.fnUntraced(function* ({ projectId, webhookId }: WebhookRef) {
      const webhook = yield* asUnavailable(
        showWebhook(encryption, yield* store.find(projectId, webhookId)),
      )
      const progress = yield* outbox.progress(projectId, [webhookId])
      return { ...webhook, ...(progress.get(webhookId) ?? noProgress) }
    }),

    update: Effect.fnUntraced(function* (
      { projectId, webhookId, ...asked }: Decoded<typeof webhookUpdate>,
      context: ChangeContext,
    ) {
      const ids = { projectId, webhookId }
      const url = asked.url && (yield* Effect.fromResult(decodeWebhookUrl(asked.url, urlRules)))
      const attempt = Effect.gen(function* () {
        const before = yield* store.find(projectId, webhookId)
        const merged = asked.headers && headersAfter(encryption, ids, before.headers, asked.headers)
        const headers = merged ? ((yield* asUnavailable(merged)) ?? null) : merged
        const settings = applyWebhookPatch(before, { ...asked, url, headers }, context.at)
        const change = { expected: before, settings, changes: settingChanges(before, settings) }
        const stop = isStopping(before, settings) ? dispatcher.cancel(webhookId) : Effect.void
        const progress = yield* outbox.progress(projectId, [webhookId])
        const updated = healthAfter(before, settings, {
          ...(progress.get(webhookId) ?? noProgress),
          at: context.at,
        })
        const idempotency = context.idempotency && {
          ...context.idempotency,
          answer: JSON.stringify(updated),
        }
        // The webhook may have been disabled even if the store does not say so.
        const replayed = yield* store.update(ids, change, { ...context, idempotency }).pipe(
          Effect.tap((known) => (known === undefined ? stop : notifyReplay(context, known))),
          Effect.tapErrorTag("StoreUnavailable", () => stop),
          Effect.uninterruptible,
        )
        return replayed === undefined ? updated : parseHealth(replayed)
      })
      const answered = (missing: WebhookNotFound) =>
        context.idempotency === undefined
          ? Effect.fail(missing)
          : // Nothing is left to enable, but the store knows what the first request has answered.
            Effect.flatMap(store.enable(projectId, webhookId, context), (known) =>
              known === undefined
                ? Effect.fail(missing)
                : Effect.as(notifyReplay(context, known), parseHealth(known)),
            )
      return yield* repeatUntilMade(
        "The webhook",
        Effect.catchTags(attempt, {
          WebhookConflict: () => Effect.undefined,
          WebhookNotFound: answered,
        }),
      )
    }),

    delete: Effect.fnUntraced(function* (
      { projectId, webhookId }: WebhookRef,
      context: ChangeContext,
    ) {
      // The webhook may have been removed even if the store does not say so.
      yield* store.remove(projectId, webhookId, context).pipe(
        Effect.tap((replayed) =>
          replayed === undefined ? dispatcher.cancel(webhookId) : notifyReplay(context, replayed),
        ),
        Effect.tapErrorTag("StoreUnavailable", () => dispatcher.cancel(webhookId)),
        Effect.uninterruptible,
      )
    }),

    rotateSecret: Effect.fnUntraced(function* (
      { keepOldFor, projectId, webhookId }: Decoded<typeof rotation>,
      context: ChangeContext,
    ) {
      const secret = freshSecret()
      const isReadable = yield* asUnavailable(canRead(yield* store.find(projectId, webhookId)))
      // An unreadable old secret signs nothing.
      const previousUntil = isReadable ? context.at + keepOldFor : context.at
      const sealed = yield* asUnavailable(encryption.seal({ projectId, webhookId }, secret))
      const sealedRotation = { secret: sealed, previousUntil }
      const replayed = yield* store.rotateSecret(projectId, webhookId, sealedRotation, context)
      if (replayed === undefined) return { secret, previousUntil }
      yield* notifyReplay(context, replayed)
      const present = yield* find(projectId, webhookId)
      return { secret: present.secret, previousUntil: Number(replayed.answer) }
    }),

    addSigningKey: Effect.fnUntraced(function* (owner: WebhookRef, context: ChangeContext) {
      const fresh = yield* generateSigningKey
      const sealed = yield* encryption.seal(owner, fresh)
      const stored = yield* store.addSigningKey(owner.projectId, owner.webhookId, sealed, context)
      return verificationKeyOf(yield* encryption.signingKey(owner, stored))
    }, asUnavailable),

    enable: Effect.fnUntraced(function* (
      { projectId, webhookId }: WebhookRef,
      context: ChangeContext,
    ) {
      yield* notifyReplay(context, yield* store.enable(projectId, webhookId, context))
    }),
  }
})
