/** The storage port for webhooks. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ProjectId, ProjectNotFound } from "./Project.ts"
import type { StoreUnavailable } from "./StoreUnavailable.ts"
import type { Webhook, WebhookId, WebhookLimitReached, WebhookNotFound } from "./Webhook.ts"
import type { Secret, SigningKey } from "./WebhookSignature.ts"

/** Keeps the webhooks of projects. */
export class WebhookStore extends Context.Service<
  WebhookStore,
  {
    /**
     * Adds a webhook, unless the project has `limit` of them. However many are added at once, the
     * limit holds.
     */
    readonly add: (
      webhook: Webhook,
      limit: number,
    ) => Effect.Effect<void, ProjectNotFound | WebhookLimitReached | StoreUnavailable>

    /** Reads the webhooks of a project, oldest first. */
    readonly list: (
      projectId: ProjectId,
    ) => Effect.Effect<ReadonlyArray<Webhook>, ProjectNotFound | StoreUnavailable>

    /**
     * Gives a webhook a new secret; the one that it had signs as well until `previousUntil`
     * (milliseconds since the epoch).
     */
    readonly rotate: (
      projectId: ProjectId,
      webhookId: WebhookId,
      rotation: { readonly secret: Secret; readonly previousUntil: number },
    ) => Effect.Effect<void, WebhookNotFound | StoreUnavailable>

    /** Gives a webhook a signing key, unless it has one; gives the one that it has. */
    readonly sign: (
      projectId: ProjectId,
      webhookId: WebhookId,
      key: SigningKey,
    ) => Effect.Effect<SigningKey, WebhookNotFound | StoreUnavailable>

    /** Enables a webhook that was disabled; does nothing if it was not. */
    readonly enable: (
      projectId: ProjectId,
      webhookId: WebhookId,
    ) => Effect.Effect<void, WebhookNotFound | StoreUnavailable>

    /**
     * Removes a webhook and cancels its deliveries, in one step: none of them is claimed afterwards,
     * and no claim made before can be settled.
     */
    readonly remove: (
      projectId: ProjectId,
      webhookId: WebhookId,
    ) => Effect.Effect<void, WebhookNotFound | StoreUnavailable>
  }
>()("@tenure/core/WebhookStore") {}
