/** The storage port for the feed: events in an order without gaps. */

import type { Branded } from "effect/Brand"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { StoreUnavailable } from "../base/errors.ts"
import { TaggedError } from "../base/tagged-error.ts"
import { type ProjectId, type ProjectNotFound, brandedWhere } from "../base/values.ts"
import type { Event, EventId } from "./event.ts"

/**
 * A position in a store's history, between two events. It is also a position for other projects, though
 * some of their earlier events may come after it. Only the store can interpret it.
 */
export type FeedCursor = Branded<string, "@tenure/core/FeedCursor">

/** Brands text as a cursor. Throws a `TypeError` if it cannot belong to any store. */
export const FeedCursor = brandedWhere<string, FeedCursor>(
  "cursor",
  "a cursor of the feed, as a page or an event has it",
  (text) => /^[\w.~-]{1,8192}$/.test(text),
)

/** Where to start: at the oldest kept event, now, or after a cursor. */
export type FeedStart = "start" | "now" | FeedCursor

/** An event, and the place after it. */
export interface FeedEvent extends Event {
  /** The place after the event. */
  readonly cursor: FeedCursor
}

/** Consecutive events. */
export interface FeedPage {
  /** The events, in the order of the feed. */
  readonly events: ReadonlyArray<FeedEvent>
  /** The place after these events. */
  readonly cursor: FeedCursor
  /** Whether there were no more events when the page was read. */
  readonly isLast: boolean
}

/**
 * A page's maximum number of events, and approximately of bytes in their bodies; a single event may be
 * longer.
 */
export interface FeedPageSize {
  readonly events: number
  readonly bytes: number
}

/** The latest events, newest first. */
export interface LatestEvents {
  readonly events: ReadonlyArray<Event>
  /** Whether no event is before them. */
  readonly isLast: boolean
}

/**
 * The feed cannot continue from a cursor without a gap: its next events were deleted, or it belongs to
 * another history, such as the one before a restore.
 */
export class CursorExpired extends TaggedError("CursorExpired") {
  override readonly message = "The feed cannot go on from this cursor without a gap."
}

/** Reads one history's events. */
export interface FeedHistory {
  /**
   * Reads some projects' next events. Every page but the last is full: it has the requested number of
   * events, or about the requested number of bytes. Fails with `ProjectNotFound` if none of the
   * projects exists, whatever the cursor, and with `CursorExpired`, also for text that was never a
   * cursor in this history.
   */
  readonly read: (
    projects: readonly [ProjectId, ...ReadonlyArray<ProjectId>],
    from: FeedStart,
    size: FeedPageSize,
  ) => Effect.Effect<FeedPage, ProjectNotFound | CursorExpired | StoreUnavailable>
}

/**
 * Reads events in the order they became visible.
 *
 * A page has all stored events between two positions, however late their transactions commit: an event
 * becomes visible after the cursors of all pages read before. A reader going from page to page thus
 * neither misses an event nor gets one twice.
 */
export class FeedStore extends Context.Service<
  FeedStore,
  FeedHistory & {
    /**
     * Reads a project's latest events, newest first, in the order they were stored; with an event, those
     * before it, and none if it is not kept. It serves people who look at a list: events become visible
     * in another order. Fails with `ProjectNotFound`.
     */
    readonly latest: (
      projectId: ProjectId,
      before: EventId | undefined,
      size: FeedPageSize,
    ) => Effect.Effect<LatestEvents, ProjectNotFound | StoreUnavailable>
    /**
     * The store's histories, and a function to find a project's, if it has several. A cursor from one
     * has expired in the others, and `read` only accepts projects from one.
     */
    readonly histories?: {
      readonly all: readonly [FeedHistory, ...ReadonlyArray<FeedHistory>]
      readonly of: (projectId: ProjectId) => FeedHistory
    }
  }
>()("@tenure/core/FeedStore") {}
