/** The feed for hosts that do not use Effect. */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { Feed, PageQuery, Query } from "./Feed.ts"
import type { FeedEvent, FeedPage } from "./FeedStore.ts"

/** Which events to follow. */
interface StreamQuery extends Query {
  /** Ends the stream. */
  readonly signal?: AbortSignal | undefined
}

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
}

/** Waits until a signal aborts. */
const aborted = (signal: AbortSignal | undefined): Effect.Effect<void> =>
  signal === undefined
    ? Effect.never
    : Effect.callback((resume) => {
        const abort = () => resume(Effect.void)
        if (signal.aborted) return abort()
        signal.addEventListener("abort", abort, { once: true })
        return Effect.sync(() => signal.removeEventListener("abort", abort))
      })

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
