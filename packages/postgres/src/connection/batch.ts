/** Batches: one statement for many calls, in which an item that fails does not fail the others. */

import { ErrorReporter, invariant } from "@tenure/core/internal"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** How a batch is processed. */
export interface BatchOptions<Item, Value, E> {
  /** Processes a batch. Returns one value for each item, in order. */
  readonly run: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Value>, E>
  /** Whether a single item may have caused the error, so that the others are worth another try. */
  readonly isItemError: (error: E) => boolean
  /**
   * Returns for each item in a failed batch whether it can share another one. The rest run alone. By default,
   * all run alone.
   */
  readonly findRetryable?: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<boolean>, E>
  /**
   * Processes an item alone, or the items in a stack, without a time limit. Returns one value for each. By
   * default, it does what `run` does.
   */
  readonly runAlone?: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Value>, E>
  /** The item's stack, by its key: a batch processes the items in a stack in order. By default, each item is alone. */
  readonly stackOf?: (item: Item) => string | undefined
}

/** An item, and the callback that gets its exit. */
export interface PendingItem<Item, Value, E> {
  readonly item: Item
  readonly resume: (exit: Exit.Exit<Value, E>) => void
}

const missing = Exit.die("a batch returned no value for one of its items")

const isItemFailure = <E>(
  exit: Exit.Exit<unknown, E>,
  isItemError: (error: E) => boolean,
): boolean =>
  Exit.isFailure(exit) &&
  exit.cause.reasons.some(
    (reason) =>
      Cause.isDieReason(reason) || (Cause.isFailReason(reason) && isItemError(reason.error)),
  )

/** The exit for the item at an index in the batch. */
const exitOf = <Value, E>(
  exit: Exit.Exit<ReadonlyArray<Value>, E>,
  index: number,
): Exit.Exit<Value, E> => {
  if (Exit.isFailure(exit)) return Exit.failCause(exit.cause)
  const value = exit.value[index]
  return value === undefined ? missing : Exit.succeed(value)
}

/** Hands each item its exit. A callback that throws does not keep the others from theirs: it throws after them. */
const resumeAll = <Item, Value, E>(
  batch: ReadonlyArray<PendingItem<Item, Value, E>>,
  exit: Exit.Exit<ReadonlyArray<Value>, E>,
): void => {
  let thrown: Exit.Exit<void> = Exit.void
  for (const [index, { resume }] of batch.entries()) {
    try {
      resume(exitOf(exit, index))
    } catch (error) {
      thrown = Exit.die(error)
    }
  }
  if (Exit.isFailure(thrown)) throw Cause.squash(thrown.cause)
}

/**
 * Makes a function that processes a batch.
 *
 * If a batch ends in a defect, or in an error that a single item may have caused, its sound items share a
 * second batch, and each of the others is started again alone. So an invalid item fails alone, and an item
 * that waits for a lock waits alone. Items in a stack stay together, in order.
 */
