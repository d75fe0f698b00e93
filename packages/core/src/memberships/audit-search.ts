/** Searches the audit trail: which rows match, where a page ends, and the rule for stores without an index. */

import * as Effect from "effect/Effect"
import type { ApiKeyId } from "../base/values.ts"
import {
  type AuditAction,
  type AuditCursor,
  type AuditRow,
  announcementActions,
} from "./audit-trail.ts"
import type { MembershipStore } from "./store.ts"

/** What audit rows to list. A row must match all fields. */
export interface AuditFilter {
  /** Only changes by this principal. */
  readonly keyId?: ApiKeyId | undefined
  /** Only changes of this kind. */
  readonly action?: AuditAction | undefined
  /** Only changes by this request. */
  readonly requestId?: string | undefined
  /** Only changes at this instant or later, in milliseconds since the epoch. */
  readonly since?: number | undefined
  /** Only changes before this instant, in milliseconds since the epoch. */
  readonly until?: number | undefined
  /** Whether to list announcements, too. Default: `true`. */
  readonly announcements?: boolean | undefined
}

/** A page from a search. */
export interface AuditPage {
  /** The found rows, newest first. */
  readonly rows: ReadonlyArray<AuditRow>
  /** The cursor for the next page; `undefined` on the last one. */
  readonly next: AuditCursor | undefined
}

/** The maximum number of rows that a page is made from. Reading them takes PostgreSQL a few milliseconds. */
export const maxSearchedRows = 5000

/**
 * By how much a row may be earlier than one recorded before it. The trail has the order in which rows were
 * recorded, and each server dates them by its own clock.
 */
export const maxClockSkewMillis = 3_600_000

const isAnnouncement: ReadonlySet<AuditAction> = new Set(announcementActions)

/** Tells whether a filter selects rows, or takes all. */
export const isSelective = ({
  action,
  announcements,
  keyId,
  requestId,
  since,
  until,
}: AuditFilter): boolean =>
  announcements === false ||
  [action, keyId, requestId, since, until].some((value) => value !== undefined)

/** Tells whether a filter selects a row. */
export const matchesFilter = (
  { action, at, origin }: Pick<AuditRow, "action" | "at" | "origin">,
  filter: AuditFilter,
): boolean =>
  (filter.keyId === undefined || origin.keyId === filter.keyId) &&
  (filter.action === undefined || action === filter.action) &&
  (filter.requestId === undefined || origin.requestId === filter.requestId) &&
  (filter.since === undefined || at >= filter.since) &&
  (filter.until === undefined || at < filter.until) &&
  (filter.announcements !== false || !isAnnouncement.has(action))

/**
 * Decides a page from the rows that were read for it, newest first.
 *
 * @param mostRead - how many rows were asked for; fewer are the end of the trail
 */
export const decideAuditPage = (
  read: ReadonlyArray<AuditRow>,
  mostRead: number,
  limit: number,
  filter: AuditFilter,
): AuditPage => {
  const found = read.filter((row) => matchesFilter(row, filter))
  if (found.length > limit) {
    const rows = found.slice(0, limit)
    return { rows, next: rows.at(-1)?.cursor }
  }
  const start = (filter.since ?? -Infinity) - maxClockSkewMillis
  // Later rows than these are recorded before them. One alone may be of a server whose clock is wrong.
  const isLast = read.length < mostRead || read.every(({ at }) => at < start)
  return { rows: found, next: isLast ? undefined : read.at(-1)?.cursor }
}

type Store = MembershipStore["Service"]

/**
 * Makes `searchHistory` from `history`: reads a bounded number of rows for a page, and selects from them.
 *
 * @param mostRead - the maximum number of rows to read for a page
 */
export const searchingHistory =
  (history: Store["history"], mostRead = maxSearchedRows): Store["searchHistory"] =>
  (projectId, { after, limit, userId, ...filter }) => {
    // One more row tells whether there is another page.
    const most = isSelective(filter) ? mostRead : limit + 1
    return Effect.map(history(projectId, { userId, after, limit: most }), (read) =>
      decideAuditPage(read, most, limit, filter),
    )
  }
