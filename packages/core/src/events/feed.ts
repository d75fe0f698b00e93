/** The feed: the service that reads and follows events. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { InvalidInput, StoreUnavailable } from "../base/errors.ts"
import { checkNames, makeNameChecks } from "../base/field-names.ts"
import { readingMethod } from "../base/host-method.ts"
import type { Decoded, HostInputOf } from "../base/operation-input.ts"
import { type ProjectNotFound, copyOwn } from "../base/values.ts"
import { Hooks } from "./event.ts"
import { type FeedPage, FeedStore, type LatestEvents } from "./feed-store.ts"
import {
  Follower,
  type FollowFailure,
  type FollowRequest,
  type PageSource,
  filterTypes,
} from "./follower.ts"
import { feedNames, feedPage, feedQuery, latestPage, maxEvents } from "./inputs.ts"
import { tailOf } from "./shared-tail.ts"

/** Waits until a signal aborts. Without a signal, waits forever. */
export const aborted = (signal: AbortSignal | undefined): Effect.Effect<void> =>
  signal === undefined
    ? Effect.never
    : Effect.callback((resume) => {
        const abort = () => resume(Effect.void)
        if (signal.aborted) return abort()
        signal.addEventListener("abort", abort, { once: true })
        return Effect.sync(() => signal.removeEventListener("abort", abort))
      })

/** The events to read. */
export interface FeedQuery extends HostInputOf<typeof feedQuery> {}

/** The page to read. */
export interface FeedPageQuery extends HostInputOf<typeof feedPage> {
  /** Ends the waiting. */
  readonly signal?: AbortSignal | undefined
}

/** The latest events to read. */
export interface LatestEventsQuery extends HostInputOf<typeof latestPage> {}

/** Why events cannot be read. */
export type FeedFailure = InvalidInput | FollowFailure

const checks = makeNameChecks(feedNames)

/** Fails if a field of a method is named wrong that is not one of the service. */
export const checkFeedFields = (
  method: "consume" | "stream",
  given: object,
): Effect.Effect<void, InvalidInput> =>
  Effect.suspend(() => {
    const fault = checks[method]?.([given])
    return fault === undefined ? Effect.void : Effect.fail(fault)
  })

const maxPageBytes = 1_048_576

// A follower's maximum buffer.
const maxFollowedBytes = 65_536

// How many pages to read without an event of the requested types. The caller may continue from there.
const maxEmpty = 10

/**
 * Reads the events of projects in an order in which none is skipped, and none comes twice.
 *
 * Every method fails with `InvalidInput` if an argument is invalid, with `ProjectNotFound`, with
 * `CursorExpired` if the feed cannot go on from the cursor without a gap, and with `StoreUnavailable`
 * if the store does not answer.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import { Feed } from "tenure/effect"
 *
 * const page = Effect.flatMap(Feed, (feed) => feed.read({ projectId: "p1", after: "start" }))
 * ```
 */
export class Feed extends Context.Service<
  Feed,
  {
    /**
     * Reads the next events, and the place after them. A page may have fewer events than there are, even
     * none if only some types were asked for: `isLast` tells.
     */
    readonly read: (query: FeedPageQuery) => Effect.Effect<FeedPage, FeedFailure>

    /** Reads the latest events, newest first, for a list. */
    readonly latest: (
      query: LatestEventsQuery,
    ) => Effect.Effect<LatestEvents, InvalidInput | ProjectNotFound | StoreUnavailable>

    /** Follows the feed, from a place on, until the scope is closed. */
    readonly follow: (query: FeedQuery) => Effect.Effect<Follower, InvalidInput, Scope.Scope>

    /** Makes what follows the feed without a scope: whoever calls this stops it. */
    readonly follower: (query: FeedQuery) => Effect.Effect<Follower, InvalidInput>

    /** Ends all waiting for events, from now on, so that the process can end. */
    readonly release: Effect.Effect<void>

    /** Waits until waiting ends. */
    readonly closing: Effect.Effect<void>
  }
>()("@tenure/core/Feed") {
  static readonly layer: Layer.Layer<Feed, never, FeedStore> = Layer.effect(
    this,
    Effect.suspend(() => make),
  )
}

/** Cuts a page that has more events than were asked for. */
const cut = (page: FeedPage, limit: number): FeedPage => {
  const last = page.events[limit - 1]
  return page.events.length > limit && last !== undefined
    ? { events: page.events.slice(0, limit), cursor: last.cursor, isLast: false }
    : page
}

const make = Effect.gen(function* () {
  const store = yield* FeedStore
  const hooks = yield* Hooks
  const tail = yield* tailOf(store, hooks.published)
  const released = yield* Latch.make()

  /** Reads a page of the types asked for. */
  const readPage = Effect.fnUntraced(function* (
    { after, projectId, types }: FollowRequest,
    limit: number,
    bytes = maxPageBytes,
  ) {
    const size = { events: types === undefined ? limit : maxEvents, bytes }
    let page = filterTypes(yield* store.read([projectId], after, size), types)
    for (let count = 1; page.events.length === 0 && !page.isLast && count < maxEmpty; count++) {
      page = filterTypes(yield* store.read([projectId], page.cursor, size), types)
    }
    return cut(page, limit)
  })

  const source: PageSource = {
    tail,
    read: (asked) => readPage(asked, maxEvents, maxFollowedBytes),
    closing: released.await,
  }

  const follower = readingMethod(feedQuery, (asked) =>
    Effect.sync(() => new Follower(source, asked)),
  )

  const readNext = Effect.fnUntraced(function* (
    { limit, waitMillis, ...asked }: Decoded<typeof feedPage>,
    signal: AbortSignal | undefined,
  ) {
    const page = yield* readPage(asked, limit)
    if (waitMillis === 0 || page.events.length > 0 || !page.isLast) return page
    const waiting = new Follower(source, { ...asked, after: page.cursor })
    const later = yield* Effect.raceFirst(
      waiting.next,
      Effect.as(aborted(signal), Option.none()),
    ).pipe(Effect.timeoutOption(waitMillis), Effect.ensuring(Effect.sync(() => waiting.stop())))
    return Option.match(Option.flatten(later), {
      onNone: () => page,
      onSome: (next) => cut(next, limit),
    })
  })

  return checkNames<Feed["Service"]>(feedNames, {
    read: (query) =>
      Effect.suspend(() => {
        const own = copyOwn(query)
        return Effect.flatMap(Effect.fromResult(feedPage.fromHost(own)), (asked) =>
          readNext(asked, own.signal),
        )
      }),

    latest: readingMethod(latestPage, ({ before, limit, projectId }) =>
      store.latest(projectId, before, { events: limit, bytes: maxPageBytes }),
    ),

    follow: (query) =>
      Effect.acquireRelease(follower(query), (made) => Effect.sync(() => made.stop())),

    follower,

    release: Effect.asVoid(released.open),
    closing: released.await,
  })
})
