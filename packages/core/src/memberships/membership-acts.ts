/** The acts on projects and memberships, which a host's methods and the API share. */

import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import {
  type ChangeContext,
  type ReplayedResponse,
  isReplayedResponse,
  notifyReplay,
  repeatUntilMade,
} from "../base/change-context.ts"
import { InvalidInput } from "../base/errors.ts"
import type { ofProject } from "../base/input.ts"
import { invalidArgument } from "../base/input.ts"
import type { Decoded } from "../base/operation-input.ts"
import { ProjectDeletions } from "../base/project-deletions.ts"
import * as Setting from "../base/setting.ts"
import { Millis } from "../base/time.ts"
import { type ProjectId } from "../base/values.ts"
import { type Event, Hooks, eventData, knownEventTypes } from "../events/event.ts"
import { type ExpiriesSettings, makeForeseeing, settingsFor } from "./announcements.ts"
import { parseGrantAnswer } from "./answers.ts"
import type { AnnouncementCounts } from "./bulk-extension.ts"
import { makeBulkChanges } from "./bulk-extensions.ts"
import { endOfDay, knownZone, utc } from "./calendar.ts"
import {
  type EventsPreview,
  type ImportCounts,
  countImport,
  previewEvents,
  trialOf,
} from "./dry-run.ts"
import { bulkModes, formatEndDate } from "./end-date.ts"
import { makeExtendSome } from "./extend-some.ts"
import {
  type ChangeServices,
  changeEvent,
  changeFound,
  makeExtend,
  reportChange,
} from "./extensions.ts"
import type {
  ending,
  imported,
  membershipUpdate,
  newMembership,
  ofMember,
  projectUpdate,
} from "./inputs.ts"
import {
  type CurrentMembership,
  type DatedMembership,
  type ImportedMembership,
  type Membership,
  datedIn,
  futurePauseIn,
  isAlreadyMember,
  type ProjectSummary,
  parseMembership,
  strangerIn,
  userIdRuleOption,
  currentMembership,
} from "./membership.ts"
import {
  type Metadata,
  applyMetadataPatch,
  maxMetadata,
  metadataSetting,
  noMetadata,
} from "./metadata.ts"
import { makeMove } from "./move.ts"
import { makePauses } from "./pauses.ts"
import {
  type EndedAgo,
  type ProjectSettings,
  applyProjectPatch,
  defaultProjectSettings,
  graceChange,
  movedEnds,
  projectChanges,
} from "./project-settings.ts"
import { makeMembershipQueries } from "./queries.ts"
import { MembershipStore } from "./store.ts"

const tooMuchMetadata = new InvalidInput({
  field: "metadata",
  problem: `must leave at most ${maxMetadata} names, with those that the membership has`,
})

const metadataOption = Setting.optional(metadataSetting)

/** Returns the metadata in a membership's event. */
const metadataIn = (event: Event): Metadata => {
  const data = eventData(event)
  const found = Predicate.hasProperty(data, "metadata") ? data.metadata : undefined
  return Result.getOrElse(metadataOption.read(found, "metadata"), () => undefined) ?? noMetadata
}

const parseProject = ({ answer }: ReplayedResponse): ProjectSummary => ({
  // JSON leaves it out if it is undefined.
  lastBulkEndDate: undefined,
  ...JSON.parse(answer),
})

/** Returns a new project. */
const emptyProject = (id: ProjectId): ProjectSummary => ({
  id,
  ...defaultProjectSettings,
  memberships: 0,
  webhooks: 0,
  lastBulkEndDate: undefined,
})

/** Counts the memberships to which a change of grace would give another state, and the ends that it would move. */
const previewGrace = Effect.fnUntraced(function* (
  store: MembershipStore["Service"],
  isAnnouncing: boolean,
  before: ProjectSummary,
  after: ProjectSettings,
) {
  const change = graceChange(before, after)
  const count = ({ from, to }: EndedAgo) =>
    change !== undefined && from < to
      ? store.countEndedBetween(before.id, { from, to })
      : Effect.succeed(0)
  const changed = change === undefined ? 0 : yield* count(change)
  const states = {
    wouldReactivate: change?.state === "active" ? changed : 0,
    wouldExpire: change?.state === "expired" ? changed : 0,
  }
  if (!isAnnouncing) return states
  const countWithin = (days: number) => {
    const ends = movedEnds(before, after, Millis(days * 86_400_000))
    return Effect.all({ overdue: count(ends.overdue), expired: count(ends.expired) })
  }
  const [soon, all] = [yield* countWithin(1), yield* countWithin(7)]
  const announcements = { expiring: 0, ...all, next24Hours: soon.overdue + soon.expired }
  return { ...states, announcements }
})

