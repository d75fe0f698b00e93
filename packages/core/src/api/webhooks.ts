/** The operations on webhooks. */

import { ofProject } from "../base/input.ts"
import { either, input } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import {
  cancellation,
  newWebhook,
  ofWebhook,
  oneReplay,
  possibleEventId,
  replayPage,
  webhookPath,
  webhookUpdate,
} from "../webhooks/inputs.ts"
import { deliveryStates } from "../webhooks/outbox.ts"
import type { Disabling } from "../webhooks/webhook.ts"
import { counted, declareOperations, pageFields, paged, plain } from "./declaration.ts"
import type {
  ActivityCell,
  AnsweredAttempt,
  Attempt,
  DeliveryProgress,
  Instant,
  Int,
  LastAttempt,
  Uuid,
} from "./types.ts"

export interface Webhook {
  /**
   * The receiver's URL: public, http or https, without credentials.
   * @maxLength 2048
   * @example "https://receiver.example/hooks"
   */
  readonly url: string
  /** The webhook's id. */
  readonly id: Uuid
  /**
   * The secret for signing notifications: `whsec_` and base64. `unreadable_` and a UUID, never used for
   * signing, stand for a secret the server cannot read.
   * @example "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
   */
  readonly secret: string
}

export interface WebhookHealth {
  /** The webhook's id. */
  readonly id: Uuid
  /**
   * The receiver's URL: public, http or https, without credentials.
   * @maxLength 2048
   * @example "https://receiver.example/hooks"
   */
  readonly url: string
  /**
   * The event types to send; null for all.
   * @minItems 1
   * @maxItems 100
   * @example null
   */
  readonly event_types: ReadonlyArray<string> | null
  /**
   * Whether a member's events are sent one after another.
   * @example false
   */
  readonly ordered: boolean
  /**
   * How many attempts start in a second at most; null without a limit.
   * @minimum 1
   * @maximum 10000
   * @example null
   */
  readonly rate: Int | null
  /**
   * The webhook's purpose; null if none was given.
   * @minLength 1
   * @maxLength 200
   * @example null
   */
  readonly description: string | null
  /**
   * The webhook's own request header names, in lower case and in order.
   * @example ["x-tenant"]
   */
  readonly header_names: ReadonlyArray<string>
  readonly created_at: Instant
  /**
   * When it was disabled; null while it is enabled.
   * @example null
   */
  readonly disabled_at: Instant | null
  /**
   * `failures` if attempts had failed for too long or the receiver is gone: waiting deliveries have
   * failed. `request` if a client or the host disabled it: waiting deliveries stay. Null while the
   * webhook is enabled.
   * @example null
   */
  readonly disabled_by: Disabling["by"] | null
  /**
   * When an attempt first failed since one succeeded; null if none has.
   * @example null
   */
  readonly failing_since: Instant | null
  /**
   * How many attempts have failed since one succeeded.
   * @example 0
   */
  readonly failures: Int
  /**
   * The latest attempt with a kept delivery, or null.
   * @example null
   */
  readonly last_attempt: LastAttempt | null
  /**
   * Deliveries waiting for an attempt or its result, up to 10,000; 10,000 stands for as many or more.
   * @minimum 0
   * @maximum 10000
   * @example 0
   */
  readonly waiting: Int
  /**
   * When the next attempt is due; null if none is, because nothing waits, all is being attempted, or the webhook is
   * disabled.
   * @example null
   */
  readonly next_attempt_at: Instant | null
}

export interface WebhookDetails extends WebhookHealth, Pick<Webhook, "secret"> {}

/** A delivery's event. */
interface DeliveredEvent {
  /** The event's id. */
  readonly event_id: Uuid
  /**
   * The event's type.
   * @example "payment.completed"
   */
  readonly type: string
  /** When the event happened. */
  readonly created_at: Instant
  /**
   * The first `user_id` in the event's data: the user it is about. null without one, and after an erasure.
   * @example null
   */
  readonly user_id: string | null
}

export interface Delivery extends DeliveredEvent, DeliveryProgress {
  readonly attempts: ReadonlyArray<Attempt>
}

