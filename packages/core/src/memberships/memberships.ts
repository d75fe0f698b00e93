/** The service for memberships, which hosts and the API call. */

import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  type IdempotencyConflict,
  type IdempotencyKey,
  type IdempotencyKeyInput,
  type IdempotencyMismatch,
  type OriginInput,
  type ReplayedResponse,
  attachIdempotencyKey,
  hostOrigin,
  isReplayedResponse,
  notifyReplay,
  readChangeContext,
  readIdempotencyKey,
  readOrigin,
} from "../base/change-context.ts"
import type { InvalidInput, StoreUnavailable } from "../base/errors.ts"
import { readArgument, readBranded, readInstantArgument, readProjectId } from "../base/input.ts"
import { ProjectDeletions } from "../base/project-deletions.ts"
import * as Setting from "../base/setting.ts"
import { currentUnixMillis } from "../base/time.ts"
import type { ProjectId } from "../base/values.ts"
import { type ProjectNotFound, copyOwn } from "../base/values.ts"
import {
  type Event,
  type EventDraft,
  type EventDraftData,
  type EventType,
  Hooks,
  draftEvent,
  knownEventTypes,
  newEventId,
} from "../events/event.ts"
import {
  type BulkMode,
  EndDate,
  type EndDateInput,
  type EndDateNotInFuture,
  type InvalidEndDate,
  bulkModeNames,
  bulkModes,
  endDateNotInFuture,
  formatEndDate,
  readEndDate,
  readFutureEndDate,
} from "./end-date.ts"
import {
  type AuditRow,
  type CurrentMembership,
  type EndDateConflict,
  type EndsLater,
  type ImportRow,
  type Member,
  type Membership,
  type MembershipNotFound,
  type ProjectSummary,
  Reason,
  UserId,
  endDateConflict,
  isEndsLater,
  laterOf,
  readImport,
} from "./membership.ts"
import {
  type DisclosureIn,
  type EndingQuery,
  type HistoryPage,
  type MembershipsPage,
  type ProjectsPage,
  makeMembershipQueries,
} from "./queries.ts"
import { type Change, type EndingPage, MembershipStore } from "./store.ts"

const bulkMode = Setting.optional(Setting.oneOf(bulkModes))

const absent = Effect.succeed(undefined)

const modeOf = (given: BulkMode | undefined): Effect.Effect<BulkMode | undefined, InvalidInput> =>
  given === undefined ? absent : readArgument("mode", bulkMode, given)

const reasonOf = ({ reason }: Changing): Effect.Effect<Reason | undefined, InvalidInput> =>
  reason === undefined ? absent : readBranded("reason", Reason, reason)

const expectedOf = (
  given: EndDateInput | undefined,
): Effect.Effect<EndDate | undefined, InvalidInput> =>
  given === undefined ? absent : Effect.map(readInstantArgument("expectedEndDate", given), EndDate)

const notDry = Effect.succeed(false)

const isDryRun = ({ dryRun }: Extending): Effect.Effect<boolean, InvalidInput> =>
  dryRun === undefined ? notDry : readArgument("dryRun", Setting.boolean, dryRun)

/** Reads the idempotency key of a call, whose arguments the other parameters have. */
const onceOf = (
  { idempotencyKey }: Changing,
  { origin, projectId, reason }: Omit<Change, "event">,
  type: EventType,
  data: unknown,
  ...conditions: ReadonlyArray<unknown>
): Effect.Effect<IdempotencyKey | undefined, InvalidInput> =>
  idempotencyKey === undefined
    ? absent
    : readIdempotencyKey(idempotencyKey, origin.keyId, type, projectId, data, reason, ...conditions)

/**
 * Reads the end date of an extension. Unless it is a dry run, with an idempotency key it may have passed, because the
 * extension may have been made before.
 */
