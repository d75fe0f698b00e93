/** The storage port for projects, memberships and their audit trail. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type {
  ChangeContext,
  FieldChange,
  IdempotencyConflict,
  IdempotencyKey,
  IdempotencyMismatch,
  ReplayedResponse,
} from "../base/change-context.ts"
import type { StoreUnavailable } from "../base/errors.ts"
import type { Millis } from "../base/time.ts"
import type { ProjectId, ProjectNotFound } from "../base/values.ts"
import type { Event, EventDraft, EventId } from "../events/event.ts"
import type { AuditFilter, AuditPage } from "./audit-search.ts"
import type { AuditCursor, AuditRow, Disclosure } from "./audit-trail.ts"
import type {
  BulkExtensionNotFound,
  BulkExtensionRecord,
  BulkExtensionSettled,
  BulkExtensionUndone,
  StoredPreview,
} from "./bulk-extension.ts"
import type { TimeZone } from "./calendar.ts"
import type { ChangedMembers, SelectedChangesPage } from "./changed-members.ts"
import type { PreviewPublication } from "./dry-run.ts"
import type { BulkChange, BulkMode, DateForm, EndDate, OptionalForm } from "./end-date.ts"
import type { EndingCursor, EndingPage } from "./ending-page.ts"
import type { EndCounts, EndsQuery } from "./ends.ts"
import type { ExpiryStore } from "./expiry-store.ts"
import type { MemberChange, MemberChangesConflict } from "./member-changes.ts"
import type {
  AlreadyMember,
  DatedMembership,
  EndDateConflict,
  EndsLater,
  Membership,
  MembershipNotFound,
  MembershipState,
  MoveConflict,
  PauseConflict,
  ProjectConflict,
  ProjectSummary,
  Reason,
  UserId,
  UserIdPrefix,
} from "./membership.ts"
import type { Metadata, MetadataConflict } from "./metadata.ts"
import type { MovedMembership } from "./move.ts"
import type { Pause } from "./pause.ts"
import type { ProjectSettings } from "./project-settings.ts"

/** Common to all changes. */
export interface Change extends ChangeContext {
  readonly projectId: ProjectId
  /** Why, for the audit trail; `undefined` if nobody said. */
  readonly reason: Reason | undefined
  /** The event for the project's webhooks. The store completes it with the sequence number. */
  readonly event: EventDraft
}

/** A new end date for one membership: an instant, unless its form says otherwise. */
export interface DateChange extends Change, OptionalForm {
  readonly userId: UserId
  readonly endDate: EndDate
}

/** A new end date for a new or existing membership. */
export interface Grant extends DateChange {
  /** Replaces the membership's metadata; `undefined` leaves it. */
  readonly metadata?: Metadata | undefined
  /** The project's time zone as the first response shows it, for `formatGrantAnswer`. Default: UTC. */
  readonly timeZone?: TimeZone | undefined
  /** The project's grace, in the same way. Default: none. */
  readonly grace?: Millis | undefined
}

/** A grant's result. */
export interface Granted {
  readonly event: Event
  readonly pause: Pause | undefined
}

/** A new membership for a user without one. */
export interface GrantIfAbsent extends Grant {
  /** Whether the idempotency key is kept even if the user has a membership: the response is final. */
  readonly isFinal: boolean
}

/** A pause of an active membership. It begins at the time of the change. */
export interface Pausing extends Change {
  readonly userId: UserId
  /** When it ends by itself, in milliseconds since the epoch; `undefined` if somebody has to end it. */
  readonly until: number | undefined
  /** The expected current end date. */
  readonly expected: Pick<Membership, "endDate">
}

