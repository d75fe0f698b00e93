/** Timers on a simulated time. */

/** Something that happens at an instant. */
interface Timer {
  readonly at: number
  readonly run: () => void
}

/** Timers, of which the next one is taken first. */
export interface Timers {
  readonly add: (timer: Timer) => void
  readonly take: () => Timer | undefined
  /** When the next one comes; `Infinity` for never. */
  readonly nextAt: () => number
}

/** Makes an empty heap of timers. */
export const makeTimers = (): Timers => {
  const heap: Array<Timer> = []

  const swapIfLater = (above: number, below: number): boolean => {
    const [one, other] = [heap[above], heap[below]]
    if (one === undefined || other === undefined || one.at <= other.at) return false
    heap[above] = other
    heap[below] = one
    return true
  }

  return {
    nextAt: () => heap[0]?.at ?? Infinity,
    add: (timer) => {
      let at = heap.push(timer) - 1
      while (at > 0) {
        const parent = (at - 1) >> 1
        if (!swapIfLater(parent, at)) return
        at = parent
      }
    },
    take: () => {
      const [first] = heap
      const last = heap.pop()
      if (last === undefined || heap.length === 0) return first
      heap[0] = last
      for (let at = 0; ;) {
        const [left, right] = [2 * at + 1, 2 * at + 2]
        const sooner = (heap[right]?.at ?? Infinity) < (heap[left]?.at ?? Infinity) ? right : left
        if (!swapIfLater(at, sooner)) return first
        at = sooner
      }
    },
  }
}
