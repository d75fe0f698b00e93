/** Batches in which an item that fails does not fail the others. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** How a batch is processed. */
export interface BatchOptions<Item, Value, E> {
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
export interface PendingItem<Item, Value, E> {
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
export const makeBatchRunner = Effect.fnUntraced(function* <Item, Value, E>(
  options: BatchOptions<Item, Value, E>,
) {
  // Batches run outside the callers' contexts, which may hold a transaction.
  const fork = Effect.runForkWith(yield* Effect.context())
  const runAlone = options.runAlone ?? options.run

  type Batch = ReadonlyArray<PendingItem<Item, Value, E>>

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

// More items than this wait for more than a client can be expected to.
const mostWaiting = 10_000

/** How items are gathered into batches. */
export interface BatcherOptions<Item, Value, E> extends BatchOptions<Item, Value, E> {
  /**
   * Items with a key in common run in order: each is over before the next begins, also if it runs alone. They share
   * a batch only if it is the key of a stack, see `stackOf`. By default, items have no keys.
   */
  readonly keysOf?: (item: Item) => ReadonlyArray<string>
  /** The maximum number of items in a batch. */
  readonly maxBatch: number
  /** The maximum number of batches in flight. */
  readonly maxInFlight: number
  /**
   * How many items have to wait for a batch to start beside another. The more, the fewer and larger batches are. 1 by
   * default.
   */
  readonly leastBeside?: number
  /** Has items wait for others. */
  readonly gathering?: {
    /** How long a batch of fewer than `leastBeside` waits after the last one began, in milliseconds. */
    readonly millis: number
    /** Whether an item waits for no others. */
    readonly isUrgent: (item: Item) => boolean
  }
  /** What an item fails with if too many wait. */
  readonly crowded: E
}

/** The items of the next batch, and those that go on waiting, both in order. */
interface Selected<Waiting> {
  readonly batch: ReadonlyArray<Waiting>
  readonly rest: Array<Waiting>
}

/**
 * Makes a function that processes one item, in a batch with other items if there are any: group commit.
 *
 * An item runs immediately if no batch is in flight, unless it has to wait for others (`gathering`).
 */
export const makeBatcher = Effect.fnUntraced(function* <Item, Value, E>(
  options: BatcherOptions<Item, Value, E>,
) {
  /** An item with its keys, which are looked at again and again while it waits. */
  interface Waiting extends PendingItem<Item, Value, E> {
    readonly keys: ReadonlyArray<string>
    readonly stack: string | undefined
  }
  const { gathering, keysOf, leastBeside = 1, maxBatch, maxInFlight, stackOf } = options
  const start = yield* makeBatchRunner(options)
  let queue: Array<Waiting> = []
  // The keys of items that have begun and are not over.
  const busy = new Set<string>()
  let inFlight = 0
  let isScheduled = false
  // Until then, a small batch waits, by the monotonic clock.
  let gathersUntil = -Infinity
  let hasUrgent = false
  let timer: ReturnType<typeof setTimeout> | undefined

  /** Selects the items that can run now, and share a batch. Nobody overtakes an item with the same key. */
  const select = (): Selected<Waiting> => {
    if (keysOf === undefined) {
      return { batch: queue.slice(0, maxBatch), rest: queue.slice(maxBatch) }
    }
    const batch: Array<Waiting> = []
    const rest: Array<Waiting> = []
    const reserved = new Set<string>()
    // The keys in the batch, each with the stack that has it, if one has.
    const taken = new Map<string, string | undefined>()
    let examined = 0
    // All of them, if need be: those of one locked member keep nobody else back.
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

  /** Has the keys of items busy until all items that have them are over. */
  const occupy = (batch: ReadonlyArray<Waiting>): ReadonlyArray<Waiting> => {
    if (keysOf === undefined) return batch
    const users = new Map<string, number>()
    for (const key of batch.flatMap(({ keys }) => keys)) {
      users.set(key, (users.get(key) ?? 0) + 1)
      busy.add(key)
    }
    return batch.map(({ resume, ...waiting }) => ({
      ...waiting,
      resume: (exit) => {
        for (const key of waiting.keys) {
          const left = (users.get(key) ?? 1) - 1
          users.set(key, left)
          if (left === 0) busy.delete(key)
        }
        resume(exit)
        scheduleFlush()
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
      if (queue.length >= mostWaiting) return resume(Exit.fail(options.crowded))
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

/** For each item, the row that has its position `n`, counted from 1, or `null`. */
export const rowsByPosition = <Row extends { readonly n: number }>(
  items: ReadonlyArray<unknown>,
  rows: ReadonlyArray<Row>,
): ReadonlyArray<Row | null> => {
  const byPosition = new Map(rows.map((row) => [row.n, row]))
  return items.map((_, index) => byPosition.get(index + 1) ?? null)
}

/** For each item, whether a row has its position `n`, counted from 1. */
export const hasRowAt = (
  items: ReadonlyArray<unknown>,
  rows: ReadonlyArray<{ readonly n: number }>,
): ReadonlyArray<boolean> => {
  const positions = new Set(rows.map(({ n }) => n))
  return items.map((_, index) => positions.has(index + 1))
}