/** The end of a pause, before it ends by itself. */
export interface Resuming extends Change {
  readonly userId: UserId
  /** The end date afterwards: see `endAfterPause`. */
  readonly endDate: EndDate
  /** The expected end date that stands, and the expected pause. */
  readonly expected: { readonly endDate: EndDate; readonly pause: Pause }
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
  /** The expected form of that end date. By default, any. Only with `expectedEndDate`. */
  readonly expectedForm?: DateForm | undefined
  /** Whether to change a later end date (`"set"`, the default) or leave it. */
  readonly mode?: BulkMode | undefined
}

/** New end dates for many memberships in a project. */
export interface Import extends Change {
  /** Up to 10,000 memberships for different users. */
  readonly memberships: ReadonlyArray<DatedMembership>
}

/** Changes of several memberships in a project. */
export interface MemberChanges extends Omit<Change, "event"> {
  readonly action: "extended" | "reverted"
  /** 1 to 1,000 for different users, ordered by user id in code units. */
  readonly changes: ReadonlyArray<MemberChange>
}

/** A change to all memberships in a project. Its event's id is also the bulk extension's id. */
export interface BulkExtension extends Change {
  readonly bulk: BulkChange
}

/** The bulk extension to undo. */
export interface UndoTarget {
  readonly bulkExtensionId: EventId
  /** Only if it was made after this instant, in milliseconds since the epoch. */
  readonly madeAfter: number
}

/** An undo. */
export interface Undo extends Change, UndoTarget {}

/** The result after a change to all memberships. */
export interface BulkExtended {
  /** The project's membership count. */
  readonly total: number
  readonly event: Event
}

/** Why a bulk extension cannot be undone. */
export type UndoFailure =
  | ProjectNotFound
  | BulkExtensionNotFound
  | BulkExtensionUndone
  | BulkExtensionSettled

/** New settings for an existing project. It publishes no event. */
export interface ProjectChange extends Omit<Change, "event"> {
  /** The expected current settings. */
  readonly expected: ProjectSettings
  readonly settings: ProjectSettings
  /** What differs, for the audit trail. */
  readonly changes: ReadonlyArray<FieldChange>
}

/** Ends one membership. */
export interface Ending extends Change {
  readonly userId: UserId
}

/** A move to another user id. Its event ends the membership of `userId`. */
export interface Move extends Ending, MovedMembership {
  readonly to: UserId
  /** The event granting the membership to `to`. */
  readonly granted: EventDraft
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
 * members; a bulk extension, or undoing one, is a change to all members in the project. The end date
 * defines the order: if nothing else follows, the later change's date is in effect. The order therefore
 * also covers members who leave and return, until the project is deleted. The store completes the
 * change's event with the number and, in a membership's event, its metadata after the change, or before
 * its end (`completeEvent`), and returns the event.
 *
 * A change with an idempotency key stores the key in the same step. If the key is stored already,
 * nothing changes: the change returns `ReplayedResponse`, or fails with `IdempotencyMismatch` if the
 * key came with another fingerprint. The replayed response is the end date in milliseconds if an
 * extension left that. Otherwise it is the key's `answer`, or without one: `formatBulkAnswer` after a
 * bulk extension, its total after undoing one, `formatGrantAnswer` after a grant, and empty after other
 * changes. A failing change keeps no key. A change waiting
 * too long for another with its key fails with `IdempotencyInProgress`. Keys are kept for at least 24
 * hours.
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
     * Replaces a project's settings, and moves no end date. Fails with `ProjectConflict` if there is no project, or if it
     * has other settings than expected. Audits `project_changed` with the project's id as the subject, unless nothing
     * differs. If the grace is another, each membership that it makes active or expired gets a next check.
     */
    readonly updateProject: (
      change: ProjectChange,
    ) => Effect.Effect<
      ReplayedResponse | void,
      ProjectConflict | IdempotencyConflict | StoreUnavailable
    >

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

