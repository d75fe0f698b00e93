/** A webhook's deliveries that wait. */

import { type Moment } from "@tenure/core/internal"
import type { Attempt, Delivery, Event, WebhookId } from "@tenure/core/store"
import { makeHeap } from "./collections.ts"

/** A delivery, changed by its attempts. */
export interface Job {
  event: Event
  readonly webhookId: WebhookId
  /** The position among all publications. Orders deliveries due at the same time. */
  readonly order: number
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

/** Makes a delivery that is due. */
export const makeJob = (
  event: Event,
  webhookId: WebhookId,
  order: number,
  { tick }: Moment,
): Job => ({
  event,
  webhookId,
  order,
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

/** Tells whether a delivery precedes another for the same webhook, if both or none are replayed. */
const compareJobs = (one: Job, other: Job): boolean =>
  one.dueTick === other.dueTick ? one.order < other.order : one.dueTick < other.dueTick

/** The deliveries that wait. Replayed ones come after all others that are due. */
export interface WaitingJobs {
  readonly size: () => number
  readonly push: (job: Job) => void
  /** Returns the next delivery to claim, or the one that is due next. */
  readonly peek: (tick: number) => Job | undefined
  /** Removes the delivery that `peek` returns, and returns it. */
  readonly pop: (tick: number) => Job | undefined
  /** Returns when the first delivery that is not replayed is due or was, by the monotonic clock. */
  readonly oldestDueTick: () => number
  /** Returns all deliveries, in no particular order. */
  readonly values: () => ReadonlyArray<Job>
  readonly clear: () => void
}

/** Starts without deliveries. */
export const makeWaitingJobs = (): WaitingJobs => {
  const own = makeHeap<Job>(compareJobs)
  const replayed = makeHeap<Job>(compareJobs)

  /** Returns the heap whose first delivery is next. */
  const nextOf = (tick: number) => {
    const one = own.peek()?.dueTick ?? Infinity
    const other = replayed.peek()?.dueTick ?? Infinity
    return one <= Math.max(tick, other) ? own : replayed
  }

  return {
    size: () => own.size() + replayed.size(),
    push: (job) => (job.isReplay ? replayed : own).push(job),
    peek: (tick) => nextOf(tick).peek(),
    pop: (tick) => nextOf(tick).pop(),
    oldestDueTick: () => own.peek()?.dueTick ?? Infinity,
    values: () => [...own.values(), ...replayed.values()],
    clear: () => {
      own.clear()
      replayed.clear()
    },
  }
}
