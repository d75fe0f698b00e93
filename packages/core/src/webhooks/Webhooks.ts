/** The service for webhooks, which hosts and the API call. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Instant from "../base/Instant.ts"
import type { InvalidInput } from "../base/InvalidInput.ts"
import type * as Once from "../base/Once.ts"
import type * as Origin from "../base/Origin.ts"
import type { ProjectNotFound } from "../base/Project.ts"
import * as Setting from "../base/Setting.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import type * as Event from "../events/Event.ts"
import type { AddressPolicy } from "./AddressPolicy.ts"
import type { Dispatcher } from "./Dispatcher.ts"
import type { Delivery, DeliveryState, Outbox } from "./Outbox.ts"
import * as Redelivery from "./Redelivery.ts"
import * as Registry from "./Registry.ts"
import type {
  Health,
  PublicWebhook,
  ShownWebhook,
  Webhook,
  WebhookDisabled,
  WebhookLimitReached,
  WebhookNotFound,
} from "./Webhook.ts"
import type * as WebhookSignature from "./WebhookSignature.ts"
import type { WebhookStore } from "./WebhookStore.ts"
import type { WebhookTransport } from "./WebhookTransport.ts"
import type * as WebhookUrl from "./WebhookUrl.ts"

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
 * if secrets are encrypted and the server has no keys, or cannot load one.
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
     * Returns the webhooks of a project, oldest first, with how their latest attempts went. One whose secret
     * cannot be read, because its encryption key is gone or it was changed, has none, and says why. Fails with
     * `ProjectNotFound`.
     */
    readonly list: (project: {
      readonly projectId: string
    }) => Effect.Effect<ReadonlyArray<ShownWebhook & Health>, Failure | ProjectNotFound>

    /** Returns the same without secrets, and therefore without encryption keys. Fails with `ProjectNotFound`. */
    readonly health: (project: {
      readonly projectId: string
    }) => Effect.Effect<ReadonlyArray<PublicWebhook & Health>, Failure | ProjectNotFound>

    /**
     * Returns a webhook, with how many attempts for it have failed since one succeeded, and since
     * when. Its secrets are as in the list. Fails with `WebhookNotFound`.
     */
    readonly find: (
      webhook: WebhookIds,
    ) => Effect.Effect<ShownWebhook & Health, Failure | WebhookNotFound>

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

const make = Effect.fnUntraced(function* (settings: Settings) {
  return Webhooks.of({ ...(yield* Registry.make(settings)), ...(yield* Redelivery.make) })
})
