/** Selects members by their changes, with the state before, for reverts: the types, and the rule over a whole trail. */

import type { ApiKeyId } from "../base/values.ts"
import { EventId } from "../events/event.ts"
import {
  type AuditAction,
  type AuditRow,
  announcementActions,
  bulkChangeOf,
  datelessActions,
} from "./audit-trail.ts"
import { type BulkChange, type DateForm, type EndDate, instantForm } from "./end-date.ts"
import type { UserId } from "./membership.ts"
import type { Pause } from "./pause.ts"

/** What changes to select. A change must match all given fields. */
export interface ChangeSelection {
  /** Only changes by this principal. */
  readonly keyId: ApiKeyId | undefined
  /** Only changes by these requests. */
  readonly requestIds: ReadonlyArray<string> | undefined
  /** Only changes at this instant or later, in milliseconds since the epoch. */
  readonly since: number
  /** Only changes before this instant, in milliseconds since the epoch. */
  readonly until: number | undefined
}

/** A page of selected changes, by member. */
export interface SelectedChangesPage {
  readonly selection: ChangeSelection
  /** Only users after this one. */
  readonly after: UserId | undefined
  /** The maximum number of members. */
  readonly limit: number
}

/** An end date that was set for one membership. */
export interface DateBefore extends DateForm {
  readonly endDate: EndDate
  /** How many of the page's bulk extensions were made before it was set. */
  readonly bulkBefore: number
}

/** A user with selected changes. */
export interface ChangedMember {
  readonly userId: UserId
  /** The end date before the first selected change; `undefined` if there was no membership. */
  readonly from: EndDate | undefined
  /** How many of the page's bulk extensions were made before the first selected change. */
  readonly bulkBefore: number
  /** The own end date then. `undefined` if there was no membership, or the trail does not tell its date. */
  readonly before: DateBefore | undefined
  /** The pause that the membership was in then. */
  readonly pause: Pause | undefined
  /**
   * The first change since the first selected one that is not selected, or moved the membership. Changes that
   * nobody asked for do not count.
   */
  readonly other: { readonly keyId: ApiKeyId | undefined; readonly at: number } | undefined
}

/** A bulk extension, as the trail has it. */
export interface BulkChangeMade {
  readonly id: EventId
  readonly change: BulkChange
  /** When it was made, in milliseconds since the epoch. */
  readonly at: number
  readonly keyId: ApiKeyId | undefined
  readonly requestId: string | undefined
  /** Whether it was undone since. */
  readonly isUndone: boolean
}

/** A page of members. */
export interface ChangedMembers {
  /** The users, ordered by id in code units. */
  readonly members: ReadonlyArray<ChangedMember>
  /**
   * The project's bulk extensions since the earliest `before` on the page was set, or since `since` if that is
   * earlier, oldest first.
   */
  readonly bulk: ReadonlyArray<BulkChangeMade>
}

/** What a membership is like after a change, except for its end date. */
export interface RecordedState extends DateForm {
  readonly pause: Pause | undefined
  /** Whether a pause ended by itself: nobody asked for the change. */
  readonly isUnasked: boolean
}

/** A row in a store's trail. */
export interface RecordedChange extends Pick<
  AuditRow,
  "action" | "at" | "by" | "from" | "origin" | "subject" | "to" | "userId"
> {
  /** After a change to a membership or a bulk extension; by default, the date is an instant without a pause. */
  readonly state?: RecordedState | undefined
}

const instantState: RecordedState = { ...instantForm, pause: undefined, isUnasked: false }

/** Actions that a selection finds, unless nobody asked for the change. */
export const selectableActions: ReadonlySet<AuditAction> = new Set([
  "granted",
  "imported",
  "extended",
  "ended",
  "moved",
  "paused",
  "resumed",
  "reverted",
])

/** Actions on one membership that leave its end date and its pause. */
export const statelessActions: ReadonlySet<AuditAction> = new Set([
  "updated",
  ...announcementActions,
])

const isAnnouncement: ReadonlySet<AuditAction> = new Set(announcementActions)