const dateOf = (
  { dryRun, endDate, idempotencyKey }: Extending,
  at: number,
): Effect.Effect<EndDate, InvalidEndDate | EndDateNotInFuture> =>
  Effect.fromResult(
    idempotencyKey === undefined || dryRun === true
      ? readFutureEndDate(endDate, at)
      : readEndDate(endDate),
  )

/** Reads an extension of a membership. Of several errors, the first in this order counts. */
const readExtension = Effect.fnUntraced(function* (
  extending: ExtendingMember,
  origin: OriginInput,
  at: number,
) {
  return {
    endDate: yield* dateOf(extending, at),
    projectId: yield* readProjectId(extending.projectId),
    userId: yield* readBranded("userId", UserId, extending.userId),
    expectedEndDate: yield* expectedOf(extending.expectedEndDate),
    mode: yield* modeOf(extending.mode),
    reason: yield* reasonOf(extending),
    isDry: yield* isDryRun(extending),
    origin: yield* readOrigin(origin),
  }
})

type Extension = Effect.Success<ReturnType<typeof readExtension>>

/** The methods that change something. */
type Changes = Pick<
  Memberships["Service"],
  "createProject" | "deleteProject" | "grant" | "import" | "extend" | "extendAll" | "end" | "erase"
>

/** Makes the methods that change something. */
const makeChanges = Effect.fnUntraced(function* ({
  bulk: defaultMode,
}: MembershipsSettings): Effect.fn.Return<Changes, never, MembershipStore> {
  const hooks = yield* Hooks
  const deletions = yield* ProjectDeletions
  const store = yield* MembershipStore
  const crypto = yield* WebCrypto

  /** The event of a change, with fields of the client in the data. */
  const eventOf = (
    { at, origin, projectId, reason }: Omit<Change, "event">,
    type: EventType,
    data: EventDraftData,
  ): EventDraft =>
    draftEvent({
      id: newEventId(crypto, at),
      projectId,
      type,
      at,
      traceparent: origin.traceparent,
      // JSON has no reason where it is undefined.
      data: { ...data, request_id: origin.requestId ?? null, reason },
    })

  /** Makes an extension. If its date has passed, it may only have been made before. */
  const extendBy = <A, E>(
    { at, endDate, once, projectId }: Change & { readonly endDate: EndDate },
    extend: Effect.Effect<A, E>,
  ): Effect.Effect<
    A | ReplayedResponse,
    E | EndDateNotInFuture | IdempotencyMismatch | StoreUnavailable
  > =>
    once === undefined || endDate > at
      ? extend
      : Effect.flatMap(store.recall(once, projectId), (known) =>
          known === undefined ? Effect.fail(endDateNotInFuture) : Effect.succeed(known),
        )

  /** Returns what a bulk extension would. */
  const foresee = (projectId: ProjectId, mode: BulkMode, endDate: EndDate) =>
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
    origin: OriginInput | undefined,
    change: Pick<Changing, "idempotencyKey">,
  ) {
    const projectId = yield* readProjectId(id)
    const { idempotencyKey } = copyOwn(change)
    const occasion = yield* readChangeContext(origin)
    return {
      projectId,
      occasion: yield* attachIdempotencyKey(occasion, idempotencyKey, name, projectId),
    }
  })

  /** Tells the host of a change, or the caller that it was made before. */
  const announce = (changed: Change, result: Event | ReplayedResponse): Effect.Effect<void> =>
    isReplayedResponse(result) ? notifyReplay(changed, result) : hooks.event(result)

  /** Announces an extension. Returns the end date that the membership has afterwards. */
  const announceExtension = (
    changed: Change & { readonly endDate: EndDate },
    result: Event | EndsLater | ReplayedResponse,
  ): Effect.Effect<EndDate> => {
    if (isEndsLater(result)) return Effect.succeed(result.endDate)
    const endDate =
      isReplayedResponse(result) && result.answer !== ""
        ? EndDate(Number(result.answer))
        : changed.endDate
    return Effect.as(announce(changed, result), endDate)
  }

  /** Returns what an extension would return, or fails as it would. */
  const tryExtension = (extension: Extension) => {
    const { endDate, expectedEndDate, projectId, userId } = extension
    return Effect.flatMap(store.find(projectId, userId), (membership) => {
      const conflict = endDateConflict(membership, expectedEndDate)
      if (conflict !== undefined) return Effect.fail(conflict)
      const later = laterOf(membership.endDate, extension)
      return Effect.succeed({ projectId, userId, endDate: later?.endDate ?? endDate })
    })
  }

  const performExtension = Effect.fnUntraced(function* (
    extending: Extending,
    extension: Extension,
    at: number,
  ) {
    const { endDate, expectedEndDate, mode, origin, projectId, reason, userId } = extension
    const data = {
      project_id: projectId,
      user_id: userId,
      new_end_date: formatEndDate(endDate),
    }
    const asked = { projectId, origin, reason, at }
    const type = knownEventTypes.extended
    const once = yield* onceOf(extending, asked, type, data, expectedEndDate, mode)
    const event = eventOf(asked, type, data)
    const changed = { ...asked, event, userId, endDate, expectedEndDate, mode, once }
    const result = yield* extendBy(changed, store.extend(changed))
    return { projectId, userId, endDate: yield* announceExtension(changed, result) }
  })

  return {
    createProject: Effect.fnUntraced(function* (id, origin, creation = {}) {
      const { occasion, projectId } = yield* projectChangeOf("createProject", id, origin, creation)
      yield* notifyReplay(occasion, yield* store.createProject(projectId, occasion))
    }),

    deleteProject: Effect.fnUntraced(function* (id, origin, deletion = {}) {
      const { occasion, projectId } = yield* projectChangeOf("deleteProject", id, origin, deletion)
      const tell = Effect.sync(() => deletions.tell(projectId))
      // The project may have been deleted even if the store does not say so.
      yield* store.deleteProject(projectId, occasion).pipe(
        Effect.tap((replayed) =>
          replayed === undefined ? tell : notifyReplay(occasion, replayed),
        ),
        Effect.tapErrorTag("StoreUnavailable", () => tell),
        Effect.uninterruptible,
      )
    }),

    grant: Effect.fnUntraced(function* (input, originInput = hostOrigin) {
      const membership = copyOwn(input)
      const at = yield* currentUnixMillis
      const endDate = yield* Effect.fromResult(readEndDate(membership.endDate))
      const projectId = yield* readProjectId(membership.projectId)
      const userId = yield* readBranded("userId", UserId, membership.userId)
      const data = {
        project_id: projectId,
        user_id: userId,
        new_end_date: formatEndDate(endDate),
      }
      const reason = yield* reasonOf(membership)
      const origin = yield* readOrigin(originInput)
      const asked = { projectId, origin, reason, at }
      const once = yield* onceOf(membership, asked, knownEventTypes.granted, data)
      const changed = {
        ...asked,
        event: eventOf(asked, knownEventTypes.granted, data),
        userId,
        endDate,
        once,
      }
      yield* announce(changed, yield* store.grant(changed))
      return { projectId, userId, endDate }
    }),

    import: Effect.fnUntraced(function* (input, originInput = hostOrigin) {
      const project = copyOwn(input)
      const at = yield* currentUnixMillis
      const projectId = yield* readProjectId(project.projectId)
      const memberships = yield* Effect.fromResult(readImport(project.memberships))
      const reason = yield* reasonOf(project)
      const origin = yield* readOrigin(originInput)
      const data = { project_id: projectId, total: memberships.length }
      const asked = { projectId, origin, reason, at }
      const once = yield* onceOf(project, asked, knownEventTypes.imported, memberships)
      const changed = {
        ...asked,
        event: eventOf(asked, knownEventTypes.imported, data),
        memberships,
        once,
      }
      yield* announce(changed, yield* store.import(changed))
    }),

    extend: Effect.fnUntraced(function* (input, originInput = hostOrigin) {
      const extending = copyOwn(input)
      const at = yield* currentUnixMillis
      const extension = yield* readExtension(extending, originInput, at)
      return extension.isDry
        ? yield* tryExtension(extension)
        : yield* performExtension(extending, extension, at)
    }),

    extendAll: Effect.fnUntraced(function* (input, originInput = hostOrigin) {
      const project = copyOwn(input)
      const at = yield* currentUnixMillis
      const endDate = yield* dateOf(project, at)
      const projectId = yield* readProjectId(project.projectId)
      const mode = (yield* modeOf(project.mode)) ?? defaultMode
      const reason = yield* reasonOf(project)
      const origin = yield* readOrigin(originInput)
      if (yield* isDryRun(project)) {
        return { endDate, ...(yield* foresee(projectId, mode, endDate)) }
      }
      const data = {
        project_id: projectId,
        new_end_date: formatEndDate(endDate),
        // JSON has no mode where it is undefined.
        mode: mode === "set" ? undefined : bulkModeNames[mode],
      }
      const asked = { projectId, origin, reason, at }
      const once = yield* onceOf(project, asked, knownEventTypes.bulkExtended, data)
      const changed = {
        ...asked,
        event: eventOf(asked, knownEventTypes.bulkExtended, data),
        endDate,
        mode,
        once,
      }
      const result = yield* extendBy(changed, store.extendAll(changed))
      if (isReplayedResponse(result)) {
        yield* notifyReplay(changed, result)
        return { endDate, total: Number(result.answer) }
      }
      yield* hooks.event(result.event)
      return { endDate, total: result.total }
    }),

    end: Effect.fnUntraced(function* (input, originInput = hostOrigin) {
      const member = copyOwn(input)
      const at = yield* currentUnixMillis
      const projectId = yield* readProjectId(member.projectId)
      const userId = yield* readBranded("userId", UserId, member.userId)
      const reason = yield* reasonOf(member)
      const origin = yield* readOrigin(originInput)
      const data = { project_id: projectId, user_id: userId }
      const asked = { projectId, origin, reason, at }
      const once = yield* onceOf(member, asked, knownEventTypes.ended, data)
      const changed = { ...asked, event: eventOf(asked, knownEventTypes.ended, data), userId, once }
      yield* announce(changed, yield* store.end(changed))
    }),

    erase: Effect.fnUntraced(function* (input, originInput) {
      const { idempotencyKey, projectId: project, userId: user } = copyOwn(input)
      const projectId = yield* readProjectId(project)
      const userId = yield* readBranded("userId", UserId, user)
      const now = yield* readChangeContext(originInput)
      const occasion = yield* attachIdempotencyKey(now, idempotencyKey, "erase", projectId, userId)
      const asked = { ...occasion, projectId, reason: undefined }
      const data = { project_id: projectId, user_id: null }
      const changed = { ...asked, event: eventOf(asked, knownEventTypes.ended, data), userId }
      const erased = yield* store.erase(changed)
      if (erased !== undefined) yield* announce(changed, erased)
    }),
  }
})

