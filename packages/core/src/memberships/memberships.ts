/** The service for memberships, which hosts call, and its acts, which the API calls, too. */

import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import {
  type ChangeContext,
  type IdempotencyConflict,
  type OriginInput,
  type ReplayedResponse,
  isReplayedResponse,
  notifyReplay,
  repeatUntilMade,
} from "../base/change-context.ts"
import { InvalidInput, type StoreUnavailable } from "../base/errors.ts"
import { checkNames } from "../base/field-names.ts"
import { type Repeatable, changingMethod, readingMethod } from "../base/host-method.ts"
import { invalidArgument, ofProject } from "../base/input.ts"
import type { Decoded, HostInputOf } from "../base/operation-input.ts"
import { ProjectDeletions } from "../base/project-deletions.ts"
import * as Setting from "../base/setting.ts"
import { type ProjectId, type ProjectNotFound, copyOwn } from "../base/values.ts"
import { type Event, Hooks, eventData, knownEventTypes } from "../events/event.ts"
import type { BulkExtensionRecord } from "./bulk-extension.ts"
import {
  type BulkExtensionsPage,
  type BulkResult,
  type ExtendingAll,
  type UndoingBulkExtension,
  makeBulkChanges,
} from "./bulk-extensions.ts"
import {
  type EventsPreview,
  type ImportCounts,
  countImport,
  previewEvents,
  trialOf,
} from "./dry-run.ts"
import {
  type EndDateNotInFuture,
  type InvalidEndDate,
  bulkModes,
  formatEndDate,
} from "./end-date.ts"
import type { EndCounts } from "./ends.ts"
import {
  type ExtendingMember,
  type ExtensionResult,
  changeEvent,
  makeExtend,
  madeOrRecalled,
  reportChange,
} from "./extensions.ts"
import {
  bulkExtension,
  bulkExtensionsPage,
  disclosure,
  ending,
  endingPage,
  endsCount,
  extension,
  historyPage,
  imported,
  membershipNames,
  membershipUpdate,
  membershipsPage,
  moving,
  newMembership,
  ofMember,
  possibleMember,
  projectsPage,
  undoing,
} from "./inputs.ts"
import {
  type AuditRow,
  type CurrentMembership,
  type EndDateConflict,
  type Member,
  type MembershipEnd,
  type MembershipNotFound,
  type ProjectSummary,
  strangerIn,
  userIdRuleOption,
  withState,
} from "./membership.ts"
import {
  type Metadata,
  applyMetadataPatch,
  maxMetadata,
  metadataSetting,
  noMetadata,
} from "./metadata.ts"
import { type Moving, makeMove } from "./move.ts"
import {
  type CountingEnds,
  type DisclosureIn,
  type EndingQuery,
  type HistoryPage,
  type MembershipsPage,
  type ProjectsPage,
  makeMembershipQueries,
} from "./queries.ts"
import { type EndingPage, MembershipStore, type UndoFailure, parseGrantAnswer } from "./store.ts"

const tooMuchMetadata = new InvalidInput({
  field: "metadata",
  problem: `must leave at most ${maxMetadata} names, with those that the membership has`,
})

const metadataOption = Setting.optional(metadataSetting)

/** Returns the metadata in the event of one membership. */
const metadataIn = (event: Event): Metadata => {
  const data = eventData(event)
  const found = Predicate.hasProperty(data, "metadata") ? data.metadata : undefined
  return Result.getOrElse(metadataOption.read(found, "metadata"), () => undefined) ?? noMetadata
}

/** Parses the first answer of a repeated call. */
const parseMembership = ({ answer }: ReplayedResponse): CurrentMembership => JSON.parse(answer)

const parseProject = ({ answer }: ReplayedResponse): ProjectSummary => ({
  // JSON leaves it out if it is undefined.
  lastBulkEndDate: undefined,
  ...JSON.parse(answer),
})

/** Returns a new project. */
const emptyProject = (id: ProjectId): ProjectSummary => ({
  id,
  memberships: 0,
  webhooks: 0,
  lastBulkEndDate: undefined,
})

