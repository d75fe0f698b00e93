/** Extends one membership, to a date or by a duration, with what all changes of memberships share. */

import * as Effect from "effect/Effect"
import {
  type IdempotencyKey,
  type IdempotencyKeyInput,
  type IdempotencyMismatch,
  type OriginInput,
  type ReplayedResponse,
  hostOrigin,
  isReplayedResponse,
  notifyReplay,
  readIdempotencyKey,
  readOrigin,
  repeatUntilMade,
} from "../base/change-context.ts"
import { InvalidInput, StoreUnavailable } from "../base/errors.ts"
import { readArgument, readBranded, readInstantArgument, readProjectId } from "../base/input.ts"
import * as Setting from "../base/setting.ts"
import { currentUnixMillis } from "../base/time.ts"
import { copyOwn } from "../base/values.ts"
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
import { type DryRun, type EventsPreview, previewEvents, readTrial } from "./dry-run.ts"
import { DurationText, addDuration } from "./duration.ts"
import {
  type BulkMode,
  EndDate,
  type EndDateInput,
  type EndDateNotInFuture,
  type InvalidEndDate,
  bulkModes,
  endDateNotInFuture,
  formatEndDate,
  readEndDate,
  readFutureEndDate,
} from "./end-date.ts"
import {
  type EndsLater,
  type Member,
  type MembershipEnd,
  MembershipNotFound,
  Reason,
  UserId,
  endDateConflict,
  isEndsLater,
  laterOf,
} from "./membership.ts"
import type { Change, MembershipStore } from "./store.ts"

const absent = Effect.succeed(undefined)

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

/** What a change takes that can be tried. */
export interface Trying extends Changing, DryRun {}

/** Reads the reason of a change. */
export const readReason = ({ reason }: Changing): Effect.Effect<Reason | undefined, InvalidInput> =>
  reason === undefined ? absent : readBranded("reason", Reason, reason)

/** A change before its event is made. */
export type AskedChange = Omit<Change, "event" | "once">

/** Reads the idempotency key of a call, whose arguments the other parameters have. */
export const readOnce = (
  { idempotencyKey }: Changing,
  { origin, projectId, reason }: AskedChange,
  type: EventType,
  data: unknown,
  ...conditions: ReadonlyArray<unknown>
): Effect.Effect<IdempotencyKey | undefined, InvalidInput> =>
  idempotencyKey === undefined
    ? absent
    : readIdempotencyKey(idempotencyKey, origin.keyId, type, projectId, data, reason, ...conditions)

/** What changes need. */
export interface ChangeServices {
  readonly store: MembershipStore["Service"]
  readonly hooks: Hooks
  readonly crypto: { readonly randomUUID: () => string }
}

