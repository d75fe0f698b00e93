/** A delivery as the store in memory keeps it. */

import type { Moment, QueuedDelivery } from "@tenure/core/internal"
import {
  type Attempt,
  type Delivery,
  type Event,
  type StoredWebhook,
  type WebhookId,
  userOf,
} from "@tenure/core/store"
import type { Mutable } from "effect/Types"

/** A delivery, changed by its attempts. */
export interface Job extends Mutable<QueuedDelivery> {
  event: Event
  readonly webhookId: WebhookId
  attempts: Array<Attempt>
  state: Delivery["state"]
  /** When it is due, in milliseconds since the epoch. Only reported: `dueTick` decides when it is claimed. */
  dueAt: number
  /** When its latest attempt was recorded, in milliseconds since the epoch. */
  attemptedAt: number | undefined
  /** The number of claims, including expired ones. */
  claims: number
}

/** Returns among whose deliveries one to a webhook waits for its turn, if it does. */
export const memberOf = ({ ordered }: StoredWebhook, { body }: Event): string | undefined =>
  ordered ? userOf(body) : undefined

/** Makes a delivery due after a delay. */
export const delayJob = (job: Job, millis: number, { tick, unix }: Moment): void => {
  job.dueTick = tick + millis
  job.dueAt = unix + millis
}
