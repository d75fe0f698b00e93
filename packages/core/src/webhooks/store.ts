/** The storage port for webhooks. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type {
  ChangeContext,
  IdempotencyConflict,
  ReplayedResponse,
} from "../base/change-context.ts"
import type { StoreUnavailable } from "../base/errors.ts"
import type { ProjectId, ProjectNotFound } from "../base/values.ts"
import type { StoredSecret } from "./secrets.ts"
import type {
  Health,
  StoredWebhook,
  WebhookId,
  WebhookLimitReached,
  WebhookNotFound,
} from "./webhook.ts"

/**
 * Stores the webhooks of projects. A change with an idempotency key is made once, as by a
 * `MembershipStore`.
 */
export class WebhookStore extends Context.Service<
  WebhookStore,
  {
    /** Succeeds if the store answers and takes changes. */
    readonly ping: Effect.Effect<void, StoreUnavailable>

    /**
     * Adds a webhook, unless the project has `limit` of them. The limit holds for concurrent calls,
     * too. The answer of a replay is the id of the webhook.
     */
    readonly add: (
      webhook: StoredWebhook,
      limit: number,
      occasion: ChangeContext,
    ) => Effect.Effect<
      ReplayedResponse | void,
      ProjectNotFound | WebhookLimitReached | IdempotencyConflict | StoreUnavailable
    >

    /** Returns the webhooks of a project, oldest first, and how their latest attempts went. */
    readonly list: (
      projectId: ProjectId,
    ) => Effect.Effect<ReadonlyArray<StoredWebhook & Health>, ProjectNotFound | StoreUnavailable>

    /** Returns a webhook, and how its latest attempts went. */
    readonly find: (
      projectId: ProjectId,
      webhookId: WebhookId,
    ) => Effect.Effect<StoredWebhook & Health, WebhookNotFound | StoreUnavailable>

    /**
     * Replaces the secret of a webhook. The old one also signs until `previousUntil` (milliseconds
     * since the epoch), which is also the answer of a replay.
     */
    readonly rotateSecret: (
      projectId: ProjectId,
      webhookId: WebhookId,
      rotation: { readonly secret: StoredSecret; readonly previousUntil: number },
      occasion: ChangeContext,
    ) => Effect.Effect<
      ReplayedResponse | void,
      WebhookNotFound | IdempotencyConflict | StoreUnavailable
    >

    /** Adds a signing key to a webhook that has none. Returns the key that the webhook has. */
    readonly addSigningKey: (
      projectId: ProjectId,
      webhookId: WebhookId,
      key: StoredSecret,
      occasion: ChangeContext,
    ) => Effect.Effect<StoredSecret, WebhookNotFound | StoreUnavailable>

    /** Enables a webhook, as if no attempt for it had been made. Does nothing if it is enabled. */
    readonly enable: (
      projectId: ProjectId,
      webhookId: WebhookId,
      occasion: ChangeContext,
    ) => Effect.Effect<
      ReplayedResponse | void,
      WebhookNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Removes a webhook and cancels its deliveries in one step. Afterwards none of them can be claimed,
     * and no earlier claim can be settled.
     */
    readonly remove: (
      projectId: ProjectId,
      webhookId: WebhookId,
      occasion: ChangeContext,
    ) => Effect.Effect<
      ReplayedResponse | void,
      WebhookNotFound | IdempotencyConflict | StoreUnavailable
    >
  }
>()("@tenure/core/WebhookStore") {}
