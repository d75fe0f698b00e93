/** The service for reading events in the order in which they were stored, which hosts and the API call. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { aborted } from "../base/Aborted.ts"
import * as Argument from "../base/Argument.ts"
import type { InvalidInput } from "../base/InvalidInput.ts"
import { owned } from "../base/Own.ts"
import * as Setting from "../base/Setting.ts"
import * as EventTypes from "./EventTypes.ts"
import { Cursor, type FeedPage, FeedStore, type History } from "./FeedStore.ts"
import { type Asked, Follower, ofTypes, type Source, type StepFailure } from "./Follower.ts"
import { Hooks } from "./Hooks.ts"
import * as Tail from "./Tail.ts"

/** Which events to read. */
export interface Query {
  readonly projectId: string
  /** The cursor of an event or of a page; `"start"` for the oldest event that is kept. By default, now. */
  readonly after?: string | undefined
  /** Only events of these types. By default, of all types. */
  readonly types?: ReadonlyArray<string> | undefined
}

/** Which page to read. */
export interface PageQuery extends Query {
  /** The most events: 1 to 1,000. By default 100. */
  readonly limit?: number | undefined
  /** How long to wait when there is no event yet, in milliseconds, up to 20,000. By default 0. */
  readonly waitMillis?: number | undefined
  /** Ends the waiting. */
  readonly signal?: AbortSignal | undefined
}

export type { Follower }

/** Why events cannot be read. */
export type Failure = InvalidInput | StepFailure

const mostEvents = 1000
const maxPageBytes = 1_048_576

// What a follower may hold at a time.
const maxFollowedBytes = 65_536

// How many pages are read if none has an event of the types asked for. The caller may go on from there.
const mostEmpty = 10

const limits = Setting.withDefault(Setting.count({ most: mostEvents }), 100)

const waits = Setting.withDefault(Setting.count({ least: 0, most: 20_000 }), 0)

const decode = Effect.fnUntraced(function* (query: Query): Effect.fn.Return<Asked, InvalidInput> {
  const projectId = yield* Argument.projectId(query.projectId)
  const { after = "now" } = query
  const from =
    after === "start" || after === "now" ? after : yield* Argument.decode("after", Cursor, after)
  return { projectId, from, types: yield* Argument.read("types", EventTypes.setting, query.types) }
})

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
 * import { Feed } from "tenure/Feed"
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
    readonly read: (query: PageQuery) => Effect.Effect<FeedPage, Failure>

    /** Follows the feed, from a place on, until the scope is closed. */
    readonly follow: (query: Query) => Effect.Effect<Follower, InvalidInput, Scope.Scope>

    /** Makes what follows the feed without a scope: whoever calls this stops it. */
    readonly follower: (query: Query) => Effect.Effect<Follower, InvalidInput>

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

/** Makes a tail of each history, so that one that does not answer delays no other. */
const tailOf = Effect.fnUntraced(function* (
  store: FeedStore["Service"],
  published: Effect.Effect<void>,
): Effect.fn.Return<Tail.Tail, never, Scope.Scope> {
  const { histories } = store
  if (histories === undefined) return yield* Tail.make(store, published)
  const [first, ...others] = histories.all
  const tails = new Map<History, Tail.Tail>()
  for (const history of others) tails.set(history, yield* Tail.make(history, published))
  const tail = yield* Tail.make(first, published)
  return {
    watch: (projectId) => (tails.get(histories.of(projectId)) ?? tail).watch(projectId),
  }
})

const make = Effect.gen(function* () {
  const store = yield* FeedStore
  const hooks = yield* Hooks
  const tail = yield* tailOf(store, hooks.published)
  const released = yield* Latch.make()

  /** Reads a page of the types asked for. */
  const readPage = Effect.fnUntraced(function* (
    { from, projectId, types }: Asked,
    limit: number,
    bytes = maxPageBytes,
  ) {
    const size = { events: types === undefined ? limit : mostEvents, bytes }
    let page = ofTypes(yield* store.read([projectId], from, size), types)
    for (let count = 1; page.events.length === 0 && !page.isLast && count < mostEmpty; count++) {
      page = ofTypes(yield* store.read([projectId], page.cursor, size), types)
    }
    return cut(page, limit)
  })

  const source: Source = {
    tail,
    read: (asked) => readPage(asked, mostEvents, maxFollowedBytes),
    closing: released.await,
  }

  const follower = (query: Query) =>
    Effect.suspend(() => Effect.map(decode(owned(query)), (asked) => new Follower(source, asked)))

  return Feed.of({
    read: Effect.fnUntraced(function* (query) {
      const given = owned(query)
      const asked = yield* decode(given)
      const limit = yield* Argument.read("limit", limits, given.limit)
      const waitMillis = yield* Argument.read("waitMillis", waits, given.waitMillis)
      const page = yield* readPage(asked, limit)
      if (waitMillis === 0 || page.events.length > 0 || !page.isLast) return page
      const waiting = new Follower(source, { ...asked, from: page.cursor })
      const later = yield* Effect.raceFirst(
        waiting.next,
        Effect.as(aborted(given.signal), Option.none()),
      ).pipe(Effect.timeoutOption(waitMillis), Effect.ensuring(Effect.sync(() => waiting.stop())))
      return Option.match(Option.flatten(later), {
        onNone: () => page,
        onSome: (next) => cut(next, limit),
      })
    }),

    follow: (query) =>
      Effect.acquireRelease(follower(query), (made) => Effect.sync(() => made.stop())),

    follower,

    release: Effect.asVoid(released.open),
    closing: released.await,
  })
})
