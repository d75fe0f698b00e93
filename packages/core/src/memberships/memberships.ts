/** The memberships service for hosts, and its acts, shared with the API. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type IdempotencyConflict, type OriginInput } from "../base/change-context.ts"
import type { InvalidInput } from "../base/errors.ts"
import { type StoreUnavailable } from "../base/errors.ts"
import { checkNames } from "../base/field-names.ts"
import { type Repeatable, changingMethod, readingMethod } from "../base/host-method.ts"
import { ofProject } from "../base/input.ts"
import type { HostInputOf } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { type ProjectNotFound, copyOwn } from "../base/values.ts"
import { type AuditPage } from "./audit-search.ts"
import { type AuditRow } from "./audit-trail.ts"
import type { BulkExtensionRecord } from "./bulk-extension.ts"
import {
  type BulkExtensionsPage,
  type BulkResult,
  type ExtendingAll,
  type UndoingBulkExtension,
} from "./bulk-extensions.ts"
import { type EndDateNotInFuture, type InvalidEndDate } from "./end-date.ts"
import { type EndingPage } from "./ending-page.ts"
import type { EndCounts } from "./ends.ts"
import type { ExtendingSome, SegmentResult } from "./extend-some.ts"
import {
  bulkExtension,
  bulkExtensionsPage,
  endsCount,
  extension,
  segmentExtension,
  undoing,
} from "./extension-inputs.ts"
import { type ExtendingMember, type ExtensionResult } from "./extensions.ts"
import {
  disclosure,
  ending,
  endingPage,
  historyPage,
  historySearch,
  imported,
  membershipUpdate,
  membershipsPage,
  moving,
  newMembership,
  ofMember,
  pausing,
  possibleMember,
  projectUpdate,
  projectsPage,
  resuming,
} from "./inputs.ts"
import {
  membershipsOptions,
  type ActSettings,
  type GrantResult,
  type ImportResult,
  type UpdatedProject,
  makeActs,
  MembershipActs,
} from "./membership-acts.ts"
import {
  type CurrentMembership,
  type EndDateConflict,
  type Member,
  type MembershipEnd,
  type MembershipNotFound,
  type ProjectSummary,
  type StateConflict,
} from "./membership.ts"
import { type Moving } from "./move.ts"
import { membershipNames } from "./names.ts"
import type { PausingMember, ResumingMember } from "./pauses.ts"
import {
  type CountingEnds,
  type DisclosureIn,
  type EndingQuery,
  type HistoryPage,
  type HistorySearch,
  type MembershipsPage,
  type ProjectsPage,
} from "./queries.ts"
import type { MembershipStore } from "./store.ts"
import { type UndoFailure } from "./store.ts"

/** A membership to create or to set. */
export type Granting = HostInputOf<typeof newMembership> & Repeatable

/** Memberships to create or to set in a project. */
export interface Importing extends HostInputOf<typeof imported>, Repeatable {}

/** A metadata change. */
export interface Updating extends HostInputOf<typeof membershipUpdate>, Repeatable {}

/** A change of a project's settings. */
export interface UpdatingProject extends HostInputOf<typeof projectUpdate>, Repeatable {}

/** A membership to remove. */
interface Ending extends HostInputOf<typeof ending>, Repeatable {}

type Failure = InvalidInput | StoreUnavailable

type ChangeFailure = Failure | IdempotencyConflict

/**
 * Grants, imports, extends, ends and finds memberships. Every method fails with `InvalidInput` if an
 * argument is invalid and with `StoreUnavailable` if the store does not answer.
 *
 * Changing methods take a reason, and an origin: the principal and the request. The audit trail keeps
 * both. They fail with `IdempotencyMismatch` if the idempotency key was used for another call, and with
 * `IdempotencyInProgress` if the first call with it takes too long.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import { Memberships } from "tenure/effect"
 *
 * const renew = Effect.gen(function* () {
 *   const memberships = yield* Memberships
 *   const member = { projectId: "p1", userId: "1001" }
 *   const origin = { keyId: "billing", requestId: "invoice-2026-117" }
 *   yield* memberships.grant({ ...member, endDate: new Date("2027-01-01") }, origin)
 *   const reason = "prepaid for two years"
 *   yield* memberships.extend({ ...member, endDate: "2028-01-01T00:00:00.000Z", reason }, origin)
 *   return yield* memberships.history(member)
 * })
 * ```
 */
