/** Timers and clocks on a simulated time. */

import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Something that happens at an instant. */
interface Timer {
  readonly at: number
  readonly run: () => void
}

/** Timers, the next one first. */
export interface Timers {
  readonly add: (timer: Timer) => void
  readonly take: () => Timer | undefined
  /** When the next one comes; `Infinity` for never. */
  readonly nextAt: () => number
}

/** Makes an empty heap. */
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

const nanos = (millis: number): bigint => BigInt(Math.floor(millis * 1000)) * 1000n

/** Makes a clock that tells other times, in milliseconds. */
export const makeClock = (
  sleep: Clock.Clock["sleep"],
  wallMillis: () => number,
  monotonicMillis = wallMillis,
): Clock.Clock => ({
  currentTimeMillisUnsafe: () => Math.floor(wallMillis()),
  currentTimeMillis: Effect.sync(() => Math.floor(wallMillis())),
  currentTimeNanosUnsafe: () => nanos(wallMillis()),
  currentTimeNanos: Effect.sync(() => nanos(wallMillis())),
  monotonicTimeNanosUnsafe: () => nanos(monotonicMillis()),
  monotonicTimeNanos: Effect.sync(() => nanos(monotonicMillis())),
  sleep,
})