    /**
     * Creates a membership, or sets an existing one's end date. Returns the event, and the pause that an existing one is in
     * and stays in.
     */
    readonly grant: (
      change: Grant,
    ) => Effect.Effect<
      Granted | ReplayedResponse,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Creates a membership unless the user has one. That stays as it is, even if it has expired, and is
     * returned: nothing is recorded or published, and the idempotency key is kept only if the grant is
     * final, with `formatGrantAnswer`. Of several such grants at the same time, one creates the
     * membership.
     */
    readonly grantIfAbsent: (
      change: GrantIfAbsent,
    ) => Effect.Effect<
      Granted | AlreadyMember | ReplayedResponse,
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
     * Changes memberships: all in one step, or none. Each has its own audit row and event, in their order. New
     * memberships have no metadata; others keep theirs. Fails with `MemberChangesConflict` unless each is as expected.
     */
    readonly changeEach: (
      change: MemberChanges,
    ) => Effect.Effect<
      ReadonlyArray<Event> | ReplayedResponse,
      MemberChangesConflict | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Changes all end dates in a project. A membership's end date is the one last set for it alone, and
     * then changed by each later bulk extension in order, unless undone: see `effectiveEndDate`. The
     * cost does not depend on the number of memberships.
     *
     * At least a project's newest 32 bulk extensions can be undone. Older ones may be settled: they are
     * then part of the members' own dates. A store that keeps one date for each member may settle all
     * at once.
     */
    readonly extendAll: (
      change: BulkExtension,
    ) => Effect.Effect<
      BulkExtended | ReplayedResponse,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Undoes a bulk extension: every membership gets the end date it would have without it. If both
     * apply, `BulkExtensionUndone` comes before `BulkExtensionSettled`.
     */
    readonly undoBulkExtension: (
      undo: Undo,
    ) => Effect.Effect<
      BulkExtended | ReplayedResponse,
      UndoFailure | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Returns at most `limit` bulk extensions in a project, newest first, including undone or settled
     * ones.
     *
     * @param page.after - returns only bulk extensions older than this id's; none if the id is unknown
     */
    readonly bulkExtensions: (
      projectId: ProjectId,
      page: { readonly after: EventId | undefined; readonly limit: number },
    ) => Effect.Effect<ReadonlyArray<BulkExtensionRecord>, ProjectNotFound | StoreUnavailable>

    /**
     * Returns the effect a bulk extension would have now, by the store's clock and without a lock.
     *
     * @param offsets - where the parts of `moved` begin, in milliseconds from now, ascending
     */
    readonly previewBulkExtension: (
      projectId: ProjectId,
      change: BulkChange,
      offsets?: ReadonlyArray<number>,
    ) => Effect.Effect<StoredPreview, ProjectNotFound | StoreUnavailable>

    /**
     * Counts a project's memberships by the day they end on, by the store's clock and without a lock:
     * see `endCellsAt` and `endCountsOf`. A store may refuse with `StoreUnavailable` if it counts too
     * much already.
     */
    readonly countEnds: (
      projectId: ProjectId,
      query: EndsQuery,
    ) => Effect.Effect<EndCounts, ProjectNotFound | StoreUnavailable>

    /**
     * Counts a project's memberships that ended at least `from` ago, and less than `to`, and are not
     * paused: milliseconds before now, by the store's clock and without a lock.
     */
    readonly countEndedBetween: (
      projectId: ProjectId,
      ago: { readonly from: Millis; readonly to: Millis },
    ) => Effect.Effect<number, ProjectNotFound | StoreUnavailable>

    /** Returns the effect undoing a bulk extension would have now, in the same way, or fails as it would. */
    readonly previewUndo: (
      projectId: ProjectId,
      target: UndoTarget,
      offsets?: ReadonlyArray<number>,
    ) => Effect.Effect<StoredPreview, UndoFailure | StoreUnavailable>

