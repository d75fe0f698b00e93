/** The storage port for events and their deliveries: a transactional outbox. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type {
  ChangeContext,
  IdempotencyConflict,
  IdempotencyKey,
  ReplayedResponse,
} from "../base/change-context.ts"
import type { StoreUnavailable } from "../base/errors.ts"
import type { ProjectId, ProjectNotFound } from "../base/values.ts"
import type { Event, EventId, EventNotFound, EventType } from "../events/event.ts"
import type { CancelSelection } from "./cancel.ts"
import type { ConcurrencyRange } from "./claim-budget.ts"
import type {
  ActivityCell,
  DeliveryProgress,
  TroubledWebhook,
  WebhookActivity,
} from "./delivery-activity.ts"
import type { ReplayPage, ReplaySelection } from "./replay.ts"
import type { StoredSecret } from "./secrets.ts"
import type {
  FailingPercent,
  Health,
  WebhookDisabled,
  WebhookId,
  WebhookNotFound,
} from "./webhook.ts"

/** A delivery's states. In all but the first, it has ended, unless it is replayed. */
export const deliveryStates = ["waiting", "delivered", "failed", "cancelled"] as const

/** A delivery's state. */
export type DeliveryState = (typeof deliveryStates)[number]

/** A webhook's checked ids. */
export interface WebhookRef {
  readonly projectId: ProjectId
  readonly webhookId: WebhookId
}

/** One attempt's record. */
export interface Attempt {
  /** When it started, in milliseconds since the epoch. */
  readonly at: number
  /** How long it took, in milliseconds. */
  readonly durationMillis: number
  /** What the receiver answered, or why no response arrived. */
  readonly result:
    /** `body` is the response's first kilobyte. */
    | { readonly _tag: "Answered"; readonly status: number; readonly body: string }
    /** `reason` is a code, for example `Timeout` or `ECONNREFUSED`. */
    | { readonly _tag: "Failed"; readonly reason: string }
}

/** One event on its way to one webhook. */
export interface Delivery {
  /** The id of the event. */
  readonly eventId: EventId
  /** The type of the event. */
  readonly type: EventType
  /** The id of the webhook. */
  readonly webhookId: WebhookId
  /** When the event happened, in milliseconds since the epoch. */
  readonly createdAt: number
  /** The user the event is about (`userOf`); `undefined` without one, and after an erasure. */
  readonly userId: string | undefined
  /** Whether it waits, was delivered, has failed, or was cancelled. */
  readonly state: DeliveryState
  /**
   * When the latest attempt was recorded, in whole milliseconds since the epoch by the store's clock; `undefined`
   * before the first one.
   */
  readonly attemptedAt: number | undefined
  /** When the next attempt is due, in milliseconds since the epoch; meaningful while it waits. */
  readonly dueAt: number
  /** The attempts, oldest first. */
  readonly attempts: ReadonlyArray<Attempt>
}

/** A delivery's place in the list by latest attempt. */
export interface AttemptPosition {
  readonly attemptedAt: number
  readonly eventId: EventId
}

/** An event on its way to all webhooks. */
export interface PublishedEvent extends Event {
  /** One delivery for each webhook that gets the event. */
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
      /** The webhook's own request headers. */
      readonly headers: StoredSecret | undefined
      /** The maximum number of concurrent attempts, within the claim's limits. */
      readonly concurrency: number
    }
  /** How many times the delivery was claimed, this time included: 1 for the first attempt. */
  readonly attemptNumber: number
  /** A new token per claim. It stops a dispatcher with an expired lease from settling. */
  readonly lease: string
}

/** Announces to the project's other webhooks that one has been failing for a share of `disableAfter`. */
export interface FailingAnnouncement {
  /** The share. */
  readonly percent: FailingPercent
  /** The claim's `failingSince`. It identifies the run of failures. */
  readonly failingSince: number
  /** The event `webhook.failing`. */
  readonly event: Event
}

/**
 * An attempt's result. All delays count from the settlement, on the store's clock.
 *
 * `failing` is published unless the webhook is disabled, its run of failures has ended, or this share or
 * a greater one was announced in the run.
 */
