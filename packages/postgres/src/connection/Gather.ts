/** Group commit: items that arrive while a batch is in flight share the next batch. */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Batch from "./Batch.ts"

// More items than this wait for more than a client can be expected to.
const mostWaiting = 10_000

/** How items are gathered into batches. */
export interface Options<Item, Value, E> extends Batch.Options<Item, Value, E> {
  /** Items with a key in common run in order and never share a batch. By default, any can share one. */
  readonly keysOf?: (item: Item) => ReadonlyArray<string>
  /** The maximum number of items in a batch. */
  readonly maxBatch: number
  /** The maximum number of batches in flight. */
  readonly maxInFlight: number
  /** What an item fails with if too many wait. */
  readonly crowded: E
}

/** Removes and returns the longest run of items at the front of the queue that can share a batch. */
const takeBatch = <Item, Value, E>(
  queue: Array<Batch.Waiting<Item, Value, E>>,
  { keysOf, maxBatch }: Options<Item, Value, E>,
): ReadonlyArray<Batch.Waiting<Item, Value, E>> => {
  if (keysOf === undefined) return queue.splice(0, maxBatch)
  const taken = new Set<string>()
  let count = 0
  for (const { item } of queue) {
    const keys = keysOf(item)
    if (count === maxBatch || keys.some((key) => taken.has(key))) break
    for (const key of keys) taken.add(key)
    count++
  }
  return queue.splice(0, count)
}

/**
 * Makes a function that processes one item, in a batch with other items if there are any.
 *
 * An item runs immediately if no batch is in flight. What follows if a batch fails is told in
 * `Batch.ts`.
 */
export const make = Effect.fnUntraced(function* <Item, Value, E>(options: Options<Item, Value, E>) {
  const start = yield* Batch.make(options)
  const queue: Array<Batch.Waiting<Item, Value, E>> = []
  let inFlight = 0
  let isScheduled = false

  const flush = (): void => {
    isScheduled = false
    while (queue.length > 0 && inFlight < options.maxInFlight) {
      inFlight++
      start(takeBatch(queue, options), () => {
        inFlight--
        flush()
      })
    }
  }

  // Items that arrive in the same turn of the event loop share a batch.
  const scheduleFlush = (): void => {
    if (isScheduled || inFlight >= options.maxInFlight) return
    isScheduled = true
    queueMicrotask(flush)
  }

  return (item: Item): Effect.Effect<Value, E> =>
    Effect.callback((resume) => {
      if (queue.length >= mostWaiting) return resume(Exit.fail(options.crowded))
      const waiting = { item, resume }
      queue.push(waiting)
      scheduleFlush()
      return Effect.sync(() => {
        const index = queue.indexOf(waiting)
        if (index !== -1) queue.splice(index, 1)
      })
    })
})

/** For each item, the row that has its position `n`, counted from 1, or `null`. */
export const rowsOf = <Row extends { readonly n: number }>(
  items: ReadonlyArray<unknown>,
  rows: ReadonlyArray<Row>,
): ReadonlyArray<Row | null> => {
  const byPosition = new Map(rows.map((row) => [row.n, row]))
  return items.map((_, index) => byPosition.get(index + 1) ?? null)
}

/** For each item, whether a row has its position `n`, counted from 1. */
export const isAmong = (
  items: ReadonlyArray<unknown>,
  rows: ReadonlyArray<{ readonly n: number }>,
): ReadonlyArray<boolean> => {
  const positions = new Set(rows.map(({ n }) => n))
  return items.map((_, index) => positions.has(index + 1))
}
