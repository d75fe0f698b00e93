/** Group commit: items that arrive while a batch is in flight share the next batch. */

import * as Effect from "effect/Effect"
import * as Batch from "./Batch.ts"

/** How items are gathered into batches. */
export interface Options<Item, Value, E> extends Batch.Options<Item, Value, E> {
  /** Items with the same key run in order and never share a batch. */
  readonly keyOf: (item: Item) => string
  /** The maximum number of items in a batch. */
  readonly maxBatch: number
  /** The maximum number of batches in flight. */
  readonly maxInFlight: number
}

/** Removes and returns the longest run of items at the front of the queue with distinct keys. */
const takeBatch = <Item, Value, E>(
  queue: Array<Batch.Waiting<Item, Value, E>>,
  { keyOf, maxBatch }: Options<Item, Value, E>,
): ReadonlyArray<Batch.Waiting<Item, Value, E>> => {
  const keys = new Set<string>()
  for (const { item } of queue) {
    const key = keyOf(item)
    if (keys.size === maxBatch || keys.has(key)) break
    keys.add(key)
  }
  return queue.splice(0, keys.size)
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
      const waiting = { item, resume }
      queue.push(waiting)
      scheduleFlush()
      return Effect.sync(() => {
        const index = queue.indexOf(waiting)
        if (index !== -1) queue.splice(index, 1)
      })
    })
})

/** For each item, whether a row has its position `n`, counted from 1. */
export const isAmong = (
  items: ReadonlyArray<unknown>,
  rows: ReadonlyArray<{ readonly n: number }>,
): ReadonlyArray<boolean> => {
  const positions = new Set(rows.map(({ n }) => n))
  return items.map((_, index) => positions.has(index + 1))
}
