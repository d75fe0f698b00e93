/** Extends one membership, to a date or by a duration, with code shared by all membership changes. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import {
  type ChangeContext,
  type IdempotencyConflict,
  type IdempotencyMismatch,
  type ReplayedResponse,
  isReplayedResponse,
  notifyReplay,
  repeatUntilMade,
} from "../base/change-context.ts"
import { InvalidInput, StoreUnavailable } from "../base/errors.ts"
import type { Repeatable } from "../base/host-method.ts"
import { invalidArgument } from "../base/input.ts"
import type { Decoded, HostInputOf } from "../base/operation-input.ts"
import type { Millis } from "../base/time.ts"
import type { ProjectId, ProjectNotFound } from "../base/values.ts"
import {
  type Event,
  type EventDraft,
  type EventDraftData,
  type EventType,
  type Hooks,
  draftEvent,
  knownEventTypes,
  newEventId,
} from "../events/event.ts"
import type { Foreseeing } from "./announcements.ts"
import type { AnnouncementCounts } from "./bulk-extension.ts"
import {
  type CalendarEnd,
  type Day,
  type TimeZone,
  dayEndedAt,
  endOfDay,
  endOfToday,
  extendByCalendar,
  knownZone,
} from "./calendar.ts"
import { type EventsPreview, type Trial, previewEvents, trialOf } from "./dry-run.ts"
import type { DurationText } from "./duration.ts"
import {
  type OptionalForm,
  EndDate,
  type EndDateNotInFuture,
  endDateNotInFuture,
  formatEndDate,
  instantForm,
  lastEndDate,
} from "./end-date.ts"
import type { extension } from "./extension-inputs.ts"
import {
  type EndDateConflict,
  type EndsLater,
  type Membership,
  type MembershipEnd,
  MembershipNotFound,
  type Reason,
  UserId,
  type UserIdRule,
  endDateConflict,
  endsLater,
  isAlreadyMember,
  isEndsLater,
  laterOf,
  stateAt,
} from "./membership.ts"
import type { Change, DateChange, MembershipStore, Extension as StoreExtension } from "./store.ts"

/** A change before its event is made. */
export interface Draft extends ChangeContext {
  readonly projectId: ProjectId
  readonly reason: Reason | undefined
}

/** The services that changes use. */
export interface ChangeServices {
  readonly store: MembershipStore["Service"]
  readonly hooks: Hooks
  readonly crypto: { readonly randomUUID: () => string }
  readonly foresee: Foreseeing
}

/** Makes a change's event, with the client's fields in the data. */
export const changeEvent = (
  { crypto }: Pick<ChangeServices, "crypto">,
  { at, origin, projectId, reason }: Draft,
  type: EventType,
  data: EventDraftData,
): EventDraft =>
  draftEvent({
    id: newEventId(crypto, at),
    projectId,
    type,
    at,
    traceparent: origin.traceparent,
    // JSON omits an undefined reason.
    data: { ...data, request_id: origin.requestId ?? null, reason },
  })

/** Reports a change to the host, or tells the caller that it was made before. */
export const reportChange = (
  { hooks }: Pick<ChangeServices, "hooks">,
  changed: Pick<Change, "idempotency">,
  result: Event | ReplayedResponse,
): Effect.Effect<void> =>
  isReplayedResponse(result) ? notifyReplay(changed, result) : hooks.event(result)

/** A duration's start: the end date, now, or the later of both. */
export const durationStarts = ["end", "now", "later"] as const

/** From when a duration counts. */
type DurationStart = (typeof durationStarts)[number]

/** A membership after it was extended. */
export interface ExtensionResult extends MembershipEnd {
  /** After an extension with `create`: whether the membership was created. */
  readonly created?: boolean | undefined
  /** In a dry run: the announcements it sets off; `undefined` if ends are not announced. */
  readonly announcements?: AnnouncementCounts | undefined
  /** In a dry run with `events`: the webhooks to be sent. */
  readonly events?: EventsPreview | undefined
}

/** How a membership is extended. */
export type ExtendingMember = HostInputOf<typeof extension> & Repeatable

type OfAnybody<Each> = Each extends object
  ? Omit<Each, "userId"> & { readonly userId: string }
  : never

/** An extension. Its user id may have the wrong form. */
type Extension = OfAnybody<Decoded<typeof extension>>

