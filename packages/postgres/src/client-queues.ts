/** The queues before the rate limits: takes that wait, by client, and which clients share the next statement. */

import { invariant } from "@tenure/core/internal"
import {
  type BucketPolicies,
  type BucketPolicy,
  type LimitedClient,
  StoreUnavailable,
  type TakeResult,
} from "@tenure/core/store"
import * as Exit from "effect/Exit"

/** Takes by one client. */
export interface TakeRequest {
  readonly rows: ClientRows
  /** The number of takes. */
  readonly count: number
}

/** A row of the table: a bucket and, for an API key, a second one for bursts. */
interface BucketRow {
  readonly id: string
  readonly policy: BucketPolicy
  readonly burst: BucketPolicy | undefined
}

/** A client's rows: one for its address and, if it has a key, one for that. */
type ClientRows = readonly [address: BucketRow, ...key: ReadonlyArray<BucketRow>]

const rowsOf = ({ address, keyId }: LimitedClient, policies: BucketPolicies): ClientRows => {
  const ofAddress = { id: `address:${address}`, policy: policies.address, burst: undefined }
  return keyId === undefined
    ? [ofAddress]
    : [ofAddress, { id: `key:${keyId}`, policy: policies.key, burst: policies.burst }]
}

/** A waiting client. */
interface QueueCandidate {
  readonly rows: ClientRows
  /** How many statements in a row have left some of its takes undecided. */
  readonly rounds: number
}

/** Bounds on a selection. */
interface SelectionLimits {
  /** The maximum number of clients in a statement. */
  readonly clients: number
  /** The maximum number of clients that a selection examines. */
  readonly examined: number
  /** After this many statements in a row without a decision, a client has the next one for itself. */
  readonly rounds: number
}

/** The clients in the next statement, and the clients that keep waiting, both in order. */
interface SelectedQueues<C> {
  readonly chosen: ReadonlyArray<C>
  readonly rest: ReadonlyArray<C>
}

/**
 * Selects clients in order of arrival. If one of a client's rows is in a statement that is under way, the
 * client would wait for a lock there. So it waits here instead, and no client overtakes it at its rows.
 */
const selectQueues = <C extends QueueCandidate>(
  candidates: ReadonlyArray<C>,
  busy: { readonly has: (id: string) => boolean },
  bounds: SelectionLimits,
): SelectedQueues<C> => {
  const chosen: Array<C> = []
  const skipped: Array<C> = []
  const reserved = new Set<string>()
  let examined = 0

  const isApart = ({ rounds }: C): boolean => rounds >= bounds.rounds
  const isFull = (): boolean => chosen.length === bounds.clients || chosen.slice(0, 1).some(isApart)
  const canJoin = (candidate: C): boolean =>
    (chosen.length === 0 || !isApart(candidate)) &&
    !candidate.rows.some(({ id }) => busy.has(id) || reserved.has(id))

  for (const candidate of candidates) {
    if (isFull() || examined === bounds.examined) break
    examined++
    if (canJoin(candidate)) {
      chosen.push(candidate)
      continue
    }
    skipped.push(candidate)
    for (const { id } of candidate.rows) reserved.add(id)
  }
  return { chosen, rest: [...skipped, ...candidates.slice(examined)] }
}

/** A take, and the callback that gets its result. */
interface Waiting {
  readonly resume: (take: Exit.Exit<TakeResult, StoreUnavailable>) => void
  /** When it arrived, in milliseconds. */
  readonly since: number
}

/** One client's queue. However many takes it has in a statement, they are one entry for each row. */
interface ClientQueue {
  readonly rows: ClientRows
  readonly waiting: Array<Waiting>
  isQueued: boolean
  /** Whether a turn was taken that is not settled. */
  isInFlight: boolean
  /** How many statements in a row have left some of its takes undecided. */
  rounds: number
  /** Removes the queue. */
  readonly remove: () => void
}

/** A client's turn: its takes that share a statement. */
export interface QueuedTake extends TakeRequest {
  readonly queue: ClientQueue
  readonly takes: ReadonlyArray<Waiting>
}

/** Bounds on the queues. */
export interface QueueLimits extends SelectionLimits {
  /** The maximum number of takes that one client has in a statement. */
  readonly takes: number
  /** The maximum number of waiting takes. */
  readonly waiting: number
  /** The maximum number of waiting takes from one client. */
  readonly waitingOfClient: number
  /** The longest time that a take waits for its statement, in milliseconds. */
  readonly millis: number
}

/** All clients' queues. */
export interface ClientQueues {
  /**
   * Adds a take, or fails it if too many wait. Returns a function that removes the take if it is not in a
   * statement yet.
   */
  readonly add: (client: LimitedClient, policies: BucketPolicies, waiting: Waiting) => () => void
  /** Removes and returns the takes for the next statement. `now` is in milliseconds. */
  readonly next: (now: number) => ReadonlyArray<QueuedTake>
  /** Ends a turn. Undecided takes come first in the next statement. */
  readonly settle: (turn: QueuedTake, undecided: ReadonlyArray<Waiting>) => void
}

