/**
 * The feed for hosts without Effect. A consumer keeps its cursor in transactions on the host's own
 * database.
 */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { readBranded } from "../base/input.ts"
import { FeedCursor, type FeedEvent, type FeedPage } from "./feed-store.ts"
import {
  type Feed,
  type FeedFailure,
  type FeedPageQuery,
  type FeedQuery,
  aborted,
  checkFeedFields,
} from "./feed.ts"

/**
 * A consumer of events. It keeps its cursor in one row of the host's database.
 *
 * @typeParam Transaction - a transaction from the host's library, inferred from the parameter of `load`
 */
interface Consumer<Transaction> extends Pick<FeedPageQuery, "projectId" | "types" | "limit"> {
  /** Runs work in a transaction, commits it, and returns the work's result. */
  readonly transaction: (work: (transaction: Transaction) => Promise<string>) => PromiseLike<string>
  /**
   * Locks the row until the transaction ends, and returns its cursor, at first `"start"` or `"now"`. The
   * row must be there: without a lock, two processes could get the same events.
   */
  readonly load: (transaction: Transaction) => PromiseLike<string>
  /** Processes the next events, at least one. */
  readonly handle: (
    events: ReadonlyArray<FeedEvent>,
    transaction: Transaction,
  ) => PromiseLike<unknown>
  /** Replaces the cursor. */
  readonly save: (cursor: string, transaction: Transaction) => PromiseLike<unknown>
}

// Saves the cursor often enough that a dying process leaves a recent one, even without events.
const waitMillis = 20_000

/** Returns the work for a transaction. The work returns the cursor to save. */
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
 * Consumes events until it is ended. A page's events and the cursor after them are saved in one
 * transaction. Dies with the error if the host's function rejects.
 *
 * @param ended - waits for the end
 */
const consume = Effect.fnUntraced(function* <Transaction>(
  feed: Feed["Service"],
  consumer: Consumer<Transaction>,
  ended: Effect.Effect<void>,
): Effect.fn.Return<void, FeedFailure> {
  const { limit, load, projectId, transaction, types } = consumer
  const commit = (work: (transaction: Transaction) => Promise<string>) =>
    Effect.promise(async () => transaction(work))

  const readAfter = (from: string) =>
    Effect.flatMap(readBranded("cursor", FeedCursor, from), (after) =>
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

interface Abortable {
  /** Ends it. */
  readonly signal?: AbortSignal | undefined
}

/** The events to follow. */
interface StreamQuery extends FeedQuery, Abortable {}

/** How to consume events. */
interface ConsumerOptions<Transaction> extends Consumer<Transaction>, Abortable {}

/** The feed's methods, with promises. */
export interface FeedPromises {
  /**
   * Reads the next events, and the place after them. A page may have fewer events than there are, even
   * none if only some types were asked for: `isLast` tells. Rejects with `ProjectNotFound`, and with
   * `CursorExpired` if the feed cannot go on from the cursor without a gap.
   */
  readonly read: (query: FeedPageQuery) => Promise<FeedPage>
  /**
   * Returns a project's events, stored ones and then new ones, until Tenure closes or the signal
   * aborts. Each event has the cursor to continue after it. The iteration throws the same errors as
   * `read`.
   * @example
   * ```ts
   * import type { Tenure } from "tenure"
   *
   * declare const tenure: Tenure
   * declare const cursor: string | undefined
   *
   * for await (const event of tenure.events.stream({ projectId: "p1", after: cursor })) {
   *   console.log(event.type, event.body, event.cursor)
   * }
   * ```
   */
  readonly stream: (query: StreamQuery) => AsyncIterable<FeedEvent>
  /**
   * Passes every event to the host exactly once, until Tenure closes or the signal aborts. The host
   * processes events and saves the cursor after them in one transaction: both are committed or neither.
   * If several processes consume with the same row, each event goes to one of them, and if a process
   * dies, another continues.
   *
   * Rejects with an error from `read` or from the host's functions. Call it again then: it continues
   * from the committed cursor. Without events, it saves the cursor every 20 seconds.
   * @example
   * ```ts
   * import type { Kysely, Transaction } from "kysely"
   * import type { Tenure } from "tenure"
   *
   * interface Tables {
   *   readonly consumers: { readonly name: string; readonly cursor: string }
   *   readonly mails: { readonly event_id: string; readonly body: string }
   * }
   * declare const tenure: Tenure
   * declare const db: Kysely<Tables>
   *
   * await tenure.events.consume({
   *   projectId: "p1",
   *   transaction: (work) => db.transaction().execute(work),
   *   load: async (transaction: Transaction<Tables>) => {
   *     const row = transaction.selectFrom("consumers").where("name", "=", "mails").select("cursor")
   *     return (await row.forUpdate().executeTakeFirstOrThrow()).cursor
   *   },
   *   handle: (events, transaction) =>
   *     transaction
   *       .insertInto("mails")
   *       .values(events.map(({ body, id }) => ({ event_id: id, body })))
   *       .execute(),
   *   save: (cursor, transaction) =>
   *     transaction.updateTable("consumers").where("name", "=", "mails").set({ cursor }).execute(),
   * })
   * ```
   */
  readonly consume: <Transaction>(consumer: ConsumerOptions<Transaction>) => Promise<void>
}

/** Iterates over pages until the function returns none. */
const pagesOf = (next: () => Promise<Option.Option<FeedPage>>): AsyncIterable<FeedPage> => ({
  [Symbol.asyncIterator]: () => ({
    next: async () =>
      Option.match(await next(), {
        onNone: () => ({ done: true, value: undefined }),
        onSome: (value) => ({ done: false, value }),
      }),
  }),
})

/**
 * Makes the methods.
 *
 * @param run - runs the effect of a method as a promise
 */
export const makeFeedPromises = (
  feed: Feed["Service"],
  run: <A, E>(effect: Effect.Effect<A, E>, method: (...args: never) => unknown) => Promise<A>,
): FeedPromises => {
  const methods: FeedPromises = {
    read: (query) => run(feed.read(query), methods.read),

    consume: (given) => {
      const { signal, ...consumer } = given
      const ended = Effect.raceFirst(aborted(signal), feed.closing)
      return run(
        Effect.andThen(checkFeedFields("consume", given), consume(feed, consumer, ended)),
        methods.consume,
      )
    },

    async *stream(given) {
      await run(checkFeedFields("stream", given), methods.stream)
      const { signal, ...query } = given
      const scope = Scope.makeUnsafe()
      try {
        const { next } = await run(Scope.provide(feed.follow(query), scope), methods.stream)
        const step = Effect.raceFirst(next, Effect.as(aborted(signal), Option.none<FeedPage>()))
        for await (const { events } of pagesOf(() => run(step, methods.stream))) yield* events
      } finally {
        await Effect.runPromise(Scope.close(scope, Exit.void))
      }
    },
  }
  return methods
}