type ByDuration = Extract<Extension, { readonly by: DurationText }>

type ThroughDay = Extract<Extension, { readonly through: Day }>

type ToDate = Exclude<Extension, ByDuration | ThroughDay>

/** A last whole day, in the given time zone or the project's. */
export interface LastDay {
  readonly through: Day
  readonly timeZone: TimeZone | undefined
}

/**
 * Tells whether a date has passed, and the extension cannot have been made before: it is a dry run, or has no idempotency
 * key.
 */
export const isTooLate = (
  { dryRun, endDate }: { readonly dryRun: boolean; readonly endDate: EndDate },
  { at, idempotency }: Pick<ChangeContext, "at" | "idempotency">,
): boolean => endDate <= at && (idempotency === undefined || dryRun)

/** Why a change by a duration without an idempotency key is refused. */
export const unrepeatable = (alternative = ""): InvalidInput =>
  new InvalidInput({
    field: "idempotencyKey",
    problem: `must be given${alternative}, because a repetition would extend twice`,
  })

/** Returns now for a membership: its clock stands in a pause. */
const nowOf = ({ pause }: Membership, now: number): number => pause?.since ?? now

/** Returns the end date from which a duration counts. In days, now means the end of today. */
const startOf = (
  from: DurationStart,
  membership: Membership,
  zone: TimeZone,
  now: number,
): CalendarEnd => {
  const { endDate, inDays, keptDay } = membership
  // While the grace lasts, the days since the end were used.
  if (
    from === "end" ||
    (from === "later" && stateAt({ ...membership, pause: undefined }, now) === "active")
  ) {
    return { instant: endDate, inDays, keptDay }
  }
  const today =
    inDays && dayEndedAt(endDate, zone) !== undefined ? endOfToday(now, zone) : undefined
  return { instant: today ?? EndDate(now), inDays: today !== undefined, keptDay: undefined }
}

/** A user without a membership, in a project with settings. */
interface Absent {
  readonly endDate: undefined
  readonly timeZone: TimeZone
  readonly grace: Millis
}

const isPaused = (found: Membership | Absent): boolean =>
  !isAbsent(found) && found.pause !== undefined

const isAbsent = (found: Membership | Absent): found is Absent => found.endDate === undefined

const neverShorten = "neverShorten" as const

const tooLate = new InvalidInput({ field: "by", problem: "must not lead past the year 9999" })

const inPast = new InvalidInput({ field: "by", problem: "must lead to a future end date" })

/** Makes an extension. If its date has passed, it may only have been made before. */
export const onceOrInFuture = <A, E>(
  { store }: Pick<ChangeServices, "store">,
  { at, idempotency, projectId }: Draft,
  endDate: EndDate,
  extend: Effect.Effect<A, E>,
): Effect.Effect<
  A | ReplayedResponse,
  E | EndDateNotInFuture | IdempotencyMismatch | StoreUnavailable
> =>
  idempotency === undefined || endDate > at
    ? extend
    : Effect.flatMap(store.recall(idempotency, projectId), (known) =>
        known === undefined ? Effect.fail(endDateNotInFuture) : Effect.succeed(known),
      )

/**
 * Makes a change based on data it has read. If it fails, that data may be its own result: a request
 * with the same idempotency key may have made it.
 */
export const madeOrRecalled = <A, E>(
  { store }: Pick<ChangeServices, "store">,
  { idempotency, projectId }: Pick<Draft, "idempotency" | "projectId">,
  change: Effect.Effect<A, E>,
): Effect.Effect<A | ReplayedResponse, E | IdempotencyMismatch | StoreUnavailable> =>
  idempotency === undefined
    ? change
    : Effect.catch(change, (error) =>
        error instanceof StoreUnavailable
          ? Effect.fail(error)
          : Effect.flatMap(store.recall(idempotency, projectId), (known) =>
              known === undefined ? Effect.fail(error) : Effect.succeed(known),
            ),
      )

/**
 * Makes a change based on data it has read, and repeats both if others have changed that meanwhile. Returns its first answer
 * if it was made before.
 *
 * @param attempt - reads and changes. Returns `undefined` if others were faster
 */
