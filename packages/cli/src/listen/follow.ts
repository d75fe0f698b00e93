/** Follows the feed of a project from a cursor on, also when connections break or the server is away. */

import type { FeedEvent } from "@tenure/client"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { call } from "../connection/Api.ts"
import { patiently } from "../connection/patiently.ts"

/** What is followed. */
interface Feed {
  readonly project_id: string
  /** Joined by commas; all if missing. */
  readonly types: string | undefined
}

/** Events, and the cursor from which to go on when they have been processed. */
export interface Page {
  readonly events: ReadonlyArray<FeedEvent>
  readonly cursor: string
}

// The longest that the API waits, in seconds.
const longestWait = "20"

const page = (feed: Feed, after: string | undefined, wait: string) =>
  patiently(
    call(({ events }, options) => events.list({ ...feed, after, wait }, options)),
    Infinity,
  )

/** The cursor of now. */
const now = (feed: Feed) => Effect.map(page(feed, undefined, "0"), ({ next }) => next)

/** The pages after a cursor, for ever. A page without events only moves the cursor on. */
export const follow = (feed: Feed, cursor: string) =>
  Stream.unfold(cursor, (after) =>
    Effect.map(page(feed, after, longestWait), ({ data, next }): readonly [Page, string] => [
      { events: data, cursor: next },
      next,
    ]),
  )

/** The cursor that is given, or that of now. */
export const begin = (feed: Feed, given: Option.Option<string>) =>
  Option.match(given, { onNone: () => now(feed), onSome: Effect.succeed })
