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
import type { InvalidInput, StoreUnavailable } from "../base/errors.ts"
import type { Millis } from "../base/time.ts"
import { type ProjectId, type ProjectNotFound, brandedWhere } from "../base/values.ts"
import type { Event, EventDraft } from "../events/event.ts"
import type { BulkMode, EndDate } from "./end-date.ts"
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
  ProjectSummary,
  Reason,
  UserId,
} from "./membership.ts"

/** What all changes have in common. */
export interface Change extends ChangeContext {
  readonly projectId: ProjectId
  /** Why, for the audit trail; `undefined` if nobody said. */
  readonly reason: Reason | undefined
  /** The event to deliver to the webhooks of the project, which the store completes with the sequence. */
  readonly event: EventDraft
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
  readonly mode?: BulkMode | undefined
}

/** New end dates for many memberships of a project. */
export interface Import extends Change {
  /** Up to 10,000 memberships of different users. */
  readonly memberships: ReadonlyArray<DatedMembership>
}

/** A new end date for all memberships of a project. */
export interface BulkExtension extends Change {
  readonly endDate: EndDate
  readonly mode: BulkMode
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
 * the event of the change with it (`completeEvent`), and returns that event.
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
      occasion: ChangeContext,
    ) => Effect.Effect<
      ReplayedResponse | void,
      InvalidInput | IdempotencyConflict | StoreUnavailable
    >

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
      occasion: ChangeContext,
    ) => Effect.Effect<
      ReplayedResponse | void,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

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
    ) => Effect.Effect<
      Event | ReplayedResponse,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Creates memberships, and sets the end dates of existing ones: all of them in one step, or none.
     * Each has an audit row of its own, in the order of the import. The event is one for all of them.
     */
    readonly import: (
      change: Import,
    ) => Effect.Effect<
      Event | ReplayedResponse,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Sets the end date of a membership, which may have expired. Fails with `EndDateConflict` if it has
     * another end date than is expected. Otherwise, if the membership ends later and the mode is
     * `neverShorten`, it stays as it is, and nothing is recorded or published.
     */
    readonly extend: (
      change: Extension,
    ) => Effect.Effect<
      Event | EndsLater | ReplayedResponse,
      MembershipNotFound | EndDateConflict | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Sets the end date of all memberships of a project, or of those that end earlier.
     */
    readonly extendAll: (
      change: BulkExtension,
    ) => Effect.Effect<
      BulkExtended | ReplayedResponse,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

    /** Counts the memberships of a project, without a lock. */
    readonly count: (
      projectId: ProjectId,
      endDate: EndDate,
    ) => Effect.Effect<Counts, ProjectNotFound | StoreUnavailable>

    /** Removes a membership. */
    readonly end: (
      change: Ending,
    ) => Effect.Effect<
      Event | ReplayedResponse,
      MembershipNotFound | IdempotencyConflict | StoreUnavailable
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
     * Returns what a change with this idempotency key would return; `undefined` if there was none.
     *
     * @param projectId - the project of the change; `undefined` if it has none
     */
    readonly recall: (
      once: IdempotencyKey,
      projectId: ProjectId | undefined,
    ) => Effect.Effect<ReplayedResponse | undefined, IdempotencyMismatch | StoreUnavailable>

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
      shown: Disclosure,
      occasion: ChangeContext,
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

/** The part of a store of memberships that announces their ends. */

/** What a sweep has done. */
export interface SweepResult {
  /** The events that it has published. */
  readonly events: ReadonlyArray<Event>
  /** Whether there may be more to do at once. */
  readonly isMore: boolean
}

/**
 * Finds the memberships whose end is to be announced.
 *
 * It keeps two things with each membership: the last announcement, and an alarm, the time at which to
 * decide what to announce next. The alarm may be too early, but never too late: whatever changes an end date
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
   * however many another one has. It has `judge` decide what to announce of each and when to look at it again, and does so in one step, if the membership
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
    judge: DecideAnnouncement,
  ) => Effect.Effect<SweepResult, StoreUnavailable>
}

/** Lists of the memberships that end before some time, by their ends. */

/** A place in such a list: an end date and a user id, and what else the store needs to go on from there. */
export type EndingCursor = Branded<string, "@tenure/core/EndingCursor">

/** Brands a cursor. Throws a `TypeError` if it is invalid. */
export const EndingCursor = brandedWhere<string, EndingCursor>(
  "cursor",
  "a cursor of a list by end dates",
  (text) => /^(-\d{1,14}|\d{1,15})\.\d{0,64}(\.-?\d{1,18}){0,3}(\.\d{0,64})?$/u.test(text),
)

/** A page of memberships, by their ends. */
export interface EndingPage<Listed = Membership> {
  readonly memberships: ReadonlyArray<Listed>
  /** Where the next page begins; `undefined` if there is none. */
  readonly next: EndingCursor | undefined
}

/** A place in the order of end dates and, among the same ones, of user ids by code unit. */
export interface EndingPosition {
  readonly endDate: number
  readonly userId: string
}

/** Compares two places, as functions that sort expect it. */
export const comparePositions = (one: EndingPosition, other: EndingPosition): number =>
  one.endDate - other.endDate ||
  (one.userId < other.userId ? -1 : Number(one.userId > other.userId))

/** Returns the cursor of a place. */
export const cursorOfPosition = ({ endDate, userId }: EndingPosition): EndingCursor =>
  EndingCursor(`${endDate}.${userId}`)

/** Returns the place of a cursor. */
export const positionOfCursor = (cursor: EndingCursor): EndingPosition => {
  const [endDate, userId = ""] = cursor.split(".")
  return { endDate: Number(endDate), userId }
}

/**
 * Makes a page of memberships in this order, of which there is one more than the page may have if there is a
 * next page.
 */
export const endingPage = (memberships: ReadonlyArray<Membership>, limit: number): EndingPage => {
  const page = memberships.slice(0, limit)
  const last = memberships.length > limit ? page.at(-1) : undefined
  return { memberships: page, next: last && cursorOfPosition(last) }
}
