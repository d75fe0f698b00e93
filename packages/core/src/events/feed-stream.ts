/** The feed as a stream. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { FeedEvent } from "./feed-store.ts"
import { Feed, type FeedFailure, type FeedQuery } from "./feed.ts"

/**
 * Returns a project's events, stored ones and then new ones, until the feed closes. Each event has the
 * cursor to continue after it.
 * @example
 * ```ts
 * import * as Console from "effect/Console"
 * import * as Stream from "effect/Stream"
 * import { feedStream } from "tenure/effect"
 *
 * const printing = feedStream({ projectId: "p1", after: "start" }).pipe(
 *   Stream.runForEach(({ cursor, type }) => Console.log(type, cursor)),
 * )
 * ```
 */
export const feedStream = (query: FeedQuery): Stream.Stream<FeedEvent, FeedFailure, Feed> =>
  Stream.unwrap(
    Effect.map(
      Effect.flatMap(Feed, (feed) => feed.follow(query)),
      ({ next }) =>
        Stream.paginate(undefined, () =>
          Effect.map(next, (page) => [
            Option.match(page, { onNone: () => [], onSome: ({ events }) => events }),
            Option.as(page, undefined),
          ]),
        ),
    ),
  )