export interface ShownDelivery extends DeliveredEvent, DeliveryProgress {
  readonly attempts: ReadonlyArray<AnsweredAttempt>
  /** The request sent by every attempt. */
  readonly request: {
    readonly method: "POST"
    /** @example "https://receiver.example/hooks" */
    readonly url: string
    /**
     * The header fields; null for fields made anew by each attempt, and for the webhook's own fields,
     * because these are never shown.
     * @example
     *   {"content-type":"application/json","user-agent":"Tenure","webhook-id":"6ba7b810-9dad-41d1-80b4-00c04fd430c8","webhook-timestamp":null,"webhook-signature":null}
     */
    readonly headers: Readonly<Record<string, string | null>>
    /**
     * The body, as it is sent.
     * @example "{\"type\":\"payment.completed\",\"timestamp\":\"2099-01-01T00:00:00.000Z\",\"data\":{\"invoice\":\"2099-117\"}}"
     */
    readonly body: string
  }
}

export interface WebhookActivity {
  /** 96 spans of 15 minutes, oldest first; the last one goes on. */
  readonly quarters: ReadonlyArray<ActivityCell>
  /**
   * These attempts' median duration, estimated: at most 19 % off between 4 and 16,384 ms, and one of
   * these two values beyond; null without any attempts.
   * @example 84
   */
  readonly p50_ms: Int | null
  /**
   * The 99th percentile, estimated in the same way.
   * @example 512
   */
  readonly p99_ms: Int | null
}

export interface RotatedSecret {
  /**
   * The new secret.
   * @example "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
   */
  readonly secret: Webhook["secret"]
  /** Until when the previous one also signs. */
  readonly previous_until: Instant
}

export interface ReplayedEvents {
  /**
   * The number of events sent again, up to 10,000 in one call.
   * @example 1
   */
  readonly replayed: Int
  /**
   * The cursor to go on with: the next call's `after`, with the other fields unchanged. Null if all
   * events were looked at.
   * @example null
   */
  readonly next: string | null
}

export interface CancelledDeliveries {
  /**
   * The number of deliveries.
   * @example 1
   */
  readonly total: Int
}

const all = "/v2/projects/:project_id/integrations/webhooks"
const one = `${all}/:webhook_id` as const

/** A page from a webhook's deliveries. */
const deliveriesQuery = input(webhookPath, {
  ...pageFields,
  /** Lists only deliveries in this state. */
  state: Setting.optional(Setting.oneOf(deliveryStates)),
  /**
   * `created`, the default, lists the newest first; `latest_attempt` lists only attempted deliveries,
   * the latest attempted first. A cursor belongs to its page's order.
   */
  order: Setting.withDefault(Setting.oneOf(["created", "latest_attempt"]), "created"),
})

/** The ids for an event's delivery to a webhook. The webhook is looked up before the event. */
const ofDelivery = input(
  {
    ...webhookPath,
    /** The event's id. */
    eventId: possibleEventId,
  },
  {},
)

/** Events to send again. */
const replay = either(oneReplay, replayPage)

/**
 * Webhooks
 *
 * Webhooks send a project's events to receivers.
 */
