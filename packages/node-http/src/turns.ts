/** Answering requests that have arrived together one right after the other. */

// Not the global one: a test of the host that fakes that has no part in this.
import { setImmediate } from "node:timers"

let waiting: Array<() => void> = []

const takeAll = (): void => {
  const turns = waiting
  waiting = []
  for (const turn of turns) turn()
}

/**
 * Has a turn taken as soon as all that has arrived by now is read. Its async context is anybody's. A
 * turn must not throw.
 *
 * Under load many requests arrive at once. To read all of them first, then to answer all, and to send
 * all responses last takes half the processor time of going through all three with each of them:
 * what each step needs stays in the processor's caches.
 */
export const takeTurn = (turn: () => void): void => {
  if (waiting.push(turn) === 1) setImmediate(takeAll)
}