export class Memberships extends Context.Service<
  Memberships,
  {
    /**
     * Creates a project, and returns it. Does nothing if it exists.
     *
     * @param creation.idempotencyKey - as for a membership change
     */
    readonly createProject: (
      projectId: string,
      origin?: OriginInput,
      creation?: Repeatable,
    ) => Effect.Effect<ProjectSummary, ChangeFailure>

    /**
     * Changes settings of a project, and returns it. Others stay as they are. No end date moves, and no event is published.
     * Fails with `ProjectNotFound`.
     *
     * @param change.timeZone - the name of an IANA time zone, in which whole days begin and end
     * @param change.grace - an ISO 8601 duration up to 90 days, such as `"P7D"`, for which memberships are
     *   still active after their end dates; `null` for none. It counts at once, for past ends too
     * @param change.dryRun - only counts the memberships to which the change would give another state
     *
     * @example
     * ```ts
     * import type { Tenure } from "tenure"
     *
     * export const moveToBerlin = (tenure: Tenure) =>
     *   tenure.memberships.updateProject({ projectId: "p1", timeZone: "Europe/Berlin" })
     * ```
     */
    readonly updateProject: (
      change: UpdatingProject,
      origin?: OriginInput,
    ) => Effect.Effect<UpdatedProject, ChangeFailure | ProjectNotFound>

    /**
     * Deletes a project with its memberships, webhooks, events and deliveries, and its audit trail
     * except for one row about the deletion (`history` with `projectId: null`). API keys lose access to
     * it, even if it is created again: at once in this process, and within `keyCacheTtl` in others
     * sharing its store. Attempts in flight are aborted, and none starts afterwards. Fails with
     * `ProjectNotFound`.
     *
     * @param deletion.idempotencyKey - as for a membership change
     */
    readonly deleteProject: (
      projectId: string,
      origin?: OriginInput,
      deletion?: Repeatable,
    ) => Effect.Effect<void, ChangeFailure | ProjectNotFound>

    /** Returns a project. Fails with `ProjectNotFound`. */
    readonly findProject: (
      projectId: string,
    ) => Effect.Effect<ProjectSummary, Failure | ProjectNotFound>

    /** Returns projects ordered by id, compared as text. */
    readonly listProjects: (
      page?: ProjectsPage,
    ) => Effect.Effect<ReadonlyArray<ProjectSummary>, Failure>

    /**
     * Creates a membership, or sets an existing one's end date, and returns it. The end date may be in
     * the past. Fails with `InvalidEndDate` or `ProjectNotFound`.
     *
     * @param membership.ifAbsent - leaves a membership as it is, even an expired one: nothing is
     *   recorded or published. `created` tells. Of several calls at the same time, one creates it
     */
    readonly grant: (
      membership: Granting,
      origin?: OriginInput,
    ) => Effect.Effect<GrantResult, ChangeFailure | InvalidEndDate | ProjectNotFound>

    /**
     * Creates up to 10,000 memberships, each for a different user, or sets the end dates if they exist:
     * all in one step, or none. End dates may be in the past. One event covers all. Fails with
     * `ProjectNotFound`.
     */
    readonly import: (
      project: Importing,
      origin?: OriginInput,
    ) => Effect.Effect<ImportResult, ChangeFailure | ProjectNotFound>

    /**
     * Sets a membership's end date to a future date, even if it has expired. Returns the membership
     * with its new end date. Fails with `InvalidEndDate`, `EndDateNotInFuture`, `MembershipNotFound` or
     * `EndDateConflict`.
     *
     * With `by`, the membership ends later by a duration, by the calendar of the project's time zone: a
     * day missing from a month becomes its last day, and comes back in the next month that has it. Such a
     * call needs an idempotency key or the expected end date, because a repetition would extend again.
     *
     * @param membership.through - in place of a date: the last whole day, such as `"2027-01-31"`. Months
     *   count by that day then, and the last day of a month stays the last
     * @param membership.timeZone - the IANA time zone for `through` and `by`; by default, the project's
     * @param membership.mode - whether a membership with a later end date is set, too (`"set"`, the
     *   default), or left as it is (`"neverShorten"`): then nothing is recorded or published
     * @param membership.expectedEndDate - if given, only a membership with this end date is changed: if
     *   several callers read a date and set another, one succeeds
     * @param membership.from - the duration's start: `"end"`, `"now"`, or the `"later"` of both (the
     *   default); an expired membership is then renewed from now
     * @param membership.create - gives a user without a membership one, as if it ended now. `created`
     *   tells. The event is then `membership.granted`. Not with `expectedEndDate`
     */
    readonly extend: (
      membership: ExtendingMember,
      origin?: OriginInput,
    ) => Effect.Effect<
      ExtensionResult,
      ChangeFailure | InvalidEndDate | EndDateNotInFuture | MembershipNotFound | EndDateConflict
    >

    /**
     * Sets all end dates in a project to a future date, or moves all later by a duration, also for
     * expired memberships. Fails with `InvalidEndDate`, `EndDateNotInFuture` or `ProjectNotFound`. A
     * dry run reads all memberships in the project.
     *
     * @param project.mode - whether memberships with a later end date are set, too (`"set"`), or left
     *   as they are (`"neverShorten"`); the option `bulk` by default
     * @param project.by - in weeks, days, hours, minutes and seconds, at most ten years; needs an
     *   idempotency key
     */
    readonly extendAll: (
      project: ExtendingAll,
      origin?: OriginInput,
    ) => Effect.Effect<
      BulkResult,
      ChangeFailure | InvalidEndDate | EndDateNotInFuture | ProjectNotFound
    >

    /**
     * Extends the memberships in a segment, 1,000 in one step, in the order of their user ids. Go on with `after` until
     * `next` is `undefined`. It leaves those for life as they are, and those that would still be over. A dry run counts all
     * pages. Fails with `InvalidEndDate`, `EndDateNotInFuture` or `ProjectNotFound`.
     *
     * @param segment.where - memberships match all its fields: `metadata`, `state`, `endingAfter`, `endingBefore`, `userIds`
     * @param segment.by - a duration, as for one membership; each page needs its own idempotency key
     *
     * @example
     * ```ts
     * import type { Tenure } from "tenure"
     *
     * export const thankGoldMembers = async (tenure: Tenure) => {
     *   let after: string | undefined
     *   do {
     *     const where = { metadata: { plan: "gold" }, state: "active" } as const
     *     const idempotencyKey = `thanks after ${after ?? "nobody"}`
     *     const page = { projectId: "p1", where, by: "P7D", after, idempotencyKey }
     *     after = (await tenure.memberships.extendSome(page)).next
     *   } while (after !== undefined)
     * }
     * ```
     */
    readonly extendSome: (
      segment: ExtendingSome,
      origin?: OriginInput,
    ) => Effect.Effect<
      SegmentResult,
      ChangeFailure | InvalidEndDate | EndDateNotInFuture | ProjectNotFound
    >

    /**
     * Undoes a bulk extension: every membership gets the end date it would have without it. Dates set
     * for one membership since then stay. Fails with `ProjectNotFound`, `BulkExtensionNotFound`,
     * `BulkExtensionUndone` or, if it is too old, `BulkExtensionSettled`.
     */
    readonly undoBulkExtension: (
      undoing: UndoingBulkExtension,
      origin?: OriginInput,
    ) => Effect.Effect<BulkResult, ChangeFailure | UndoFailure>

    /** Returns a project's bulk extensions, newest first. Fails with `ProjectNotFound`. */
    readonly bulkExtensions: (
      page: BulkExtensionsPage,
    ) => Effect.Effect<ReadonlyArray<BulkExtensionRecord>, Failure | ProjectNotFound>

    /** Changes a membership's metadata, and returns the membership. Fails with `MembershipNotFound`. */
    readonly update: (
      change: Updating,
      origin?: OriginInput,
    ) => Effect.Effect<CurrentMembership, ChangeFailure | MembershipNotFound>

    /** Removes a membership. Fails with `MembershipNotFound`. */
    readonly end: (
      member: Ending,
      origin?: OriginInput,
    ) => Effect.Effect<void, ChangeFailure | MembershipNotFound>

    /**
     * Moves a membership to another user id, for a person whose id changes. Returns the membership with
     * its resulting end date. If `to` has a membership, too, the later end date stays, and for equal
     * names, the metadata in `to`. No reminder is sent twice. Each user id keeps its history. Receivers
     * get `membership.ended` with `moved_to`, and `membership.granted` with `moved_from`. Fails with
     * `MembershipNotFound` if the user has no membership, and with `StateConflict` if one of them is paused.
     *
     * @param membership.to - the other user id; invalid if both users' metadata have more than 16 names
     *   together
     *
     * @example
     * ```ts
     * import type { Tenure } from "tenure"
     *
     * export const signedUp = (tenure: Tenure, guestId: string, userId: string) =>
     *   tenure.memberships.move({ projectId: "p1", userId: guestId, to: userId, reason: "sign-up" })
     * ```
     */
    readonly move: (
      membership: Moving,
      origin?: OriginInput,
    ) => Effect.Effect<MembershipEnd, ChangeFailure | MembershipNotFound | StateConflict>

    /**
     * Pauses a membership that is active, before its end, and returns it. It is not active then, and its
     * end date stands: at the end of the pause, it is later by the time paused. Meanwhile, nothing is
     * announced, durations count from the beginning of the pause, and other changes move the date that
     * stands. Fails with `MembershipNotFound`, or with `StateConflict` in another state.
     *
     * @param membership.until - when the pause ends by itself, at most two years ahead. By default, it lasts
     *   until the membership is resumed
     * @param membership.through - in place of that: its last whole day, such as `"2027-01-31"`
     * @param membership.timeZone - the IANA time zone for `through`; by default, the project's
     *
     * @example
     * ```ts
     * import type { Tenure } from "tenure"
     *
     * export const pauseForSummer = (tenure: Tenure, userId: string) =>
     *   tenure.memberships.pause({ projectId: "p1", userId, through: "2027-08-31", reason: "summer" })
     * ```
     */
    readonly pause: (
      membership: PausingMember,
      origin?: OriginInput,
    ) => Effect.Effect<CurrentMembership, ChangeFailure | MembershipNotFound | StateConflict>

    /**
     * Ends a membership's pause before it ends by itself, and returns the membership. Fails with
     * `MembershipNotFound`, or with `StateConflict` if it is not paused.
     */
    readonly resume: (
      membership: ResumingMember,
      origin?: OriginInput,
    ) => Effect.Effect<CurrentMembership, ChangeFailure | MembershipNotFound | StateConflict>

    /**
     * Erases a person: ends the membership, if there is one, and removes the user id from the audit
     * trail and from events, also from pending deliveries; with it, the reasons for these changes, and
     * the receivers' responses. A row in the trail records the erasure. Afterwards the user has no
     * history. Notifications already sent to webhooks are out of reach. The event `membership.ended`
     * has `null` in place of the user id: to tell receivers which user has left, end the membership
     * first.
     *
     * In events, it removes each field `user_id` with this user, also in events published by the host.
     * Works after the membership has ended, and succeeds for unknown users. It reads all kept events in
     * the project, in several steps, and returns after the last one. If it fails, repeat it.
     *
     * Fails with `ProjectNotFound`.
     */
    readonly erase: (
      member: Member & Repeatable,
      origin?: OriginInput,
    ) => Effect.Effect<void, ChangeFailure | ProjectNotFound>

    /** Returns a membership. Fails with `MembershipNotFound`. */
    readonly find: (
      member: Member,
    ) => Effect.Effect<CurrentMembership, Failure | MembershipNotFound>

    /**
     * Returns whether a user has a membership that has not expired: `false` also if there is no
     * membership, or no project, or if an id is text but invalid. Fails with `InvalidInput` if an id is
     * missing or no text. Finds the membership by its key, whatever the size of the project.
     */
    readonly isActive: (member: Member) => Effect.Effect<boolean, Failure>

    /** Returns a project's memberships ordered by user id, compared as text. Fails with `ProjectNotFound`. */
    readonly list: (
      page: MembershipsPage,
    ) => Effect.Effect<ReadonlyArray<CurrentMembership>, Failure | ProjectNotFound>

    /**
     * Returns a project's active memberships ending before an instant, soonest first. Fails with
     * `InvalidEndDate` or `ProjectNotFound`.
     *
     * To get all, request pages until `next` is `undefined`: a page may have fewer memberships than
     * `limit`, or none. If nobody changes a membership meanwhile, it is on one page.
     */
    readonly listEnding: (
      page: EndingQuery,
    ) => Effect.Effect<EndingPage<CurrentMembership>, Failure | InvalidEndDate | ProjectNotFound>

    /**
     * Counts a project's memberships: active and expired ones, and the number ending on each day, in
     * UTC; with an `extension`, as they would be after it. Reads all memberships. On PostgreSQL, a
     * process counts for one call at a time: equal calls share a count, and it fails with
     * `StoreUnavailable` if too many wait. Fails with `ProjectNotFound`, `InvalidEndDate` or
     * `EndDateNotInFuture`.
     */
    readonly countEnds: (
      counting: CountingEnds,
    ) => Effect.Effect<EndCounts, Failure | ProjectNotFound | InvalidEndDate | EndDateNotInFuture>

    /**
     * Adds a row to the audit trail for a disclosure of a webhook's secret or an event's data, as the
     * API does. For hosts that show them to people. Fails with `ProjectNotFound`.
     */
    readonly recordShown: (
      shown: DisclosureIn,
      origin?: OriginInput,
    ) => Effect.Effect<void, Failure | ProjectNotFound>

    /** Returns the audit trail, newest rows first. Fails with `ProjectNotFound`. */
    readonly history: (
      page: HistoryPage,
    ) => Effect.Effect<ReadonlyArray<AuditRow>, Failure | ProjectNotFound>

    /**
     * Returns rows from the audit trail that match all given fields, newest first. Fails with
     * `ProjectNotFound`.
     *
     * To get all, request pages until `next` is `undefined`: a call reads a bounded number of rows, so a
     * page may have fewer rows than `limit`, or none.
     */
    readonly searchHistory: (
      search: HistorySearch,
    ) => Effect.Effect<AuditPage, Failure | ProjectNotFound>
  }
