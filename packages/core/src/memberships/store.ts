/** The storage port for projects, memberships and their audit trail. */

import type { Branded } from "effect/Brand"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type {
  ChangeContext,
  IdempotencyConflict,
  IdempotencyKey,
  IdempotencyMismatch,
  ReplayedResponse,
} from "../base/change-context.ts"
import type { StoreUnavailable } from "../base/errors.ts"
import type { Millis } from "../base/time.ts"
import { type ProjectId, type ProjectNotFound, brandedWhere } from "../base/values.ts"
import type { Event, EventDraft, EventId } from "../events/event.ts"
import type {
  BulkExtensionNotFound,
  BulkExtensionRecord,
  BulkExtensionSettled,
  BulkExtensionUndone,
  BulkPreview,
} from "./bulk-extension.ts"
import type { PreviewPublication } from "./dry-run.ts"
import { type BulkMode, type EndDate, type BulkChange } from "./end-date.ts"
import type { EndCounts, EndsQuery } from "./ends.ts"
import type { DecideAnnouncement } from "./expiry.ts"
import type {
  AuditCursor,
  AuditRow,
  DatedMembership,
  Disclosure,
  EndDateConflict,
  EndsLater,
  Membership,
  MembershipNotFound,
  MembershipState,
  MoveConflict,
  ProjectSummary,
  Reason,
  UserId,
  UserIdPrefix,
} from "./membership.ts"
import { type Metadata, type MetadataConflict, metadataFromJson } from "./metadata.ts"
import type { MovedMembership } from "./move.ts"

/** The common part of all changes. */
export interface Change extends ChangeContext {
  readonly projectId: ProjectId
  /** Why, for the audit trail; `undefined` if nobody said. */
  readonly reason: Reason | undefined
  /** The event for the project's webhooks. The store completes it with the sequence number. */
  readonly event: EventDraft
}

/** A new end date for one membership. */
export interface DateChange extends Change {
  readonly userId: UserId
  readonly endDate: EndDate
}

/** A new end date for a new or existing membership. */
export interface Grant extends DateChange {
  /** Replaces that of the membership; `undefined` leaves it. */
  readonly metadata?: Metadata | undefined
}

/** New metadata for an existing membership. */
export interface MetadataChange extends Change {
  readonly userId: UserId
  readonly metadata: Metadata
  /** The expected current metadata. */
  readonly expected: Metadata
}

/** A new end date for an existing membership. */
export interface Extension extends DateChange {
  /** The expected current end date. By default, any. */
  readonly expectedEndDate?: EndDate | undefined
  /** Whether to change a later end date (`"set"`, the default) or leave it. */
  readonly mode?: BulkMode | undefined
}

/** New end dates for many memberships in a project. */
export interface Import extends Change {
  /** Up to 10,000 memberships for different users. */
  readonly memberships: ReadonlyArray<DatedMembership>
}

/** A change to all memberships in a project. Its event's id is the id of the bulk extension. */
export interface BulkExtension extends Change {
  readonly bulk: BulkChange
}

/** Which bulk extension is undone. */
export interface UndoTarget {
  readonly bulkExtensionId: EventId
  /** Only if it was made after this instant, in milliseconds since the epoch. */
  readonly madeAfter: number
}

/** The undoing of a bulk extension. */
export interface Undo extends Change, UndoTarget {}

/** The result of a change to all memberships. */
export interface BulkExtended {
  /** The project's number of memberships. */
  readonly total: number
  readonly event: Event
}

/** Why a bulk extension cannot be undone. */
export type UndoFailure =
  | ProjectNotFound
  | BulkExtensionNotFound
  | BulkExtensionUndone
  | BulkExtensionSettled

/** The end of one membership. */
export interface Ending extends Change {
  readonly userId: UserId
}

/** A move to another user id. Its event ends the membership of `userId`. */
export interface Move extends Ending {
  readonly to: UserId
  /** The event that grants the membership of `to`. */
  readonly granted: EventDraft
  /** The end date and the metadata of `to` after the move: see `joinMemberships`. */
  readonly endDate: EndDate
  readonly metadata: Metadata
  /** The expected current memberships; `to` is `undefined` if there is to be none. */
  readonly expected: {
    readonly from: MovedMembership
    readonly to: MovedMembership | undefined
  }
}