// Far days in many time zones take 0.1 ms each.
const rowsPerTurn = 100

/**
 * Returns an import's memberships with the instants at which their last days end, in turns with the process's other
 * work.
 */
const findDates = Effect.fnUntraced(function* (
  { store }: Pick<ChangeServices, "store">,
  projectId: ProjectId,
  rows: ReadonlyArray<ImportedMembership>,
) {
  const needsZone = rows.some((row) => row.through !== undefined && row.timeZone === undefined)
  const zone = needsZone
    ? yield* Effect.fromResult(knownZone((yield* store.findProject(projectId)).timeZone))
    : utc
  const dated: Array<DatedMembership> = []
  let days = 0
  for (const row of rows) {
    if (row.through !== undefined && ++days % rowsPerTurn === 0) yield* Effect.yieldNow
    dated.push(datedIn(row, zone))
  }
  return dated
})

/** Makes the changing acts. */
const makeChanges = Effect.fnUntraced(function* (settings: ActSettings) {
  const deletions = yield* ProjectDeletions
  const store = yield* MembershipStore
  const expiry = settingsFor(store, settings)
  const isAnnouncing = expiry !== undefined
  const services = {
    store,
    hooks: yield* Hooks,
    crypto: yield* WebCrypto,
    foresee: makeForeseeing(store, expiry),
  }

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

    updateProject: Effect.fnUntraced(function* (
      { dryRun, projectId, reason, ...patch }: Decoded<typeof projectUpdate>,
      context: ChangeContext,
    ) {
      const attempt = Effect.gen(function* () {
        const before = yield* store.findProject(projectId)
        const after = applyProjectPatch(before, patch)
        const updated: UpdatedProject = { ...before, ...after }
        if (dryRun) {
          return { ...updated, ...(yield* previewGrace(store, isAnnouncing, before, after)) }
        }
        const idempotency = context.idempotency && {
          ...context.idempotency,
          answer: JSON.stringify(updated),
        }
        const replayed = yield* store.updateProject({
          ...context,
          projectId,
          reason,
          expected: before,
          settings: after,
          changes: projectChanges(before, after),
          idempotency,
        })
        yield* notifyReplay(context, replayed)
        return isReplayedResponse(replayed) ? parseProject(replayed) : updated
      })
      return yield* repeatUntilMade(
        "The project",
        Effect.catchTag(attempt, "ProjectConflict", () => Effect.undefined),
      )
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
      const { ifAbsent, metadata, projectId, reason, userId } = membership
      if (!settings.userIds.is(userId)) {
        return yield* invalidArgument("userId", settings.userIds.expected)
      }
      const { at } = context
      const inDays = membership.through !== undefined
      // Where the date is still to come, the response does not depend on the project's settings.
      const { grace, timeZone } =
        inDays || membership.endDate <= at
          ? yield* store.findProject(projectId)
          : defaultProjectSettings
      const endDate = inDays
        ? endOfDay(
            membership.through,
            membership.timeZone ?? (yield* Effect.fromResult(knownZone(timeZone))),
          )
        : membership.endDate
      const event = changeEvent(services, { ...context, ...membership }, knownEventTypes.granted, {
        project_id: projectId,
        user_id: userId,
        new_end_date: formatEndDate(endDate),
      })
      const dated = { userId, endDate, inDays, timeZone, grace, metadata }
      const changed = { ...context, projectId, reason, event, ...dated }
      const result = yield* ifAbsent
        ? store.grantIfAbsent({ ...changed, isFinal: true })
        : store.grant(changed)
      const resultOf = (found: Membership, then: number, isLeft: boolean): GrantResult => ({
        ...currentMembership(found, then),
        ...(ifAbsent && { created: !isLeft }),
      })
      if (isAlreadyMember(result)) return resultOf(result.membership, at, true)
      if (isReplayedResponse(result)) {
        yield* notifyReplay(changed, result)
        const { at: then, isLeft, ...made } = parseGrantAnswer(result.answer)
        return resultOf({ projectId, userId, ...made }, then, isLeft)
      }
      yield* services.hooks.event(result.event)
      const granted = { projectId, keptDay: undefined, ...dated, pause: result.pause }
      return resultOf({ ...granted, metadata: metadata ?? metadataIn(result.event) }, at, false)
    }),

    import: Effect.fnUntraced(function* (
      { memberships: rows, projectId, reason, ...given }: Decoded<typeof imported>,
      context: ChangeContext,
    ) {
      const memberships = yield* findDates(services, projectId, rows)
      const problem =
        strangerIn(memberships, settings.userIds) ?? futurePauseIn(memberships, context.at)
      if (problem !== undefined) return yield* problem
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
        const { grace } = yield* store.findProject(projectId)
        const foresight = yield* services.foresee(grace, true)
        const current = new Map(found.map((one) => [one.userId, one] as const))
        const ends = memberships.map(({ endDate, pause, userId }) => ({
          before: current.get(userId)?.endDate,
          after: endDate,
          isPaused: (pause ?? current.get(userId)?.pause) !== undefined,
        }))
        // In a pause, nothing is announced.
        const announced = ends.filter(({ isPaused }) => !isPaused)
        const announcements = foresight?.countEach(announced, context.at)
        const result: ImportResult = { total, ...countImport(ends), announcements, events }
        return result
      }
      yield* reportChange(services, change, yield* store.import({ ...change, event, memberships }))
      const result: ImportResult = { total }
      return result
    }),

    extend: makeExtend(services, settings.userIds),

    extendSome: makeExtendSome(services),

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
        const updated = currentMembership({ ...before, metadata }, at)
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
      return yield* changeFound(
        services,
        change,
        Effect.catchTag(attempt, "MetadataConflict", () => Effect.undefined),
        parseMembership,
      )
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

    ...makePauses(services),

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

/** Options for memberships. */
export const membershipsOptions = Setting.object({
  /**
   * User ids allowed for members: 1 to 128 visible ASCII characters except `.` and `..` (`"text"`),
   * only digits (`"digits"`), or `"text"` ids that match a regular expression. Default: `"text"`.
   */
  userIds: Setting.withDefault(userIdRuleOption, "text"),
  /**
   * The default mode for bulk extensions: also sets memberships with a later end date (`"set"`), or
   * leaves these as they are (`"neverShorten"`). Default: `"set"`.
   */
  bulk: Setting.withDefault(Setting.oneOf(bulkModes), "set"),
  /** For how long a bulk extension can be undone. Default: `"30 days"`. */
  undoPeriod: Setting.withDefault(Setting.duration(), "30 days"),
})

/** The options as a host passes them. */
export interface MembershipsOptions extends Setting.InputOf<typeof membershipsOptions> {}

/** The settings for all that is done with memberships. */
export interface ActSettings
  extends Setting.OutputOf<typeof membershipsOptions>, ExpiriesSettings {}

/** A project after a change of its settings. */
export interface UpdatedProject extends ProjectSummary {
  /** After a dry run: the ends that a new grace moves; `undefined` if ends are not announced. */
  readonly announcements?: AnnouncementCounts | undefined
  /** After a dry run: how many expired memberships would be active again. */
  readonly wouldReactivate?: number | undefined
  /** After a dry run: how many active memberships would be expired. */
  readonly wouldExpire?: number | undefined
}

/** A membership after a grant. */
export interface GrantResult extends CurrentMembership {
  /** After a grant with `ifAbsent`: whether the membership was created, and not left as it was. */
  readonly created?: boolean | undefined
}

/** An import's result, or its dry run's. */
export interface ImportResult extends Partial<ImportCounts> {
  /** How many memberships were created or set. */
  readonly total: number
  /** In a dry run: the announcements it sets off; `undefined` if ends are not announced. */
  readonly announcements?: AnnouncementCounts | undefined
  /** In a dry run with `events`: the webhooks to be sent. */
  readonly events?: EventsPreview | undefined
}

export const makeActs = Effect.fnUntraced(function* (settings: ActSettings) {
  const queries = makeMembershipQueries(yield* MembershipStore, settings)
  return { ...(yield* makeChanges(settings)), ...queries }
})

/** The methods' acts, after their arguments are read. The HTTP API reads them from requests. */
export class MembershipActs extends Context.Service<
  MembershipActs,
  Effect.Success<ReturnType<typeof makeActs>>
>()("@tenure/core/MembershipActs") {}
