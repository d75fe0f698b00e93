/** Follows the feed of a project from a cursor on, also when connections break or the server is away. */

import type { FeedEvent } from "@tenure/client"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Api, call } from "../connection/Api.ts"
import { ofCall } from "../Failure.ts"

/** What is followed. */
interface Feed {
  readonly project_id: string
  /** All if missing. */
  readonly types: ReadonlyArray<string> | undefined
}

/** The cursor that is given, or that of now. */
export const begin = (project_id: string, given: Option.Option<string>) =>
  Option.match(given, {
    onNone: () =>
      Effect.map(
        call(({ events }, options) => events.list({ project_id }, options)),
        ({ next }) => next,
      ),
    onSome: Effect.succeed,
  })

/**
 * Follows the events after a cursor, for ever.
 *
 * @param onEvent - runs for each event, one after the other
 * @param onCursor - takes the cursor after all events for which `onEvent` has run
 */
export const follow = Effect.fnUntraced(function* <R>(
  feed: Feed,
  after: string,
  onEvent: (event: FeedEvent) => Effect.Effect<void, never, R>,
  onCursor: (cursor: string) => void,
) {
  const { client } = yield* Api
  const context = yield* Effect.context<R>()
  const run = Effect.runPromiseWith(context)
  yield* Effect.tryPromise({
    try: (signal) =>
      client.events.subscribe({
        ...feed,
        after,
        signal,
        onEvent: (event) => run(onEvent(event), { signal }),
        onCursor,
      }),
    catch: ofCall,
  })
})
