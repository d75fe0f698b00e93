/** The storage port for projects, memberships and their audit trail. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { InvalidInput } from "../base/InvalidInput.ts"
import type { Conflict, IdempotencyMismatch, Once, Replayed } from "../base/Once.ts"
import type { Occasion } from "../base/Origin.ts"
import type { ProjectId, ProjectNotFound } from "../base/Project.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import type { Draft, Event } from "../events/Event.ts"
import type { Mode } from "./Bulk.ts"
import type { EndDate } from "./EndDate.ts"
import type { EndingCursor, EndingPage } from "./EndingPage.ts"
import type { ExpiryStore } from "./ExpiryStore.ts"
import type {
  AuditCursor,
  AuditRow,
  Dated,
  EndDateConflict,
  EndsLater,
  Membership,
  MembershipNotFound,
  MembershipState,
  ProjectSummary,
  Shown,
  UserId,
} from "./Membership.ts"
import type { Reason } from "./Reason.ts"

/** What all changes have in common. */
export interface Change extends Occasion {
  readonly projectId: ProjectId
  /** Why, for the audit trail; `undefined` if nobody said. */
  readonly reason: Reason | undefined
  /** The event to deliver to the webhooks of the project, which the store completes with the sequence. */
  readonly event: Draft
}

/** A new end date for one membership. */
export interface Grant extends Change {
  readonly userId: UserId
  readonly endDate: EndDate
}

/** A new end date for a membership that exists. */
export interface Extension extends Grant {
  /** The end date that the membership must have. By default, it may have any. */
  readonly expectedEndDate?: EndDate | undefined
  /** Whether a membership that ends later is set, too, or left as it is; `"set"` by default. */
  readonly mode?: Mode | undefined
}

/** New end dates for many memberships of a project. */
export interface Import extends Change {
  /** Up to 10,000 memberships of different users. */
  readonly memberships: ReadonlyArray<Dated>
}

/** A new end date for all memberships of a project. */
export interface BulkExtension extends Change {
  readonly endDate: EndDate
  readonly mode: Mode
}

/** What a bulk extension has done. */
export interface BulkExtended {
  /** The number of memberships of the project. */
  readonly total: number
  readonly event: Event
}

/** How many memberships a project has, and how many of them end after a date. */
export interface Counts {
  readonly total: number
  readonly later: number
}

/** The end of one membership. */
export interface Ending extends Change {
  readonly userId: UserId
}

/**
 * Stores projects, memberships and the audit trail.
 *
 * A change is atomic: the membership, its audit row, its event and a delivery of that event to each
 * webhook of the project are stored together or not at all. Repeating a change sets the same end
 * dates again, and adds another audit row and another event.
 *
 * Each change has a sequence: a safe integer, greater than that of every earlier change that concerned one
 * of the same members, a bulk extension being one that concerns all members of the project. Earlier is what
 * the end date says: of two changes, the later one is that whose date holds if nothing else follows. So the
 * order also holds for members who have left and returned, until the project is deleted. The store completes
 * the event of the change with it (`Event.complete`), and returns that event.
 *
 * A change with an idempotency key stores the key in the same step. If there is one already, nothing is
 * changed: the change returns `Replayed`, or fails with `IdempotencyMismatch` if the key came with another fingerprint.
 * The answer is the total of a bulk extension, the end date in milliseconds of a membership that an extension
 * left as it is, and empty otherwise. A change that fails keeps no key.
 * One that waits too long for another with its key fails with `IdempotencyInProgress`. Keys are kept for
 * 24 hours or longer.
 *
 * As with every port, an operation fails with `StoreUnavailable` within a few seconds if the storage
 * does not answer.
 */
