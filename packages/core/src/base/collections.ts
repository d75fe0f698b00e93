/** Collections: a heap, a ring, and a queue whose elements take turns. */

/** A binary heap: returns its least element first. */
export interface Heap<A> {
  readonly size: () => number
  readonly peek: () => A | undefined
  readonly push: (element: A) => void
  readonly pop: () => A | undefined
  /** Returns all elements, in no particular order. */
  readonly values: () => ReadonlyArray<A>
  readonly clear: () => void
}

/** Makes an empty heap. */
export const makeHeap = <A>(isLess: (one: A, other: A) => boolean): Heap<A> => {
  let elements: Array<A> = []

  /** Returns the index with the lesser element; the first if the second is past the end. */
  const lesser = (first: number, second: number): number => {
    const one = elements[first]
    const other = elements[second]
    return one !== undefined && other !== undefined && isLess(other, one) ? second : first
  }

  const swap = (first: number, second: number): void => {
    const one = elements[first]
    const other = elements[second]
    if (one === undefined || other === undefined) return
    elements[first] = other
    elements[second] = one
  }

  const rise = (index: number): void => {
    const parent = (index - 1) >> 1
    if (index === 0 || lesser(parent, index) === parent) return
    swap(index, parent)
    rise(parent)
  }

  const sink = (index: number): void => {
    const least = lesser(lesser(index, 2 * index + 1), 2 * index + 2)
    if (least === index) return
    swap(index, least)
    sink(least)
  }

  return {
    size: () => elements.length,
    peek: () => elements[0],
    push: (element) => {
      elements.push(element)
      rise(elements.length - 1)
    },
    pop: () => {
      swap(0, elements.length - 1)
      const least = elements.pop()
      sink(0)
      return least
    },
    values: () => elements,
    clear: () => {
      elements = []
    },
  }
}

/** The newest elements in a sequence, up to a fixed number. */
export interface Ring<A> {
  readonly push: (element: A) => void
  /** Returns how many elements were ever pushed. */
  readonly pushed: () => number
  /** Yields all kept elements, newest first. */
  readonly newestFirst: () => Generator<A>
  /** Replaces each element, or drops it if there is nothing in its place. */
  readonly replace: (change: (element: A) => A | undefined) => void
}

/** Creates an empty ring for `capacity` elements. */
export const makeRing = <A>(capacity: number): Ring<A> => {
  let elements: Array<A> = []
  let next = 0
  let pushed = 0

  function* newestFirst() {
    for (let age = 1; age <= elements.length; age++) {
      const element = elements[(next - age + elements.length) % elements.length]
      if (element !== undefined) yield element
    }
  }

  return {
    push: (element) => {
      elements[next] = element
      next = (next + 1) % capacity
      pushed++
    },
    pushed: () => pushed,
    newestFirst,
    replace: (change) => {
      elements = [...newestFirst()].flatMap((element) => change(element) ?? []).toReversed()
      next = elements.length % capacity
    },
  }
}

/** A queue with elements parked for later. */
export interface RoundRobin<A> {
  /** Appends an element unless it is queued already. */
  readonly enqueue: (element: A) => void
  /** Appends an element even if it is queued already. */
  readonly requeue: (element: A) => void
  /** Removes an element from the queue until a time; permanently for `Infinity`. */
  readonly park: (element: A, until: number) => void
  /** Enqueues parked elements when their time has come. */
  readonly wake: (now: number) => void
  /** Returns the queue in order. It may change during the iteration. */
  readonly queue: () => Iterable<A>
  readonly isEmpty: () => boolean
  /** Returns a lower bound for the time when the next parked element joins the queue. */
  readonly nextAt: () => number | undefined
}

interface Parked<A> {
  readonly element: A
  readonly until: number
}

/** Makes an empty queue. */
export const makeRoundRobin = <A>(): RoundRobin<A> => {
  const queue = new Set<A>()
  const parkedBy = new Map<A, Parked<A>>()
  // Also contains outdated entries for elements enqueued or parked again.
  const byTime = makeHeap<Parked<A>>((one, other) => one.until < other.until)

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
