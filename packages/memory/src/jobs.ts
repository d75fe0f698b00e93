/** A webhook's deliveries that wait. */

import { type Moment } from "@tenure/core/internal"
import {
  type Attempt,
  type Delivery,
  type Event,
  type StoredWebhook,
  type WebhookId,
  userOf,
} from "@tenure/core/store"
import { type Heap, makeHeap } from "./collections.ts"

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

/** Tells whether a delivery precedes another for the same webhook, if both or none are replayed. */
const compareJobs = (one: Job, other: Job): boolean =>
  one.dueTick === other.dueTick ? one.order < other.order : one.dueTick < other.dueTick

/** A member's open deliveries. */
interface Turn {
  /** The one that waits to be claimed, or is claimed. */
  current: Job
  isClaimed: boolean
  /** All others: those published first come first. */
  readonly blocked: Heap<Job>
}

/**
 * The deliveries that wait. Replayed ones come after all others that are due. Of each member, the one published first
 * blocks the others until it ends, and none is claimed while another one is.
 */
export interface WaitingJobs {
  readonly size: () => number
  /** Adds a delivery, or returns one that was popped. */
  readonly push: (job: Job) => void
  /** Forgets a delivery that was popped and has ended, and unblocks the next of its member. */
  readonly leave: (job: Job) => void
  /** Returns the next delivery to claim, or the one that is due next. */
  readonly peek: (tick: number) => Job | undefined
  /** Removes the delivery that `peek` returns, and returns it. */
  readonly pop: (tick: number) => Job | undefined
  /** Returns when the first delivery that is not replayed is due or was, by the monotonic clock. */
  readonly oldestDueTick: () => number
  /** Returns all deliveries, in no particular order. */
  readonly values: () => ReadonlyArray<Job>
  /** Removes all deliveries but those that were popped. */
  readonly clear: () => void
}

const isEarlier = (one: Job, other: Job): boolean => one.order < other.order

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

  const turns = new Map<string, Turn>()
  let blockedCount = 0
  const heapOf = ({ isReplay }: Job) => (isReplay ? replayed : own)
  const turnOf = ({ member }: Job) => (member === undefined ? undefined : turns.get(member))

  /** Returns all blocked deliveries. */
  const blocked = () => [...turns.values()].flatMap((turn) => turn.blocked.values())

  /** Removes a delivery that waits to be claimed: only a replay of an earlier one does that. */
  const withdraw = (job: Job): void => {
    const heap = heapOf(job)
    const others = heap.values().filter((one) => one !== job)
    heap.clear()
    for (const one of others) heap.push(one)
  }

  /** Lets a member's first delivery wait to be claimed, unless one is claimed. */
  const take = (turn: Turn): void => {
    const { current, isClaimed } = turn
    const first = turn.blocked.peek()
    if (isClaimed || first === undefined || isEarlier(current, first)) return
    turn.blocked.pop()
    turn.blocked.push(current)
    turn.current = first
  }

  return {
    size: () => own.size() + replayed.size() + blockedCount,
    push: (job) => {
      const turn = turnOf(job)
      if (job.member !== undefined && turn === undefined) {
        turns.set(job.member, { current: job, isClaimed: false, blocked: makeHeap(isEarlier) })
      } else if (turn?.current === job) {
        turn.isClaimed = false
        take(turn)
        return heapOf(turn.current).push(turn.current)
      } else if (turn !== undefined) {
        const { current } = turn
        turn.blocked.push(job)
        blockedCount++
        take(turn)
        if (turn.current === current) return
        withdraw(current)
      }
      heapOf(job).push(job)
    },
    leave: (job) => {
      const turn = turnOf(job)
      if (job.member === undefined || turn?.current !== job) return
      const next = turn.blocked.pop()
      if (next === undefined) return void turns.delete(job.member)
      blockedCount--
      turn.current = next
      turn.isClaimed = false
      heapOf(next).push(next)
    },
    peek: (tick) => nextOf(tick).peek(),
    pop: (tick) => {
      const job = nextOf(tick).pop()
      const turn = job && turnOf(job)
      if (turn !== undefined) turn.isClaimed = true
      return job
    },
    oldestDueTick: () => own.peek()?.dueTick ?? Infinity,
    values: () => [...own.values(), ...replayed.values(), ...blocked()],
    clear: () => {
      own.clear()
      replayed.clear()
      blockedCount = 0
      for (const [member, turn] of turns) {
        if (turn.isClaimed) turn.blocked.clear()
        else turns.delete(member)
      }
    },
  }
}
