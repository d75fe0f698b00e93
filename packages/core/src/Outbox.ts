/** The storage port for events and their deliveries: a transactional outbox. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Event, EventId, EventType } from "./Event.ts"
import type { ProjectId, ProjectNotFound } from "./Project.ts"
import type { StoreUnavailable } from "./StoreUnavailable.ts"
import type { WebhookDisabled, WebhookId, WebhookNotFound } from "./Webhook.ts"
import type { Secret, SigningKey } from "./WebhookSignature.ts"

/** Where a delivery stands: all but the first are its end, until it is replayed. */
export type DeliveryState = "waiting" | "delivered" | "failed" | "cancelled"

/** A webhook of a project. */
export interface WebhookRef {
  readonly projectId: ProjectId
  readonly webhookId: WebhookId
}

/** Which deliveries of a webhook are replayed. */
export type Replay =
  | { readonly _tag: "One"; readonly eventId: EventId }
  /** Those that have failed, of events since an instant in milliseconds since the epoch. */
  | { readonly _tag: "FailedSince"; readonly at: number }

/** How one attempt went. */
export interface Attempt {
  /** When it began, in milliseconds since the epoch. */
  readonly at: number
  readonly durationMillis: number
  readonly result:
    /** `body` is the first kilobyte of the response. */
    | { readonly _tag: "Answered"; readonly status: number; readonly body: string }
    /** `reason` is a word for what went wrong, such as `Timeout` or `ECONNREFUSED`. */
    | { readonly _tag: "Failed"; readonly reason: string }
}

/** One event on its way to one webhook. */
export interface Delivery {
  readonly eventId: EventId
  readonly type: EventType
  readonly webhookId: WebhookId
  readonly state: DeliveryState
  /** When the next attempt is due, in milliseconds since the epoch; of use while it waits. */
  readonly dueAt: number
  readonly attempts: ReadonlyArray<Attempt>
}

/** The right to make one attempt, until the lease passes. */
export interface Claim {
  readonly event: Pick<Event, "id" | "body">
  readonly webhook: WebhookRef & {
    readonly url: string
    /** All that sign: two during a rotation. */
    readonly secrets: ReadonlyArray<Secret>
    readonly signingKey: SigningKey | undefined
    /** Attempts that have failed since one succeeded. */
    readonly failures: number
    /** When the first of them did, in milliseconds since the epoch. */
    readonly failingSince: number | undefined
  }
  /** How often the delivery has been claimed: 1 for the first attempt. */
  readonly attempt: number
  /** Fresh for each claim, so that a holder whose lease has passed cannot settle. */
  readonly lease: string
}

/** What becomes of a delivery after an attempt. */
export type Settlement =
  | { readonly _tag: "Delivered"; readonly attempt: Attempt }
  /**
   * To be tried again after `delayMillis` on the store's clock. The webhook is left alone altogether
   * for `holdMillis`.
   */
  | {
      readonly _tag: "Retry"
      readonly attempt: Attempt
      readonly delayMillis: number
      readonly holdMillis: number
    }
  /** Given up; it stays visible. */
  | { readonly _tag: "Failed"; readonly attempt: Attempt; readonly holdMillis: number }
  /**
   * Given up, and the webhook is disabled with all that waits for it. The announcement is published
   * in the same step to the other webhooks of its project.
   */
  | { readonly _tag: "Disabled"; readonly attempt: Attempt; readonly announcement: Event }
  /** Not attempted to the end; due again at once, as if never claimed. */
  | { readonly _tag: "Released" }

/** What a claim gave. */
export interface Claimed {
  readonly claims: ReadonlyArray<Claim>
  /**
   * Milliseconds until there is more to claim, because a delivery becomes due or a lease passes;
   * `undefined` if only a publication or a settlement can bring that about.
   */
  readonly nextDueMillis: number | undefined
}

/** What a dispatcher has to know of. */
export type Change =
  /** A delivery may be due earlier than the last claim foretold: published, released or replayed. */
  | { readonly _tag: "Due" }
  /** A webhook was removed, by another process perhaps: attempts that are in flight are aborted. */
  | { readonly _tag: "Removed"; readonly webhookId: WebhookId }

/**
 * Keeps events until they are delivered.
 *
 * Deliveries are made by whoever claims them. Several dispatchers may share the work; a lease sees
 * to it that a delivery is in one hand at a time, and that one whose holder has died is claimed
 * again.
 */
export class Outbox extends Context.Service<
  Outbox,
  {
    /**
     * Stores an event with a delivery for each webhook of its project that is enabled and gets events
     * of its type.
     */
    readonly publish: (event: Event) => Effect.Effect<void, ProjectNotFound | StoreUnavailable>

    /** Stores an event with a delivery for one webhook of its project, whatever types that gets. */
    readonly publishTo: (
      event: Event,
      webhookId: WebhookId,
    ) => Effect.Effect<void, WebhookNotFound | WebhookDisabled | StoreUnavailable>

    /**
     * Claims deliveries that are due, for `leaseMillis` on the store's clock: `limit` at most, and
     * of each webhook no more than `perWebhook` minus those already out, also when several claim at
     * once, and none of one that is held. Webhooks take turns, so that the backlog of one does not hold up another; of those of
     * one webhook, what was due first comes first, and of equals what was published first.
     */
    readonly claim: (options: {
      readonly limit: number
      readonly perWebhook: number
      readonly leaseMillis: number
    }) => Effect.Effect<Claimed, StoreUnavailable>

    /**
     * Records an attempt and what becomes of the delivery; gives `false`, and changes nothing, if
     * the lease has passed or the delivery was cancelled meanwhile.
     */
    readonly settle: (
      claim: Claim,
      settlement: Settlement,
    ) => Effect.Effect<boolean, StoreUnavailable>

    /**
     * Gives the next change that a dispatcher has to know of; at once, if there was one since the
     * last time. A store that cannot know of all changes also says every few seconds that there may
     * be deliveries.
     */
    readonly changes: Effect.Effect<Change, StoreUnavailable>

    /**
     * Reads up to `limit` deliveries of a webhook, newest first: those in the given state, those
     * older than the one of the given event. Those of a webhook that was deleted can be read too.
     */
    readonly deliveries: (
      webhook: WebhookRef,
      page: {
        readonly state?: DeliveryState | undefined
        readonly olderThan?: EventId | undefined
        readonly limit: number
      },
    ) => Effect.Effect<ReadonlyArray<Delivery>, StoreUnavailable>

    /**
     * Begins deliveries that have ended anew: they are due at once, their attempts count from 1
     * again, and what is recorded of earlier ones stays. Gives their number. What waits is left as it
     * is.
     */
    readonly replay: (
      webhook: WebhookRef,
      which: Replay,
    ) => Effect.Effect<number, WebhookNotFound | WebhookDisabled | StoreUnavailable>
  }
>()("@tenure/core/Outbox") {}