/** Makes the acts that change something. */
const makeChanges = Effect.fnUntraced(function* (settings: MembershipsSettings) {
  const deletions = yield* ProjectDeletions
  const store = yield* MembershipStore
  const services = { store, hooks: yield* Hooks, crypto: yield* WebCrypto }

  return {
    createProject: Effect.fnUntraced(function* (
      { projectId }: Decoded<typeof ofProject>,
      context: ChangeContext,
    ) {
      const project = yield* Effect.catchTag(store.findProject(projectId), "ProjectNotFound", () =>
        Effect.succeed(emptyProject(projectId)),
      )
      const idempotency = context.idempotency && {
        ...context.idempotency,
        answer: JSON.stringify(project),
      }
      const replayed = yield* store.createProject(projectId, { ...context, idempotency })
      yield* notifyReplay({ idempotency }, replayed)
      return isReplayedResponse(replayed) ? parseProject(replayed) : project
    }),

    deleteProject: Effect.fnUntraced(function* (
      { projectId }: Decoded<typeof ofProject>,
      context: ChangeContext,
    ) {
      const notify = Effect.sync(() => deletions.report(projectId))
      // The project may have been deleted even if the store does not say so.
      yield* store.deleteProject(projectId, context).pipe(
        Effect.tap((replayed) =>
          replayed === undefined ? notify : notifyReplay(context, replayed),
        ),
        Effect.tapErrorTag("StoreUnavailable", () => notify),
        Effect.uninterruptible,
      )
    }),

    grant: Effect.fnUntraced(function* (
      membership: Decoded<typeof newMembership>,
      context: ChangeContext,
    ) {
      const { endDate, metadata, projectId, reason, userId } = membership
      if (!settings.userIds.is(userId)) {
        return yield* invalidArgument("userId", settings.userIds.expected)
      }
      const { at } = context
      const event = changeEvent(services, { ...context, ...membership }, knownEventTypes.granted, {
        project_id: projectId,
        user_id: userId,
        new_end_date: formatEndDate(endDate),
      })
      const changed = { ...context, projectId, reason, event, userId, endDate, metadata }
      const result = yield* store.grant(changed)
      yield* reportChange(services, changed, result)
      const made = isReplayedResponse(result)
        ? parseGrantAnswer(result.answer)
        : { at, metadata: metadata ?? metadataIn(result) }
      return withState({ projectId, userId, endDate, metadata: made.metadata }, made.at)
    }),

    import: Effect.fnUntraced(function* (
      { memberships, projectId, reason, ...given }: Decoded<typeof imported>,
      context: ChangeContext,
    ) {
      const stranger = strangerIn(memberships, settings.userIds)
      if (stranger !== undefined) return yield* stranger
      const total = memberships.length
      const trial = yield* Effect.fromResult(trialOf(given))
      const change = { ...context, projectId, reason }
      const data = { project_id: projectId, total }
      const event = changeEvent(services, change, knownEventTypes.imported, data)
      if (trial !== "none") {
        const userIds = memberships.map(({ userId }) => userId)
        const found = yield* store.list(projectId, { after: undefined, limit: total, userIds })
        const size = { _tag: "Import", size: total } as const
        const events = yield* previewEvents(store, trial, event, size)
        const result: ImportResult = { total, ...countImport(memberships, found), events }
        return result
      }
      yield* reportChange(services, change, yield* store.import({ ...change, event, memberships }))
      const result: ImportResult = { total }
      return result
    }),

    extend: makeExtend(services),

    ...makeBulkChanges(services, settings),

    update: Effect.fnUntraced(function* (
      { metadata: patch, projectId, reason, userId }: Decoded<typeof membershipUpdate>,
      context: ChangeContext,
    ) {
      const change = { ...context, projectId, reason }
      const { at, idempotency } = context
      const data = { project_id: projectId, user_id: userId }
      const attempt = Effect.gen(function* () {
        const before = yield* store.find(projectId, userId)
        const metadata = applyMetadataPatch(before.metadata, patch)
        if (metadata === undefined) return yield* tooMuchMetadata
        const updated = withState({ ...before, metadata }, at)
        const result = yield* store.setMetadata({
          ...change,
          event: changeEvent(services, change, knownEventTypes.updated, data),
          userId,
          metadata,
          expected: before.metadata,
          idempotency: idempotency && { ...idempotency, answer: JSON.stringify(updated) },
        })
        if (isReplayedResponse(result)) return result
        yield* reportChange(services, context, result)
        return updated
      })
      const repeated = repeatUntilMade(
        "The membership",
        Effect.catchTag(attempt, "MetadataConflict", () => Effect.undefined),
      )
      const made = yield* madeOrRecalled(services, change, repeated)
      yield* notifyReplay(context, made)
      return isReplayedResponse(made) ? parseMembership(made) : made
    }),

    end: Effect.fnUntraced(function* (
      { projectId, reason, userId }: Decoded<typeof ending>,
      context: ChangeContext,
    ) {
      const change = { ...context, projectId, reason }
      const data = { project_id: projectId, user_id: userId }
      const event = changeEvent(services, change, knownEventTypes.ended, data)
      yield* reportChange(services, context, yield* store.end({ ...change, event, userId }))
    }),

    move: makeMove(services, settings.userIds),

    erase: Effect.fnUntraced(function* (
      { projectId, userId }: Decoded<typeof ofMember>,
      context: ChangeContext,
    ) {
      const change = { ...context, projectId, reason: undefined }
      const data = { project_id: projectId, user_id: null }
      const event = changeEvent(services, change, knownEventTypes.ended, data)
      const erased = yield* store.erase({ ...change, event, userId })
      if (erased !== undefined) yield* reportChange(services, context, erased)
    }),
  }
})

