/** Follows the feed of a project from page to page: first what is stored, then what comes. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ProjectId, ProjectNotFound } from "../base/Project.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import type { EventId, EventType } from "./Event.ts"
import type { CursorExpired, FeedPage, From } from "./FeedStore.ts"
import type { Tail } from "./Tail.ts"
import type { Batch, Watch } from "./Watch.ts"

/** Which events to read. */
export interface Asked {
  readonly projectId: ProjectId
  readonly from: From
  readonly types: ReadonlyArray<EventType> | undefined
}

/** Why a step from page to page fails. */
export type StepFailure = ProjectNotFound | CursorExpired | StoreUnavailable

/** What all followers share. */
export interface Source {
  readonly tail: Tail
  /** Reads a page, of at most what a follower may hold at a time. */
  readonly read: (asked: Asked) => Effect.Effect<FeedPage, StepFailure>
  /** Waits until the feed is closing. */
  readonly closing: Effect.Effect<void>
}

/** Leaves out the events of other types. */
export const ofTypes = (page: FeedPage, types: Asked["types"]): FeedPage =>
  types === undefined
    ? page
    : { ...page, events: page.events.filter(({ type }) => types.includes(type)) }

const noIds: ReadonlySet<EventId> = new Set()

const idsOf = ({ events }: FeedPage): ReadonlySet<EventId> =>
  events.length === 0 ? noIds : new Set(events.map(({ id }) => id))

/**
 * Returns pages of events, one after the other, each of about 64 KiB at most. Whoever makes a follower
 * stops it.
 */
export class Follower {
  private readonly source: Source
  private asked: Asked
  private watch: Watch | undefined
  /** What was read after the watch had begun, and may come in a batch, too. */
  private known = noIds

  constructor(source: Source, asked: Asked) {
    this.source = source
    this.asked = asked
  }

  /** Returns what is stored of the next events, with the place after them: maybe none. Call it first. */
  get stored(): Effect.Effect<FeedPage, StepFailure> {
    return Effect.map(this.read, (page) => this.reach(page))
  }

  /**
   * Returns the next events, of which there is at least one, with the place after them; `undefined` if
   * there are none yet. Can be called again after a failure.
   */
  ready(): Effect.Effect<FeedPage | undefined, StepFailure> {
    return Effect.suspend(() => {
      const page = this.take()
      if (page !== undefined || this.watch !== undefined) return Effect.succeed(page)
      return Effect.flatMap(this.catchUp, (found) =>
        this.reach(found).events.length > 0 ? Effect.succeed(found) : this.ready(),
      )
    })
  }

  /** Calls a function once, when there may be events, in place of the one before. */
  whenReady(wake: () => void): void {
    if (this.watch === undefined) wake()
    else this.watch.whenReady(wake)
  }

  /** Waits for the next events. */
  page(): Effect.Effect<FeedPage, StepFailure> {
    return Effect.flatMap(this.ready(), (page) =>
      page === undefined ? Effect.flatMap(this.waiting, () => this.page()) : Effect.succeed(page),
    )
  }

  /** Waits for the next page, or returns none if the feed is closing. */
  get next(): Effect.Effect<Option.Option<FeedPage>, StepFailure> {
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

  private get read(): Effect.Effect<FeedPage, StepFailure> {
    return Effect.suspend(() => this.source.read(this.asked))
  }

  private reach(page: FeedPage): FeedPage {
    this.asked = { ...this.asked, from: page.cursor }
    return page
  }

  /**
   * Takes the next batches, up to one that has something new. The place after any other may be before the
   * one that is reached.
   */
  private take(): FeedPage | undefined {
    for (let batch = this.watch?.take(); batch !== undefined; batch = this.watch?.take()) {
      const page = this.pageOf(batch)
      if (page.events.length > 0) return this.reach(page)
    }
    if (this.watch?.hasEnded === true) this.stop()
    return undefined
  }

  private pageOf({ cursor, events }: Batch): FeedPage {
    const unknown = events.filter(({ id }) => !this.known.has(id))
    return ofTypes({ events: unknown, cursor, isLast: true }, this.asked.types)
  }

  /** Reads what is stored. At its end, begins a watch. */
  private get catchUp(): Effect.Effect<FeedPage, StepFailure> {
    return Effect.flatMap(this.read, (page) =>
      page.events.length > 0 || !page.isLast
        ? Effect.succeed(page)
        : Effect.onError(
            Effect.suspend(() => this.watchFrom(page)),
            () => Effect.sync(() => this.stop()),
          ),
    )
  }

  /** Begins a watch. Without a second read, it would leave out what came before it. */
  private watchFrom(page: FeedPage): Effect.Effect<FeedPage, StepFailure> {
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