/** Makes the event of a change, with fields of the client in the data. */
export const changeEvent = (
  { crypto }: Pick<ChangeServices, "crypto">,
  { at, origin, projectId, reason }: AskedChange,
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

/** Tells the host of a change, or the caller that it was made before. */
export const reportChange = (
  { hooks }: Pick<ChangeServices, "hooks">,
  changed: Pick<Change, "once">,
  result: Event | ReplayedResponse,
): Effect.Effect<void> =>
  isReplayedResponse(result) ? notifyReplay(changed, result) : hooks.event(result)

/** From when a duration counts: from the end date, from now, or from the later of both. */
export const durationStarts = ["end", "now", "later"] as const

/** From when a duration counts. */
type DurationStart = (typeof durationStarts)[number]

/** An extension to a date. */
export interface ToDate {
  /** The new end date, in the future. */
  readonly endDate: EndDateInput
  /** Whether a later end date is set, too (`"set"`), or left as it is (`"neverShorten"`). */
  readonly mode?: BulkMode | undefined
  /** Not with a date. */
  readonly by?: undefined
}

/** An extension by a duration. */
export interface ByDuration {
  /**
   * How much later to end: a positive duration of ISO 8601 in whole numbers, such as `"P1M"` or `"PT36H"`. Needs an
   * idempotency key, or the expected end date of one membership: a repetition would extend it twice.
   */
  readonly by: string
  /** Not with a duration. */
  readonly endDate?: undefined
  /** Not with a duration. */
  readonly mode?: undefined
}

/** The date that a membership has to have. */
interface Expecting {
  /** If given, only a membership that has this end date is changed. */
  readonly expectedEndDate?: EndDateInput | undefined
}

/** Where a duration begins. */
interface FromStart {
  /** From when the duration counts: `"end"`, `"now"`, or the `"later"` of both. Default: `"later"`. */
  readonly from?: DurationStart | undefined
}

/** A membership after it was extended. */
export interface ExtensionResult extends MembershipEnd {
  /** In a dry run with `events`: the webhooks to be sent. */
  readonly events?: EventsPreview | undefined
}

/** How a membership is extended. */
export type ExtendingMember = Member & Trying & Expecting & (ToDate | (ByDuration & FromStart))

const bulkMode = Setting.optional(Setting.oneOf(bulkModes))

/** Reads the mode of an extension. */
export const readMode = (
  given: BulkMode | undefined,
): Effect.Effect<BulkMode | undefined, InvalidInput> =>
  given === undefined ? absent : readArgument("mode", bulkMode, given)

const readExpected = (
  given: EndDateInput | undefined,
): Effect.Effect<EndDate | undefined, InvalidInput> =>
  given === undefined ? absent : Effect.map(readInstantArgument("expectedEndDate", given), EndDate)

/**
 * Reads the end date of an extension. Unless it is a dry run, with an idempotency key it may have passed, because the
 * extension may have been made before.
 */
export const readDate = (
  { dryRun, endDate, idempotencyKey }: Trying & { readonly endDate: EndDateInput },
  at: number,
): Effect.Effect<EndDate, InvalidEndDate | EndDateNotInFuture> =>
  Effect.fromResult(
    idempotencyKey === undefined || dryRun === true
      ? readFutureEndDate(endDate, at)
      : readEndDate(endDate),
  )

const beside = (field: string, other: string) =>
  new InvalidInput({ field, problem: `must be left out: there is ${other}` })

const both = beside("by", "an end date")

const startWithDate = beside("from", "an end date")

const modeWithDuration = beside("mode", "a duration")

/** Reads a duration. Fails if there is a date, too, or what belongs to one. */
export const readBy = ({
  by,
  endDate,
  mode,
}: {
  readonly by: string
  readonly endDate?: unknown
  readonly mode?: unknown
}): Effect.Effect<DurationText, InvalidInput> => {
  if (endDate !== undefined) return both
  return mode === undefined ? readBranded("by", DurationText, by) : modeWithDuration
}

/** Why a change by a duration without an idempotency key is refused. */
export const unrepeatable = (alternative = ""): InvalidInput =>
  new InvalidInput({
    field: "idempotencyKey",
    problem: `must be given${alternative}, because a repetition would extend twice`,
  })

const start = Setting.withDefault(Setting.oneOf(durationStarts), "later")

const startOf = (from: DurationStart, endDate: EndDate, now: number): EndDate => {
  switch (from) {
    case "end":
      return endDate
    case "now":
      return EndDate(now)
    case "later":
      return EndDate(Math.max(endDate, now))
  }
}

const tooLate = new InvalidInput({ field: "by", problem: "must not lead past the year 9999" })

const inPast = new InvalidInput({ field: "by", problem: "must lead to a future end date" })

/** The arguments, in which callers without types may have a start beside a date. */
type Given = ExtendingMember & { readonly from?: unknown }

/** Reads what few extensions say. */
const readConditions = Effect.fnUntraced(function* (extending: Given) {
  if (extending.by === undefined && extending.from !== undefined) return yield* startWithDate
  return {
    expectedEndDate: yield* readExpected(extending.expectedEndDate),
    mode: yield* readMode(extending.mode),
    from: extending.by === undefined ? "later" : yield* readArgument("from", start, extending.from),
    reason: yield* readReason(extending),
    trial: yield* readTrial(extending),
  }
})

type Conditions = Effect.Success<ReturnType<typeof readConditions>>

const plain: Effect.Effect<Conditions> = Effect.succeed({
  expectedEndDate: undefined,
  mode: undefined,
  from: "later",
  reason: undefined,
  trial: "none",
})

/** Whether an extension says none of it. */
const isPlain = (extending: Given): boolean =>
  extending.by === undefined &&
  extending.from === undefined &&
  extending.expectedEndDate === undefined &&
  extending.mode === undefined &&
  extending.reason === undefined &&
  extending.dryRun === undefined &&
  extending.events === undefined

/** To which date a membership is extended, or by how much. */
type Goal = { readonly endDate: EndDate; readonly by: undefined } | { readonly by: DurationText }

const readGoal = (
  extending: ExtendingMember,
  at: number,
): Effect.Effect<Goal, InvalidEndDate | EndDateNotInFuture | InvalidInput> =>
  extending.by === undefined
    ? Effect.mapEager(readDate(extending, at), (endDate) => ({ endDate, by: undefined }))
    : Effect.mapEager(readBy(extending), (by) => ({ by }))

/** Of several errors, the first in this order counts. Without a generator: each extension is read here. */
const readExtension = (extending: ExtendingMember, originInput: OriginInput, at: number) =>
  Effect.flatMapEager(readGoal(extending, at), (goal) =>
    Effect.flatMapEager(readProjectId(extending.projectId), (projectId) =>
      Effect.flatMapEager(readBranded("userId", UserId, extending.userId), (userId) => {
        const conditions: Effect.Effect<Conditions, InvalidInput> = isPlain(extending)
          ? plain
          : readConditions(extending)
        return Effect.flatMapEager(conditions, ({ expectedEndDate, from, mode, reason, trial }) =>
          Effect.mapEager(readOrigin(originInput), (origin) => ({
            goal,
            at,
            projectId,
            userId,
            expectedEndDate,
            mode,
            from,
            reason,
            trial,
            origin,
          })),
        )
      }),
    ),
  )

type Extension = Effect.Success<ReturnType<typeof readExtension>>

/** Makes an extension. If its date has passed, it may only have been made before. */
export const onceOrInFuture = <A, E>(
  { store }: Pick<ChangeServices, "store">,
  { at, once, projectId }: Change,
  endDate: EndDate,
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

/**
 * Makes a change that rests on what it has read. If it fails, what it has read may be its own result: a request with the
 * same idempotency key may have made it.
 */
export const madeOrRecalled = <A, E>(
  { store }: Pick<ChangeServices, "store">,
  { once, projectId }: Pick<Change, "once" | "projectId">,
  change: Effect.Effect<A, E>,
): Effect.Effect<A | ReplayedResponse, E | IdempotencyMismatch | StoreUnavailable> =>
  once === undefined
    ? change
    : Effect.catch(change, (error) =>
        error instanceof StoreUnavailable
          ? Effect.fail(error)
          : Effect.flatMap(store.recall(once, projectId), (known) =>
              known === undefined ? Effect.fail(error) : Effect.succeed(known),
            ),
      )

/** Adds a duration to the end date. */
const dateAfter = (
  { at, from }: Extension,
  endDate: EndDate,
  by: DurationText,
): Effect.Effect<EndDate, InvalidInput> => {
  const sum = addDuration(startOf(from, endDate, at), by)
  if (sum === undefined) return Effect.fail(tooLate)
  return sum > at ? Effect.succeed(sum) : Effect.fail(inPast)
}

/** Makes the method that extends one membership. */
export const makeExtend = (services: ChangeServices) => {
  const { store } = services
  const type = knownEventTypes.extended

  const changeOf = (
    { expectedEndDate, mode, projectId, userId }: Extension,
    asked: AskedChange,
    endDate: EndDate,
    once: IdempotencyKey | undefined,
  ) => {
    const data = { project_id: projectId, user_id: userId, new_end_date: formatEndDate(endDate) }
    const event = changeEvent(services, asked, type, data)
    return { ...asked, event, userId, endDate, expectedEndDate, mode, once }
  }

  /** Reports an extension. Returns the membership with the end date that it has afterwards. */
  const report = (
    changed: Pick<Change, "once">,
    { projectId, userId }: Extension,
    endDate: EndDate,
    result: Event | EndsLater | ReplayedResponse,
  ): Effect.Effect<ExtensionResult> => {
    if (isEndsLater(result)) return Effect.succeed({ projectId, userId, endDate: result.endDate })
    const isElsewhere = isReplayedResponse(result) && result.answer !== ""
    return Effect.as(reportChange(services, changed, result), {
      projectId,
      userId,
      endDate: isElsewhere ? EndDate(Number(result.answer)) : endDate,
    })
  }

  /** Returns a membership if it has the expected end date. */
  const find = ({ expectedEndDate, projectId, userId }: Extension) =>
    Effect.flatMap(store.find(projectId, userId), (membership) => {
      const conflict = endDateConflict(membership, expectedEndDate)
      return conflict === undefined ? Effect.succeed(membership) : Effect.fail(conflict)
    })

  /** Returns the result of a dry run. */
  const tried = Effect.fnUntraced(function* (
    extension: Extension,
    asked: AskedChange,
    endDate: EndDate,
    later: EndsLater | undefined,
  ) {
    const { projectId, trial, userId } = extension
    const { event } = changeOf(extension, asked, endDate, undefined)
    const change = later === undefined ? ({ _tag: "One", userId } as const) : undefined
    const result: ExtensionResult = {
      projectId,
      userId,
      endDate: later?.endDate ?? endDate,
      events: yield* Effect.catchTag(
        previewEvents(store, trial, event, change),
        "ProjectNotFound",
        () => new MembershipNotFound({ projectId, userId }),
      ),
    }
    return result
  })

  /** Tries an extension to a date. */
  const tryDate = Effect.fnUntraced(function* (
    extension: Extension,
    asked: AskedChange,
    endDate: EndDate,
  ) {
    const membership = yield* find(extension)
    const later = laterOf(membership.endDate, { endDate, mode: extension.mode })
    return yield* tried(extension, asked, endDate, later)
  })

  const readOnceToDate = (
    extending: ExtendingMember,
    { expectedEndDate, mode, projectId, userId }: Extension,
    asked: AskedChange,
    endDate: EndDate,
  ) => {
    const data = { project_id: projectId, user_id: userId, new_end_date: formatEndDate(endDate) }
    return readOnce(extending, asked, type, data, expectedEndDate, mode)
  }

  const toDate = (
    extending: ExtendingMember,
    extension: Extension,
    asked: AskedChange,
    endDate: EndDate,
  ) => {
    if (extension.trial !== "none") return tryDate(extension, asked, endDate)
    const reading =
      extending.idempotencyKey === undefined
        ? absent
        : readOnceToDate(extending, extension, asked, endDate)
    return Effect.flatMapEager(reading, (once) => {
      const changed = changeOf(extension, asked, endDate, once)
      const extended = onceOrInFuture(services, changed, endDate, store.extend(changed))
      return Effect.flatMap(extended, (result) => report(changed, extension, endDate, result))
    })
  }

  const byDuration = Effect.fnUntraced(function* (
    extending: ExtendingMember,
    extension: Extension,
    asked: AskedChange,
    by: DurationText,
  ) {
    const { expectedEndDate, from, projectId, trial, userId } = extension
    const isDry = trial !== "none"
    const data = { project_id: projectId, user_id: userId, by, from }
    const once = yield* readOnce(extending, asked, type, data, expectedEndDate)
    if (once === undefined && expectedEndDate === undefined && !isDry) {
      return yield* unrepeatable(" without expectedEndDate")
    }
    const attempt = Effect.gen(function* () {
      const before = yield* find(extension)
      const endDate = yield* dateAfter(extension, before.endDate, by)
      if (isDry) return yield* tried(extension, asked, endDate, undefined)
      const answered = once && { ...once, answer: String(endDate) }
      const changed = {
        ...changeOf(extension, asked, endDate, answered),
        expectedEndDate: before.endDate,
      }
      const result = yield* Effect.catchTag(store.extend(changed), "EndDateConflict", (conflict) =>
        expectedEndDate === undefined ? Effect.undefined : Effect.fail(conflict),
      )
      return result && (yield* report(changed, extension, endDate, result))
    })
    const repeated = repeatUntilMade("The membership", attempt)
    if (isDry) return yield* repeated
    const made = yield* madeOrRecalled(services, { projectId, once }, repeated)
    return isReplayedResponse(made)
      ? yield* report({ once }, extension, EndDate(Number(made.answer)), made)
      : made
  })

  return (input: ExtendingMember, originInput: OriginInput = hostOrigin) =>
    Effect.flatMap(currentUnixMillis, (at) => {
      const extending = copyOwn(input)
      return Effect.flatMapEager(readExtension(extending, originInput, at), (extension) => {
        const { goal, origin, projectId, reason } = extension
        const asked = { projectId, origin, reason, at }
        return goal.by === undefined
          ? toDate(extending, extension, asked, goal.endDate)
          : byDuration(extending, extension, asked, goal.by)
      })
    })
}
