/** The service for memberships, which hosts and the API call. */

import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Argument from "../base/Argument.ts"
import * as Identifier from "../base/Identifier.ts"
import type { InvalidInput } from "../base/InvalidInput.ts"
import * as Moment from "../base/Moment.ts"
import * as Once from "../base/Once.ts"
import * as Origin from "../base/Origin.ts"
import { owned } from "../base/Own.ts"
import { ProjectId, type ProjectNotFound } from "../base/Project.ts"
import { ProjectDeletions } from "../base/ProjectDeletions.ts"
import * as Setting from "../base/Setting.ts"
import * as Step from "../base/Step.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import * as Event from "../events/Event.ts"
import { Hooks } from "../events/Hooks.ts"
import * as Bulk from "./Bulk.ts"
import * as EndDate from "./EndDate.ts"
import { EndingCursor, type EndingPage } from "./EndingPage.ts"
import * as Import from "./Import.ts"
import {
  AuditCursor,
  type AuditRow,
  conflictOf,
  type CurrentMembership,
  type EndDateConflict,
  type Membership,
  type MembershipNotFound,
  type MembershipState,
  membershipStates,
  type ProjectSummary,
  type Shown,
  shownActions,
  stateAt,
  UserId,
} from "./Membership.ts"
import { type Change, MembershipStore } from "./MembershipStore.ts"
import { Reason } from "./Reason.ts"
import * as UserIds from "./UserIds.ts"

/** A user of a project. */
export interface Member {
  readonly projectId: string
  readonly userId: string
}

/** What every change of memberships takes. */
export interface Changing {
  /** Why: 1 to 500 characters, which the audit trail and the event of the change keep. */
  readonly reason?: string | undefined
  /**
   * Makes the change once, however often the call is repeated within 24 hours: 1 to 255 visible
   * characters of ASCII. Each `keyId` of an origin has idempotency keys of its own.
   */
  readonly idempotencyKey?: Once.Input | undefined
}

/** How something is extended. */
export interface Extending extends Changing {
  /** The new end date, in the future. */
  readonly endDate: EndDate.Input
  /**
   * If true, nothing is changed, recorded or published. The result, or the failure, is that of the same
   * call without it.
   */
  readonly dryRun?: boolean | undefined
}

/** How a membership is extended. */
interface ExtendingMember extends Member, Extending {
  readonly expectedEndDate?: EndDate.Input | undefined
}