/** What every change of memberships takes. */
export interface Changing {
  /** Why: 1 to 500 characters, which the audit trail and the event of the change keep. */
  readonly reason?: string | undefined
  /**
   * Makes the change once, however often the call is repeated within 24 hours: 1 to 255 visible
   * characters of ASCII. Each `keyId` of an origin has idempotency keys of its own.
   */
  readonly idempotencyKey?: IdempotencyKeyInput | undefined
}

/** How something is extended. */
export interface Extending extends Changing {
  /** The new end date, in the future. */
  readonly endDate: EndDateInput
  /**
   * If true, nothing is changed, recorded or published. The result, or the failure, is that of the same
   * call without it.
   */
  readonly dryRun?: boolean | undefined
}

/** How a membership is extended. */
export interface ExtendingMember extends Member, Extending {
  readonly expectedEndDate?: EndDateInput | undefined
  readonly mode?: BulkMode | undefined
}

/** The options of memberships. */
export const membershipsOptions = Setting.object({
  /**
   * Whether a bulk extension that does not say so itself also sets memberships that end later than the new
   * date (`"set"`), or leaves those as they are (`"neverShorten"`). Default: `"set"`.
   */
  bulk: Setting.withDefault(Setting.oneOf(bulkModes), "set"),
})

/** The options as a host passes them. */
export interface MembershipsOptions extends Setting.InputOf<typeof membershipsOptions> {}

