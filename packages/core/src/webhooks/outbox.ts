/** The storage port for events and their deliveries: a transactional outbox. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type {
  IdempotencyConflict,
  IdempotencyKey,
  ReplayedResponse,
} from "../base/change-context.ts"
import type { StoreUnavailable } from "../base/errors.ts"
import type { ProjectId, ProjectNotFound } from "../base/values.ts"
import type { Event, EventId, EventNotFound, EventType } from "../events/event.ts"
import type { ConcurrencyRange } from "./claim-budget.ts"
import type { StoredSecret } from "./secrets.ts"
import type { Health, WebhookDisabled, WebhookId, WebhookNotFound } from "./webhook.ts"

/** The states of a delivery. In all but the first it has ended, unless it is replayed. */
export const deliveryStates = ["waiting", "delivered", "failed", "cancelled"] as const

/** The state of a delivery. */
export type DeliveryState = (typeof deliveryStates)[number]

/** The ids of a webhook, after they were checked. */
export interface WebhookRef {
  readonly projectId: ProjectId
  readonly webhookId: WebhookId
}

/** Which deliveries of a webhook are replayed. */
export type RedeliveryFilter =
  | { readonly _tag: "One"; readonly eventId: EventId }
  /** Those that have failed, of events from `at` on (milliseconds since the epoch). */
  | { readonly _tag: "FailedSince"; readonly at: number }

/** The record of one attempt. */
export interface Attempt {
  /** When it started, in milliseconds since the epoch. */
  readonly at: number
  readonly durationMillis: number
  readonly result:
    /** `body` is the first kilobyte of the response. */
    | { readonly _tag: "Answered"; readonly status: number; readonly body: string }
    /** `reason` is a code, for example `Timeout` or `ECONNREFUSED`. */
    | { readonly _tag: "Failed"; readonly reason: string }
}

/** One event on its way to one webhook. */
export interface Delivery {
  readonly eventId: EventId
  readonly type: EventType
  readonly webhookId: WebhookId
  readonly state: DeliveryState
  /** When the next attempt is due, in milliseconds since the epoch; meaningful while it waits. */
  readonly dueAt: number
  readonly attempts: ReadonlyArray<Attempt>
}

/** An event on its way to all webhooks. */
export interface PublishedEvent extends Event {
  readonly deliveries: ReadonlyArray<Delivery>
}

/** The right to make one attempt, until the lease expires. */
export interface Claim {
  readonly event: Pick<Event, "id" | "body">
  readonly webhook: WebhookRef &
    Health & {
      readonly url: string
      /** All secrets to sign with: two during a rotation. */
      readonly secrets: ReadonlyArray<StoredSecret>
      readonly signingKey: StoredSecret | undefined
      /** How many attempts may be in flight, within the bounds of the claim. */
      readonly concurrency: number
    }
  /** How many times the delivery was claimed, this time included: 1 for the first attempt. */
  readonly attemptNumber: number
  /** A new token for each claim, so that a dispatcher whose lease has expired cannot settle. */
  readonly lease: string
}

/** The result of a claim. All delays count from the time of the settlement, on the store's clock. */
export type AttemptResult =
  | { readonly _tag: "Delivered"; readonly attempt: Attempt }
  /** To be attempted again after `delayMillis`. The webhook is held for `holdMillis`. */
  | {
      readonly _tag: "Retry"
      readonly attempt: Attempt
      readonly delayMillis: number
      readonly holdMillis: number
    }
  /** Given up, and still visible. The webhook is held for `holdMillis`. */
  | { readonly _tag: "Failed"; readonly attempt: Attempt; readonly holdMillis: number }
  /**
   * Given up, together with the webhook: it is disabled, and all its waiting deliveries fail. In the
   * same step, the announcement is published to the other webhooks of its project. If the webhook is
   * disabled already, only this delivery is given up.
   */
  | { readonly _tag: "Disabled"; readonly attempt: Attempt; readonly announcement: Event }
  /** The attempt was interrupted. The delivery is due at once, as if it had not been claimed. */
  | { readonly _tag: "Released" }

/** What came of a settlement. */
export type SettleResult =
  /** Nothing: the lease has expired, or the delivery was cancelled. */
  | "Lapsed"
  | "Settled"
  /** The webhook was disabled, too, which no other settlement had done before. */
  | "WebhookDisabled"

/** The result of claiming. */
export interface ClaimResult {
  readonly claims: ReadonlyArray<Claim>
  /**
   * Milliseconds until there may be more to claim: 0 if the claim reached its limit, later if a delivery
   * becomes due, a lease expires or a hold ends; `undefined` if there is more only after a publication,
   * a replay or a settlement.
   */
  readonly nextDueMillis: number | undefined
  /**
   * The webhooks with deliveries that are ready, but kept back by a limit: there may be more to claim
   * once claims are settled. A success of a webhook that is not among them makes nothing ready.
   */
  readonly keptBack: ReadonlyArray<WebhookId>
}

/** How far a backlog is counted for a host: this number stands for as many or more. */
export const maxCountedBacklog = 10_000

/** How much is left to deliver. */
export interface Backlog {
  /** The deliveries that wait for an attempt, or for the result of one. */
  readonly waiting: number
  /**
   * For how many milliseconds the oldest of those that are due has been due, on the store's clock;
   * `undefined` if none is due.
   */
  readonly dueForMillis: number | undefined
  /** The deliveries that were given up and are kept, to webhooks that are there: a replay restarts them. */
  readonly failedDeliveries: number
  /** The webhooks that are disabled. */
  readonly disabledWebhooks: number
}

