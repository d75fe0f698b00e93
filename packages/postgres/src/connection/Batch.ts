/** Batches in which an item that fails does not fail the others. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** How a batch is processed. */
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
  /**
   * Processes an item alone, or those of a stack, for as long as that takes. Returns one value for each. By
   * default, as a batch.
   */
  readonly runAlone?: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Value>, E>
  /**
   * The key of the stack that an item belongs to, if it does: a batch processes the items of a stack in order. By
   * default, each item is alone.
   */
  readonly stackOf?: (item: Item) => string | undefined
}

/** An item, and who waits for its value. */
export interface Waiting<Item, Value, E> {
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

/**
 * Makes a function that processes a batch. The batch is done when it returns.
 *
 * If a batch ends in a defect, or in an error that a single item may have caused, its sound items
 * share another batch, and each of the others is started again alone: an invalid item fails alone,
 * and an item that waits for a lock waits alone. Those of a stack go on together, in order.
 */
export const make = Effect.fnUntraced(function* <Item, Value, E>(options: Options<Item, Value, E>) {
  // Batches run outside the callers' contexts, which may hold a transaction.
  const fork = Effect.runForkWith(yield* Effect.context())
  const runAlone = options.runAlone ?? options.run

  type Batch = ReadonlyArray<Waiting<Item, Value, E>>

  const itemsOf = (batch: Batch): ReadonlyArray<Item> => batch.map(({ item }) => item)

  /** Runs the items of a stack, which may be one. If one of several is invalid, each runs by itself. */
  const runStack = Effect.fnUntraced(function* (stack: Batch): Effect.fn.Return<void> {
    const exit = yield* Effect.exit(runAlone(itemsOf(stack)))
    if (stack.length > 1 && Exit.hasDies(exit)) {
      for (const one of stack) yield* runStack([one])
    } else {
      for (const [index, { resume }] of stack.entries()) resume(exitOf(exit, index))
    }
  })

  const stacksOf = (batch: Batch): Iterable<Batch> => {
    const stacks = new Map<unknown, Array<Waiting<Item, Value, E>>>()
    for (const waiting of batch) {
      const key = options.stackOf?.(waiting.item) ?? waiting
      const stack = stacks.get(key)
      if (stack === undefined) stacks.set(key, [waiting])
      else stack.push(waiting)
    }
    return stacks.values()
  }

  const startAlone = (batch: Batch): void => {
    for (const stack of stacksOf(batch)) fork(runStack(stack))
  }

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

  const process = Effect.fnUntraced(function* (batch: Batch) {
    const failed = yield* attempt(batch)
    if (failed.length === 0) return
    const sound = yield* separate(failed)
    if (sound.length > 0) startAlone(yield* attempt(sound))
  })

  /** Starts a batch, and calls the function when it is done. Items that run alone may go on. */
  return (batch: Batch, done: () => void): void => {
    fork(process(batch)).addObserver(done)
  }
})