/**
 * Stores projects, memberships and the audit trail.
 *
 * A change is atomic: the membership, its audit row, its event and a delivery for each webhook in the
 * project are stored together or not at all. Repeating a change sets the same end dates again, and adds
 * another audit row and another event.
 *
 * Each change has a sequence number: a safe integer, greater than in all earlier changes to the same
 * members; a bulk extension, or undoing one, is a change to all members in the project. The end date defines the order:
 * if nothing else follows, the later change's date is in effect. The order therefore also covers
 * members who leave and return, until the project is deleted. The store completes the change's event
 * with the number and, in an event of one membership, its metadata after the change, or before its end
 * (`completeEvent`), and returns the event.
 *
 * A change with an idempotency key stores the key in the same step. If the key is stored already,
 * nothing changes: the change returns `ReplayedResponse`, or fails with `IdempotencyMismatch` if the
 * key came with another fingerprint. The replayed response is a bulk change's total, the end date in
 * milliseconds if an extension left it, `formatGrantAnswer` after a grant, and empty otherwise. If the key has
 * an `answer`, that is the response instead. A failing change keeps no key. A change
 * waiting too long for another with its key fails with `IdempotencyInProgress`. Keys are kept for at
 * least 24 hours.
 *
 * As in every port, an operation fails with `StoreUnavailable` within a few seconds if the storage does
 * not answer.
 */