/** The options of memberships. */
export const membershipsOptions = Setting.object({
  /**
   * Which user ids can become members: 1 to 128 visible characters of ASCII except `.` and `..` (`"text"`), only digits (`"digits"`), or
   * those of `"text"` that match a regular expression. Default: `"text"`.
   */
  userIds: Setting.withDefault(userIdRuleOption, "text"),
  /**
   * Whether a bulk extension that does not say so itself also sets memberships that end later than the new
   * date (`"set"`), or leaves those as they are (`"neverShorten"`). Default: `"set"`.
   */
  bulk: Setting.withDefault(Setting.oneOf(bulkModes), "set"),
  /** For how long a bulk extension can be undone. Default: `"30 days"`. */
  undoPeriod: Setting.withDefault(Setting.duration(), "30 days"),
})

/** The options as a host passes them. */
export interface MembershipsOptions extends Setting.InputOf<typeof membershipsOptions> {}

/** The options as the library uses them. */
export interface MembershipsSettings extends Setting.OutputOf<typeof membershipsOptions> {}

/** A membership to create or to set. */
export interface Granting extends HostInputOf<typeof newMembership>, Repeatable {}

/** Memberships of a project to create or to set. */
export interface Importing extends HostInputOf<typeof imported>, Repeatable {}

/** The result of an import, or of its dry run. */
export interface ImportResult extends Partial<ImportCounts> {
  /** How many memberships were created or set. */
  readonly total: number
  /** In a dry run with `events`: the webhooks to be sent. */
  readonly events?: EventsPreview | undefined
}

/** A change of metadata. */
export interface Updating extends HostInputOf<typeof membershipUpdate>, Repeatable {}

/** A membership to remove. */
interface Ending extends HostInputOf<typeof ending>, Repeatable {}

type Failure = InvalidInput | StoreUnavailable

type ChangeFailure = Failure | IdempotencyConflict