export class MembershipStore extends Context.Service<
  MembershipStore,
  {
    /**
     * Succeeds if the store answers and takes changes. The ports of one store share one `ping`, the
     * same value, so that it runs once for all of them.
     */
    readonly ping: Effect.Effect<void, StoreUnavailable>

    /**
     * Announces the ends of memberships. A store that cannot do that has `undefined` here: the option
     * `expiry` is then refused.
     */
    readonly expiry: ExpiryStore | undefined

    /**
     * Creates a project. Does nothing if it exists. Fails with `InvalidInput` if the store has no place for
     * one with this id.
     */
    readonly createProject: (
      projectId: ProjectId,
      occasion: Occasion,
    ) => Effect.Effect<Replayed | void, InvalidInput | Conflict | StoreUnavailable>

    /**
     * Deletes a project, and in the same step all that belongs to it: memberships, webhooks, events and
     * their deliveries, its audit trail, the access of API keys to it, and the idempotency keys of its
     * changes. None of its deliveries can be claimed any more, and no earlier claim can be settled. A
     * project that is created again with the same id has nothing of it. Fails with `ProjectNotFound`.
     *
     * However much the project has, others need not wait: the store may remove the rest of it later, if
     * nobody can tell.
     */
    readonly deleteProject: (
      projectId: ProjectId,
      occasion: Occasion,
    ) => Effect.Effect<Replayed | void, ProjectNotFound | Conflict | StoreUnavailable>

    /** Returns a project. Fails with `StoreUnavailable` while it is being moved from or to the store. */
    readonly findProject: (
      projectId: ProjectId,
    ) => Effect.Effect<ProjectSummary, ProjectNotFound | StoreUnavailable>

    /**
     * Returns at most `limit` projects after the id `after`, in the order of their ids by code unit.
     *
     * @param page.within - returns only these, also while they are being moved; `"all"` for all
     */
    readonly listProjects: (page: {
      readonly within: ReadonlySet<string> | "all"
      readonly after: ProjectId | undefined
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<ProjectSummary>, StoreUnavailable>

    /** Creates a membership, or sets the end date of an existing one. */
    readonly grant: (
      change: Grant,
    ) => Effect.Effect<Event | Replayed, ProjectNotFound | Conflict | StoreUnavailable>

    /**
     * Creates memberships, and sets the end dates of existing ones: all of them in one step, or none.
     * Each has an audit row of its own, in the order of the import. The event is one for all of them.
     */
    readonly import: (
      change: Import,
    ) => Effect.Effect<Event | Replayed, ProjectNotFound | Conflict | StoreUnavailable>

    /**
     * Sets the end date of a membership, which may have expired. Fails with `EndDateConflict` if it has
     * another end date than is expected. Otherwise, if the membership ends later and the mode is
     * `neverShorten`, it stays as it is, and nothing is recorded or published.
     */
    readonly extend: (
      change: Extension,
    ) => Effect.Effect<
      Event | EndsLater | Replayed,
      MembershipNotFound | EndDateConflict | Conflict | StoreUnavailable
    >

    /**
     * Sets the end date of all memberships of a project, or of those that end earlier.
     */
    readonly extendAll: (
      change: BulkExtension,
    ) => Effect.Effect<BulkExtended | Replayed, ProjectNotFound | Conflict | StoreUnavailable>

    /** Counts the memberships of a project, without a lock. */
    readonly count: (
      projectId: ProjectId,
      endDate: EndDate,
    ) => Effect.Effect<Counts, ProjectNotFound | StoreUnavailable>

    /** Removes a membership. */
    readonly end: (
      change: Ending,
    ) => Effect.Effect<Event | Replayed, MembershipNotFound | Conflict | StoreUnavailable>

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
    ) => Effect.Effect<Event | Replayed | undefined, ProjectNotFound | Conflict | StoreUnavailable>

    /**
     * Returns what a change with this idempotency key would return; `undefined` if there was none.
     *
     * @param projectId - the project of the change; `undefined` if it has none
     */
    readonly recall: (
      once: Once,
      projectId: ProjectId | undefined,
    ) => Effect.Effect<Replayed | undefined, IdempotencyMismatch | StoreUnavailable>

    /** Returns a membership with its current end date. */
    readonly find: (
      projectId: ProjectId,
      userId: UserId,
    ) => Effect.Effect<Membership, MembershipNotFound | StoreUnavailable>

    /**
     * Returns at most `limit` memberships after `after`, in the order of their user ids by code unit.
     *
     * @param page.userIds - returns only those of these users, who may be named more than once
     * @param page.only - returns only those in this state at this instant
     */
    readonly list: (
      projectId: ProjectId,
      page: {
        readonly after: UserId | undefined
        readonly limit: number
        readonly userIds?: ReadonlyArray<UserId> | undefined
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

    /** Adds a row to the audit trail of a project: who was shown what. */
    readonly recordShown: (
      projectId: ProjectId,
      shown: Shown,
      occasion: Occasion,
    ) => Effect.Effect<void, ProjectNotFound | StoreUnavailable>

    /**
     * Returns the newest `limit` rows of the audit trail of a project, newest first; without one, of
     * what belongs to no project. With a user, returns only changes of that user's membership, with
     * the bulk extensions that applied to it.
     *
     * @param page.after - returns only rows older than the one of this trail with this cursor; none if no row has it
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
