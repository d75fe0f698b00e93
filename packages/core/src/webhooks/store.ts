/** The storage port for webhooks. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type {
  ChangeContext,
  FieldChange,
  IdempotencyConflict,
  ReplayedResponse,
} from "../base/change-context.ts"
import type { StoreUnavailable } from "../base/errors.ts"
import type { ProjectId, ProjectNotFound } from "../base/values.ts"
import type { WebhookRef } from "./outbox.ts"
import type { StoredSecret } from "./secrets.ts"
import type { WebhookSettings } from "./webhook-settings.ts"
import type {
  Health,
  StoredWebhook,
  WebhookConflict,
  WebhookId,
  WebhookLimitReached,
  WebhookNotFound,
} from "./webhook.ts"

/** A stored secret, signing key or text of headers, and its webhook. */
interface OwnedSecret extends WebhookRef {
  readonly secret: StoredSecret
}

/** An encryption key of stored secrets. */
export interface KeyUse {
  readonly keyId: string
  /** Up to three secrets encrypted with it, each of 32,768 characters at most. */
  readonly samples: ReadonlyArray<OwnedSecret>
}

/** A change of a webhook's settings. */
export interface WebhookChange {
  /** The settings that it has so far. */
  readonly expected: WebhookSettings
  readonly settings: WebhookSettings
  /** What differs, for the audit trail. */
  readonly changes: ReadonlyArray<FieldChange>
}

/** The maximum number of keys in an answer. */
export const maxKeyUses = 64

/** The maximum number of samples for each key. */
export const maxKeySamples = 3

/** The maximum length of a sample, in characters. Ten encrypted headers are shorter. */
export const maxSampleLength = 32_768

/**
 * Stores projects' webhooks. A change with an idempotency key is made once, as in a `MembershipStore`.
 */
export class WebhookStore extends Context.Service<
  WebhookStore,
  {
    /** Succeeds if the store answers and takes changes. */
    readonly ping: Effect.Effect<void, StoreUnavailable>

    /**
     * Returns the encryption keys of webhooks' secrets (`encryptionKeyOf`), 64 at most and in any order: of each
     * secret, of each previous one while it signs, of each signing key, and of each webhook's headers. Several databases may each
     * return the same key.
     *
     * @param now - in milliseconds since the epoch
     */
    readonly encryptionKeys: (now: number) => Effect.Effect<ReadonlyArray<KeyUse>, StoreUnavailable>

    /**
     * Adds a webhook unless the project has `limit` webhooks, even with concurrent calls. A replay
     * returns the webhook's id.
     */
    readonly add: (
      webhook: StoredWebhook,
      limit: number,
      context: ChangeContext,
    ) => Effect.Effect<
      ReplayedResponse | void,
      ProjectNotFound | WebhookLimitReached | IdempotencyConflict | StoreUnavailable
    >

    /** Returns a project's webhooks, oldest first, and their latest attempts' results. */
    readonly list: (
      projectId: ProjectId,
    ) => Effect.Effect<ReadonlyArray<StoredWebhook & Health>, ProjectNotFound | StoreUnavailable>

    /** Returns a webhook, and how its latest attempts went. */
    readonly find: (
      projectId: ProjectId,
      webhookId: WebhookId,
    ) => Effect.Effect<StoredWebhook & Health, WebhookNotFound | StoreUnavailable>

    /**
     * Replaces a webhook's secret. The old one also signs until `previousUntil` (milliseconds since the
     * epoch). A replay returns this instant.
     */
    readonly rotateSecret: (
      projectId: ProjectId,
      webhookId: WebhookId,
      rotation: { readonly secret: StoredSecret; readonly previousUntil: number },
      context: ChangeContext,
    ) => Effect.Effect<
      ReplayedResponse | void,
      WebhookNotFound | IdempotencyConflict | StoreUnavailable
    >

    /** Adds a signing key to a webhook without one. Returns the webhook's key. */
    readonly addSigningKey: (
      projectId: ProjectId,
      webhookId: WebhookId,
      key: StoredSecret,
      context: ChangeContext,
    ) => Effect.Effect<StoredSecret, WebhookNotFound | StoreUnavailable>

    /**
     * Replaces a webhook's settings, if they are as expected. Without any changes, the audit trail gets no row. A
     * webhook that is enabled by this is as if no attempt for it had been made. After one is disabled by request,
     * none of its deliveries can be claimed, and those claimed earlier can still be settled.
     */
    readonly update: (
      webhook: WebhookRef,
      change: WebhookChange,
      context: ChangeContext,
    ) => Effect.Effect<
      ReplayedResponse | void,
      WebhookConflict | IdempotencyConflict | StoreUnavailable
    >

    /** Enables a webhook, as if no attempt for it had been made. Does nothing if it is enabled. */
    readonly enable: (
      projectId: ProjectId,
      webhookId: WebhookId,
      context: ChangeContext,
    ) => Effect.Effect<
      ReplayedResponse | void,
      WebhookNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Removes a webhook and cancels its deliveries in one step. Afterwards, none can be claimed, and no
     * earlier claim can be settled.
     */
    readonly remove: (
      projectId: ProjectId,
      webhookId: WebhookId,
      context: ChangeContext,
    ) => Effect.Effect<
      ReplayedResponse | void,
      WebhookNotFound | IdempotencyConflict | StoreUnavailable
    >
  }
>()("@tenure/core/WebhookStore") {}