export const makeBatchRunner = Effect.fnUntraced(function* <Item, Value, E>(
  options: BatchOptions<Item, Value, E>,
) {
  const faults = yield* ErrorReporter
  // Batches run outside the callers' contexts, which may hold a transaction.
  const run = Effect.runForkWith(yield* Effect.context())
  // Nobody waits for a batch: its items have their exits.
  const fork = (process: Effect.Effect<void>) =>
    run(
      Effect.catchDefect(process, (defect) =>
        faults.defect("A batch ended in a defect", Cause.die(defect)),
      ),
    )
  const runAlone = options.runAlone ?? options.run

  type Batch = ReadonlyArray<PendingItem<Item, Value, E>>

  const itemsOf = (batch: Batch): ReadonlyArray<Item> => batch.map(({ item }) => item)

  /** Runs the items in a stack. If one of several is invalid, each runs by itself. */
  const runStack = Effect.fnUntraced(function* (stack: Batch): Effect.fn.Return<void> {
    const exit = yield* Effect.exit(runAlone(itemsOf(stack)))
    if (stack.length > 1 && Exit.hasDies(exit)) {
      for (const one of stack) yield* runStack([one])
    } else {
      resumeAll(stack, exit)
    }
  })

  const stacksOf = (batch: Batch): Iterable<Batch> => {
    const stacks = new Map<unknown, Array<PendingItem<Item, Value, E>>>()
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

  /** Returns the items in a failed batch that can share another one, and starts the rest alone. */
  const separate = Effect.fnUntraced(function* (batch: Batch) {
    const found = Effect.catchCause(
      options.findRetryable?.(itemsOf(batch)) ?? Effect.succeed([]),
      () => Effect.succeed([]),
    )
    const areSound: ReadonlyArray<boolean> = batch.length > 1 ? yield* found : []
    startAlone(batch.filter((_, index) => areSound[index] !== true))
    return batch.filter((_, index) => areSound[index] === true)
  })

  /** Runs a batch once. If it fails because of some items, returns all, which are worth another try. */
  const attempt = Effect.fnUntraced(function* (batch: Batch) {
    const exit = yield* Effect.exit(options.run(itemsOf(batch)))
    const wasAlone = batch.length === 1 && options.runAlone === undefined
    if (isItemFailure(exit, options.isItemError) && !wasAlone) return batch
    resumeAll(batch, exit)
    return []
  })

  const process = Effect.fnUntraced(function* (batch: Batch) {
    const failed = yield* attempt(batch)
    if (failed.length === 0) return
    const sound = yield* separate(failed)
    if (sound.length > 0) startAlone(yield* attempt(sound))
  })

  /** Starts a batch, and calls `done` when it has ended. Items that run alone may still be running then. */
  return (batch: Batch, done: () => void): void => {
    fork(process(batch)).addObserver(done)
  }
})

// Beyond this, an item would wait longer than a client does.
const maxWaiting = 10_000

/** How items are gathered into batches. */
export interface BatcherOptions<Item, Value, E> extends BatchOptions<Item, Value, E> {
  /**
   * Items with a common key run in order: each has ended before the next begins, even if it runs alone. They
   * share a batch only if the key is that of their stack (see `stackOf`). By default, items have no keys.
   */
  readonly keysOf?: (item: Item) => ReadonlyArray<string>
  /** The maximum number of items in a batch. */
  readonly maxBatch: number
  /** The maximum number of batches in flight. */
  readonly maxInFlight: number
  /**
   * How many items have to wait before a batch starts beside another. A higher number makes fewer and larger
   * batches. Default: 1.
   */
  readonly leastBeside?: number
  /** Makes items wait for others. */
  readonly gathering?: {
    /** How long a batch with fewer than `leastBeside` items waits after the last one began, in milliseconds. */
    readonly millis: number
    /** Whether an item is processed without that wait. */
    readonly isUrgent: (item: Item) => boolean
  }
  /** The error of an item that arrives when too many wait. */
  readonly crowded: E
}

/** The items in the next batch, and the items that keep waiting, both in order. */
interface Selected<Waiting> {
  readonly batch: ReadonlyArray<Waiting>
  readonly rest: Array<Waiting>
}

/**
 * Makes a function that processes one item, in a batch with others if there are any: group commit.
 *
 * An item runs immediately if no batch is in flight, unless it has to wait for others (`gathering`).
 */
export const makeBatcher = Effect.fnUntraced(function* <Item, Value, E>(
  options: BatcherOptions<Item, Value, E>,
) {
  /** An item with its keys, which are computed once because every selection reads them. */
  interface Waiting extends PendingItem<Item, Value, E> {
    readonly keys: ReadonlyArray<string>
    readonly stack: string | undefined
  }
  const { gathering, keysOf, leastBeside = 1, maxBatch, maxInFlight, stackOf } = options
  const start = yield* makeBatchRunner(options)
  let queue: Array<Waiting> = []
  // Keys whose items have begun and not ended.
  const busy = new Set<string>()
  let inFlight = 0
  let isScheduled = false
  // A small batch waits until this time on the monotonic clock.
  let gathersUntil = -Infinity
  let hasUrgent = false
  let timer: ReturnType<typeof setTimeout> | undefined

  /** Selects the items that can run now in one batch. No item overtakes another with the same key. */
  const select = (): Selected<Waiting> => {
    if (keysOf === undefined) {
      return { batch: queue.slice(0, maxBatch), rest: queue.slice(maxBatch) }
    }
    const batch: Array<Waiting> = []
    const rest: Array<Waiting> = []
    const reserved = new Set<string>()
    // The keys in the batch, each with its stack, if it has one.
    const taken = new Map<string, string | undefined>()
    let examined = 0
    // Reads the whole queue if necessary, because changes to one locked member must not hold up other
    // members.
    for (const waiting of queue) {
      if (batch.length === maxBatch) break
      examined++
      const { keys, stack } = waiting
      const isFree = keys.every(
        (key) =>
          !busy.has(key) &&
          !reserved.has(key) &&
          (!taken.has(key) || (key === stack && taken.get(key) === stack)),
      )
      if (isFree) batch.push(waiting)
      else rest.push(waiting)
      for (const key of keys) {
        if (isFree) taken.set(key, stack === key ? stack : undefined)
        else reserved.add(key)
      }
    }
    return { batch, rest: [...rest, ...queue.slice(examined)] }
  }

  /** Marks keys as busy until all their items have ended. */
  const occupy = (batch: ReadonlyArray<Waiting>): ReadonlyArray<Waiting> => {
    if (keysOf === undefined) return batch
    const users = new Map<string, number>()
    for (const key of batch.flatMap(({ keys }) => keys)) {
      users.set(key, (users.get(key) ?? 0) + 1)
      busy.add(key)
    }
    const leave = (keys: ReadonlyArray<string>): void => {
      let wasUser = true
      for (const key of keys) {
        const count = users.get(key) ?? 0
        if (count === 0) wasUser = false
        else users.set(key, count - 1)
        if (count === 1) busy.delete(key)
      }
      invariant(wasUser, "an item of a batch released a key that it did not occupy")
    }
    return batch.map(({ resume, ...waiting }) => ({
      ...waiting,
      resume: (exit) => {
        try {
          leave(waiting.keys)
        } finally {
          resume(exit)
          scheduleFlush()
        }
      },
    }))
  }

  const gathersFor = (): number => (hasUrgent ? 0 : gathersUntil - performance.now())

  const canStart = (): boolean =>
    queue.length >= leastBeside
      ? inFlight < maxInFlight
      : queue.length > 0 && inFlight === 0 && gathersFor() <= 0

  const flush = (): void => {
    isScheduled = false
    while (canStart()) {
      const { batch, rest } = select()
      if (batch.length === 0) return
      queue = rest
      inFlight++
      if (gathering !== undefined) {
        gathersUntil = performance.now() + gathering.millis
        hasUrgent = rest.some(({ item }) => gathering.isUrgent(item))
      }
      start(occupy(batch), () => {
        inFlight--
        scheduleFlush()
      })
    }
  }

  // Items that arrive in the same turn of the event loop share a batch.
  const scheduleFlush = (): void => {
    if (isScheduled) return
    if (canStart()) {
      isScheduled = true
      queueMicrotask(flush)
    } else if (queue.length > 0 && inFlight === 0) {
      timer ??= setTimeout(endGathering, Math.max(0, gathersFor()))
    }
  }

  const endGathering = (): void => {
    timer = undefined
    scheduleFlush()
  }

  return (item: Item): Effect.Effect<Value, E> =>
    Effect.callback((resume) => {
      if (queue.length >= maxWaiting) return resume(Exit.fail(options.crowded))
      const waiting = { item, resume, keys: keysOf?.(item) ?? [], stack: stackOf?.(item) }
      queue.push(waiting)
      hasUrgent ||= gathering?.isUrgent(item) === true
      scheduleFlush()
      return Effect.sync(() => {
        const index = queue.indexOf(waiting)
        if (index !== -1) queue.splice(index, 1)
      })
    })
})

/** For each item, the row with its position `n`, counted from 1, or `null`. */
export const rowsByPosition = <Row extends { readonly n: number }>(
  items: ReadonlyArray<unknown>,
  rows: ReadonlyArray<Row>,
): ReadonlyArray<Row | null> => {
  const byPosition = new Map(rows.map((row) => [row.n, row]))
  return items.map((_, index) => byPosition.get(index + 1) ?? null)
}

/** For each item, whether there is a row with its position `n`, counted from 1. */
export const hasRowAt = (
  items: ReadonlyArray<unknown>,
  rows: ReadonlyArray<{ readonly n: number }>,
): ReadonlyArray<boolean> => {
  const positions = new Set(rows.map(({ n }) => n))
  return items.map((_, index) => positions.has(index + 1))
}