export type AttemptResult =
  | { readonly _tag: "Delivered"; readonly attempt: Attempt }
  /** To be attempted again after `delayMillis`. The webhook is held for `holdMillis`. */
  | {
      readonly _tag: "Retry"
      readonly attempt: Attempt
      readonly delayMillis: number
      readonly holdMillis: number
      readonly failing?: FailingAnnouncement | undefined
    }
  /** Given up, and still visible. The webhook is held for `holdMillis`. */
  | {
      readonly _tag: "Failed"
      readonly attempt: Attempt
      readonly holdMillis: number
      readonly failing?: FailingAnnouncement | undefined
    }
  /**
   * Given up, together with the webhook: it is disabled, and all its waiting deliveries fail. In the
   * same step, `failing` and then the announcement are published to the project's other webhooks. If the
   * webhook is disabled already, or `failing` is not to be published, only this delivery is given up.
   */
  | {
      readonly _tag: "Disabled"
      readonly attempt: Attempt
      readonly announcement: Event
      readonly failing?: FailingAnnouncement | undefined
    }
  /** The attempt was interrupted. The delivery is due at once, as if it had not been claimed. */
  | { readonly _tag: "Released" }

/** Returns the events that a settlement may publish, in their order. */
export const announcementsOf = (settlement: AttemptResult): ReadonlyArray<Event> => {
  const failing = "failing" in settlement ? settlement.failing : undefined
  return [
    ...(failing === undefined ? [] : [failing.event]),
    ...(settlement._tag === "Disabled" ? [settlement.announcement] : []),
  ]
}

/** A settlement's result. */
export type SettleResult =
  /** Nothing: the lease has expired, or the delivery was cancelled. */
  | "Lapsed"
  | "Settled"
  /** `failing` was published too. */
  | "WebhookFailing"
  /** The webhook was disabled too, first by this settlement. */
  | "WebhookDisabled"

/** A claim's result. */
export interface ClaimResult {
  readonly claims: ReadonlyArray<Claim>
  /**
   * Milliseconds until there may be more to claim: 0 if the claim reached its limit, later if a delivery
   * becomes due, a lease expires, a hold ends or a token of a webhook's rate returns; `undefined` if there
   * is more only after a publication, a replay or a settlement.
   */
  readonly nextDueMillis: number | undefined
  /**
   * Webhooks with ready deliveries skipped because of a limit: settlements may make more claimable. For
   * any other webhook, a success makes nothing ready, unless it is ordered: then `nextChange` tells.
   */
  readonly keptBack: ReadonlyArray<WebhookId>
}

/** How far a backlog is counted for a host: this number stands for as many or more. */
export const maxCountedBacklog = 10_000

/** How much is left to deliver. */
export interface Backlog {
  /** Deliveries waiting for an attempt or its result. */
  readonly waiting: number
  /**
   * For how many milliseconds the oldest due delivery has been due, on the store's clock; `undefined`
   * if none is due. Ready deliveries that were replayed together do not count: live ones overtake them.
   * Neither do those to webhooks that were disabled by request.
   */
  readonly dueForMillis: number | undefined
  /**
   * How long the oldest of them has waited for a dispatcher alone (`isAwaited`), in milliseconds. For a webhook on hold,
   * the time begins when the hold ends. `undefined` if nothing waits. It grows if too few processes send, not if receivers
   * fail, are slow, or have a rate.
   */
  readonly lateForMillis: number | undefined
  /** Kept deliveries that were given up, to existing webhooks: a replay restarts them. */
  readonly failedDeliveries: number
  /** Webhooks that were disabled because of failures. */
  readonly disabledWebhooks: number
}

/**
 * Returns a webhook's maximum number of claimed deliveries. It decreases as the project approaches its
 * limit, so hanging webhooks leave room for the project's others.
 *
 * @param concurrency - the webhook's concurrency
 * @param claimed - the project's number of claimed deliveries
 * @returns 0 if the project has reached its limit
 */
export const maxAttemptsOfWebhook = (
  concurrency: number,
  perProject: number,
  claimed: number,
): number => Math.max(0, Math.ceil((concurrency * (perProject - claimed)) / perProject))

/** How busy a webhook is. */
export interface WebhookLoad {
  /** How many of its deliveries are claimed. */
  readonly claimed: number
  readonly concurrency: number
  readonly isFailing: boolean
  readonly isOrdered: boolean
}

/**
 * Tells whether due deliveries of an enabled webhook wait for a dispatcher, rather than for the receiver's responses.
 * Between two claims, a webhook has fewer than its concurrency.
 */
export const isAwaited = ({ claimed, concurrency, isFailing, isOrdered }: WebhookLoad): boolean =>
  isFailing || isOrdered ? claimed === 0 : 2 * claimed < concurrency