const isAsked = ({ action, state = instantState }: RecordedChange): boolean =>
  !isAnnouncement.has(action) && !state.isUnasked

/** Tells whether a selection finds a change to one membership. */
const isSelected = (
  row: RecordedChange,
  { keyId, requestIds, since, until }: ChangeSelection,
): boolean => {
  const { action, at, origin } = row
  return (
    selectableActions.has(action) &&
    isAsked(row) &&
    at >= since &&
    (until === undefined || at < until) &&
    (keyId === undefined || origin.keyId === keyId) &&
    (requestIds === undefined ||
      (origin.requestId !== undefined && requestIds.includes(origin.requestId)))
  )
}

/** A row with its place in the trail. */
interface Placed extends RecordedChange {
  readonly place: number
}

/** A member's rows from the first selected one on, and those before it. */
interface Found {
  readonly userId: UserId
  readonly first: Placed
  readonly earlier: ReadonlyArray<Placed>
  readonly later: ReadonlyArray<Placed>
}

const findMembers = (
  rows: ReadonlyArray<Placed>,
  { after, limit, selection }: SelectedChangesPage,
): ReadonlyArray<Found> => {
  const users = new Set<UserId>()
  for (const row of rows) {
    const { userId } = row
    if (
      userId !== undefined &&
      (after === undefined || userId > after) &&
      isSelected(row, selection)
    )
      users.add(userId)
  }
  const own = new Map<UserId, Array<Placed>>()
  // Unlike `localeCompare`, by code unit.
  for (const userId of [...users].toSorted().slice(0, limit)) own.set(userId, [])
  for (const row of rows) if (row.userId !== undefined) own.get(row.userId)?.push(row)
  return [...own].flatMap(([userId, all]) => {
    const index = all.findIndex((row) => isSelected(row, selection))
    const first = all[index]
    return first === undefined
      ? []
      : [{ userId, first, earlier: all.slice(0, index), later: all.slice(index) }]
  })
}

/**
 * Returns a page of members with selected changes: the rule for stores without an index.
 *
 * @param rows - the project's whole trail, oldest first, in which a `resumed` follows each pause that is over
 */
export const changedMembersOf = (
  rows: ReadonlyArray<RecordedChange>,
  page: SelectedChangesPage,
): ChangedMembers => {
  const { selection } = page
  const trail = rows.map((row, place) => ({ ...row, place }))
  const members = findMembers(trail, page).map(({ earlier, first, later, userId }) => ({
    userId,
    first,
    before: earlier.findLast(({ action }) => !datelessActions.has(action)),
    pause: earlier.findLast(({ action }) => !statelessActions.has(action))?.state?.pause,
    other: later.find(
      (row) => isAsked(row) && (row.action === "moved" || !isSelected(row, selection)),
    ),
  }))
  const earliest = Math.min(...members.map(({ before }) => before?.place ?? Infinity))
  const undone = new Set(
    rows.flatMap(({ action, subject }) => (action === "bulk_undone" ? subject : [])),
  )
  const made = trail.flatMap((row) => {
    const change = bulkChangeOf(row)
    const isOnPage = row.place > earliest || row.at >= selection.since
    return change === undefined || row.subject === undefined || !isOnPage
      ? []
      : [{ ...row, change, id: EventId(row.subject) }]
  })
  const bulkBefore = ({ place }: Placed): number => made.filter((one) => one.place < place).length
  return {
    members: members.map(({ before, first, other, pause, userId }) => ({
      userId,
      from: first.from,
      bulkBefore: bulkBefore(first),
      before:
        before?.to === undefined
          ? undefined
          : {
              endDate: before.to,
              inDays: before.state?.inDays ?? false,
              keptDay: before.state?.keptDay,
              bulkBefore: bulkBefore(before),
            },
      pause,
      other: other && { keyId: other.origin.keyId, at: other.at },
    })),
    bulk: made.map(({ at, change, id, origin, state }) => ({
      id,
      change:
        state?.inDays === true && change.mode !== "extendBy" ? { ...change, inDays: true } : change,
      at,
      keyId: origin.keyId,
      requestId: origin.requestId,
      isUndone: undone.has(id),
    })),
  }
}
