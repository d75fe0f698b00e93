/** The feed as a stream. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { FeedEvent } from "./feed-store.ts"
import { Feed, type FeedFailure, type FeedQuery } from "./feed.ts"

/**
 * Returns the events of a project, those that are stored and then those that come, until the feed closes.
 * An event has the cursor from which to go on after it.
 *
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
