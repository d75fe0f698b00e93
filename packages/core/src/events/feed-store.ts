/** The storage port for the feed: events in an order in which none is skipped. */

import type { Branded } from "effect/Brand"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { StoreUnavailable } from "../base/errors.ts"
import { type ProjectId, type ProjectNotFound, brandedWhere } from "../base/values.ts"
import type { Event } from "./event.ts"

/**
 * A place in the history of a store, between two events. It also is a place for other projects, of which
 * some earlier events may come after it. Only the store knows what is in it.
 */
export type FeedCursor = Branded<string, "@tenure/core/FeedCursor">

/** Brands text as a cursor. Throws a `TypeError` if it cannot be one of any store. */
export const FeedCursor = brandedWhere<string, FeedCursor>(
  "cursor",
  "a cursor of the feed, as a page or an event has it",
  (text) => /^[\w.~-]{1,8192}$/.test(text),
)

/** Where to start: at the oldest event that is kept, now, or at a place. */
export type FeedStart = "start" | "now" | FeedCursor

/** An event, and the place after it. */
export interface FeedEvent extends Event {
  readonly cursor: FeedCursor
}

/** Events that follow each other. */
export interface FeedPage {
  readonly events: ReadonlyArray<FeedEvent>
  /** The place after these events. */
  readonly cursor: FeedCursor
  /** Whether there were no more events when the page was read. */
  readonly isLast: boolean
}

/** The most events of a page, and about the most bytes of their bodies; one event may be longer. */
export interface FeedPageSize {
  readonly events: number
  readonly bytes: number
}

/**
 * The feed cannot go on from a cursor without a gap: it is older than the events that are kept, or of
 * another history, such as that before a restore.
 */
export class CursorExpired extends Data.TaggedError("CursorExpired") {
  override readonly message = "The feed cannot go on from this cursor without a gap."
}

/** Reads the events of one history. */
export interface FeedHistory {
  /**
   * Reads the next events of some projects. A page that is not the last one is full: it has as many events as
   * asked for, or about as many bytes. Fails with `ProjectNotFound` if none of the projects exists, whatever
   * the cursor is, and with `CursorExpired`, also if the text was never a cursor of this history.
   */
  readonly read: (
    projects: readonly [ProjectId, ...ReadonlyArray<ProjectId>],
    from: FeedStart,
    size: FeedPageSize,
  ) => Effect.Effect<FeedPage, ProjectNotFound | CursorExpired | StoreUnavailable>
}

/**
 * Reads events in the order in which they became visible.
 *
 * A page has all events that are stored between two places, however late the transactions commit that
 * store them: an event becomes visible after the cursor of each page that has been read before. So
 * nobody who goes on from page to page misses an event, or gets one twice.
 */
export class FeedStore extends Context.Service<
  FeedStore,
  FeedHistory & {
    /**
     * The histories of which the store consists, and that of a project, if it has several. A cursor of one
     * has expired in the others, and `read` is for projects of one.
     */
    readonly histories?: {
      readonly all: readonly [FeedHistory, ...ReadonlyArray<FeedHistory>]
      readonly of: (projectId: ProjectId) => FeedHistory
    }
  }
>()("@tenure/core/FeedStore") {}
