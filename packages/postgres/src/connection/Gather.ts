/** Group commit: items that arrive while a batch is in flight share the next batch. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** How items are gathered into batches. */
export interface Options<Item, Value, E> {
  /** Processes a batch. Returns one value for each item, in order. */
  readonly run: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Value>, E>
  /** Whether a single item may have caused the error, so that the others are worth another try. */
  readonly isOwn: (error: E) => boolean
  /**
   * Returns for each item of a batch that failed whether it can share another. The rest run alone. By
   * default, all do.
   */
  readonly findSound?: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<boolean>, E>
  /** Processes an item alone, for as long as that takes. By default, as a batch of one. */
  readonly runAlone?: (item: Item) => Effect.Effect<Value, E>
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

const firstOf = <Value>(values: ReadonlyArray<Value>): Exit.Exit<Value> => {
  const [value] = values
  return value === undefined ? missing : Exit.succeed(value)
}

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
 * that a single item may have caused, its sound items share another batch, and each of the others runs
 * again alone: an invalid item fails alone, and an item that waits for a lock waits alone.
 */
export const make = Effect.fnUntraced(function* <Item, Value, E>(options: Options<Item, Value, E>) {
  // Batches run outside the callers' contexts, which may hold a transaction.
  const fork = Effect.runForkWith(yield* Effect.context())
  const runAlone =
    options.runAlone ?? ((item: Item) => Effect.flatMap(options.run([item]), firstOf))
  const queue: Array<Waiting<Item, Value, E>> = []
  let inFlight = 0
  let isScheduled = false

  type Batch = ReadonlyArray<Waiting<Item, Value, E>>

  const startAlone = (batch: Batch): void => {
    for (const { item, resume } of batch) fork(runAlone(item)).addObserver(resume)
  }

  const itemsOf = (batch: Batch): ReadonlyArray<Item> => batch.map(({ item }) => item)

  /** Returns the items of a failed batch that can share another, and starts the rest alone. */
  const separate = Effect.fnUntraced(function* (batch: Batch) {
    const found = Effect.catchCause(options.findSound?.(itemsOf(batch)) ?? Effect.succeed([]), () =>
      Effect.succeed([]),
    )
    const areSound: ReadonlyArray<boolean> = batch.length > 1 ? yield* found : []
    startAlone(batch.filter((_, index) => areSound[index] !== true))
    return batch.filter((_, index) => areSound[index] === true)
  })

  /** Runs a batch once. Returns the items that are worth another try, if it fails because of others. */
  const attempt = Effect.fnUntraced(function* (batch: Batch) {
    const exit = yield* Effect.exit(options.run(itemsOf(batch)))
    const wasAlone = batch.length === 1 && options.runAlone === undefined
    if (isOwnFailure(exit, options.isOwn) && !wasAlone) return batch
    for (const [index, { resume }] of batch.entries()) resume(exitOf(exit, index))
    return []
  })

  const send = Effect.fnUntraced(function* (batch: Batch) {
    const failed = yield* attempt(batch)
    if (failed.length === 0) return
    const sound = yield* separate(failed)
    if (sound.length > 0) startAlone(yield* attempt(sound))
  })

  const flush = (): void => {
    isScheduled = false
    while (queue.length > 0 && inFlight < options.maxInFlight) {
      inFlight++
      fork(send(takeBatch(queue, options))).addObserver(() => {
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