export class MembershipStore extends Context.Service<
  MembershipStore,
  {
    /**
     * Succeeds if the store answers and accepts changes. One store's ports share the same `ping` value,
     * so it runs once for all.
     */
    readonly ping: Effect.Effect<void, StoreUnavailable>

    /**
     * Announces memberships' ends. A store without announcements has `undefined` here: the option
     * `expiry` is then refused.
     */
    readonly expiry: ExpiryStore | undefined

    /** Creates a project. Does nothing if it exists. */
    readonly createProject: (
      projectId: ProjectId,
      context: ChangeContext,
    ) => Effect.Effect<ReplayedResponse | void, IdempotencyConflict | StoreUnavailable>

    /**
     * Deletes a project, and in the same step all its data: memberships, webhooks, events and their
     * deliveries, its audit trail, API keys' access to it, and its changes' idempotency keys.
     * Afterwards, no delivery can be claimed, and no earlier claim can be settled. A new project with
     * the same id starts empty. Fails with `ProjectNotFound`.
     *
     * However large the project, other operations do not wait: the store may remove the rest later, if
     * nobody can tell.
     */
    readonly deleteProject: (
      projectId: ProjectId,
      context: ChangeContext,
    ) => Effect.Effect<
      ReplayedResponse | void,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

    /** Returns a project. Fails with `StoreUnavailable` while it is being moved from or to the store. */
    readonly findProject: (
      projectId: ProjectId,
    ) => Effect.Effect<ProjectSummary, ProjectNotFound | StoreUnavailable>

    /**
     * Returns at most `limit` projects after the id `after`, ordered by id in code units.
     *
     * @param page.within - returns only these, even while they are being moved; `"all"` for all
     */
    readonly listProjects: (page: {
      readonly within: ReadonlySet<string> | "all"
      readonly after: ProjectId | undefined
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<ProjectSummary>, StoreUnavailable>

    /** Creates a membership, or sets an existing one's end date. */
    readonly grant: (
      change: Grant,
    ) => Effect.Effect<
      Event | ReplayedResponse,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Creates memberships and sets existing ones' end dates: all in one step, or none. Each has its own
     * audit row, in the import's order. All share one event.
     */
    readonly import: (
      change: Import,
    ) => Effect.Effect<
      Event | ReplayedResponse,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Sets a membership's end date, even after it expired. Fails with `EndDateConflict` unless it has
     * the expected end date. Otherwise, if the membership ends later and the mode is `neverShorten`, it
     * stays unchanged, and nothing is recorded or published.
     */
    readonly extend: (
      change: Extension,
    ) => Effect.Effect<
      Event | EndsLater | ReplayedResponse,
      MembershipNotFound | EndDateConflict | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Changes the end dates of all memberships in a project. A membership's end date is the one last set for it
     * alone, and then changed by each later bulk extension that is not undone, in their order: see
     * `effectiveEndDate`. The cost does not depend on the number of memberships.
     *
     * The newest 32 bulk extensions of a project, at least, can be undone. Older ones may be settled: they are then
     * part of the members' own dates. A store that keeps one date for each member may settle all of them at once.
     */
    readonly extendAll: (
      change: BulkExtension,
    ) => Effect.Effect<
      BulkExtended | ReplayedResponse,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Undoes a bulk extension: every membership has the end date that it would have without it. Of several failures,
     * `BulkExtensionUndone` comes before `BulkExtensionSettled`.
     */
    readonly undoBulkExtension: (
      undo: Undo,
    ) => Effect.Effect<
      BulkExtended | ReplayedResponse,
      UndoFailure | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Returns at most `limit` bulk extensions of a project, newest first, also those that were undone or settled.
     *
     * @param page.after - returns only older ones than the one with this id; none if there is no such one
     */
    readonly bulkExtensions: (
      projectId: ProjectId,
      page: { readonly after: EventId | undefined; readonly limit: number },
    ) => Effect.Effect<ReadonlyArray<BulkExtensionRecord>, ProjectNotFound | StoreUnavailable>

    /** Tells what a bulk extension would do now, by the clock of the store and without a lock. */
    readonly previewBulkExtension: (
      projectId: ProjectId,
      change: BulkChange,
    ) => Effect.Effect<BulkPreview, ProjectNotFound | StoreUnavailable>

    /**
     * Counts a project's memberships that end on each day, by the store's clock and without a lock: see
     * `endCellsAt` and `endCountsOf`. A store may refuse with `StoreUnavailable` if it counts too much already.
     */
    readonly countEnds: (
      projectId: ProjectId,
      query: EndsQuery,
    ) => Effect.Effect<EndCounts, ProjectNotFound | StoreUnavailable>

    /** Tells what undoing a bulk extension would do now, in the same way, or fails as it would. */
    readonly previewUndo: (
      projectId: ProjectId,
      target: UndoTarget,
    ) => Effect.Effect<BulkPreview, UndoFailure | StoreUnavailable>

    /**
     * Tells how a change's event would be published now, without a lock: to which webhooks, by the same rule as a
     * change.
     */
    readonly previewPublication: PreviewPublication

    /**
     * Sets a membership's metadata, and leaves its end date to bulk extensions as it is. Fails with
     * `MetadataConflict` if there is no membership, or if it has other metadata than expected.
     */
    readonly setMetadata: (
      change: MetadataChange,
    ) => Effect.Effect<
      Event | ReplayedResponse,
      MetadataConflict | IdempotencyConflict | StoreUnavailable
    >

    /** Removes a membership. */
    readonly end: (
      change: Ending,
    ) => Effect.Effect<
      Event | ReplayedResponse,
      MembershipNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Removes a membership, and creates that of another user, or sets it, in one step. Fails with `MoveConflict` unless
     * both are as expected. The moved date is then the other user's own: no earlier bulk extension applies to it, and
     * undoing one leaves it. The last announcement of whichever membership ends later stays with it; if both end at the
     * same time, the one that was announced further. Each user has an audit row `moved`, whose subject is the other user,
     * and an event, that of the end first, with sequences as of two changes.
     */
    readonly move: (
      change: Move,
    ) => Effect.Effect<
      readonly [ended: Event, granted: Event] | ReplayedResponse,
      MoveConflict | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Ends the membership of a person, if there is one, and removes the user id from the audit trail, with
     * the reasons of these changes, and from events, as `Erasure` does. From deliveries of these, it removes
     * what receivers have responded. A row in the trail says that somebody was erased. Publishes the event of
     * the change, which has no user id, and returns it, if there was a membership.
     *
     * The end of the membership and the row in the trail are one step. The rest may take several; a
     * repetition with the same idempotency key completes it, and leaves what was written since then. An event that
     * was published in a transaction of the host is removed, too, soon after that is committed.
     */
    readonly erase: (
      change: Ending,
    ) => Effect.Effect<
      Event | ReplayedResponse | undefined,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Returns the result of the change with this idempotency key; `undefined` if there was none.
     *
     * @param projectId - the change's project; `undefined` if it has none
     */
    readonly recall: (
      idempotency: IdempotencyKey,
      projectId: ProjectId | undefined,
    ) => Effect.Effect<ReplayedResponse | undefined, IdempotencyMismatch | StoreUnavailable>

    /** Returns a membership with its current end date. */
    readonly find: (
      projectId: ProjectId,
      userId: UserId,
    ) => Effect.Effect<Membership, MembershipNotFound | StoreUnavailable>

    /**
     * Returns at most `limit` memberships after `after`, ordered by user id in code units.
     *
     * @param page.userIds - returns only these users' memberships; a user may be repeated
     * @param page.prefix - returns only users whose ids start with this text; not with `userIds`
     * @param page.only - returns only memberships in this state at this instant
     */
    readonly list: (
      projectId: ProjectId,
      page: {
        readonly after: UserId | undefined
        readonly limit: number
        readonly userIds?: ReadonlyArray<UserId> | undefined
        readonly prefix?: UserIdPrefix | undefined
        readonly only?: { readonly state: MembershipState; readonly at: number } | undefined
      },
    ) => Effect.Effect<ReadonlyArray<Membership>, ProjectNotFound | StoreUnavailable>

    /**
     * Returns at most `limit` memberships that have not ended, by the clock of the store, and end before an
     * instant: in the order of their end dates and, among those with the same one, in any order that stays.
     * If nobody changes a membership meanwhile, it is on one page. A page may have fewer memberships than
     * `limit`, or none, and yet not be the last: a store need not read more for a page than it can in a short time.
     *
     * @param page.after - the cursor of the page before
     */
    readonly listEnding: (
      projectId: ProjectId,
      page: {
        readonly before: EndDate
        readonly after: EndingCursor | undefined
        readonly limit: number
      },
    ) => Effect.Effect<EndingPage, ProjectNotFound | StoreUnavailable>

    /** Records a disclosure in a project's audit trail. */
    readonly recordShown: (
      projectId: ProjectId,
      shown: Disclosure,
      context: ChangeContext,
    ) => Effect.Effect<void, ProjectNotFound | StoreUnavailable>

    /**
     * Returns the newest `limit` rows in a project's audit trail, newest first; without a project, in
     * the trail outside projects. With a user, returns only changes to this user's membership,
     * including applicable bulk extensions.
     *
     * @param page.after - returns only rows older than the one with this cursor in this trail; none if
     *   there is no such row
     */
    readonly history: (
      projectId: ProjectId | undefined,
      page: {
        readonly userId: UserId | undefined
        readonly after?: AuditCursor | undefined
        readonly limit: number
      },
    ) => Effect.Effect<ReadonlyArray<AuditRow>, ProjectNotFound | StoreUnavailable>
  }
>()("@tenure/core/MembershipStore") {}

/** A sweep's result. */
export interface SweepResult {
  /** The published events. */
  readonly events: ReadonlyArray<Event>
  /** Whether there may be more to do at once. */
  readonly isMore: boolean
  /**
   * In how many milliseconds the first alarm comes, unless a change brings one forward; `Infinity` for never. Missing
   * if the store does not know, or has left one that has come.
   */
  readonly nextDueMillis?: number | undefined
}

/**
 * Finds the memberships whose end is to be announced.
 *
 * It keeps three things with each membership: when its date was set (`changeTime`, `dateSetAt`), the last
 * announcement, and an alarm, the time at which to decide what to announce next. A change to the same date keeps the time, if the
 * member's own date holds. The alarm may be too early, but never too late: whatever changes an end date
 * sees to it, in the same step, that there is an alarm at the new date less the longest reminder, or before.
 * For all members of a project, an alarm of the project will do. So an extension need not touch the alarm
 * that is there.
 */
export interface ExpiryStore {
  /**
   * Has end dates watched from now on, and forever: those that memberships have already, and those that they
   * get. Returns since when they are watched, in milliseconds since the epoch: since the first call on this
   * storage, by any process. If that is in the future, because the clock was ahead, they are watched from now on, and
   * each membership gets an alarm as if it were new.
   *
   * A reminder that the call before did not have is not lost for those that are near their end: each
   * membership gets an alarm as if it were new.
   *
   * @param leads - how long before the end something is announced, longest first. Of those of several calls,
   *   the longest counts for the alarms
   */
  readonly watch: (leads: ReadonlyArray<Millis>) => Effect.Effect<number, StoreUnavailable>

  /**
   * Looks at memberships whose alarms have come, by the clock of the store: those of a project earliest
   * first, and if more have come than are asked for, those of each project in turn within a few sweeps,
   * however many another one has. It has `decide` decide what to announce of each and when to look at it again, and does so in one step, if the membership
   * still has the end date and the last announcement by which it was decided. The step stores the alarm, the
   * announcement, an audit row from and to the end date, the event with a sequence as of a change of the
   * membership, and a delivery for each webhook.
   * Memberships of which others hold a lock are left for the next sweep. The feed and the audit trail of a
   * project have the announcements of a sweep in the order of the ids of their events.
   *
   * Sweeps may run at the same time, in several processes.
   *
   * @param limit - the most memberships to look at
   */
  readonly sweep: (
    limit: number,
    decide: DecideAnnouncement,
  ) => Effect.Effect<SweepResult, StoreUnavailable>

  /**
   * Returns when the first alarm comes, or earlier, in milliseconds since the epoch; `Infinity` for
   * never. Only a store in this process can know.
   */
  readonly nextCheckAt?: (() => number) | undefined
}

/**
 * Formats the parts of a grant's answer beyond its request.
 *
 * @param at - when it was made, in milliseconds since the epoch
 * @param metadataJson - the metadata of the membership afterwards
 */
export const formatGrantAnswer = (at: number, metadataJson: string): string =>
  `${at} ${metadataJson}`

/** The reverse of `formatGrantAnswer`. */
export const parseGrantAnswer = (
  answer: string,
): { readonly at: number; readonly metadata: Metadata } => {
  const end = answer.indexOf(" ")
  return { at: Number(answer.slice(0, end)), metadata: metadataFromJson(answer.slice(end + 1)) }
}

/**
 * A position in an ending list: an end date and a user id, and the store's own data to continue from
 * there.
 */
export type EndingCursor = Branded<string, "@tenure/core/EndingCursor">

/** Brands a cursor. Throws a `TypeError` if it is invalid. */
export const EndingCursor = brandedWhere<string, EndingCursor>(
  "cursor",
  "a cursor of a list by end dates",
  (text) => /^(-\d{1,14}|\d{1,15})(\.-?\d{1,18}){0,2}\.[!-~]{0,128}$/u.test(text),
)

/** A page in an ending list. */
export interface EndingPage<Listed = Membership> {
  /** The memberships, soonest end first. */
  readonly memberships: ReadonlyArray<Listed>
  /** The next page's start; `undefined` on the last page. */
  readonly next: EndingCursor | undefined
}

/** A position in the order by end date and then by user id in code units. */
export interface EndingPosition {
  readonly endDate: number
  readonly userId: string
}

/** Compares two positions for sorting. */
export const comparePositions = (one: EndingPosition, other: EndingPosition): number =>
  one.endDate - other.endDate ||
  (one.userId < other.userId ? -1 : Number(one.userId > other.userId))

/** Returns a position's cursor. */
const cursorOfPosition = ({ endDate, userId }: EndingPosition): EndingCursor =>
  EndingCursor(`${endDate}.${userId}`)

/** Returns a cursor's position. */
export const positionOfCursor = (cursor: EndingCursor): EndingPosition => {
  const end = cursor.indexOf(".")
  return { endDate: Number(cursor.slice(0, end)), userId: cursor.slice(end + 1) }
}

/**
 * Creates a page from ordered memberships. If there is a next page, there is one more membership than
 * fits.
 */
export const endingPage = (memberships: ReadonlyArray<Membership>, limit: number): EndingPage => {
  const page = memberships.slice(0, limit)
  const last = memberships.length > limit ? page.at(-1) : undefined
  return { memberships: page, next: last && cursorOfPosition(last) }
}
