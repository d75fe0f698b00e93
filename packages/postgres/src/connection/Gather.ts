/** Group commit: items that arrive while a batch is in flight share the next batch. */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Batch from "./Batch.ts"

// More items than this wait for more than a client can be expected to.
const mostWaiting = 10_000

// The most items that are examined for a batch.
const mostExamined = 1024

/** How items are gathered into batches. */
export interface Options<Item, Value, E> extends Batch.Options<Item, Value, E> {
  /**
   * Items with a key in common run in order: each is over before the next begins, also if it runs alone. They share
   * a batch only if it is the key of a stack, see `stackOf`. By default, items have no keys.
   */
  readonly keysOf?: (item: Item) => ReadonlyArray<string>
  /** The maximum number of items in a batch. */
  readonly maxBatch: number
  /** The maximum number of batches in flight. */
  readonly maxInFlight: number
  /** What an item fails with if too many wait. */
  readonly crowded: E
}

/** The items of the next batch, and those that go on waiting, both in order. */
interface Selected<Waiting> {
  readonly batch: ReadonlyArray<Waiting>
  readonly rest: Array<Waiting>
}

/**
 * Makes a function that processes one item, in a batch with other items if there are any.
 *
 * An item runs immediately if no batch is in flight. What follows if a batch fails is told in
 * `Batch.ts`.
 */
export const make = Effect.fnUntraced(function* <Item, Value, E>(options: Options<Item, Value, E>) {
  type Waiting = Batch.Waiting<Item, Value, E>
  const { keysOf, maxBatch, maxInFlight, stackOf } = options
  const start = yield* Batch.make(options)
  let queue: Array<Waiting> = []
  // The keys of items that have begun and are not over.
  const busy = new Set<string>()
  let inFlight = 0
  let isScheduled = false

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
    for (const waiting of queue) {
      if (batch.length === maxBatch || examined === mostExamined) break
      examined++
      const keys = keysOf(waiting.item)
      const stack = stackOf?.(waiting.item)
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
    for (const key of batch.flatMap(({ item }) => keysOf(item))) {
      users.set(key, (users.get(key) ?? 0) + 1)
      busy.add(key)
    }
    return batch.map(({ item, resume }) => ({
      item,
      resume: (exit) => {
        for (const key of keysOf(item)) {
          const left = (users.get(key) ?? 1) - 1
          users.set(key, left)
          if (left === 0) busy.delete(key)
        }
        resume(exit)
        scheduleFlush()
      },
    }))
  }

  const flush = (): void => {
    isScheduled = false
    while (queue.length > 0 && inFlight < maxInFlight) {
      const { batch, rest } = select()
      if (batch.length === 0) return
      queue = rest
      inFlight++
      start(occupy(batch), () => {
        inFlight--
        scheduleFlush()
      })
    }
  }

  // Items that arrive in the same turn of the event loop share a batch.
  const scheduleFlush = (): void => {
    if (isScheduled || queue.length === 0 || inFlight >= maxInFlight) return
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
