/** Hands events to the host, which keeps the cursor in the transactions of its own database. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Argument from "../base/Argument.ts"
import type { Failure, Feed, PageQuery } from "./Feed.ts"
import { Cursor, type FeedEvent, type FeedPage } from "./FeedStore.ts"

/**
 * How a host consumes events. One row of its database has the cursor.
 *
 * @typeParam Transaction - a transaction of the host's library, inferred from the parameter of `load`
 */
export interface Consumer<Transaction> extends Pick<PageQuery, "projectId" | "types" | "limit"> {
  /** Runs work in a transaction, commits it, and returns what the work returns. */
  readonly transaction: (work: (transaction: Transaction) => Promise<string>) => PromiseLike<string>
  /**
   * Locks the row until the transaction ends, and returns its cursor, at first `"start"` or `"now"`. The
   * row must be there: without a lock, two processes could get the same events.
   */
  readonly load: (transaction: Transaction) => PromiseLike<string>
  /** Processes the next events, of which there is at least one. */
  readonly handle: (
    events: ReadonlyArray<FeedEvent>,
    transaction: Transaction,
  ) => PromiseLike<unknown>
  /** Replaces the cursor. */
  readonly save: (cursor: string, transaction: Transaction) => PromiseLike<unknown>
}

// In time for a process that dies to leave a cursor that is not too old, even if no event has come.
const waitMillis = 20_000

/** Returns the work of a transaction, which returns the cursor that is saved then. */
const process =
  <Transaction>(
    { handle, load, save }: Consumer<Transaction>,
    from: string,
    { cursor, events }: FeedPage,
  ) =>
  async (transaction: Transaction): Promise<string> => {
    const saved = await load(transaction)
    // Another process has gone on from there.
    if (saved !== from) return saved
    if (events.length > 0) await handle(events, transaction)
    await save(cursor, transaction)
    return cursor
  }

/**
 * Consumes events until it is to end. The events of a page, and the cursor after them, are one transaction
 * of the host. Dies with what a function of the host rejects with.
 *
 * @param ended - waits for the end
 */
export const consume = Effect.fnUntraced(function* <Transaction>(
  feed: Feed["Service"],
  consumer: Consumer<Transaction>,
  ended: Effect.Effect<void>,
): Effect.fn.Return<void, Failure> {
  const { limit, load, projectId, transaction, types } = consumer
  const commit = (work: (transaction: Transaction) => Promise<string>) =>
    Effect.promise(async () => transaction(work))

  const readAfter = (from: string) =>
    Effect.flatMap(Argument.decode("cursor", Cursor, from), (after) =>
      feed.read({ projectId, types, limit, after, waitMillis }),
    )

  let from = yield* commit(async (open) => load(open))
  while (true) {
    const page = yield* Effect.raceFirst(
      Effect.as(ended, Option.none<FeedPage>()),
      Effect.asSome(readAfter(from)),
    )
    if (Option.isNone(page)) return
    from = yield* commit(process(consumer, from, page.value))
  }
})
