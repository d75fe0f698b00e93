/** Turns: elements wait in a queue, or are parked until a time. */

import * as Heap from "./Heap.ts"

/** A queue, and elements that join it later. */
export interface Turns<A> {
  /** Puts an element at the end of the queue, unless it is in the queue already. */
  readonly enqueue: (element: A) => void
  /** Puts an element at the end of the queue, even if it is in the queue already. */
  readonly requeue: (element: A) => void
  /** Removes an element from the queue until a time; for good if that is `Infinity`. */
  readonly park: (element: A, until: number) => void
  /** Enqueues the elements whose time has come. */
  readonly wake: (now: number) => void
  /** Returns the queue in order. It may change during the iteration. */
  readonly queue: () => Iterable<A>
  readonly isEmpty: () => boolean
  /** Returns a time before which no parked element joins the queue. */
  readonly nextAt: () => number | undefined
}

interface Parked<A> {
  readonly element: A
  readonly until: number
}

/** Makes an empty queue. */
export const make = <A>(): Turns<A> => {
  const queue = new Set<A>()
  const parkedBy = new Map<A, Parked<A>>()
  // Also contains outdated entries, of elements that were enqueued or parked again.
  const byTime = Heap.make<Parked<A>>((one, other) => one.until < other.until)

  const isCurrent = (entry: Parked<A>): boolean => parkedBy.get(entry.element) === entry

  const compact = (): void => {
    byTime.clear()
    for (const entry of parkedBy.values()) byTime.push(entry)
  }

  const enqueue = (element: A): void => {
    parkedBy.delete(element)
    queue.add(element)
  }

  return {
    enqueue,
    requeue: (element) => {
      queue.delete(element)
      enqueue(element)
    },
    park: (element, until) => {
      queue.delete(element)
      parkedBy.delete(element)
      if (until === Infinity) return
      const entry = { element, until }
      parkedBy.set(element, entry)
      byTime.push(entry)
      if (byTime.size() > 2 * parkedBy.size + 64) compact()
    },
    wake: (now) => {
      for (let next = byTime.peek(); next !== undefined; next = byTime.peek()) {
        if (isCurrent(next) && next.until > now) return
        byTime.pop()
        if (isCurrent(next)) enqueue(next.element)
      }
    },
    queue: () => queue,
    isEmpty: () => queue.size === 0,
    nextAt: () => byTime.peek()?.until,
  }
}