/**
 * Grants, imports, extends, ends and finds memberships. Every method fails with `InvalidInput` if an argument
 * is invalid and with `StoreUnavailable` if the store does not answer.
 *
 * The methods that change memberships take a reason, and an origin: who asked for the change and in
 * which request. The audit trail keeps both. They fail with `IdempotencyMismatch` if the idempotency key
 * was used for another call, and with `IdempotencyInProgress` if the first call with it takes too long.
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
     * @param creation.idempotencyKey - as of a change of memberships
     */
    readonly createProject: (
      projectId: string,
      origin?: OriginInput,
      creation?: Repeatable,
    ) => Effect.Effect<ProjectSummary, ChangeFailure>

    /**
     * Deletes a project with all that belongs to it: memberships, webhooks, events and deliveries, and its
     * audit trail, of which one row stays that says so (`history` with `projectId: null`). API keys do
     * not open it any more, even if it is created again: at once in this process, and within
     * `keyCacheTtl` in others that share its store. Attempts in flight are aborted, and none starts
     * afterwards. Fails with `ProjectNotFound`.
     *
     * @param deletion.idempotencyKey - as of a change of memberships
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

    /**
     * Returns projects in the order of their ids, compared as text.
     */
    readonly listProjects: (
      page?: ProjectsPage,
    ) => Effect.Effect<ReadonlyArray<ProjectSummary>, Failure>

    /**
     * Creates a membership, or sets the end date of an existing one, and returns it. The end date may be in the past.
     * Fails with `InvalidEndDate` or `ProjectNotFound`.
     */
    readonly grant: (
      membership: Granting,
      origin?: OriginInput,
    ) => Effect.Effect<CurrentMembership, ChangeFailure | InvalidEndDate | ProjectNotFound>

    /**
     * Creates up to 10,000 memberships of different users, or sets the end dates of those that exist:
     * all of them in one step, or none. End dates may be in the past. One event tells of all of them.
     * Fails with `ProjectNotFound`.
     */
    readonly import: (
      project: Importing,
      origin?: OriginInput,
    ) => Effect.Effect<ImportResult, ChangeFailure | ProjectNotFound>

    /**
     * Sets the end date of a membership, which may have expired, to a future date. Returns the membership with
     * the end date that it has afterwards. Fails with `InvalidEndDate`, `EndDateNotInFuture`, `MembershipNotFound` or
     * `EndDateConflict`.
     *
     * With `by`, the membership ends later by a duration, added in UTC: a day that a month lacks becomes its last one.
     * Such a call needs an idempotency key or the expected end date, because a repetition would extend again.
     *
     * @param membership.mode - whether a membership that ends later is set, too (`"set"`, the default), or left
     *   as it is (`"neverShorten"`): then nothing is recorded or published
     * @param membership.expectedEndDate - if given, only a membership that has this end date is changed:
     *   of several callers that read a date and set another, one succeeds
     * @param membership.from - from when the duration counts: `"end"`, `"now"`, or the `"later"` of both (the
     *   default), which renews a membership that has ended from now
     */
    readonly extend: (
      membership: ExtendingMember,
      origin?: OriginInput,
    ) => Effect.Effect<
      ExtensionResult,
      ChangeFailure | InvalidEndDate | EndDateNotInFuture | MembershipNotFound | EndDateConflict
    >

    /**
     * Sets the end date of all memberships of a project to a future date, or ends all of them later by a duration,
     * expired ones too. Fails with `InvalidEndDate`, `EndDateNotInFuture` or `ProjectNotFound`. A dry run reads all
     * memberships of the project.
     *
     * @param project.mode - whether memberships that end later are set, too (`"set"`), or left as they are
     *   (`"neverShorten"`); the option `bulk` by default
     * @param project.by - in weeks, days, hours, minutes and seconds, at most ten years; needs an idempotency key
     */
    readonly extendAll: (
      project: ExtendingAll,
      origin?: OriginInput,
    ) => Effect.Effect<
      BulkResult,
      ChangeFailure | InvalidEndDate | EndDateNotInFuture | ProjectNotFound
    >

    /**
     * Undoes a bulk extension: every membership has the end date again that it would have without it. Dates that were
     * set for one membership since then stay. Fails with `ProjectNotFound`, `BulkExtensionNotFound`,
     * `BulkExtensionUndone` or, if it is too old, `BulkExtensionSettled`.
     */
    readonly undoBulkExtension: (
      undoing: UndoingBulkExtension,
      origin?: OriginInput,
    ) => Effect.Effect<BulkResult, ChangeFailure | UndoFailure>

    /** Returns the bulk extensions of a project, newest first. Fails with `ProjectNotFound`. */
    readonly bulkExtensions: (
      page: BulkExtensionsPage,
    ) => Effect.Effect<ReadonlyArray<BulkExtensionRecord>, Failure | ProjectNotFound>

    /**
     * Changes the metadata of a membership, and returns the membership. Fails with `MembershipNotFound`.
     */
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
     * Moves a membership to another user id, for a person whose id changes. Returns the membership with the end date that
     * it has afterwards. If `to` has a membership, too, the later end date stays, and for equal names, the metadata of
     * `to`. No reminder is sent twice. Each user id keeps its history. Receivers get `membership.ended` with `moved_to`,
     * and `membership.granted` with `moved_from`. Fails with `MembershipNotFound` if the user has no
     * membership.
     *
     * @param membership.to - the other user id; invalid if the metadata of both have more than 16 names together
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
    ) => Effect.Effect<MembershipEnd, ChangeFailure | MembershipNotFound>

    /**
     * Erases a person: ends the membership, if there is one, and removes the user id from the audit trail and
     * from events, also from those that are still to be delivered; with it, the reasons of these changes,
     * and what receivers have responded. A row in the trail says that somebody was erased. Afterwards the
     * user has no history. What was sent to webhooks is out of reach. The event `membership.ended` has
     * `null` in place of the user id: to tell receivers who has left, end the membership first.
     *
     * In events, it removes each field `user_id` that is this user, also of those that the host has published.
     * Works for users whose membership has ended, and succeeds if nothing is known of them. It reads all events
     * of the project that are kept, in several steps, and returns after the last one. If it fails, repeat it.
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
     * Returns whether a user has a membership that has not expired: `false` also if there is no membership, or no
     * project, or if an id is text that no user or project can have. Fails with `InvalidInput` if an id is missing or
     * no text. Finds the membership by its key, whatever the size of the project.
     */
    readonly isActive: (member: Member) => Effect.Effect<boolean, Failure>

    /**
     * Returns memberships of a project in the order of their user ids, compared as text. Fails with
     * `ProjectNotFound`.
     */
    readonly list: (
      page: MembershipsPage,
    ) => Effect.Effect<ReadonlyArray<CurrentMembership>, Failure | ProjectNotFound>

    /**
     * Returns the active memberships of a project that end before an instant, soonest first. Fails with
     * `InvalidEndDate` or `ProjectNotFound`.
     *
     * To have all of them, ask for pages until `next` is `undefined`: a page may have fewer memberships than
     * `limit`, or none. If nobody changes a membership meanwhile, it is on one page.
     */
    readonly listEnding: (
      page: EndingQuery,
    ) => Effect.Effect<EndingPage<CurrentMembership>, Failure | InvalidEndDate | ProjectNotFound>

    /**
     * Counts a project's memberships: active and expired ones, and how many end on each day, in UTC; with an
     * `extension`, as it would be after that. Reads all memberships. On PostgreSQL, a process counts for
     * one call at a time: calls for the same share a count, and it fails with `StoreUnavailable` if too many wait. Fails
     * with `ProjectNotFound`, `InvalidEndDate` or `EndDateNotInFuture`.
     */
    readonly countEnds: (
      counting: CountingEnds,
    ) => Effect.Effect<EndCounts, Failure | ProjectNotFound | InvalidEndDate | EndDateNotInFuture>

    /**
     * Adds a row to the audit trail that says who was shown the secret of a webhook or the data of an event,
     * as the API does. For hosts that show them to people. Fails with `ProjectNotFound`.
     */
    readonly recordShown: (
      shown: DisclosureIn,
      origin?: OriginInput,
    ) => Effect.Effect<void, Failure | ProjectNotFound>

    /**
     * Returns the newest rows of the audit trail, newest first. Fails with `ProjectNotFound`.
     */
    readonly history: (
      page: HistoryPage,
    ) => Effect.Effect<ReadonlyArray<AuditRow>, Failure | ProjectNotFound>
  }