export const changeFound = Effect.fnUntraced(function* <A, E>(
  services: Pick<ChangeServices, "store">,
  change: Draft,
  attempt: Effect.Effect<NoInfer<A> | ReplayedResponse | undefined, E>,
  parse: (answer: string) => A,
) {
  const made = yield* madeOrRecalled(services, change, repeatUntilMade("The membership", attempt))
  yield* notifyReplay(change, made)
  return isReplayedResponse(made) ? parse(made.answer) : made
})

/** Adds a duration to the end date of a membership, or to now for a missing one. Fails if the result is over. */
export const endAfter = (
  { by, from, timeZone }: Pick<ByDuration, "by" | "from" | "timeZone">,
  found: Membership | Absent,
  now: number,
): Result.Result<CalendarEnd, InvalidInput> => {
  const known = timeZone === undefined ? knownZone(found.timeZone) : Result.succeed(timeZone)
  if (Result.isFailure(known)) return Result.fail(known.failure)
  const zone = known.success
  const start = isAbsent(found)
    ? { instant: EndDate(now), ...instantForm }
    : startOf(from, found, zone, nowOf(found, now))
  const sum = extendByCalendar({ end: start, by, zone })
  if (Result.isFailure(sum)) return Result.fail(tooLate)
  const { instant } = sum.success
  if (isAbsent(found)) return instant > now ? Result.succeed(sum.success) : Result.fail(inPast)
  // Over, but still in grace.
  const extended = { ...found, endDate: instant, pause: undefined }
  const isActive = stateAt(extended, nowOf(found, now)) === "active"
  return isActive ? Result.succeed(sum.success) : Result.fail(inPast)
}

const createdMark = "created "

/** Parses the answer of an extension made before. */
const parseAnswer = (answer: string) => ({
  created: answer.startsWith(createdMark),
  endDate: EndDate(Number(answer.replace(createdMark, ""))),
})

const notExpecting = new InvalidInput({
  field: "create",
  problem: "must be left out beside expectedEndDate",
})

/** Returns when a day ends in a time zone, by default the project's. */
export const findEndOfDay = (
  { store }: Pick<ChangeServices, "store">,
  projectId: ProjectId,
  { through, timeZone }: LastDay,
): Effect.Effect<EndDate, InvalidInput | ProjectNotFound | StoreUnavailable> =>
  timeZone === undefined
    ? Effect.flatMap(store.findProject(projectId), (project) =>
        Effect.fromResult(
          Result.map(knownZone(project.timeZone), (zone) => endOfDay(through, zone)),
        ),
      )
    : Effect.succeed(endOfDay(through, timeZone))

/** An extension with a valid user id. */
interface Extending extends Draft {
  readonly userId: UserId
  readonly expectedEndDate: EndDate | undefined
  readonly create: boolean
  readonly trial: Trial
}

