/** Group commit: items that arrive while a batch is in flight share the next batch. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** How items are gathered into batches. */
export interface Options<Item, Value, E> {
  /** Processes a batch. Returns one value for each item, in order. */
  readonly run: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Value>, E>
  /** Whether a single item may have caused the error, so that each is worth trying alone. */
  readonly isOwn: (error: E) => boolean
  /** Items with the same key run in order and never share a batch. */
  readonly keyOf: (item: Item) => string
  /** The maximum number of items in a batch. */
  readonly maxBatch: number
  /** The maximum number of batches in flight. */
  readonly maxInFlight: number
}

interface Waiting<Item, Value, E> {
  readonly item: Item
  readonly resume: (exit: Exit.Exit<Value, E>) => void
}

const missing = Exit.die("a batch returned no value for one of its items")

const isOwnFailure = <E>(exit: Exit.Exit<unknown, E>, isOwn: (error: E) => boolean): boolean =>
  Exit.isFailure(exit) &&
  exit.cause.reasons.some(
    (reason) => Cause.isDieReason(reason) || (Cause.isFailReason(reason) && isOwn(reason.error)),
  )

/** The exit of the item at an index of a batch. */
const exitOf = <Value, E>(
  exit: Exit.Exit<ReadonlyArray<Value>, E>,
  index: number,
): Exit.Exit<Value, E> => {
  if (Exit.isFailure(exit)) return Exit.failCause(exit.cause)
  const value = exit.value[index]
  return value === undefined ? missing : Exit.succeed(value)
}

/** Removes and returns the longest run of items at the front of the queue with distinct keys. */
const takeBatch = <Item, Value, E>(
  queue: Array<Waiting<Item, Value, E>>,
  { keyOf, maxBatch }: Options<Item, Value, E>,
): ReadonlyArray<Waiting<Item, Value, E>> => {
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
 * An item runs immediately if no batch is in flight. If a batch ends in a defect, or in an error
 * that a single item may have caused, each of its items runs again alone: an invalid item fails
 * alone, and an item that waits for a lock waits alone.
 */
export const make = Effect.fnUntraced(function* <Item, Value, E>(options: Options<Item, Value, E>) {
  // Batches run outside the callers' contexts, which may hold a transaction.
  const fork = Effect.runForkWith(yield* Effect.context())
  const queue: Array<Waiting<Item, Value, E>> = []
  let inFlight = 0
  let isScheduled = false

  const send = (batch: ReadonlyArray<Waiting<Item, Value, E>>, done: () => void): void => {
    fork(options.run(batch.map(({ item }) => item))).addObserver((exit) => {
      done()
      if (batch.length > 1 && isOwnFailure(exit, options.isOwn)) {
        for (const waiting of batch) send([waiting], () => {})
      } else {
        for (const [index, { resume }] of batch.entries()) resume(exitOf(exit, index))
      }
    })
  }

  const flush = (): void => {
    isScheduled = false
    while (queue.length > 0 && inFlight < options.maxInFlight) {
      inFlight++
      send(takeBatch(queue, options), () => {
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
