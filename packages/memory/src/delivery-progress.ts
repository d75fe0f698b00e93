/** How webhooks are doing: their latest attempts, what waits, and what needs attention. */

import type { Moment } from "@tenure/core/internal"
import {
  type AttemptPosition,
  type Delivery,
  type DeliveryProgress,
  type Outbox,
  type StoredWebhook,
  type WebhookActivity,
  type WebhookId,
  type WebhookRef,
  maxCountedBacklog,
} from "@tenure/core/store"
import { type Deliveries, deliveriesJobsOf, healthOf, toDelivery } from "./deliveries.ts"
import { makeDayCounts } from "./delivery-activity.ts"
import type { Job } from "./jobs.ts"

type AttemptedPage = Parameters<Outbox["Service"]["attempted"]>[1]

/** Returns why a webhook needs attention, if it does. */
export const troubleOf = (
  deliveries: Deliveries,
  { description, disabled, id: webhookId, projectId, url }: StoredWebhook,
) => {
  if (disabled?.by === "request") return undefined
  const { failingSince } = healthOf(deliveries, webhookId)
  const since = disabled?.at ?? failingSince
  return since === undefined
    ? undefined
    : {
        projectId,
        webhookId,
        url,
        description,
        trouble: disabled === undefined ? ("failing" as const) : ("disabled" as const),
        since,
      }
}

const noAttempts = makeDayCounts()

/** Returns a webhook's last day. */
export const lastDayOf = (
  { records }: Deliveries,
  webhookId: WebhookId,
  now: number,
): WebhookActivity => {
  const { answerTimes, cells } = records.get(webhookId)?.day ?? noAttempts
  return { quarters: cells(now), answerTimes: answerTimes(now) }
}

const nothingWaits: DeliveryProgress = {
  latestAttempt: undefined,
  waiting: 0,
  nextAttemptAt: undefined,
}

/** Returns how far a webhook's deliveries are. */
export const progressOf = (
  { queues, records }: Deliveries,
  webhookId: WebhookId,
  { tick, unix }: Moment,
): DeliveryProgress => {
  const queue = queues.byWebhook.get(webhookId)
  if (queue === undefined) return nothingWaits
  const next = queue.waiting.peek(tick)
  return {
    latestAttempt: records.get(webhookId)?.latestAttempt,
    waiting: Math.min(maxCountedBacklog, queue.waiting.size() + queue.leases.size),
    nextAttemptAt:
      next === undefined || queue.webhook.disabled !== undefined
        ? undefined
        : // Also after the hold, because none could start before its end.
          Math.max(next.dueAt, unix + queue.heldUntil - tick),
  }
}

/** Tells whether a delivery comes after a position in the list by latest attempt. */
const isAfter = (
  { attemptedAt, eventId }: AttemptPosition,
  { attemptedAt: at, event }: Job,
): boolean => at !== undefined && (at < attemptedAt || (at === attemptedAt && event.id < eventId))

/** Returns a page with a webhook's attempted deliveries, latest attempt first. */
export const listAttempted = (
  deliveries: Deliveries,
  webhook: WebhookRef,
  { before, limit, state }: AttemptedPage,
): ReadonlyArray<Delivery> =>
  deliveriesJobsOf(deliveries, webhook)
    .filter(
      (job) =>
        job.attemptedAt !== undefined &&
        (state === undefined || job.state === state) &&
        (before === undefined || isAfter(before, job)),
    )
    .toSorted(
      (one, other) =>
        (other.attemptedAt ?? 0) - (one.attemptedAt ?? 0) ||
        (one.event.id < other.event.id ? 1 : -1),
    )
    .slice(0, limit)
    .map(toDelivery)