/** The options of memberships. */
export const options = Setting.struct({
  /**
   * Whether a bulk extension that does not say so itself also sets memberships that end later than the new
   * date (`"set"`), or leaves those as they are (`"neverShorten"`). Default: `"set"`.
   */
  bulk: Setting.withDefault(Setting.oneOf(Bulk.modes), "set"),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

/** The options as the library uses them. */
export interface Settings extends Setting.Output<typeof options> {}

/** The result of a bulk extension. */
export interface BulkExtended {
  readonly endDate: EndDate.EndDate
  /** The number of memberships of the project, with those that were left as they are. */
  readonly total: number
  /** Of a dry run, the number of memberships that would end earlier than they do now. */
  readonly wouldShorten?: number
}

type Failure = InvalidInput | StoreUnavailable

type ChangeFailure = Failure | Once.Conflict

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
 * import { Memberships } from "tenure/Memberships"
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
     * Creates a project. Does nothing if it exists.
     *
     * @param creation.idempotencyKey - as of a change of memberships
     */
    readonly createProject: (
      projectId: string,
      origin?: Origin.Input,
      creation?: Pick<Changing, "idempotencyKey">,
    ) => Effect.Effect<void, ChangeFailure>

    /**
     * Deletes a project with all that belongs to it: memberships, webhooks, events and deliveries, and its
     * audit trail, of which one row stays that says so (`history` with `projectId: null`). API keys do
     * not open it any more, even if it is created again: at once in this process, and within
     * `keyCacheLife` in others that share its store. Attempts in flight are aborted, and none starts
     * afterwards. Fails with `ProjectNotFound`.
     *
     * @param deletion.idempotencyKey - as of a change of memberships
     */
    readonly deleteProject: (
      projectId: string,
      origin?: Origin.Input,
      deletion?: Pick<Changing, "idempotencyKey">,
    ) => Effect.Effect<void, ChangeFailure | ProjectNotFound>

    /** Returns a project. Fails with `ProjectNotFound`. */
    readonly findProject: (
      projectId: string,
    ) => Effect.Effect<ProjectSummary, Failure | ProjectNotFound>

    /**
     * Returns projects in the order of their ids, compared as text.
     *
     * @param page.within - returns only projects with these ids; `"all"` by default
     * @param page.after - returns the projects after this id; from the first one by default
     * @param page.limit - the most projects to return, 1 to 10,000; 100 by default
     */
    readonly listProjects: (page?: {
      readonly within?: ReadonlySet<string> | "all" | undefined
      readonly after?: string | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<ReadonlyArray<ProjectSummary>, Failure>

    /**
     * Creates a membership, or sets the end date of an existing one. The end date may be in the past.
     * Fails with `InvalidEndDate` or `ProjectNotFound`.
     */
    readonly grant: (
      membership: Member & Changing & { readonly endDate: EndDate.Input },
      origin?: Origin.Input,
    ) => Effect.Effect<Membership, ChangeFailure | EndDate.InvalidEndDate | ProjectNotFound>

    /**
     * Creates up to 10,000 memberships of different users, or sets the end dates of those that exist:
     * all of them in one step, or none. End dates may be in the past. One event tells of all of them.
     * Fails with `ProjectNotFound`.
     */
    readonly import: (
      project: Changing & {
        readonly projectId: string
        readonly memberships: ReadonlyArray<Import.Input>
      },
      origin?: Origin.Input,
    ) => Effect.Effect<void, ChangeFailure | ProjectNotFound>

    /**
     * Sets the end date of a membership, which may have expired, to a future date. Fails with
     * `InvalidEndDate`, `EndDateNotInFuture`, `MembershipNotFound` or `EndDateConflict`.
     *
     * @param membership.expectedEndDate - if given, only a membership that has this end date is changed:
     *   of several callers that read a date and set another, one succeeds
     */
    readonly extend: (
      membership: ExtendingMember,
      origin?: Origin.Input,
    ) => Effect.Effect<
      Membership,
      | ChangeFailure
      | EndDate.InvalidEndDate
      | EndDate.EndDateNotInFuture
      | MembershipNotFound
      | EndDateConflict
    >

    /**
     * Sets the end date of all memberships of a project to a future date. Fails with
     * `InvalidEndDate`, `EndDateNotInFuture` or `ProjectNotFound`. A dry run reads all memberships of
     * the project.
     *
     * @param project.mode - whether memberships that end later are set, too (`"set"`), or left as they are
     *   (`"neverShorten"`); the option `bulk` by default
     */
    readonly extendAll: (
      project: Extending & { readonly projectId: string; readonly mode?: Bulk.Mode | undefined },
      origin?: Origin.Input,
    ) => Effect.Effect<
      BulkExtended,
      ChangeFailure | EndDate.InvalidEndDate | EndDate.EndDateNotInFuture | ProjectNotFound
    >

    /** Removes a membership. Fails with `MembershipNotFound`. */
    readonly end: (
      member: Member & Changing,
      origin?: Origin.Input,
    ) => Effect.Effect<void, ChangeFailure | MembershipNotFound>

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
      member: Member & Pick<Changing, "idempotencyKey">,
      origin?: Origin.Input,
    ) => Effect.Effect<void, ChangeFailure | ProjectNotFound>

    /** Returns a membership. Fails with `MembershipNotFound`. */
    readonly find: (
      member: Member,
    ) => Effect.Effect<CurrentMembership, Failure | MembershipNotFound>

    /**
     * Returns whether a user has a membership that has not expired: `false` also if there is no membership,
     * or no project. Finds it by its key, whatever the size of the project.
     */
    readonly isActive: (member: Member) => Effect.Effect<boolean, Failure>

    /**
     * Returns memberships of a project in the order of their user ids, compared as text. Fails with
     * `ProjectNotFound`.
     *
     * @param page.userIds - returns only the memberships of these users, at most 1,000; it finds them by
     *   their keys
     * @param page.after - returns the memberships after this user id; from the first one by default
     * @param page.limit - the most memberships to return, 1 to 10,000; 100 by default
     * @param page.state - returns only memberships in this state
     */
    readonly list: (page: {
      readonly projectId: string
      readonly userIds?: ReadonlyArray<string> | undefined
      readonly state?: MembershipState | undefined
      readonly after?: string | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<ReadonlyArray<CurrentMembership>, Failure | ProjectNotFound>

    /**
     * Returns the active memberships of a project that end before an instant, soonest first. Fails with
     * `InvalidEndDate` or `ProjectNotFound`.
     *
     * To have all of them, ask for pages until `next` is `undefined`: a page may have fewer memberships than
     * `limit`, or none. If nobody changes a membership meanwhile, it is on one page.
     *
     * @param page.before - the instant
     * @param page.after - `next` of the page before; from the first one by default
     * @param page.limit - the most memberships to return, 1 to 10,000; 100 by default
     */
    readonly listEnding: (page: {
      readonly projectId: string
      readonly before: EndDate.Input
      readonly after?: string | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<
      EndingPage<CurrentMembership>,
      Failure | EndDate.InvalidEndDate | ProjectNotFound
    >

    /**
     * Adds a row to the audit trail that says who was shown the secret of a webhook or the data of an event,
     * as the API does. For hosts that show them to people. Fails with `ProjectNotFound`.
     */
    readonly recordShown: (
      shown: Shown & { readonly projectId: string },
      origin?: Origin.Input,
    ) => Effect.Effect<void, Failure | ProjectNotFound>

    /**
     * Returns the newest rows of the audit trail, newest first. Fails with `ProjectNotFound`.
     *
     * @param page.projectId - the project; `null` for what belongs to no project: API keys, and projects
     *   that were created or deleted
     * @param page.userId - returns only changes of this user's membership, with the bulk extensions that
     *   applied to it
     * @param page.after - the `cursor` of a row: returns only rows older than this one
     * @param page.limit - the most rows to return, 1 to 10,000; 100 by default
     */
    readonly history: (page: {
      readonly projectId: string | null
      readonly userId?: string | undefined
      readonly after?: string | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<ReadonlyArray<AuditRow>, Failure | ProjectNotFound>
  }
>()("@tenure/core/Memberships") {
  static readonly layer = (
    settings: Settings = Setting.readSync(options),
  ): Layer.Layer<Memberships, never, MembershipStore> => Layer.effect(Memberships, make(settings))
}

const membershipState = Setting.optional(Setting.oneOf(membershipStates))

const identifier = Setting.text(Identifier.expected, Identifier.isIdentifier)

const shownAction = Setting.oneOf(shownActions)

const bulkMode = Setting.optional(Setting.oneOf(Bulk.modes))

const current = (membership: Membership, at: number): CurrentMembership => ({
  ...membership,
  state: stateAt(membership, at),
})

const absent = Effect.succeed(undefined)

const reasonOf = ({ reason }: Changing): Effect.Effect<Reason | undefined, InvalidInput> =>
  reason === undefined ? absent : Argument.decode("reason", Reason, reason)

const expectedOf = (
  given: EndDate.Input | undefined,
): Effect.Effect<EndDate.EndDate | undefined, InvalidInput> =>
  given === undefined
    ? absent
    : Effect.mapEager(Argument.instant("expectedEndDate", given), EndDate.EndDate)

const notDry = Effect.succeed(false)

const isDryRun = ({ dryRun }: Extending): Effect.Effect<boolean, InvalidInput> =>
  dryRun === undefined ? notDry : Argument.read("dryRun", Setting.flag, dryRun)

/** Reads the idempotency key of a call, whose arguments the other parameters have. */
const onceOf = (
  { idempotencyKey }: Changing,
  { origin, projectId, reason }: Omit<Change, "event">,
  type: Event.EventType,
  data: unknown,
  expected?: unknown,
): Effect.Effect<Once.Once | undefined, InvalidInput> =>
  idempotencyKey === undefined
    ? absent
    : Once.fromInput(idempotencyKey, origin.keyId, type, projectId, data, reason, expected)

/**
 * Reads the end date of an extension. Unless it is a dry run, with an idempotency key it may have passed, because the
 * extension may have been made before.
 */
const dateOf = (
  { dryRun, endDate, idempotencyKey }: Extending,
  at: number,
): Effect.Effect<EndDate.EndDate, EndDate.InvalidEndDate | EndDate.EndDateNotInFuture> =>
  Effect.fromResult(
    idempotencyKey === undefined || dryRun === true
      ? EndDate.futureFromInput(endDate, at)
      : EndDate.fromInput(endDate),
  )

/** Reads an extension of a membership. Of several errors, the first in this order counts. */
const readExtension = (extending: ExtendingMember, origin: Origin.Input, at: number) =>
  Step.all({
    endDate: dateOf(extending, at),
    projectId: Argument.projectId(extending.projectId),
    userId: Argument.decode("userId", UserId, extending.userId),
    expectedEndDate: expectedOf(extending.expectedEndDate),
    reason: reasonOf(extending),
    isDry: isDryRun(extending),
    origin: Origin.fromInput(origin),
  })

type Extension = Effect.Success<ReturnType<typeof readExtension>>

const make = Effect.fnUntraced(function* ({ bulk: defaultMode }: Settings) {
  const hooks = yield* Hooks
  const deletions = yield* ProjectDeletions
  const store = yield* MembershipStore
  const crypto = yield* WebCrypto

  /** The event of a change, with fields of the client in the data. */
  const eventOf = (
    { at, origin, projectId, reason }: Omit<Change, "event">,
    type: Event.EventType,
    data: Event.DraftData,
  ): Event.Draft =>
    Event.draft({
      id: Event.freshId(crypto, at),
      projectId,
      type,
      at,
      traceparent: origin.traceparent,
      // JSON has no reason where it is undefined.
      data: { ...data, request_id: origin.requestId ?? null, reason },
    })

  /** Makes an extension. If its date has passed, it may only have been made before. */
  const extendBy = <A, E>(
    { at, endDate, once, projectId }: Change & { readonly endDate: EndDate.EndDate },
    extend: Effect.Effect<A, E>,
  ): Effect.Effect<
    A | Once.Replayed,
    E | EndDate.EndDateNotInFuture | Once.IdempotencyMismatch | StoreUnavailable
  > =>
    once === undefined || endDate > at
      ? extend
      : Effect.flatMap(store.recall(once, projectId), (known) =>
          known === undefined ? Effect.fail(EndDate.notInFuture) : Effect.succeed(known),
        )

  /** Returns what a bulk extension would. */
  const foresee = (projectId: ProjectId, mode: Bulk.Mode, endDate: EndDate.EndDate) =>
    mode === "set"
      ? Effect.map(store.count(projectId, endDate), ({ later, total }) => ({
          total,
          wouldShorten: later,
        }))
      : Effect.map(store.findProject(projectId), ({ memberships }) => ({
          total: memberships,
          wouldShorten: 0,
        }))

  /** Reads a change of a project. */
  const projectChangeOf = Effect.fnUntraced(function* (
    name: string,
    id: string,
    origin: Origin.Input | undefined,
    change: Pick<Changing, "idempotencyKey">,
  ) {
    const projectId = yield* Argument.projectId(id)
    const { idempotencyKey } = owned(change)
    const occasion = yield* Origin.occasionOf(origin)
    return { projectId, occasion: yield* Once.on(occasion, idempotencyKey, name, projectId) }
  })

  /** Tells the host of a change, or the caller that it was made before. */
  const announce = (changed: Change, result: Event.Event | Once.Replayed): Effect.Effect<void> =>
    Once.isReplayed(result) ? Once.tell(changed, result) : hooks.event(result)

  /** Returns what an extension would return, or fails as it would. */
  const tryExtension = ({ endDate, expectedEndDate, projectId, userId }: Extension) =>
    Effect.flatMap(store.find(projectId, userId), (membership) => {
      const conflict = conflictOf(membership, expectedEndDate)
      return conflict === undefined
        ? Effect.succeed({ projectId, userId, endDate })
        : Effect.fail(conflict)
    })

  const performExtension = (
    extending: Extending,
    extension: Extension,
    at: number,
    clock: Clock.Clock,
  ) => {
    const { endDate, expectedEndDate, origin, projectId, reason, userId } = extension
    const data = {
      project_id: projectId,
      user_id: userId,
      new_end_date: EndDate.format(endDate),
    }
    const asked = { projectId, origin, reason, at }
    const type = Event.types.extended
    return Effect.flatMapEager(onceOf(extending, asked, type, data, expectedEndDate), (once) => {
      const event = eventOf(asked, type, data)
      const changed = { ...asked, event, userId, endDate, expectedEndDate, once }
      const extended = extendBy(changed, store.extend(changed))
      return Effect.flatMapEager(Step.begin(extended, clock), (result) =>
        Effect.mapEager(Step.begin(announce(changed, result), clock), () => ({
          projectId,
          userId,
          endDate,
        })),
      )
    })
  }

  return Memberships.of({
    createProject: Effect.fnUntraced(function* (id, origin, creation = {}) {
      const { occasion, projectId } = yield* projectChangeOf("createProject", id, origin, creation)
      yield* Once.tell(occasion, yield* store.createProject(projectId, occasion))
    }),

    deleteProject: Effect.fnUntraced(function* (id, origin, deletion = {}) {
      const { occasion, projectId } = yield* projectChangeOf("deleteProject", id, origin, deletion)
      const tell = Effect.sync(() => deletions.tell(projectId))
      // The project may have been deleted even if the store does not say so.
      yield* store.deleteProject(projectId, occasion).pipe(
        Effect.tap((replayed) => (replayed === undefined ? tell : Once.tell(occasion, replayed))),
        Effect.tapErrorTag("StoreUnavailable", () => tell),
        Effect.uninterruptible,
      )
    }),

    findProject: Effect.fnUntraced(function* (projectId) {
      return yield* store.findProject(yield* Argument.projectId(projectId))
    }),

    listProjects: Effect.fnUntraced(function* (page = {}) {
      const { after, limit = 100, within = "all" } = owned(page)
      return yield* store.listProjects({
        within,
        after: after === undefined ? undefined : yield* Argument.decode("after", ProjectId, after),
        limit: yield* Argument.pageSize(limit),
      })
    }),

    grant: Effect.fnUntraced(function* (input, originInput = Origin.host) {
      const membership = owned(input)
      const at = yield* Moment.unix
      const endDate = yield* Effect.fromResult(EndDate.fromInput(membership.endDate))
      const projectId = yield* Argument.projectId(membership.projectId)
      const userId = yield* Argument.decode("userId", UserId, membership.userId)
      const data = {
        project_id: projectId,
        user_id: userId,
        new_end_date: EndDate.format(endDate),
      }
      const reason = yield* reasonOf(membership)
      const origin = yield* Origin.fromInput(originInput)
      const asked = { projectId, origin, reason, at }
      const once = yield* onceOf(membership, asked, Event.types.granted, data)
      const changed = {
        ...asked,
        event: eventOf(asked, Event.types.granted, data),
        userId,
        endDate,
        once,
      }
      yield* announce(changed, yield* store.grant(changed))
      return { projectId, userId, endDate }
    }),

    import: Effect.fnUntraced(function* (input, originInput = Origin.host) {
      const project = owned(input)
      const at = yield* Moment.unix
      const projectId = yield* Argument.projectId(project.projectId)
      const memberships = yield* Effect.fromResult(Import.read(project.memberships))
      const reason = yield* reasonOf(project)
      const origin = yield* Origin.fromInput(originInput)
      const data = { project_id: projectId, total: memberships.length }
      const asked = { projectId, origin, reason, at }
      const once = yield* onceOf(project, asked, Event.types.imported, memberships)
      const changed = {
        ...asked,
        event: eventOf(asked, Event.types.imported, data),
        memberships,
        once,
      }
      yield* announce(changed, yield* store.import(changed))
    }),

    extend: (input, originInput = Origin.host) =>
      Step.make((clock) => {
        const extending = owned(input)
        const at = clock.currentTimeMillisUnsafe()
        return Effect.flatMapEager(readExtension(extending, originInput, at), (extension) =>
          extension.isDry
            ? tryExtension(extension)
            : performExtension(extending, extension, at, clock),
        )
      }),

    extendAll: Effect.fnUntraced(function* (input, originInput = Origin.host) {
      const project = owned(input)
      const at = yield* Moment.unix
      const endDate = yield* dateOf(project, at)
      const projectId = yield* Argument.projectId(project.projectId)
      const mode = (yield* Argument.read("mode", bulkMode, project.mode)) ?? defaultMode
      const reason = yield* reasonOf(project)
      const origin = yield* Origin.fromInput(originInput)
      if (yield* isDryRun(project)) {
        return { endDate, ...(yield* foresee(projectId, mode, endDate)) }
      }
      const data = {
        project_id: projectId,
        new_end_date: EndDate.format(endDate),
        // JSON has no mode where it is undefined.
        mode: mode === "set" ? undefined : Bulk.modeNames[mode],
      }
      const asked = { projectId, origin, reason, at }
      const once = yield* onceOf(project, asked, Event.types.bulkExtended, data)
      const changed = {
        ...asked,
        event: eventOf(asked, Event.types.bulkExtended, data),
        endDate,
        mode,
        once,
      }
      const result = yield* extendBy(changed, store.extendAll(changed))
      if (Once.isReplayed(result)) {
        yield* Once.tell(changed, result)
        return { endDate, total: Number(result.answer) }
      }
      yield* hooks.event(result.event)
      return { endDate, total: result.total }
    }),

    end: Effect.fnUntraced(function* (input, originInput = Origin.host) {
      const member = owned(input)
      const at = yield* Moment.unix
      const projectId = yield* Argument.projectId(member.projectId)
      const userId = yield* Argument.decode("userId", UserId, member.userId)
      const reason = yield* reasonOf(member)
      const origin = yield* Origin.fromInput(originInput)
      const data = { project_id: projectId, user_id: userId }
      const asked = { projectId, origin, reason, at }
      const once = yield* onceOf(member, asked, Event.types.ended, data)
      const changed = { ...asked, event: eventOf(asked, Event.types.ended, data), userId, once }
      yield* announce(changed, yield* store.end(changed))
    }),

    erase: Effect.fnUntraced(function* (input, originInput) {
      const { idempotencyKey, projectId: project, userId: user } = owned(input)
      const projectId = yield* Argument.projectId(project)
      const userId = yield* Argument.decode("userId", UserId, user)
      const now = yield* Origin.occasionOf(originInput)
      const occasion = yield* Once.on(now, idempotencyKey, "erase", projectId, userId)
      const asked = { ...occasion, projectId, reason: undefined }
      const data = { project_id: projectId, user_id: null }
      const changed = { ...asked, event: eventOf(asked, Event.types.ended, data), userId }
      const erased = yield* store.erase(changed)
      if (erased !== undefined) yield* announce(changed, erased)
    }),

    find: Effect.fnUntraced(function* (input) {
      const member = owned(input)
      const projectId = yield* Argument.projectId(member.projectId)
      const userId = yield* Argument.decode("userId", UserId, member.userId)
      const membership = yield* store.find(projectId, userId)
      return current(membership, yield* Moment.unix)
    }),

    isActive: Effect.fnUntraced(function* (input) {
      const member = owned(input)
      const projectId = yield* Argument.projectId(member.projectId)
      const userId = yield* Argument.decode("userId", UserId, member.userId)
      const found = Effect.map(store.find(projectId, userId), ({ endDate }) => endDate)
      const endDate = yield* Effect.catchTag(found, "MembershipNotFound", () => Effect.undefined)
      return endDate !== undefined && stateAt({ endDate }, yield* Moment.unix) === "active"
    }),

    list: Effect.fnUntraced(function* (page) {
      const { after, limit = 100, projectId, state: asked, userIds } = owned(page)
      const state = yield* Argument.read("state", membershipState, asked)
      const at = yield* Moment.unix
      const memberships = yield* store.list(yield* Argument.projectId(projectId), {
        after: after === undefined ? undefined : yield* Argument.decode("after", UserId, after),
        limit: yield* Argument.pageSize(limit),
        userIds: yield* Argument.read("userIds", UserIds.setting, userIds),
        only: state && { state, at },
      })
      return memberships.map((membership) => current(membership, at))
    }),

    listEnding: Effect.fnUntraced(function* (page) {
      const { after, before, limit = 100, projectId } = owned(page)
      const { memberships, next } = yield* store.listEnding(yield* Argument.projectId(projectId), {
        before: yield* Effect.fromResult(EndDate.fromInput(before)),
        after:
          after === undefined ? undefined : yield* Argument.decode("after", EndingCursor, after),
        limit: yield* Argument.pageSize(limit),
      })
      const at = yield* Moment.unix
      return { memberships: memberships.map((membership) => current(membership, at)), next }
    }),

    recordShown: Effect.fnUntraced(function* (input, origin) {
      const { action, projectId, subject } = owned(input)
      const shown = {
        action: yield* Argument.read("action", shownAction, action),
        subject: yield* Argument.read("subject", identifier, subject),
      }
      const occasion = yield* Origin.occasionOf(origin)
      yield* store.recordShown(yield* Argument.projectId(projectId), shown, occasion)
    }),

    history: Effect.fnUntraced(function* (page) {
      const { after, limit = 100, projectId, userId } = owned(page)
      // Explicit, so that a project that was left out by mistake does not have the rows of others.
      const id = projectId === null ? undefined : yield* Argument.projectId(projectId)
      return yield* store.history(id, {
        userId: userId === undefined ? undefined : yield* Argument.decode("userId", UserId, userId),
        after:
          after === undefined ? undefined : yield* Argument.decode("after", AuditCursor, after),
        limit: yield* Argument.pageSize(limit),
      })
    }),
  })
})
