/** Group commit: what is asked for while a statement is under way goes together into the next. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** How items are gathered. */
export interface Options<Item, Value, E> {
  /** Does the work of all items at once, and gives a value for each, in order. */
  readonly run: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Value>, E>
  /** Whether an error is one item's own, so that each of its batch is tried alone. */
  readonly isOwn: (error: E) => boolean
  /** Items of the same key never go into the same batch, and keep their order. */
  readonly keyOf: (item: Item) => string
  readonly maxBatch: number
  /** Batches under way at the same time. */
  readonly maxInFlight: number
}

interface Waiting<Item, Value, E> {
  readonly item: Item
  readonly resume: (exit: Exit.Exit<Value, E>) => void
}

const lost = Exit.die("a batch gave no value for one of its items")

const isOwnFailure = <E>(exit: Exit.Exit<unknown, E>, isOwn: (error: E) => boolean): boolean =>
  Exit.isFailure(exit) &&
  exit.cause.reasons.some(
    (reason) => Cause.isDieReason(reason) || (Cause.isFailReason(reason) && isOwn(reason.error)),
  )

/** The outcome of one item of a batch. */
const exitOf = <Value, E>(
  exit: Exit.Exit<ReadonlyArray<Value>, E>,
  index: number,
): Exit.Exit<Value, E> => {
  if (Exit.isFailure(exit)) return Exit.failCause(exit.cause)
  const value = exit.value[index]
  return value === undefined ? lost : Exit.succeed(value)
}

/** Takes the longest run from the front of the queue in which no key occurs twice. */
const nextBatch = <Item, Value, E>(
  queue: Array<Waiting<Item, Value, E>>,
  { keyOf, maxBatch }: Options<Item, Value, E>,
): ReadonlyArray<Waiting<Item, Value, E>> => {
  const keys = new Set<string>()
  let size = 0
  for (const { item } of queue) {
    const key = keyOf(item)
    if (size === maxBatch || keys.has(key)) break
    keys.add(key)
    size++
  }
  return queue.splice(0, size)
}

/**
 * Makes a function that does the work of one item, together with that of others if there are any.
 * Nobody waits for company: an item that finds nothing under way goes at once. Where a batch ends in
 * a defect, or an error that may be one item's own, each of its items is tried alone: one that is
 * poison fails alone, and one that has to wait for a lock waits alone.
 */
export const make = Effect.fnUntraced(function* <Item, Value, E>(options: Options<Item, Value, E>) {
  // Outside of what the callers run in, such as a transaction of the host.
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
      send(nextBatch(queue, options), () => {
        inFlight--
        flush()
      })
    }
  }

  return (item: Item): Effect.Effect<Value, E> =>
    Effect.callback((resume) => {
      const waiting = { item, resume }
      queue.push(waiting)
      if (!isScheduled && inFlight < options.maxInFlight) {
        // What arrives in the same turn of the event loop goes along.
        isScheduled = true
        queueMicrotask(flush)
      }
      return Effect.sync(() => {
        const index = queue.indexOf(waiting)
        if (index !== -1) queue.splice(index, 1)
      })
    })
})

/** Tells of each item whether there is a row of its position, from 1. */
export const isAmong = (
  items: ReadonlyArray<unknown>,
  rows: ReadonlyArray<{ readonly n: number }>,
): ReadonlyArray<boolean> => {
  const positions = new Set(rows.map(({ n }) => n))
  return items.map((_, index) => positions.has(index + 1))
}