export const webhookOperations = declareOperations({
  /**
   * List webhooks
   *
   * Returns a project's webhooks, oldest first.
   */
  list: {
    method: "GET",
    pattern: all,
    role: "client",
    isContract: true,
    input: ofProject,
    reply: counted<ReadonlyArray<Webhook>>("The webhooks of the project."),
    errors: [],
  },
  /**
   * Register a webhook
   *
   * Registers a URL, to receive the project's events from now on.
   */
  create: {
    method: "POST",
    pattern: all,
    role: "client",
    isContract: true,
    input: newWebhook,
    reply: plain<Webhook>("The webhook was created."),
    errors: ["InvalidWebhookUrl", "WebhookLimitReached", "WebhookNotFound"],
  },
  /**
   * List how webhooks are doing
   *
   * Returns a project's webhooks, oldest first, without their secrets: their purposes, and how their
   * latest attempts went.
   */
  health: {
    method: "GET",
    pattern: "/v2/projects/:project_id/integrations/health",
    role: "client",
    input: ofProject,
    reply: counted<ReadonlyArray<WebhookHealth>>(
      "The webhooks of the project, without their secrets.",
    ),
    errors: [],
  },
  /**
   * Find a webhook
   *
   * Returns a webhook, its purpose, how its latest attempts went, and its secret: the audit trail
   * records the disclosure.
   */
  get: {
    method: "GET",
    pattern: one,
    role: "client",
    input: ofWebhook,
    reply: plain<WebhookDetails>("The webhook."),
    errors: ["WebhookNotFound"],
  },
  /**
   * Change a webhook
   *
   * Changes a webhook's settings. Its id, its secret and its deliveries stay, and settings missing from
   * the body stay, too.
   */
  update: {
    method: "PATCH",
    pattern: one,
    role: "operator",
    input: webhookUpdate,
    reply: plain<WebhookHealth>("The webhook was changed."),
    errors: ["WebhookNotFound", "InvalidWebhookUrl"],
  },
  /**
   * Delete a webhook
   *
   * Deletes a webhook. No further attempt to notify it starts.
   */
  delete: {
    method: "DELETE",
    pattern: one,
    role: "client",
    isContract: true,
    input: ofWebhook,
    reply: plain<null>("The webhook was deleted."),
    errors: ["WebhookNotFound"],
  },
  /**
   * Try out a webhook
   *
   * Sends the event webhook.ping to one webhook.
   */
  ping: {
    method: "POST",
    pattern: `${one}/ping`,
    role: "operator",
    input: ofWebhook,
    reply: plain<{
      /** The event's id. */
      readonly event_id: Uuid
    }>("The event webhook.ping was published."),
    errors: ["WebhookNotFound", "WebhookDisabled"],
  },
  /**
   * Enable a webhook
   *
   * Enables a disabled webhook, and goes on with its waiting deliveries. An enabled webhook does not
   * change.
   */
  enable: {
    method: "POST",
    pattern: `${one}/enable`,
    role: "operator",
    input: ofWebhook,
    reply: plain<null>("The webhook is enabled."),
    errors: ["WebhookNotFound"],
  },
  /**
   * Rotate a secret
   *
   * Replaces a webhook's secret. The previous one also signs for a day.
   */
  rotate: {
    method: "POST",
    pattern: `${one}/rotate`,
    role: "operator",
    input: ofWebhook,
    reply: plain<RotatedSecret>("The webhook has a new secret."),
    errors: ["WebhookNotFound"],
  },
  /**
   * List deliveries
   *
   * Returns a webhook's deliveries, newest first, with every attempt.
   */
  deliveries: {
    method: "GET",
    pattern: `${one}/deliveries`,
    role: "operator",
    input: deliveriesQuery,
    reply: paged<ReadonlyArray<Delivery>>("The deliveries to the webhook, newest first."),
    errors: ["WebhookNotFound"],
  },
  /**
   * Get a webhook's last day
   *
   * Counts a webhook's attempts in the last 24 hours, in 15-minute spans, and estimates how long they took.
   * Another server's attempts may be missing for up to 10 seconds.
   */
  activity: {
    method: "GET",
    pattern: `${one}/activity`,
    role: "client",
    input: ofWebhook,
    reply: plain<WebhookActivity>("What was sent to the webhook in the last 24 hours."),
    errors: ["WebhookNotFound"],
  },
  /**
   * Find a delivery
   *
   * Returns an event's delivery to a webhook: the request sent by every attempt, and the receiver's
   * responses. The audit trail records the disclosure.
   */
  delivery: {
    method: "GET",
    pattern: `${one}/deliveries/:event_id`,
    role: "operator",
    input: ofDelivery,
    reply: plain<ShownDelivery>("The delivery, with its request and what the receiver responded."),
    errors: ["WebhookNotFound", "EventNotFound"],
  },
  /**
   * Replay events
   *
   * Sends an event to a webhook again, or now if it waits for its next attempt; or sends the events
   * since a time that the webhook has missed or not accepted. One call reads up to 25,000 kept events
   * and sends up to 10,000, after all other events due for the webhook. Waiting deliveries and attempts
   * in flight are never doubled.
   */
  replay: {
    method: "POST",
    pattern: `${one}/replay`,
    role: "operator",
    input: replay,
    reply: plain<ReplayedEvents>("The number of events that are sent again."),
    errors: ["WebhookNotFound", "WebhookDisabled"],
  },
  /**
   * Cancel deliveries
   *
   * Cancels what waits for a webhook, except attempts in flight. With several fields, only events that
   * match all of them are cancelled. They are sent again only one by one, by a replay with `event_id`.
   */
  cancel: {
    method: "POST",
    pattern: `${one}/cancel`,
    role: "operator",
    input: cancellation,
    reply: plain<CancelledDeliveries>("The waiting deliveries were cancelled."),
    errors: ["WebhookNotFound"],
  },
})