/** The options as the library uses them. */
export interface MembershipsSettings extends Setting.OutputOf<typeof membershipsOptions> {}

/** The result of a bulk extension. */
export interface BulkExtended {
  readonly endDate: EndDate
  /** The number of memberships of the project, with those that were left as they are. */
  readonly total: number
  /** Of a dry run, the number of memberships that would end earlier than they do now. */
  readonly wouldShorten?: number
}

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
     * Creates a project. Does nothing if it exists.
     *
     * @param creation.idempotencyKey - as of a change of memberships
     */
    readonly createProject: (
      projectId: string,
      origin?: OriginInput,
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
      origin?: OriginInput,
      deletion?: Pick<Changing, "idempotencyKey">,
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
     * Creates a membership, or sets the end date of an existing one. The end date may be in the past.
     * Fails with `InvalidEndDate` or `ProjectNotFound`.
     */
    readonly grant: (
      membership: Member & Changing & { readonly endDate: EndDateInput },
      origin?: OriginInput,
    ) => Effect.Effect<Membership, ChangeFailure | InvalidEndDate | ProjectNotFound>

    /**
     * Creates up to 10,000 memberships of different users, or sets the end dates of those that exist:
     * all of them in one step, or none. End dates may be in the past. One event tells of all of them.
     * Fails with `ProjectNotFound`.
     */
    readonly import: (
      project: Changing & {
        readonly projectId: string
        readonly memberships: ReadonlyArray<ImportRow>
      },
      origin?: OriginInput,
    ) => Effect.Effect<void, ChangeFailure | ProjectNotFound>

    /**
     * Sets the end date of a membership, which may have expired, to a future date. Returns the membership with
     * the end date that it has afterwards. Fails with `InvalidEndDate`, `EndDateNotInFuture`, `MembershipNotFound` or
     * `EndDateConflict`.
     *
     * @param membership.mode - whether a membership that ends later is set, too (`"set"`, the default), or left
     *   as it is (`"neverShorten"`): then nothing is recorded or published
     * @param membership.expectedEndDate - if given, only a membership that has this end date is changed:
     *   of several callers that read a date and set another, one succeeds
     */
    readonly extend: (
      membership: ExtendingMember,
      origin?: OriginInput,
    ) => Effect.Effect<
      Membership,
      ChangeFailure | InvalidEndDate | EndDateNotInFuture | MembershipNotFound | EndDateConflict
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
      project: Extending & { readonly projectId: string; readonly mode?: BulkMode | undefined },
      origin?: OriginInput,
    ) => Effect.Effect<
      BulkExtended,
      ChangeFailure | InvalidEndDate | EndDateNotInFuture | ProjectNotFound
    >

    /** Removes a membership. Fails with `MembershipNotFound`. */
    readonly end: (
      member: Member & Changing,
      origin?: OriginInput,
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
      origin?: OriginInput,
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
  ): Layer.Layer<Memberships, never, MembershipStore> => Layer.effect(Memberships, make(settings))
}

const make = Effect.fnUntraced(function* (settings: MembershipsSettings) {
  const changes = yield* makeChanges(settings)
  return Memberships.of({ ...changes, ...makeMembershipQueries(yield* MembershipStore) })
})
