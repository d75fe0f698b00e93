/** One delivery: an event for a webhook. */

import * as Erasure from "@tenure/core/Erasure"
import type { Event } from "@tenure/core/Event"
import type { UserId } from "@tenure/core/Membership"
import type { Moment } from "@tenure/core/Moment"
import type { Attempt, Delivery, Replay, WebhookRef } from "@tenure/core/Outbox"
import type { WebhookId } from "@tenure/core/Webhook"

/** A delivery that changes as it is attempted. */
export interface Job {
  event: Event
  readonly webhookId: WebhookId
  /** The position among all publications, which orders jobs that are due at the same time. */
  readonly order: number
  attempts: Array<Attempt>
  state: Delivery["state"]
  /** When it is due, by the monotonic clock: that is what counts. */
  dueTick: number
  /** When it is due, in milliseconds since the epoch: that is what is reported. */
  dueAt: number
  /** The number of claims, including those that expired. */
  claims: number
}

/** Makes a job for an event that was just published. */
export const make = (event: Event, webhookId: WebhookId, order: number, { tick }: Moment): Job => ({
  event,
  webhookId,
  order,
  attempts: [],
  state: "waiting",
  dueTick: tick,
  dueAt: event.at,
  claims: 0,
})

/** Makes a job due after a delay. */
export const delay = (job: Job, millis: number, { tick, unix }: Moment): void => {
  job.dueTick = tick + millis
  job.dueAt = unix + millis
}

/** Tells whether a job comes before another job of the same webhook. */
export const isSooner = (one: Job, other: Job): boolean =>
  one.dueTick === other.dueTick ? one.order < other.order : one.dueTick < other.dueTick

/** Tells whether a job belongs to a webhook. */
export const isOf = ({ event, webhookId }: Job, webhook: WebhookRef): boolean =>
  webhookId === webhook.webhookId && event.projectId === webhook.projectId

const withoutResponse = ({ result, ...attempt }: Attempt): Attempt => ({
  ...attempt,
  result: result._tag === "Answered" ? { ...result, body: "" } : result,
})

/** Removes a user id from the event of a job, if that has it, and then what the receiver has responded. */
export const erase = (job: Job, userId: UserId): void => {
  if (!Erasure.concerns(job.event, userId)) return
  job.event = Erasure.erase(job.event, userId)
  job.attempts = job.attempts.map(withoutResponse)
}

/** Tells whether a job waits for its next attempt. One that is claimed was due. */
const isLater = ({ dueTick, state }: Job, { tick }: Moment): boolean =>
  state === "waiting" && dueTick > tick

/** Tells whether a replay concerns a job. */
export const isReplayed = (job: Job, which: Replay, now: Moment): boolean =>
  which._tag === "One"
    ? job.event.id === which.eventId &&
      (job.state === "delivered" || job.state === "failed" || isLater(job, now))
    : job.event.at >= which.at && job.state === "failed"

/** Returns the delivery as it is now. */
export const toDelivery = ({ attempts, dueAt, event, state, webhookId }: Job): Delivery => ({
  eventId: event.id,
  type: event.type,
  webhookId,
  state,
  dueAt,
  attempts: [...attempts],
})