/** A change relevant to dispatchers. */
export type OutboxChange =
  /**
   * A delivery may be due earlier than the last claim said: it was published, released or replayed, or the one before it
   * to an ordered webhook was settled.
   */
  | { readonly _tag: "Due" }
  /**
   * A webhook was removed or, by request, disabled, perhaps by another process: attempts in flight must be
   * aborted.
   */
  | { readonly _tag: "Stopped"; readonly webhookId: WebhookId }

/**
 * Stores events until they are delivered.
 *
 * Any number of dispatchers can claim deliveries. A lease ensures that only one dispatcher has a
 * delivery at a time, and that a dead dispatcher's deliveries are claimed again.
 */
export class Outbox extends Context.Service<
  Outbox,
  {
    /** Succeeds if the store answers and takes changes. */
    readonly ping: Effect.Effect<void, StoreUnavailable>

    /**
     * Stores an event, with a delivery for each enabled webhook in its project subscribed to its type.
     * With an idempotency key, it does so once, as changes in a `MembershipStore`. A replay returns the
     * event id.
     */
    readonly publish: (
      event: Event,
      idempotency?: IdempotencyKey,
    ) => Effect.Effect<
      ReplayedResponse | void,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Stores an event with a delivery for one webhook in its project, whatever the webhook's types;
     * once with an idempotency key, as `publish` does.
     */
    readonly publishTo: (
      event: Event,
      webhookId: WebhookId,
      idempotency?: IdempotencyKey,
    ) => Effect.Effect<
      ReplayedResponse | void,
      WebhookNotFound | WebhookDisabled | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Claims due deliveries for `leaseMillis` on the store's clock; for less if the store learns that
     * the process is gone. Projects take turns, and so do the webhooks in each project: one's backlog
     * does not delay another. For one webhook, the delivery due first is claimed first, and among those
     * due at the same time, the one published first; deliveries that were replayed together come after
     * all others that are due. Nothing is claimed for a held webhook, and one delivery at a time for a
     * failing webhook, until one succeeds. Deliveries to a webhook that was disabled by request wait until
     * it is enabled.
     *
     * For an ordered webhook, a delivery about a user (`userOf`) is claimed only if no other about this user is
     * claimed, and none published earlier waits. When its turn comes, it is due since its publication. This applies to
     * events published or replayed while the webhook is ordered.
     *
     * For a webhook with a rate, each claim takes a token from its bucket (`webhookRatePolicy`), which all processes
     * share. A claim that is released does not return it.
     *
     * @param options.limit - the maximum number of deliveries
     * @param options.failing - the maximum for failing webhooks among them
     * @param options.perWebhook - the limits for a webhook's concurrency. The concurrency is the
     *   maximum number of its deliveries claimed at a time in all processes, including earlier claims;
     *   it decreases as the project uses up its limit, see `maxAttemptsOfWebhook`
     * @param options.perProject - the maximum for one project, over all its webhooks, in this process
     * @param options.ahead - for some webhooks, how many deliveries to prefetch beyond their
     *   concurrency, to wait in this process. Nothing is prefetched for a failing webhook, for a
     *   webhook with a rate or with claims in another process, or for a project with half its limit used
     *   up. The limit does not count prefetched deliveries
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
     * If the claim still holds, records the attempt and the delivery's new state, and adapts the
     * webhook's concurrency by `concurrencyAfterSuccess` or `concurrencyAfterFailure`.
     */
    readonly settle: (
      claim: Claim,
      settlement: AttemptResult,
    ) => Effect.Effect<SettleResult, StoreUnavailable>

    /**
     * Waits for the next change and returns it; at once, if there was one since the last call. A store
     * that may miss changes returns `Due` every few seconds, and `Stopped` soon after removing or
     * disabling a webhook with claimed deliveries. It may return the same one several times.
     */
    readonly nextChange: Effect.Effect<OutboxChange, StoreUnavailable>

    /**
     * Returns a webhook's deliveries, newest first, even after the webhook was deleted.
     *
     * @param page.state - returns only deliveries in this state
     * @param page.olderThan - returns only deliveries older than this event's
     * @param page.limit - the maximum number of deliveries
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
     * Returns a webhook's attempted deliveries, the latest attempted first, and with the same time the greatest event id
     * first; even after the webhook was deleted.
     *
     * @param page.state - returns only deliveries in this state
     * @param page.before - returns only deliveries after this one in the list
     * @param page.limit - the maximum number of deliveries
     */
    readonly attempted: (
      webhook: WebhookRef,
      page: {
        readonly state?: DeliveryState | undefined
        readonly before?: AttemptPosition | undefined
        readonly limit: number
      },
    ) => Effect.Effect<ReadonlyArray<Delivery>, StoreUnavailable>

    /**
     * Returns how far deliveries are, for all given webhooks in the project that exist. Includes an attempt as soon as
     * it is settled.
     */
    readonly progress: (
      projectId: ProjectId,
      webhookIds: ReadonlyArray<WebhookId>,
    ) => Effect.Effect<ReadonlyMap<WebhookId, DeliveryProgress>, StoreUnavailable>

    /**
     * Returns a webhook's settled attempts in the last day, on the store's clock. Those settled by other processes may be
     * missing for up to 10 seconds, and those settled just before a process was killed may be missing forever.
     */
    readonly activity: (
      webhook: WebhookRef,
    ) => Effect.Effect<WebhookActivity, WebhookNotFound | StoreUnavailable>

    /**
     * Returns the settled attempts in the last hour by the minute, oldest first, for a project or for all together. They
     * are as complete as those in `activity`.
     */
    readonly minutes: (
      projectId: ProjectId | undefined,
    ) => Effect.Effect<ReadonlyArray<ActivityCell>, ProjectNotFound | StoreUnavailable>

    /**
     * Returns all projects' failing webhooks and those disabled because of failures, ordered by `compareTroubles`.
     *
     * @param most - the maximum number of webhooks
     */
    readonly troubled: (
      most: number,
    ) => Effect.Effect<ReadonlyArray<TroubledWebhook>, StoreUnavailable>

    /**
     * Returns an event with all its deliveries, even to deleted webhooks, in the webhook list's order.
     */
    readonly find: (
      projectId: ProjectId,
      eventId: EventId,
    ) => Effect.Effect<PublishedEvent, EventNotFound | StoreUnavailable>

    /**
     * Restarts an event's delivery if it has ended or waits for its next attempt, and returns 1, or 0 if
     * there is nothing to restart. It is due at once, and its attempts count from 1 again; earlier
     * attempts' records are kept. A due or claimed delivery is not changed. With an idempotency key, it
     * does so once, and a replay returns the number.
     */
    readonly replay: (
      webhook: WebhookRef,
      eventId: EventId,
      idempotency?: IdempotencyKey,
    ) => Effect.Effect<
      number | ReplayedResponse,
      WebhookNotFound | WebhookDisabled | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Sends many events of a project to a webhook again, in the order they were stored: reads up to
     * `maxReplayRead`, and sends up to `maxReplayed`. A replay ends with the event that was the last one
     * when it began. Events are selected by what became of them, as `replayKindOf` says. One without a
     * delivery gets one, and others restart as `replay` does; `claim` says when they are claimed. Even
     * concurrent calls make at most one delivery for an event. A dry run returns the same page and
     * changes nothing. Fails with `EventNotFound` if an event of the position is not kept any more. With
     * an idempotency key, it does so once, and a replay returns what `formatReplayPage` writes.
     */
    readonly replayMany: (
      webhook: WebhookRef,
      selection: ReplaySelection,
      idempotency?: IdempotencyKey,
    ) => Effect.Effect<
      ReplayPage | ReplayedResponse,
      WebhookNotFound | WebhookDisabled | EventNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Cancels a webhook's waiting deliveries whose events match, except claimed ones, and returns how many.
     * An ordered webhook goes on with the next of each user. They are sent again by `replay` alone, and
     * never by `replayMany`. Audits `deliveries_cancelled` with the webhook as its subject, and with the
     * number, if any was cancelled; a dry run counts them, and changes nothing. It may take several steps: a
     * delivery published meanwhile is left. With an idempotency key, it does so once, and a replay returns the
     * number. If it cannot be part of the host's transaction, it dies with `NotInTransaction` there.
     */
    readonly cancel: (
      webhook: WebhookRef,
      selection: CancelSelection,
      context: ChangeContext,
    ) => Effect.Effect<
      number | ReplayedResponse,
      WebhookNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Returns the backlog and the deliveries given up, over all projects and existing webhooks.
     * Deliveries to a webhook disabled just now may count as waiting.
     *
     * @param most - counts up to this number, and looks for the oldest due delivery and for failed ones
     *   among this number of webhooks, so a long backlog takes no longer
     */
    readonly backlog: (most: number) => Effect.Effect<Backlog, StoreUnavailable>
  }
>()("@tenure/core/Outbox") {}