/**
 * Returns how many deliveries of a webhook may be claimed at a time. The closer its project is to its
 * limit, the fewer: webhooks that hang leave room for the others of their project.
 *
 * @param concurrency - the concurrency of the webhook
 * @param claimed - how many deliveries of the project are claimed
 * @returns 0 if the project has reached its limit
 */
export const maxAttemptsOfWebhook = (
  concurrency: number,
  perProject: number,
  claimed: number,
): number => Math.max(0, Math.ceil((concurrency * (perProject - claimed)) / perProject))

/** A change that concerns dispatchers. */
export type OutboxChange =
  /** A delivery may be due earlier than the last claim said: it was published, released or replayed. */
  | { readonly _tag: "Due" }
  /** A webhook was removed, perhaps by another process: attempts in flight must be aborted. */
  | { readonly _tag: "Removed"; readonly webhookId: WebhookId }

/**
 * Stores events until they are delivered.
 *
 * Any number of dispatchers can claim deliveries. A lease ensures that only one dispatcher has a
 * delivery at a time, and that a delivery whose dispatcher has died is claimed again.
 */
export class Outbox extends Context.Service<
  Outbox,
  {
    /** Succeeds if the store answers and takes changes. */
    readonly ping: Effect.Effect<void, StoreUnavailable>

    /**
     * Stores an event with a delivery for each webhook of its project that is enabled and is for
     * events of its type. With an idempotency key, it does so once, as a `MembershipStore` changes
     * something once. The answer of a replay is the id of the event.
     */
    readonly publish: (
      event: Event,
      once?: IdempotencyKey,
    ) => Effect.Effect<
      ReplayedResponse | void,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Stores an event with a delivery for one webhook of its project, whatever types that is for; once
     * with an idempotency key, as `publish` does.
     */
    readonly publishTo: (
      event: Event,
      webhookId: WebhookId,
      once?: IdempotencyKey,
    ) => Effect.Effect<
      ReplayedResponse | void,
      WebhookNotFound | WebhookDisabled | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Claims deliveries that are due, for `leaseMillis` on the store's clock; less if the store learns
     * that the process is gone. Projects take turns, and so do the webhooks of each project, so that the
     * backlog of one does not delay another. Of one webhook, the delivery that was due first is claimed
     * first, and of those due at the same time the one that was published first. Nothing is claimed for a
     * webhook that is held, and one delivery at a time for a webhook whose attempts fail, until one
     * succeeds.
     *
     * @param options.limit - the most deliveries to claim
     * @param options.failing - the most of them that may be for webhooks whose attempts fail
     * @param options.perWebhook - the bounds within which the concurrency of a webhook says how many of
     *   its deliveries may be claimed at a time, in all processes, including those claimed earlier; fewer
     *   as its project uses up its limit, see `mostInProject`
     * @param options.perProject - the most deliveries of all webhooks of one project together
     * @param options.ahead - for some webhooks, how many deliveries to claim beyond their concurrency: they
     *   will wait in this process. There are none for a webhook whose attempts fail, of which another
     *   process has claims, or whose project has used up half of its limit, which counts none of them
     */
    readonly claim: (options: {
      readonly limit: number
      readonly failing: number
      readonly perWebhook: ConcurrencyRange
      readonly perProject: number
      readonly ahead: ReadonlyMap<WebhookId, number>
      readonly leaseMillis: number
    }) => Effect.Effect<ClaimResult, StoreUnavailable>

    /**
     * Records the attempt and the new state of the delivery, and adapts the concurrency of the webhook
     * as `Concurrency` says, if the claim still holds.
     */
    readonly settle: (
      claim: Claim,
      settlement: AttemptResult,
    ) => Effect.Effect<SettleResult, StoreUnavailable>

    /**
     * Waits for the next change and returns it; at once, if there was one since the last call. A store
     * that may miss changes returns `Due` every few seconds, and `Removed` soon for each webhook that was
     * removed while deliveries of it are claimed. It may return the same removal several times.
     */
    readonly nextChange: Effect.Effect<OutboxChange, StoreUnavailable>

    /**
     * Returns deliveries of a webhook, newest first, even if the webhook was deleted.
     *
     * @param page.state - returns only deliveries in this state
     * @param page.olderThan - returns only deliveries older than that of this event
     * @param page.limit - the most deliveries to return
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
     * Returns an event with all its deliveries, also those to webhooks that were deleted, in the order of the list
     * of webhooks.
     */
    readonly find: (
      projectId: ProjectId,
      eventId: EventId,
    ) => Effect.Effect<PublishedEvent, EventNotFound | StoreUnavailable>

    /**
     * Restarts deliveries, and returns their number: that of one event if it has ended or waits for its
     * next attempt, or those that have failed since a time. They are due at once and their attempts count
     * from 1 again; the records of earlier attempts are kept. Deliveries that are due or claimed are not
     * changed. With an idempotency key, it does so once, and the answer of a replay is the number.
     */
    readonly replay: (
      webhook: WebhookRef,
      which: RedeliveryFilter,
      once?: IdempotencyKey,
    ) => Effect.Effect<
      number | ReplayedResponse,
      WebhookNotFound | WebhookDisabled | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Returns how much is left to deliver and what was given up, of all projects and of the webhooks that there
     * are. Deliveries to one that was just disabled may be among what is left.
     *
     * @param most - counts no further than this, and looks for the oldest due delivery, and for failed
     *   ones, among those of so many webhooks, so that a long backlog takes no longer
     */
    readonly backlog: (most: number) => Effect.Effect<Backlog, StoreUnavailable>
  }
>()("@tenure/core/Outbox") {}
