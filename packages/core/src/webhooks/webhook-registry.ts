/** Registers, lists, changes and deletes webhooks, and makes their secrets. */

import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import {
  type IdempotencyConflict,
  type IdempotencyKeyInput,
  type OriginInput,
  type ReplayedResponse,
  attachIdempotencyKey,
  notifyReplay,
  readChangeContext,
  repeatUntilMade,
} from "../base/change-context.ts"
import { InvalidInput, StoreUnavailable } from "../base/errors.ts"
import { invalidArgument, readArgument, readProjectId } from "../base/input.ts"
import * as Setting from "../base/setting.ts"
import { type ProjectId, type ProjectNotFound, copyOwn } from "../base/values.ts"
import { eventTypesOption } from "../events/event.ts"
import { type DeliveryProgress } from "./delivery-activity.ts"
import { Dispatcher } from "./dispatcher.ts"
import { Encryption, SecretUnreadable } from "./encryption.ts"
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
  headersSetting,
  maxHeaders,
} from "./webhook-headers.ts"
import {
  type WebhookSettings,
  applyWebhookPatch,
  descriptionSetting,
  isStopping,
  orderedSetting,
  rateSetting,
  settingChanges,
  webhookPatchSettings,
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
  WebhookNotFound,
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
export interface WebhooksOf {
  /** The id of the project. */
  readonly projectId: string
}

/** A webhook's ids as a host has them. */
export interface WebhookIds extends WebhooksOf {
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
interface NewWebhook {
  /** The id of the project. */
  readonly projectId: string
  /** An absolute `http:` or `https:` URL. */
  readonly url: string
  /** The event types to send, 1 to 100. Default: all. */
  readonly eventTypes?: ReadonlyArray<string> | undefined
  /**
   * Whether to send a member's events one after another: none is attempted before the earlier ones were delivered or
   * given up, which may take three days. Default: `false`.
   */
  readonly ordered?: boolean | undefined
  /** How many attempts to start in a second at most, 1 to 10,000. Default: `null`, no limit. */
  readonly rate?: number | null | undefined
  /** What it is for: 1 to 200 characters without control characters. */
  readonly description?: string | undefined
  /**
   * Request headers to send with every notification, 10 at most, for example for the receiver's gateway. Their values
   * are kept like secrets, and nothing shows them.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /**
   * Registers the webhook once, however often the call is repeated within 24 hours: 1 to 255 visible
   * ASCII characters.
   */
  readonly idempotencyKey?: IdempotencyKeyInput | undefined
}

/** A change to a webhook's settings. Others stay as they are. */
export interface WebhookUpdate extends RepeatableIds {
  /** Where notifications are sent from now on: an absolute `http:` or `https:` URL. */
  readonly url?: string | undefined
  /** The event types to send, 1 to 100; `null` for all. Events that wait are sent whatever their type. */
  readonly eventTypes?: ReadonlyArray<string> | null | undefined
  /** Whether to send a member's events one after another, of those that are published from now on. */
  readonly ordered?: boolean | undefined
  /** How many attempts to start in a second at most, 1 to 10,000; `null` for no limit. */
  readonly rate?: number | null | undefined
  /** What it is for: 1 to 200 characters without control characters; `null` for nothing. */
  readonly description?: string | null | undefined
  /** Request headers to set, and `null` for those to remove; others stay. `null` removes all. */
  readonly headers?: Readonly<Record<string, string | null>> | null | undefined
  /**
   * `true` aborts attempts in flight, and starts none until the webhook is enabled: deliveries stay waiting, and later
   * events are not for this webhook. `false` enables it, and continues with the waiting deliveries.
   */
  readonly disabled?: boolean | undefined
}

/** A webhook whose secret is rotated. */
interface Rotating extends RepeatableIds {
  /** How long the old secret also signs, at most 30 days. Default: `"24 hours"`. */
  readonly keepOldFor?: Setting.Length | undefined
}

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
export const readWebhookIds = Effect.fnUntraced(function* (ids: WebhookIds) {
  const { projectId, webhookId } = copyOwn(ids)
  return {
    webhookId: yield* decodeWebhookId(webhookId),
    projectId: yield* readProjectId(projectId),
  } satisfies WebhookRef
})

/** Reads the change context for a change to a webhook. The other parameters describe the change. */
export const readWebhookChange = Effect.fnUntraced(function* (
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

const newDescription = Setting.optional(descriptionSetting)

const newHeaders = Setting.withDefault(headersSetting, {})

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

/** Reads a change of settings. Fails if it is empty. */
const readPatch = Effect.fnUntraced(function* (
  { description, disabled, eventTypes, headers, ordered, rate, url }: WebhookUpdate,
  urlRules: WebhookUrlRules,
) {
  if (
    [url, eventTypes, ordered, rate, description, headers, disabled].every(
      (given) => given === undefined,
    )
  ) {
    return yield* new InvalidInput({ field: "url", problem: "or another setting is needed" })
  }
  const settings = webhookPatchSettings
  return {
    url: url === undefined ? undefined : yield* Effect.fromResult(decodeWebhookUrl(url, urlRules)),
    eventTypes: yield* readArgument("eventTypes", settings.eventTypes, eventTypes),
    ordered: yield* readArgument("ordered", settings.ordered, ordered),
    rate: yield* readArgument("rate", settings.rate, rate),
    description: yield* readArgument("description", settings.description, description),
    headers: yield* readArgument("headers", settings.headers, headers),
    disabled: yield* readArgument("disabled", settings.disabled, disabled),
  }
})

const secretLife = Setting.duration({ least: 0, most: 30 * 86_400_000 })

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

/** Makes the methods. */
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
    create: Effect.fnUntraced(function* (input, origin) {
      const { description, eventTypes, headers, idempotencyKey, ordered, projectId, rate, url } =
        copyOwn(input)
      const occasion = yield* readChangeContext(origin)
      const ownHeaders = yield* readArgument("headers", newHeaders, headers)
      const webhook: Webhook = {
        id: WebhookId(crypto.randomUUID()),
        projectId: yield* readProjectId(projectId),
        url: yield* Effect.fromResult(decodeWebhookUrl(url, urlRules)),
        secret: freshSecret(),
        previous: undefined,
        signingKey: undefined,
        eventTypes: yield* readArgument("eventTypes", eventTypesOption, eventTypes),
        ordered: yield* readArgument("ordered", orderedSetting, ordered),
        rate: (yield* readArgument("rate", rateSetting, rate)) ?? undefined,
        description: yield* readArgument("description", newDescription, description),
        headerNames: [...ownHeaders.keys()].toSorted(),
        createdAt: occasion.at,
        disabled: undefined,
      }
      const owner = { projectId: webhook.projectId, webhookId: webhook.id }
      const secret = yield* asUnavailable(encryption.seal(owner, webhook.secret))
      const { headerNames: _, ...others } = webhook
      const stored = {
        ...others,
        secret,
        previous: undefined,
        signingKey: undefined,
        headers: yield* asUnavailable(sealHeaders(encryption, owner, ownHeaders)),
      }
      const keyed = yield* attachIdempotencyKey(
        occasion,
        idempotencyKey,
        "create",
        owner.projectId,
        webhook.url,
        eventTypes,
        webhook.ordered,
        webhook.rate,
        description,
        [...ownHeaders],
      )
      const replayed = yield* store.add(stored, maxPerProject, keyed)
      if (replayed === undefined) return webhook
      yield* notifyReplay(keyed, replayed)
      // Secrets are not kept with keys.
      const present = yield* find(owner.projectId, WebhookId(replayed.answer))
      const { createdAt, id, secret: presentSecret } = present
      return { ...webhook, id, createdAt, secret: presentSecret }
    }),

    list: Effect.fnUntraced(function* (project) {
      const { projectId } = copyOwn(project)
      const stored = yield* store.list(yield* readProjectId(projectId))
      return yield* asUnavailable(Effect.forEach(stored, (one) => showWebhook(encryption, one)))
    }),

    health: Effect.fnUntraced(function* (project) {
      const { projectId } = copyOwn(project)
      const id = yield* readProjectId(projectId)
      const stored = yield* store.list(id)
      const progress = yield* outbox.progress(
        id,
        stored.map((one) => one.id),
      )
      return stored.map((one) => ({
        ...withoutSecrets(one),
        ...(progress.get(one.id) ?? noProgress),
      }))
    }),

    find: Effect.fnUntraced(function* (ids) {
      const { projectId, webhookId } = yield* readWebhookIds(ids)
      const webhook = yield* asUnavailable(
        showWebhook(encryption, yield* store.find(projectId, webhookId)),
      )
      const progress = yield* outbox.progress(projectId, [webhookId])
      return { ...webhook, ...(progress.get(webhookId) ?? noProgress) }
    }),

    update: Effect.fnUntraced(function* (input, origin) {
      const given = copyOwn(input)
      const ids = yield* readWebhookIds(given)
      const patch = yield* readPatch(given, urlRules)
      const asked = { ...patch, headers: patch.headers && [...patch.headers] }
      const occasion = yield* readWebhookChange("update", given, origin, asked)
      const attempt = Effect.gen(function* () {
        const before = yield* store.find(ids.projectId, ids.webhookId)
        const merged = patch.headers && headersAfter(encryption, ids, before.headers, patch.headers)
        const headers = merged ? ((yield* asUnavailable(merged)) ?? null) : merged
        const settings = applyWebhookPatch(before, { ...patch, headers }, occasion.at)
        const change = { expected: before, settings, changes: settingChanges(before, settings) }
        const stop = isStopping(before, settings) ? dispatcher.cancel(ids.webhookId) : Effect.void
        const progress = yield* outbox.progress(ids.projectId, [ids.webhookId])
        const updated = healthAfter(before, settings, {
          ...(progress.get(ids.webhookId) ?? noProgress),
          at: occasion.at,
        })
        const once = occasion.once && { ...occasion.once, answer: JSON.stringify(updated) }
        // The webhook may have been disabled even if the store does not say so.
        const replayed = yield* store.update(ids, change, { ...occasion, once }).pipe(
          Effect.tap((known) => (known === undefined ? stop : notifyReplay(occasion, known))),
          Effect.tapErrorTag("StoreUnavailable", () => stop),
          Effect.uninterruptible,
        )
        return replayed === undefined ? updated : parseHealth(replayed)
      })
      const answered = (missing: WebhookNotFound) =>
        occasion.once === undefined
          ? Effect.fail(missing)
          : // Nothing is left to enable, but the store knows what the first request has answered.
            Effect.flatMap(store.enable(ids.projectId, ids.webhookId, occasion), (known) =>
              known === undefined
                ? Effect.fail(missing)
                : Effect.as(notifyReplay(occasion, known), parseHealth(known)),
            )
      return yield* repeatUntilMade(
        "The webhook",
        Effect.catchTags(attempt, {
          WebhookConflict: () => Effect.undefined,
          WebhookNotFound: answered,
        }),
      )
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
  } satisfies WebhookRegistry
})
