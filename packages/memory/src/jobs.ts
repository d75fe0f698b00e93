/** A delivery as the store in memory keeps it. */

import { type Moment } from "@tenure/core/internal"
import {
  type Attempt,
  type Delivery,
  type Event,
  type StoredWebhook,
  type WebhookId,
  userOf,
} from "@tenure/core/store"

/** A delivery, changed by its attempts. */
export interface Job {
  event: Event
  readonly webhookId: WebhookId
  /** The position among all publications. Orders deliveries due at the same time. */
  readonly order: number
  /** Whom the event is about, if it waits for its turn among those of this user: the webhook is ordered. */
  member: string | undefined
  attempts: Array<Attempt>
  state: Delivery["state"]
  /** Whether it is one of many that were replayed together: all others of its webhook are claimed before it. */
  isReplay: boolean
  /** When it is due, by the monotonic clock. Decides when it is claimed. */
  dueTick: number
  /** When it is due, in milliseconds since the epoch. Only reported. */
  dueAt: number
  /** When its latest attempt was recorded, in milliseconds since the epoch. */
  attemptedAt: number | undefined
  /** The number of claims, including expired ones. */
  claims: number
}

/** Returns among whose deliveries one to a webhook waits for its turn, if it does. */
export const memberOf = ({ ordered }: StoredWebhook, { body }: Event): string | undefined =>
  ordered ? userOf(body) : undefined

/** Makes a delivery that is due. */
export const makeJob = (
  event: Event,
  webhook: StoredWebhook,
  order: number,
  { tick }: Moment,
): Job => ({
  event,
  webhookId: webhook.id,
  order,
  member: memberOf(webhook, event),
  attempts: [],
  state: "waiting",
  isReplay: false,
  dueTick: tick,
  dueAt: event.at,
  attemptedAt: undefined,
  claims: 0,
})

/** Makes a delivery due after a delay. */
export const delayJob = (job: Job, millis: number, { tick, unix }: Moment): void => {
  job.dueTick = tick + millis
  job.dueAt = unix + millis
}