const fail = ({ resume }: Waiting, cause: string): void =>
  resume(Exit.fail(new StoreUnavailable({ cause })))

/** A name that is unique to the client. */
const nameOf = ({ address, keyId }: LimitedClient): string =>
  keyId === undefined ? `-${address}` : `${address.length}-${address}${keyId}`

/** Makes empty queues. */
export const makeClientQueues = (bounds: QueueLimits): ClientQueues => {
  const queuesByPolicies = new WeakMap<BucketPolicies, Map<string, ClientQueue>>()
  let middle: ReadonlyArray<ClientQueue> = []
  // Queues that will come before and after the others.
  let first: Array<ClientQueue> = []
  let last: Array<ClientQueue> = []
  // The number of turns in flight for each row.
  const busy = new Map<string, number>()
  let waiting = 0

  const queuesOf = (policies: BucketPolicies): Map<string, ClientQueue> => {
    const queues = queuesByPolicies.get(policies) ?? new Map<string, ClientQueue>()
    queuesByPolicies.set(policies, queues)
    return queues
  }

  const queueOf = (client: LimitedClient, policies: BucketPolicies): ClientQueue => {
    const queues = queuesOf(policies)
    const name = nameOf(client)
    const known = queues.get(name)
    if (known !== undefined) return known
    const rows = rowsOf(client, policies)
    const remove = (): void => void queues.delete(name)
    const queue: ClientQueue = {
      rows,
      waiting: [],
      isQueued: false,
      isInFlight: false,
      rounds: 0,
      remove,
    }
    queues.set(name, queue)
    return queue
  }

  const enqueue = (queue: ClientQueue, into: Array<ClientQueue>): void => {
    queue.isQueued = true
    into.push(queue)
  }

  const count = ({ rows }: ClientQueue, change: 1 | -1): void => {
    for (const { id } of rows) {
      const turns = (busy.get(id) ?? 0) + change
      invariant(turns >= 0, "a turn ended at a row without turns")
      if (turns > 0) busy.set(id, turns)
      else busy.delete(id)
    }
  }

  /** Removes and returns the queues that share the next statement. */
  const select = (): ReadonlyArray<ClientQueue> => {
    const { chosen, rest } = selectQueues([...first, ...middle, ...last], busy, bounds)
    middle = rest
    first = []
    last = []
    return chosen
  }

  /** Removes takes from a queue. Fails those that have waited too long. */
  const turnOf = (queue: ClientQueue, now: number): QueuedTake => {
    queue.isQueued = false
    const takes = queue.waiting.splice(0, bounds.takes)
    waiting -= takes.length
    const isLate = ({ since }: Waiting): boolean => now - since > bounds.millis
    for (const take of takes.filter(isLate)) fail(take, "timeout")
    const onTime = takes.filter((take) => !isLate(take))
    return { queue, takes: onTime, rows: queue.rows, count: onTime.length }
  }

  /** Moves a queue before the others. */
  const promote = (queue: ClientQueue): void => {
    if (queue.isQueued) {
      middle = middle.filter((other) => other !== queue)
      last = last.filter((other) => other !== queue)
    }
    enqueue(queue, first)
  }

  /** Keeps a queue for as long as takes wait in it. */
  const keep = (queue: ClientQueue): void => {
    if (queue.isQueued) return
    if (queue.waiting.length > 0) enqueue(queue, last)
    else queue.remove()
  }

  /** Whether a client may not add another take. */
  const isCrowded = (client: LimitedClient, policies: BucketPolicies): boolean => {
    const own = queuesOf(policies).get(nameOf(client))?.waiting.length ?? 0
    return waiting >= bounds.waiting || own >= bounds.waitingOfClient
  }

  return {
    add: (client, policies, take) => {
      if (isCrowded(client, policies)) {
        fail(take, "crowded")
        return () => {}
      }
      const queue = queueOf(client, policies)
      queue.waiting.push(take)
      waiting++
      if (!queue.isQueued) enqueue(queue, last)
      return () => {
        const index = queue.waiting.indexOf(take)
        if (index === -1) return
        invariant(waiting > 0, "a take left the queues, which count none")
        queue.waiting.splice(index, 1)
        waiting--
      }
    },

    next: (now) => {
      // All selected takes may have been withdrawn or be late.
      for (let chosen = select(); chosen.length > 0; chosen = select()) {
        const turns = chosen.map((queue) => turnOf(queue, now))
        for (const { queue, takes } of turns) {
          queue.isInFlight = takes.length > 0
          if (queue.isInFlight) count(queue, 1)
          else keep(queue)
        }
        const wanted = turns.filter(({ takes }) => takes.length > 0)
        if (wanted.length > 0) return wanted
      }
      return []
    },

    settle: ({ queue }, undecided) => {
      invariant(queue.isInFlight, "a client's turn was settled twice")
      queue.isInFlight = false
      count(queue, -1)
      queue.rounds = undecided.length > 0 ? queue.rounds + 1 : 0
      queue.waiting.unshift(...undecided)
      waiting += undecided.length
      if (undecided.length > 0) promote(queue)
      else keep(queue)
    },
  }
}
