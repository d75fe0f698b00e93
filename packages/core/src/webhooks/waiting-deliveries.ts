/** The deliveries of one webhook that wait, in the order in which they are claimed. */

import { type Heap, makeHeap } from "../base/collections.ts"

/** A delivery of a webhook, as far as its turn depends on it. */
export interface QueuedDelivery {
  /** Its place among all publications: it decides between deliveries that are due at the same time. */
  readonly order: number
  /** Whom the event is about, if it waits for its turn among those of this user: the webhook is ordered. */
  readonly member: string | undefined
  /** Whether it is one of many that were replayed together: all others that are due come first. */
  readonly isReplay: boolean
  /** When it is due, in milliseconds by the monotonic clock. */
  readonly dueTick: number
}

/** Tells whether a delivery precedes another, if both or none are replayed. */
const isBefore = (one: QueuedDelivery, other: QueuedDelivery): boolean =>
  one.dueTick === other.dueTick ? one.order < other.order : one.dueTick < other.dueTick

/** A member's open deliveries. */
interface Turn<D> {
  /** The one that waits to be claimed, or is claimed. */
  current: D
  isClaimed: boolean
  /** All others: those published first come first. */
  readonly blocked: Heap<D>
}

/**
 * The deliveries that wait. Replayed ones come after all others that are due. Of each member, the one published first
 * blocks the others until it ends, and none is claimed while another one is.
 */
export interface WaitingDeliveries<D extends QueuedDelivery> {
  readonly size: () => number
  /** Adds a delivery, or returns one that was popped. */
  readonly push: (delivery: D) => void
  /** Forgets a delivery that was popped and has ended, and unblocks the next of its member. */
  readonly leave: (delivery: D) => void
  /** Returns the next delivery to claim, or the one that is due next. */
  readonly peek: (tick: number) => D | undefined
  /** Removes the delivery that `peek` returns, and returns it. */
  readonly pop: (tick: number) => D | undefined
  /** Returns when the first delivery that is not replayed is due or was, by the monotonic clock. */
  readonly oldestDueTick: () => number
  /** Returns all deliveries, in no particular order. */
  readonly values: () => ReadonlyArray<D>
  /** Removes all deliveries but those that were popped. */
  readonly clear: () => void
}

const isEarlier = (one: QueuedDelivery, other: QueuedDelivery): boolean => one.order < other.order

/** Starts without deliveries. */
export const makeWaitingDeliveries = <D extends QueuedDelivery>(): WaitingDeliveries<D> => {
  const own = makeHeap<D>(isBefore)
  const replayed = makeHeap<D>(isBefore)

  /** Returns the heap whose first delivery is next. */
  const nextOf = (tick: number) => {
    const one = own.peek()?.dueTick ?? Infinity
    const other = replayed.peek()?.dueTick ?? Infinity
    return one <= Math.max(tick, other) ? own : replayed
  }

  const turns = new Map<string, Turn<D>>()
  let blockedCount = 0
  const heapOf = ({ isReplay }: QueuedDelivery) => (isReplay ? replayed : own)
  const turnOf = ({ member }: QueuedDelivery) =>
    member === undefined ? undefined : turns.get(member)

  /** Returns all blocked deliveries. */
  const blocked = () => [...turns.values()].flatMap((turn) => turn.blocked.values())

  /** Removes a delivery that waits to be claimed: only a replay of an earlier one does that. */
  const withdraw = (delivery: D): void => {
    const heap = heapOf(delivery)
    const others = heap.values().filter((one) => one !== delivery)
    heap.clear()
    for (const one of others) heap.push(one)
  }

  /** Lets a member's first delivery wait to be claimed, unless one is claimed. */
  const take = (turn: Turn<D>): void => {
    const { current, isClaimed } = turn
    const first = turn.blocked.peek()
    if (isClaimed || first === undefined || isEarlier(current, first)) return
    turn.blocked.pop()
    turn.blocked.push(current)
    turn.current = first
  }

  return {
    size: () => own.size() + replayed.size() + blockedCount,
    push: (delivery) => {
      const turn = turnOf(delivery)
      if (delivery.member !== undefined && turn === undefined) {
        turns.set(delivery.member, {
          current: delivery,
          isClaimed: false,
          blocked: makeHeap<D>(isEarlier),
        })
      } else if (turn?.current === delivery) {
        turn.isClaimed = false
        take(turn)
        return heapOf(turn.current).push(turn.current)
      } else if (turn !== undefined) {
        const { current } = turn
        turn.blocked.push(delivery)
        blockedCount++
        take(turn)
        if (turn.current === current) return
        withdraw(current)
      }
      heapOf(delivery).push(delivery)
    },
    leave: (delivery) => {
      const turn = turnOf(delivery)
      if (delivery.member === undefined || turn?.current !== delivery) return
      const next = turn.blocked.pop()
      if (next === undefined) return void turns.delete(delivery.member)
      blockedCount--
      turn.current = next
      turn.isClaimed = false
      heapOf(next).push(next)
    },
    peek: (tick) => nextOf(tick).peek(),
    pop: (tick) => {
      const delivery = nextOf(tick).pop()
      const turn = delivery && turnOf(delivery)
      if (turn !== undefined) turn.isClaimed = true
      return delivery
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