    /**
     * Tells how a change's event would be published now, without a lock: to the webhooks selected by
     * the same rule as for a change.
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

    /**
     * Pauses a membership. Fails with `PauseConflict` unless it has the expected end date and is not
     * paused.
     *
     * While it is paused, its end date stands: each change sets or moves that date, and nothing is
     * announced. When the pause is over, by the store's clock, every operation has the membership with
     * the end date that `endAfterPause` returns, as if it had been set then for this member alone: no
     * earlier bulk extension applies to it any more, and undoing one leaves it. A day stays a day, and the
     * kept day is dropped. A sweep records and publishes that.
     */
    readonly pause: (
      change: Pausing,
    ) => Effect.Effect<
      Event | ReplayedResponse,
      PauseConflict | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Ends a membership's pause, and sets its end date. Fails with `PauseConflict` unless it is in the
     * expected pause with the expected end date.
     */
    readonly resume: (
      change: Resuming,
    ) => Effect.Effect<
      Event | ReplayedResponse,
      PauseConflict | IdempotencyConflict | StoreUnavailable
    >

    /** Removes a membership. */
    readonly end: (
      change: Ending,
    ) => Effect.Effect<
      Event | ReplayedResponse,
      MembershipNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Removes a membership, and creates or sets another user's, in one step. Fails with `MoveConflict`
     * unless both are as expected, and not paused. The moved date is then the other user's own: no earlier bulk
     * extension applies to it, and undoing one leaves it. The last announcement stays from the
     * membership that ends later; if both end at the same time, from the one announced further. Each
     * user gets an audit row `moved` with the other user as its subject, and an event, the end's first,
     * with sequences as after two changes.
     */
    readonly move: (
      change: Move,
    ) => Effect.Effect<
      readonly [ended: Event, granted: Event] | ReplayedResponse,
      MoveConflict | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Ends a person's membership, if there is one, and removes the user id from the audit trail, with
     * the reasons for these changes, and from events, as `Erasure` does. From these events' deliveries,
     * it removes the receivers' responses. A row in the trail records the erasure. Publishes the
     * change's event without a user id, and returns it, if there was a membership.
     *
     * Ending the membership and adding the row to the trail are one step. The rest may take several; a
     * repetition with the same idempotency key completes it, and leaves later data. The erasure also
     * covers an event published in a host transaction, soon after that is committed.
     */
    readonly erase: (
      change: Ending,
    ) => Effect.Effect<
      Event | ReplayedResponse | undefined,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Returns the result from the change with this idempotency key; `undefined` if there was none.
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
     * @param page.prefix - returns only user ids with this prefix; not with `userIds`
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
     * Returns at most `limit` active memberships, by the store's clock, ending before an instant, those
     * in grace included, and paused ones left out: ordered by end date and, for equal end dates, in any stable order. If nobody changes a membership
     * meanwhile, it is on one page. A page may have fewer memberships than `limit`, or none, and yet
     * not be the last: a store may stop reading for a page after a short time.
     *
     * @param page.after - the previous page's cursor
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

    /**
     * Returns at most `limit` rows of those that `history` returns, which match a filter, newest first.
     * Reads a bounded number of rows, so a page may have fewer rows than `limit`, or none, and yet not be
     * the last. `searchingHistory` makes it from `history`.
     *
     * @param page.after - the previous page's `next`
     */
    readonly searchHistory: (
      projectId: ProjectId | undefined,
      page: AuditFilter & {
        readonly userId: UserId | undefined
        readonly after?: AuditCursor | undefined
        readonly limit: number
      },
    ) => Effect.Effect<AuditPage, ProjectNotFound | StoreUnavailable>

    /**
     * Returns the next users with selected changes to their own memberships, and what these were like before
     * the first one. Announcements, new metadata and pauses that ended by themselves are never selected. The
     * order is that of the trail. `changedMembersOf` makes a page from a whole trail.
     */
    readonly selectedChanges: (
      projectId: ProjectId,
      page: SelectedChangesPage,
    ) => Effect.Effect<ChangedMembers, ProjectNotFound | StoreUnavailable>
  }
>()("@tenure/core/MembershipStore") {}
