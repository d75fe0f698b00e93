/** Answers requests that arrive together one right after the other. */

// Imported, because a host's tests may replace the global function.
import { setImmediate } from "node:timers"

// Larger batches save no more time, and what their responses leave behind lives until their end.
const mostTogether = 64

let batch: Array<() => void> = []

// What runs after the batch that is running now, if one is.
let last: Array<() => void> | undefined

const takeAll = (turns: ReadonlyArray<() => void>): void => {
  // What arrives from now on is for another batch.
  if (turns === batch) batch = []
  const rest: Array<() => void> = []
  last = rest
  for (const turn of turns) turn()
  last = undefined
  for (const run of rest) run()
}

/**
 * Runs a function once everything that has arrived by now is read. It must not throw, and it runs in
 * an arbitrary async context.
 *
 * Under load, many requests arrive at once. Reading all of them, then answering all, then sending all
 * responses takes half the processor time of finishing each request in turn, because what each step
 * needs stays in the processor's caches.
 */
export const takeTurn = (turn: () => void): void => {
  if (batch.length === mostTogether) batch = []
  if (batch.push(turn) === 1) setImmediate(takeAll, batch)
}

/** Runs a function after all turns of this batch, or at once if it is not called in a turn. */
export const afterTurns = (run: () => void): void => {
  if (last === undefined) run()
  else last.push(run)
}
