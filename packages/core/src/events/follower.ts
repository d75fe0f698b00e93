/** A follower: reads stored events page by page, and waits for new ones at the end. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { StoreUnavailable } from "../base/errors.ts"
import type { Decoded } from "../base/operation-input.ts"
import { type ProjectNotFound, invariant } from "../base/values.ts"
import type { EventId } from "./event.ts"
import type { CursorExpired, FeedPage } from "./feed-store.ts"
import type { feedQuery } from "./inputs.ts"
import type { EventBatch, SharedTail, Subscription } from "./shared-tail.ts"

/** The events to read. */
export interface FollowRequest extends Decoded<typeof feedQuery> {}

/** Why a step from page to page fails. */
export type FollowFailure = ProjectNotFound | CursorExpired | StoreUnavailable

/** The reader shared by all followers. */
export interface PageSource {
  readonly tail: SharedTail
  /** Reads a page, limited by a follower's buffer. */
  readonly read: (asked: FollowRequest) => Effect.Effect<FeedPage, FollowFailure>
  /** Waits until the feed is closing. */
  readonly closing: Effect.Effect<void>
}

/** Removes events with other types. */
export const filterTypes = (page: FeedPage, types: FollowRequest["types"]): FeedPage =>
  types === undefined
    ? page
    : { ...page, events: page.events.filter(({ type }) => types.includes(type)) }

const noIds: ReadonlySet<EventId> = new Set()

const idsOf = ({ events }: FeedPage): ReadonlySet<EventId> =>
  events.length === 0 ? noIds : new Set(events.map(({ id }) => id))

/** Returns consecutive pages of about 64 KiB at most. The creator must stop it. */
export class Follower {
  private readonly source: PageSource
  private asked: FollowRequest
  private watch: Subscription | undefined
  /** Events read since the subscription began: they may also arrive in a batch. */
  private known = noIds

  constructor(source: PageSource, asked: FollowRequest) {
    this.source = source
    this.asked = asked
  }

  /** Returns the next stored events, possibly none, and the position after them. Call it first. */
  get stored(): Effect.Effect<FeedPage, FollowFailure> {
    return Effect.map(this.read, (page) => this.reach(page))
  }

  /**
   * Returns the next events, at least one, and the position after them; `undefined` if there are none
   * yet. Can be called again after a failure.
   */
  ready(): Effect.Effect<FeedPage | undefined, FollowFailure> {
    return Effect.suspend(() => {
      const page = this.take()
      if (page !== undefined || this.watch !== undefined) return Effect.succeed(page)
      return Effect.flatMap(this.catchUp, (found) =>
        this.reach(found).events.length > 0 ? Effect.succeed(found) : this.ready(),
      )
    })
  }

  /** Calls a function once, when there may be events. Replaces the previous function. */
  whenReady(wake: () => void): void {
    if (this.watch === undefined) wake()
    else this.watch.whenReady(wake)
  }

  /** Waits for the next events. */
  page(): Effect.Effect<FeedPage, FollowFailure> {
    return Effect.flatMap(this.ready(), (page) =>
      page === undefined ? Effect.flatMap(this.waiting, () => this.page()) : Effect.succeed(page),
    )
  }

  /** Waits for the next page, or returns none if the feed is closing. */
  get next(): Effect.Effect<Option.Option<FeedPage>, FollowFailure> {
    return Effect.raceFirst(
      Effect.asSome(this.page()),
      Effect.as(this.source.closing, Option.none()),
    )
  }

  /** Ends the watch, if there is one. */
  stop(): void {
    this.watch?.stop()
    this.watch = undefined
  }

  private get waiting(): Effect.Effect<void> {
    return Effect.callback((resume) => this.whenReady(() => resume(Effect.void)))
  }

  private get read(): Effect.Effect<FeedPage, FollowFailure> {
    return Effect.suspend(() => this.source.read(this.asked))
  }

  private reach(page: FeedPage): FeedPage {
    this.asked = { ...this.asked, after: page.cursor }
    return page
  }

  /**
   * Takes batches up to the first with something new. Earlier batches' positions may precede the
   * current one.
   */
  private take(): FeedPage | undefined {
    for (let batch = this.watch?.take(); batch !== undefined; batch = this.watch?.take()) {
      const page = this.pageOf(batch)
      if (page.events.length > 0) return this.reach(page)
    }
    if (this.watch?.hasEnded === true) this.stop()
    return undefined
  }

  private pageOf({ cursor, events }: EventBatch): FeedPage {
    const unknown = this.known.size === 0 ? events : events.filter(({ id }) => !this.known.has(id))
    return filterTypes({ events: unknown, cursor, isLast: true }, this.asked.types)
  }

  /** Reads stored events. At their end, subscribes. */
  private get catchUp(): Effect.Effect<FeedPage, FollowFailure> {
    return Effect.flatMap(this.read, (page) =>
      page.events.length > 0 || !page.isLast
        ? Effect.succeed(page)
        : Effect.onError(
            Effect.suspend(() => this.watchFrom(page)),
            () => Effect.sync(() => this.stop()),
          ),
    )
  }

  /** Subscribes. Without a second read, earlier events would be missed. */
  private watchFrom(page: FeedPage): Effect.Effect<FeedPage, FollowFailure> {
    invariant(this.watch === undefined, "a follower subscribed twice")
    this.reach(page)
    const watch = this.source.tail.watch(this.asked.projectId)
    this.watch = watch
    return Effect.map(Effect.andThen(watch.begun, this.read), (rest) => {
      this.known = idsOf(rest)
      if (!rest.isLast) this.stop()
      return rest
    })
  }
}
