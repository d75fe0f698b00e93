/** The feed for hosts that do not use Effect. */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { aborted } from "../base/Aborted.ts"
import * as Consumer from "./Consumer.ts"
import type { Feed, PageQuery, Query } from "./Feed.ts"
import type { FeedEvent, FeedPage } from "./FeedStore.ts"

interface Abortable {
  /** Ends it. */
  readonly signal?: AbortSignal | undefined
}

/** Which events to follow. */
interface StreamQuery extends Query, Abortable {}

/** How to consume events. */
interface ConsumerOptions<Transaction> extends Consumer.Consumer<Transaction>, Abortable {}

/** The methods of the feed, with promises. */
export interface FeedPromises {
  /**
   * Reads the next events, and the place after them. A page may have fewer events than there are, even
   * none if only some types were asked for: `isLast` tells. Rejects with `ProjectNotFound`, and with
   * `CursorExpired` if the feed cannot go on from the cursor without a gap.
   */
  readonly read: (query: PageQuery) => Promise<FeedPage>
  /**
   * Returns the events of a project, those that are stored and then those that come, until Tenure is
   * closed or the signal aborts. An event has the cursor from which to go on after it. The iteration
   * throws what `read` rejects with.
   *
   * @example
   * ```ts
   * import type { Tenure } from "tenure/Tenure"
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
   * Hands every event to the host exactly once, until Tenure is closed or the signal aborts. The host
   * processes events and saves the cursor after them in one transaction of its own, so that both are
   * committed or neither. If several processes consume with the same row, each event goes to one of them,
   * and when a process dies, another goes on.
   *
   * Rejects with what `read` or a function of the host rejects with. Call it again then: it goes on from
   * the cursor that is committed. Without events, the cursor is saved every 20 seconds.
   *
   * @example
   * ```ts
   * import type { Kysely, Transaction } from "kysely"
   * import type { Tenure } from "tenure/Tenure"
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

/** Returns the pages that a function returns, until it returns nothing. */
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
 * @param run - runs an effect as a promise
 */
export const make = (
  feed: Feed["Service"],
  run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>,
): FeedPromises => ({
  read: (query) => run(feed.read(query)),

  consume: ({ signal, ...consumer }) =>
    run(Consumer.consume(feed, consumer, Effect.raceFirst(aborted(signal), feed.closing))),

  async *stream({ signal, ...query }) {
    const scope = Scope.makeUnsafe()
    try {
      const { next } = await run(Scope.provide(feed.follow(query), scope))
      const step = Effect.raceFirst(next, Effect.as(aborted(signal), Option.none<FeedPage>()))
      for await (const { events } of pagesOf(() => run(step))) yield* events
    } finally {
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  },
})