/** Makes the act `extend`. */
export const makeExtend = (services: ChangeServices, userIds: UserIdRule) => {
  const { store } = services
  const { extended: extendedType, granted: grantedType } = knownEventTypes

  const eventOf = (extending: Extending, endDate: EndDate, type = extendedType): EventDraft =>
    changeEvent(services, extending, type, {
      project_id: extending.projectId,
      user_id: extending.userId,
      new_end_date: formatEndDate(endDate),
    })

  /** Reports an extension. Returns the membership with its new end date. */
  const report = (
    { create, idempotency, projectId, userId }: Extending,
    endDate: EndDate,
    result: Event | EndsLater | ReplayedResponse,
  ): Effect.Effect<ExtensionResult> => {
    const resultOf = (end: EndDate, created: boolean): ExtensionResult =>
      create ? { projectId, userId, endDate: end, created } : { projectId, userId, endDate: end }
    if (isEndsLater(result)) return Effect.succeed(resultOf(result.endDate, false))
    const reported = reportChange(services, { idempotency }, result)
    if (!isReplayedResponse(result)) {
      return Effect.as(reported, resultOf(endDate, result.type === grantedType))
    }
    const known = result.answer === "" ? { created: false, endDate } : parseAnswer(result.answer)
    return Effect.as(reported, resultOf(known.endDate, known.created))
  }

  /** Returns a membership if it has the expected end date. */
  const find = ({ expectedEndDate, projectId, userId }: Extending) =>
    Effect.flatMap(store.find(projectId, userId), (membership) => {
      const conflict = endDateConflict(membership, expectedEndDate)
      return conflict === undefined ? Effect.succeed(membership) : Effect.fail(conflict)
    })

  /** Fails unless the user may become a member. */
  const admit = ({ userId }: Extending): Effect.Effect<void, InvalidInput> =>
    userIds.is(userId) ? Effect.void : invalidArgument("userId", userIds.expected)

  /** Returns a membership if it has the expected end date. With `create`, there may be none. */
  const findOrAbsent = (extending: Extending) => {
    const { create, projectId, userId } = extending
    const found = find(extending)
    if (!create) return found
    const missing = new MembershipNotFound({ projectId, userId })
    return Effect.catchTag(found, "MembershipNotFound", () =>
      Effect.gen(function* () {
        yield* admit(extending)
        const { grace, timeZone } = yield* store.findProject(projectId)
        const absent: Absent = { endDate: undefined, grace, timeZone }
        return absent
      }).pipe(Effect.catchTag("ProjectNotFound", () => missing)),
    )
  }

  /** Creates the membership. Returns `undefined` if somebody else has created it. */
  const grant = Effect.fnUntraced(function* (
    extending: Extending,
    { endDate, inDays, keptDay }: Pick<DateChange, "endDate"> & OptionalForm,
  ) {
    yield* admit(extending)
    const { at, idempotency, origin, projectId, reason, userId } = extending
    const granted = store.grantIfAbsent({
      at,
      origin,
      projectId,
      reason,
      userId,
      endDate,
      inDays,
      keptDay,
      isFinal: false,
      event: eventOf(extending, endDate, grantedType),
      idempotency: idempotency && { ...idempotency, answer: createdMark + String(endDate) },
    })
    const missing = new MembershipNotFound({ projectId, userId })
    const result = yield* Effect.catchTag(granted, "ProjectNotFound", () => missing)
    if (isAlreadyMember(result)) return undefined
    return isReplayedResponse(result) ? result : result.event
  })

  /** Extends a membership. With `create`, creates one that is missing, and repeats both if others do the opposite meanwhile. */
  const extendOrGrant = (extending: Extending, changed: StoreExtension) => {
    const extended = store.extend(changed)
    if (!extending.create) return extended
    const granted = grant(extending, changed)
    const attempt = Effect.catchTag(extended, "MembershipNotFound", () => granted)
    return repeatUntilMade("The membership", attempt)
  }

  /** Returns a dry run's result. */
  const tried = Effect.fnUntraced(function* (
    extending: Extending,
    before: Absent | Membership,
    endDate: EndDate,
    later: EndsLater | undefined,
  ) {
    const { at, create, projectId, trial, userId } = extending
    const created = isAbsent(before)
    const foresight = yield* services.foresee(before.grace, false)
    const ends = { before: before.endDate, after: later?.endDate ?? endDate }
    const change = later === undefined ? ({ _tag: "One", userId } as const) : undefined
    const event = eventOf(extending, endDate, created ? grantedType : extendedType)
    const result: ExtensionResult = {
      projectId,
      userId,
      endDate: ends.after,
      ...(create && { created }),
      // In a pause, nothing is announced.
      announcements: foresight?.countEach(isPaused(before) ? [] : [ends], at),
      events: yield* Effect.catchTag(
        previewEvents(store, trial, event, change),
        "ProjectNotFound",
        () => new MembershipNotFound({ projectId, userId }),
      ),
    }
    return result
  })

  const toDate = (
    extending: Extending,
    { endDate, inDays = false, mode }: Pick<ToDate, "endDate" | "mode"> & OptionalForm,
  ) => {
    if (extending.trial !== "none") {
      return Effect.flatMap(findOrAbsent(extending), (found) =>
        isAbsent(found)
          ? tried(extending, found, endDate, undefined)
          : tried(extending, found, endDate, laterOf(found.endDate, { endDate, mode })),
      )
    }
    const { at, expectedEndDate, idempotency, origin, projectId, reason, userId } = extending
    const event = eventOf(extending, endDate)
    // Without a spread, because it is slower.
    const changed = {
      at,
      idempotency,
      origin,
      projectId,
      reason,
      event,
      userId,
      endDate,
      inDays,
      expectedEndDate,
      mode,
    }
    const made = extendOrGrant(extending, changed)
    const extended = onceOrInFuture(services, changed, endDate, made)
    return Effect.flatMap(extended, (result) => report(extending, endDate, result))
  }

  const throughDay = (extending: Extending, { mode, ...day }: ThroughDay) => {
    const { idempotency, projectId, trial, userId } = extending
    const found = Effect.catchTag(
      findEndOfDay(services, projectId, day),
      "ProjectNotFound",
      () => new MembershipNotFound({ projectId, userId }),
    )
    return Effect.flatMap(found, (endDate) => {
      if (isTooLate({ dryRun: trial !== "none", endDate }, extending)) {
        return Effect.fail(endDateNotInFuture)
      }
      // A repetition gets the first response, even if the project has another time zone by then.
      const answer = idempotency && { ...idempotency, answer: String(endDate) }
      return toDate({ ...extending, idempotency: answer }, { endDate, inDays: true, mode })
    })
  }

  const byDuration = Effect.fnUntraced(function* (extending: Extending, extension: ByDuration) {
    const { create, trial, ...change } = extending
    const { at, expectedEndDate, idempotency } = change
    const isDry = trial !== "none"
    if (idempotency === undefined && expectedEndDate === undefined && !isDry) {
      return yield* unrepeatable(" without expectedEndDate")
    }
    const attempt = Effect.gen(function* () {
      const before = yield* findOrAbsent(extending)
      if (isAbsent(before)) {
        const { instant, ...form } = yield* Effect.fromResult(endAfter(extension, before, at))
        if (isDry) return yield* tried(extending, before, instant, undefined)
        const granted = yield* grant(extending, { endDate: instant, ...form })
        return granted && (yield* report(extending, instant, granted))
      }
      const isForLife = before.endDate === lastEndDate
      const {
        inDays,
        instant: endDate,
        keptDay,
      } = isForLife
        ? { instant: lastEndDate, ...instantForm }
        : yield* Effect.fromResult(endAfter(extension, before, at))
      if (isDry) {
        return yield* tried(extending, before, endDate, isForLife ? endsLater(endDate) : undefined)
      }
      const changed = {
        ...change,
        event: eventOf(extending, endDate),
        // What is for life ends later than this, and stays. The store keeps the key.
        endDate: isForLife ? EndDate(at) : endDate,
        mode: isForLife ? neverShorten : undefined,
        inDays,
        keptDay,
        expectedEndDate: before.endDate,
        expectedForm: { inDays: before.inDays, keptDay: before.keptDay },
        idempotency: idempotency && { ...idempotency, answer: String(endDate) },
      }
      const result = yield* Effect.catchTags(store.extend(changed), {
        EndDateConflict: (conflict) =>
          expectedEndDate === undefined || conflict.currentEndDate === expectedEndDate
            ? Effect.undefined
            : Effect.fail(conflict),
        MembershipNotFound: (missing) => (create ? Effect.undefined : Effect.fail(missing)),
      })
      return result && (yield* report(extending, endDate, result))
    })
    const repeated = repeatUntilMade("The membership", attempt)
    if (isDry) return yield* repeated
    const made = yield* madeOrRecalled(services, change, repeated)
    return isReplayedResponse(made)
      ? yield* report(extending, parseAnswer(made.answer).endDate, made)
      : made
  })

  /** Without a generator, because it is called far more often than other acts. */
  return (
    given: Extension,
    { at, idempotency, origin }: ChangeContext,
  ): Effect.Effect<
    ExtensionResult,
    | EndDateConflict
    | EndDateNotInFuture
    | IdempotencyConflict
    | InvalidInput
    | MembershipNotFound
    | StoreUnavailable
  > => {
    const { create, expectedEndDate, projectId, reason, userId } = given
    if (given.endDate !== undefined && isTooLate(given, { at, idempotency })) {
      return Effect.fail(endDateNotInFuture)
    }
    if (create && expectedEndDate !== undefined) return Effect.fail(notExpecting)
    if (!UserId.is(userId)) {
      return create
        ? invalidArgument("userId", userIds.expected)
        : Effect.fail(new MembershipNotFound({ projectId, userId }))
    }
    const trial = trialOf(given)
    if (Result.isFailure(trial)) return Effect.fail(trial.failure)
    const extending: Extending = {
      at,
      idempotency,
      origin,
      projectId,
      reason,
      userId,
      expectedEndDate,
      create,
      trial: trial.success,
    }
    if (given.by !== undefined) return byDuration(extending, given)
    return given.through === undefined ? toDate(extending, given) : throughDay(extending, given)
  }
}