>()("@tenure/core/Memberships") {
  static readonly layer = (
    settings: MembershipsSettings = Setting.parse(membershipsOptions),
  ): Layer.Layer<Memberships | MembershipActs, never, MembershipStore> =>
    Layer.provideMerge(
      Layer.effect(Memberships, Effect.map(MembershipActs, makeMethods)),
      Layer.effect(MembershipActs, makeActs(settings)),
    )
}

const makeActs = Effect.fnUntraced(function* (settings: MembershipsSettings) {
  const queries = makeMembershipQueries(yield* MembershipStore, settings)
  return { ...(yield* makeChanges(settings)), ...queries }
})

/** What the methods do once their arguments are read. The HTTP API reads them from requests. */
export class MembershipActs extends Context.Service<
  MembershipActs,
  Effect.Success<ReturnType<typeof makeActs>>
>()("@tenure/core/MembershipActs") {}

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
    findProject: (projectId) => findProject({ projectId }),
    listProjects: (page = {}) => listProjects(page),
    grant: changingMethod("grant", newMembership, acts.grant),
    import: changingMethod("import", imported, acts.import),
    extend: changingMethod("extend", extension, acts.extend),
    extendAll: changingMethod("extendAll", bulkExtension, acts.extendAll),
    undoBulkExtension: changingMethod("undoBulkExtension", undoing, acts.undoBulkExtension),
    bulkExtensions: readingMethod(bulkExtensionsPage, acts.bulkExtensions),
    update: changingMethod("update", membershipUpdate, acts.update),
    end: changingMethod("end", ending, acts.end),
    move: changingMethod("move", moving, acts.move),
    erase: changingMethod("erase", ofMember, acts.erase),
    find: readingMethod(ofMember, acts.find),
    isActive: readingMethod(possibleMember, acts.isActive),
    list: readingMethod(membershipsPage, acts.list),
    listEnding: readingMethod(endingPage, acts.listEnding),
    countEnds: readingMethod(endsCount, acts.countEnds),
    recordShown: changingMethod("recordShown", disclosure, acts.recordShown),
    history: readingMethod(historyPage, acts.history),
  })
}