>()("@tenure/core/Memberships") {
  static readonly layer = (
    settings: ActSettings = { ...Setting.parse(membershipsOptions), expiry: undefined },
  ): Layer.Layer<Memberships | MembershipActs, never, MembershipStore> =>
    Layer.provideMerge(
      Layer.effect(Memberships, Effect.map(MembershipActs, makeMethods)),
      Layer.effect(MembershipActs, makeActs(settings)),
    )
}

const makeMethods = (acts: MembershipActs["Service"]): Memberships["Service"] => {
  const createProject = changingMethod("createProject", ofProject, acts.createProject)
  const deleteProject = changingMethod("deleteProject", ofProject, acts.deleteProject)
  const findProject = readingMethod(ofProject, acts.findProject)
  const listProjects = readingMethod(projectsPage, acts.listProjects)
  return checkNames<Memberships["Service"]>(membershipNames, {
    createProject: (projectId, origin, creation = {}) =>
      createProject({ ...copyOwn(creation), projectId }, origin),
    deleteProject: (projectId, origin, deletion = {}) =>
      deleteProject({ ...copyOwn(deletion), projectId }, origin),
    updateProject: changingMethod("updateProject", projectUpdate, acts.updateProject),
    findProject: (projectId) => findProject({ projectId }),
    listProjects: (page = {}) => listProjects(page),
    grant: changingMethod("grant", newMembership, acts.grant),
    import: changingMethod("import", imported, acts.import),
    extend: changingMethod("extend", extension, acts.extend),
    extendAll: changingMethod("extendAll", bulkExtension, acts.extendAll),
    extendSome: changingMethod("extendSome", segmentExtension, acts.extendSome),
    undoBulkExtension: changingMethod("undoBulkExtension", undoing, acts.undoBulkExtension),
    bulkExtensions: readingMethod(bulkExtensionsPage, acts.bulkExtensions),
    update: changingMethod("update", membershipUpdate, acts.update),
    end: changingMethod("end", ending, acts.end),
    move: changingMethod("move", moving, acts.move),
    pause: changingMethod("pause", pausing, acts.pause),
    resume: changingMethod("resume", resuming, acts.resume),
    erase: changingMethod("erase", ofMember, acts.erase),
    find: readingMethod(ofMember, acts.find),
    isActive: readingMethod(possibleMember, acts.isActive),
    list: readingMethod(membershipsPage, acts.list),
    listEnding: readingMethod(endingPage, acts.listEnding),
    countEnds: readingMethod(endsCount, acts.countEnds),
    recordShown: changingMethod("recordShown", disclosure, acts.recordShown),
    history: readingMethod(historyPage, acts.history),
    searchHistory: readingMethod(historySearch, acts.searchHistory),
  })
}
