/** The changing side of the service for memberships. */

import type * as Clock from "effect/Clock"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Argument from "../base/Argument.ts"
import type { InvalidInput } from "../base/InvalidInput.ts"
import * as Moment from "../base/Moment.ts"
import * as Once from "../base/Once.ts"
import * as Origin from "../base/Origin.ts"
import { owned } from "../base/Own.ts"
import type { ProjectId } from "../base/Project.ts"
import { ProjectDeletions } from "../base/ProjectDeletions.ts"
import * as Setting from "../base/Setting.ts"
import * as Step from "../base/Step.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import * as Event from "../events/Event.ts"
import { Hooks } from "../events/Hooks.ts"
import * as Bulk from "./Bulk.ts"
import * as EndDate from "./EndDate.ts"
import * as Import from "./Import.ts"
import { conflictOf, type EndsLater, isEndsLater, laterOf, UserId } from "./Membership.ts"
import type { Changing, Extending, ExtendingMember, Memberships, Settings } from "./Memberships.ts"
import { type Change, MembershipStore } from "./MembershipStore.ts"
import { Reason } from "./Reason.ts"

const bulkMode = Setting.optional(Setting.oneOf(Bulk.modes))

const absent = Effect.succeed(undefined)

const modeOf = (given: Bulk.Mode | undefined): Effect.Effect<Bulk.Mode | undefined, InvalidInput> =>
  given === undefined ? absent : Argument.read("mode", bulkMode, given)

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
  ...conditions: ReadonlyArray<unknown>
): Effect.Effect<Once.Once | undefined, InvalidInput> =>
  idempotencyKey === undefined
    ? absent
    : Once.fromInput(idempotencyKey, origin.keyId, type, projectId, data, reason, ...conditions)

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
    mode: modeOf(extending.mode),
    reason: reasonOf(extending),
    isDry: isDryRun(extending),
    origin: Origin.fromInput(origin),
  })

type Extension = Effect.Success<ReturnType<typeof readExtension>>

/** The methods that change something. */
type Changes = Pick<
  Memberships["Service"],
  "createProject" | "deleteProject" | "grant" | "import" | "extend" | "extendAll" | "end" | "erase"
>

/** Makes the methods that change something. */
export const make = Effect.fnUntraced(function* ({
  bulk: defaultMode,
}: Settings): Effect.fn.Return<Changes, never, MembershipStore> {
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

  /** Announces an extension. Returns the end date that the membership has afterwards. */
  const announceExtension = (
    changed: Change & { readonly endDate: EndDate.EndDate },
    result: Event.Event | EndsLater | Once.Replayed,
  ): Effect.Effect<EndDate.EndDate> => {
    if (isEndsLater(result)) return Effect.succeed(result.endDate)
    const endDate =
      Once.isReplayed(result) && result.answer !== ""
        ? EndDate.EndDate(Number(result.answer))
        : changed.endDate
    return Effect.mapEager(announce(changed, result), () => endDate)
  }

  /** Returns what an extension would return, or fails as it would. */
  const tryExtension = (extension: Extension) => {
    const { endDate, expectedEndDate, projectId, userId } = extension
    return Effect.flatMap(store.find(projectId, userId), (membership) => {
      const conflict = conflictOf(membership, expectedEndDate)
      if (conflict !== undefined) return Effect.fail(conflict)
      const later = laterOf(membership.endDate, extension)
      return Effect.succeed({ projectId, userId, endDate: later?.endDate ?? endDate })
    })
  }

  const performExtension = (
    extending: Extending,
    extension: Extension,
    at: number,
    clock: Clock.Clock,
  ) => {
    const { endDate, expectedEndDate, mode, origin, projectId, reason, userId } = extension
    const data = {
      project_id: projectId,
      user_id: userId,
      new_end_date: EndDate.format(endDate),
    }
    const asked = { projectId, origin, reason, at }
    const type = Event.types.extended
    const conditions = [expectedEndDate, mode]
    return Effect.flatMapEager(onceOf(extending, asked, type, data, ...conditions), (once) => {
      const event = eventOf(asked, type, data)
      const changed = { ...asked, event, userId, endDate, expectedEndDate, mode, once }
      const extended = extendBy(changed, store.extend(changed))
      return Effect.flatMapEager(Step.begin(extended, clock), (result) =>
        Effect.mapEager(Step.begin(announceExtension(changed, result), clock), (heldDate) => ({
          projectId,
          userId,
          endDate: heldDate,
        })),
      )
    })
  }

  return {
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
      const mode = (yield* modeOf(project.mode)) ?? defaultMode
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
  }
})
