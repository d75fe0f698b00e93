/** Memberships and projects in memory. */

import {
  type Moment,
  auditedOrigin,
  comparePositions,
  currentMoment,
  isEndsLater,
  isReplayedResponse,
  stateAt,
  withMoment,
} from "@tenure/core/internal"
import {
  type ApiKeyId,
  type AuditAction,
  BulkExtensionNotFound,
  type BulkExtensionRecord,
  BulkExtensionSettled,
  BulkExtensionUndone,
  type Change,
  type DatedMembership,
  type EndDate,
  type EndDateConflict,
  type EndsLater,
  type EndsQuery,
  type Event,
  type Grant,
  type Membership,
  type MemberChange,
  type MemberChanges,
  MemberChangesConflict,
  MembershipNotFound,
  type MembershipStore,
  MetadataConflict,
  type Millis,
  MoveConflict,
  type MovedMembership,
  PauseConflict,
  ProjectConflict,
  type ProjectId,
  ProjectNotFound,
  type RecordedState,
  type UndoTarget,
  type UserId,
  adjustmentOf,
  alreadyMember,
  bulkActions,
  cellOf,
  changeTime,
  changedMembersOf,
  endCellsAt,
  endCountsOf,
  endDateConflict,
  endingPage,
  formatBulkAnswer,
  formatGrantAnswer,
  instantForm,
  isSameForm,
  isSameTerm,
  laterOf,
  metadataJson,
  maxPreviewed,
  noMetadata,
  positionOfCursor,
  projectChanges,
  searchingHistory,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import { addRow, countExtended, readAuditPage } from "./audit-trail.ts"
import { makeMemoryExpiryStore } from "./expiry.ts"
import { endPauses } from "./pauses.ts"
import { type Project, membershipOf, metadataOf, summaryOf } from "./projects.ts"
import {
  type AnswerOf,
  type State,
  addAuditRow,
  createProject,
  deleteProject,
  eraseMember,
  projectOf,
  publishChange,
  receiversOf,
} from "./state.ts"

type Asked = Parameters<MembershipStore["Service"]["listProjects"]>[0]

/** Returns a page's ids, in order. */
const pageOf = (
  ids: ReadonlyArray<ProjectId>,
  { after, limit, within }: Asked,
): ReadonlyArray<ProjectId> =>
  ids
    .filter((id) => (after === undefined || id > after) && (within === "all" || within.has(id)))
    // Unlike `localeCompare`, by code unit.
    .toSorted()
    .slice(0, limit)

/** An audit row's fields other than its author and time. */
interface Entry {
  readonly action: AuditAction
  readonly userId: UserId | undefined
  readonly from: EndDate | undefined
  readonly to: EndDate | undefined
  readonly by?: Millis | undefined
  readonly subject?: string | undefined
  /** Whether a bulk extension gave a day. */
  readonly inDays?: boolean | undefined
}

// Shared: thousands of rows are kept.
const noChanges: ReadonlyArray<never> = []

/** Returns the state after a change. Most dates are instants without a pause, for which no object is kept. */
const stateAfter = (
  { members }: Project,
  { inDays: givesDay = false, userId }: Entry,
): RecordedState | undefined => {
  const form = userId === undefined ? instantForm : members.form(userId)
  const pause = userId === undefined ? undefined : members.watched(userId)?.pause
  const inDays = form.inDays || givesDay
  const { keptDay } = form
  return inDays || keptDay !== undefined || pause !== undefined
    ? { inDays, keptDay, pause, isUnasked: false }
    : undefined
}

/** Adds an audit row after a change. */
const audit = (project: Project, { at, origin, reason }: Change, entry: Entry): void => {
  const { action, by, from, subject, to, userId } = entry
  addRow(project.history, {
    action,
    userId,
    from,
    to,
    projectId: project.id,
    origin: auditedOrigin(origin),
    reason,
    at,
    by,
    subject,
    changes: noChanges,
    state: stateAfter(project, entry),
  })
}

/** Returns a bulk extension that can be undone, or why it cannot. */
const findUndoable = (
  { bulkExtensions, members }: Project,
  { bulkExtensionId, madeAfter }: UndoTarget,
): Result.Result<
  BulkExtensionRecord,
  BulkExtensionNotFound | BulkExtensionUndone | BulkExtensionSettled
> => {
  const record = [...bulkExtensions.newestFirst()].find(({ id }) => id === bulkExtensionId)
  if (record === undefined) return Result.fail(new BulkExtensionNotFound({ bulkExtensionId }))
  if (record.undone !== undefined) return Result.fail(new BulkExtensionUndone({ bulkExtensionId }))
  return record.at > madeAfter && members.log().some(({ id }) => id === bulkExtensionId)
    ? Result.succeed(record)
    : Result.fail(new BulkExtensionSettled({ bulkExtensionId }))
}

const isExpected = (
  membership: Membership | undefined,
  expected: MovedMembership | undefined,
): boolean =>
  membership?.pause === undefined &&
  membership?.endDate === expected?.endDate &&
  isSameForm(membership ?? instantForm, expected ?? instantForm) &&
  metadataJson(membership?.metadata ?? noMetadata) ===
    metadataJson(expected?.metadata ?? noMetadata)

/** Returns the last announcement of the membership that ends later; of equal ends, of the one announced further. */
const announcedLater = ({ members }: Project, userIds: ReadonlyArray<UserId>) =>
  userIds
    .flatMap((userId) => {
      const endDate = members.get(userId)
      const announced = members.watched(userId)?.announced
      const lead = announced?.endDate === endDate ? announced?.lead : undefined
      return endDate === undefined ? [] : { endDate, announced, lead: lead ?? Infinity }
    })
    .toSorted((one, other) => other.endDate - one.endDate || one.lead - other.lead)[0]?.announced

// About a millisecond.
const membersPerTurn = 5000

type Only = Parameters<MembershipStore["Service"]["list"]>[1]["only"]

const isIn = (membership: Membership, only: Only): boolean =>
  only === undefined || stateAt(membership, only.at) === only.state

/** Returns the place behind those user ids, in order, that come before all others by a test. */
const placeBehind = (
  userIds: ReadonlyArray<UserId>,
  isBefore: (userId: UserId) => boolean,
): number => {
  let least = 0
  let most = userIds.length
  while (least < most) {
    const middle = (least + most) >>> 1
    const userId = userIds[middle]
    if (userId !== undefined && isBefore(userId)) least = middle + 1
    else most = middle
  }
  return least
}

/** Makes the store. Every change is one synchronous step. */
export const makeMemoryMembershipStore = (state: State): MembershipStore["Service"] => {
  const record = (
    project: Project,
    changed: Change,
    entry: Entry,
    now: Moment,
    metadata?: string,
  ): Event => {
    audit(project, changed, entry)
    return publishChange(state, project, changed, now, metadata)
  }

  /** Sets a member's end date, and the metadata if there is some to set. */
  const setDate = (
    project: Project,
    { endDate, inDays = false, keptDay, metadata, pause, userId }: DatedMembership,
    dateSetAt: number,
    isSetWithOthers = false,
  ): void => {
    project.members.set(userId, { endDate, inDays, keptDay }, { dateSetAt, isSetWithOthers })
    const member = project.members.watched(userId)
    if (member !== undefined && metadata !== undefined) member.metadata = metadataJson(metadata)
    state.alarms.arm(project, userId, endDate)
    if (pause === undefined) return
    project.members.pause(userId, pause)
    state.alarms.set(project, userId, pause.until)
  }

  /** Sets the end date for a new or existing member. */
  const grant = (
    project: Project,
    changed: Change,
    dated: DatedMembership,
    action: "granted" | "imported",
    now: Moment,
  ): void => {
    const { endDate, userId } = dated
    const from = project.members.get(userId)
    setDate(project, dated, changeTime(changed.at, now.unix), action === "imported")
    audit(project, changed, { action, userId, from, to: endDate })
  }

  /** Grants a membership, and publishes it. */
  const grantOne = (project: Project, granted: Grant, now: Moment) => {
    grant(project, granted, granted, "granted", now)
    const metadata = metadataOf(project.members, granted.userId)
    const pause = project.members.watched(granted.userId)?.pause
    return { metadata, pause, event: publishChange(state, project, granted, now, metadata) }
  }

  /** Makes one of several changes, and publishes it. */
  const changeMember = (
    project: Project,
    { action, changes: _, ...change }: MemberChanges,
    { event, to, userId }: MemberChange,
    now: Moment,
  ): Event => {
    const { members } = project
    const from = members.get(userId)
    const ended = metadataOf(members, userId)
    if (to === undefined) members.delete(userId)
    else {
      if (to.pause === undefined) members.unpause(userId)
      setDate(project, { userId, ...to }, changeTime(change.at, now.unix), true)
    }
    const metadata = to === undefined ? ended : metadataOf(members, userId)
    const entry: Entry = { action, userId, from, to: to?.endDate }
    return record(project, { ...change, event }, entry, now, metadata)
  }

  const nameOf = (keyId: ApiKeyId | undefined): string | undefined =>
    keyId && state.keys.get(keyId)?.name

  /** Returns a project after ending its pauses in time. */
  const currentProject = (projectId: ProjectId, now: Moment): Project | undefined => {
    const project = state.projects.get(projectId)
    if (project !== undefined) endPauses(state, project, now.unix)
    return project
  }

  const projectAndNow = (projectId: ProjectId) =>
    Effect.tap(
      Effect.all({ project: projectOf(state, projectId), now: currentMoment }),
      ({ now, project }) => Effect.sync(() => endPauses(state, project, now.unix)),
    )

  /** Changes an existing membership if `apply` succeeds. */
  const change = <A, E>(
    changed: Change & { readonly userId: UserId },
    apply: (project: Project, from: EndDate, now: Moment) => Result.Result<A, E>,
    answerOf?: AnswerOf<A>,
  ) =>
    state.answers.change(
      changed.idempotency,
      changed.projectId,
      withMoment((now): Effect.Effect<A, MembershipNotFound | E> => {
        const { projectId, userId } = changed
        const project = currentProject(projectId, now)
        const from = project?.members.get(userId)
        if (project === undefined || from === undefined) {
          return Effect.fail(new MembershipNotFound({ projectId, userId }))
        }
        return Effect.fromResult(apply(project, from, now))
      }),
      answerOf,
    )

  /** Begins or ends a pause, unless `apply` returns `undefined`. */
  const changePause = (
    changed: Change & { readonly userId: UserId },
    apply: (project: Project, membership: Membership, now: Moment) => Event | undefined,
  ) =>
    state.answers.change(
      changed.idempotency,
      changed.projectId,
      withMoment((now) => {
        const project = currentProject(changed.projectId, now)
        const membership = project && membershipOf(project, changed.userId)
        const event = project && membership && apply(project, membership, now)
        return event === undefined ? Effect.fail(new PauseConflict()) : Effect.succeed(event)
      }),
    )

  /** Changes an existing project. */
  const changeProject = <A>(
    { idempotency, projectId }: Change,
    apply: (project: Project, now: Moment) => A,
    answerOf?: AnswerOf<A>,
  ) =>
    state.answers.change(
      idempotency,
      projectId,
      Effect.map(projectAndNow(projectId), ({ now, project }) => apply(project, now)),
      answerOf,
    )

  const counting = Semaphore.makeUnsafe(1)

  /** Counts ends, in turns with whatever else the process does. */
  const countEnds = Effect.fnUntraced(function* (projectId: ProjectId, query: EndsQuery) {
    const { now, project } = yield* projectAndNow(projectId)
    const cells = endCellsAt(query, now.unix, project.settings)
    const inCell = new Map<number, number>()
    let counted = 0
    for (const endDate of project.members.endDates(query.change)) {
      if (++counted % membersPerTurn === 0) yield* Effect.yieldNow
      const cell = cellOf(cells, endDate)
      inCell.set(cell, (inCell.get(cell) ?? 0) + 1)
    }
    return endCountsOf(
      cells,
      inCell,
      countExtended(project.history, project.settings.timeZone),
      project.members.paused(),
    )
  })

  const history: MembershipStore["Service"]["history"] = (projectId, { userId, ...page }) =>
    projectId === undefined
      ? Effect.sync(() => readAuditPage(state.otherHistory, nameOf, undefined, page))
      : Effect.map(projectOf(state, projectId), (project) =>
          readAuditPage(
            project.history,
            nameOf,
            userId && { id: userId, isMember: project.members.get(userId) !== undefined },
            page,
          ),
        )

  return {
    ping: Effect.void,
    expiry: makeMemoryExpiryStore(state),

    createProject: (projectId, context) =>
      state.answers.change(
        context.idempotency,
        undefined,
        Effect.sync(() => createProject(state, projectId, context)),
      ),

    updateProject: (updated) =>
      state.answers.change(
        updated.idempotency,
        updated.projectId,
        withMoment((now) => {
          const { changes, expected, projectId, settings } = updated
          const project = state.projects.get(projectId)
          if (project === undefined || projectChanges(project.settings, expected).length > 0) {
            return Effect.fail(new ProjectConflict())
          }
          if (project.settings.grace !== settings.grace) {
            // By the former grace, they were over before.
            const shortened = Math.max(0, project.settings.grace - settings.grace)
            state.alarms.armAll(project, undefined, now.unix - shortened)
            project.graceSetAt = now.unix
          }
          project.settings = settings
          if (changes.length > 0) {
            addAuditRow(state, projectId, "project_changed", projectId, updated, changes)
          }
          return Effect.void
        }),
      ),

    deleteProject: (projectId, context) =>
      state.answers.change(
        context.idempotency,
        undefined,
        Effect.suspend(() =>
          deleteProject(state, projectId, context)
            ? Effect.void
            : Effect.fail(new ProjectNotFound({ projectId })),
        ),
      ),

    findProject: (projectId) => Effect.map(projectOf(state, projectId), summaryOf),

    listProjects: (page) =>
      Effect.sync(() =>
        pageOf([...state.projects.keys()], page).flatMap((id) => {
          const project = state.projects.get(id)
          return project === undefined ? [] : summaryOf(project)
        }),
      ),

    grant: (granted) =>
      changeProject(
        granted,
        (project, now) => grantOne(project, granted, now),
        (
          { metadata, pause },
          given = formatGrantAnswer({ ...granted, metadata, pause, isLeft: false }),
        ) => given,
      ),

    grantIfAbsent: (granted) => {
      const { at, idempotency, isFinal, projectId, userId } = granted
      const attempt = Effect.gen(function* () {
        const { now, project } = yield* projectAndNow(projectId)
        const found = membershipOf(project, userId)
        if (found === undefined) {
          const result = grantOne(project, granted, now)
          const { metadata } = result
          return { answer: formatGrantAnswer({ ...granted, metadata, isLeft: false }), result }
        }
        const result = alreadyMember(found)
        // What fails keeps no key.
        if (!isFinal) return yield* Effect.fail(result)
        const metadata = metadataJson(found.metadata)
        return { answer: formatGrantAnswer({ ...found, at, metadata, isLeft: true }), result }
      })
      return state.answers
        .change(idempotency, projectId, attempt, ({ answer }, given = answer) => given)
        .pipe(
          Effect.map((made) => (isReplayedResponse(made) ? made : made.result)),
          Effect.catchTag("AlreadyMember", (left) => Effect.succeed(left)),
        )
    },

    import: (imported) =>
      changeProject(imported, (project, now) => {
        for (const one of imported.memberships) grant(project, imported, one, "imported", now)
        return publishChange(state, project, imported, now)
      }),

    extend: (extension) =>
      change(
        extension,
        (project, from, now): Result.Result<Event | EndsLater, EndDateConflict> => {
          const { endDate, expectedEndDate, expectedForm, projectId, userId } = extension
          if (expectedEndDate !== undefined) {
            const current = { projectId, userId, endDate: from, ...project.members.form(userId) }
            const conflict = endDateConflict(current, expectedEndDate, expectedForm)
            if (conflict !== undefined) return Result.fail(conflict)
          }
          const later = laterOf(from, extension)
          if (later !== undefined) return Result.succeed(later)
          setDate(project, extension, changeTime(extension.at, now.unix))
          const entry: Entry = { action: "extended", userId, from, to: endDate }
          const metadata = metadataOf(project.members, userId)
          return Result.succeed(record(project, extension, entry, now, metadata))
        },
        (result, given = "") => (isEndsLater(result) ? String(result.endDate) : given),
      ),

    changeEach: (changed) =>
      state.answers.change(
        changed.idempotency,
        changed.projectId,
        withMoment((now) => {
          const { changes, projectId } = changed
          const project = currentProject(projectId, now)
          return project !== undefined &&
            changes.every(({ from, userId }) => isSameTerm(membershipOf(project, userId), from))
            ? Effect.succeed(changes.map((one) => changeMember(project, changed, one, now)))
            : Effect.fail(new MemberChangesConflict())
        }),
      ),

    extendAll: (extension) =>
      changeProject(
        extension,
        (project, now) => {
          const { at, bulk, event, origin, reason } = extension
          const total = project.members.size()
          project.members.extendAll(event.id, bulk, changeTime(at, now.unix))
          project.bulkExtensions.push({
            id: event.id,
            change: bulk,
            at,
            reason,
            origin: auditedOrigin(origin),
            total,
            undone: undefined,
          })
          const isByDuration = bulk.mode === "extendBy"
          state.alarms.armAll(project, isByDuration ? undefined : bulk.endDate, at)
          const entry = {
            action: bulkActions[bulk.mode],
            userId: undefined,
            from: undefined,
            to: isByDuration ? undefined : bulk.endDate,
            by: isByDuration ? bulk.by : undefined,
            subject: event.id,
            inDays: !isByDuration && bulk.inDays,
          }
          return { total, event: record(project, extension, entry, now) }
        },
        ({ total }, given = formatBulkAnswer(total, extension.bulk)) => given,
      ),

    undoBulkExtension: (undo) =>
      state.answers.change(
        undo.idempotency,
        undo.projectId,
        Effect.gen(function* () {
          const { now, project } = yield* projectAndNow(undo.projectId)
          const { id } = yield* Effect.fromResult(findUndoable(project, undo))
          const undone = { at: undo.at, by: auditedOrigin(undo.origin) }
          project.members.undo(id, changeTime(undo.at, now.unix))
          project.bulkExtensions.replace((one) => (one.id === id ? { ...one, undone } : one))
          state.alarms.armAll(project, undefined, undo.at)
          const entry = {
            action: "bulk_undone",
            userId: undefined,
            from: undefined,
            to: undefined,
            subject: id,
          } as const
          return { total: project.members.size(), event: record(project, undo, entry, now) }
        }),
        ({ total }, given = String(total)) => given,
      ),

    bulkExtensions: (projectId, { after, limit }) =>
      Effect.map(projectOf(state, projectId), ({ bulkExtensions }) => {
        const newestFirst = [...bulkExtensions.newestFirst()]
        const place = after === undefined ? -1 : newestFirst.findIndex(({ id }) => id === after)
        const isUnknown = after !== undefined && place === -1
        return isUnknown ? [] : newestFirst.slice(place + 1, place + 1 + limit)
      }),

    previewBulkExtension: (projectId, bulk, offsets = []) =>
      Effect.map(projectAndNow(projectId), ({ now, project: { members, settings } }) =>
        members.preview(
          [
            ...members.log(),
            {
              order: members.changes() + 1,
              adjustment: adjustmentOf(bulk),
              isUndone: false,
            },
          ],
          now.unix - settings.grace,
          offsets.map((offset) => now.unix + offset),
        ),
      ),

    previewPublication: (projectId, type, further) =>
      Effect.map(projectOf(state, projectId), (project) => {
        const receivers = receiversOf(project, { type })
        return {
          sequence: project.members.changes() + (further._tag === "Import" ? further.size : 1),
          metadata:
            further._tag === "One" ? metadataOf(project.members, further.userId) : undefined,
          total: receivers.length,
          first: receivers.slice(0, maxPreviewed).map(({ id, url }) => ({ webhookId: id, url })),
        }
      }),

    // One at a time, so that everything else comes soon, however many are asked for.
    countEnds: (projectId, query) => counting.withPermit(countEnds(projectId, query)),

    countEndedBetween: (projectId, { from, to }) =>
      Effect.map(projectAndNow(projectId), ({ now, project: { members } }) => {
        const hasEndedBetween = (endDate: EndDate) =>
          endDate <= now.unix - from && endDate > now.unix - to
        return members.select(hasEndedBetween).length
      }),

    previewUndo: (projectId, target, offsets = []) =>
      Effect.flatMap(projectAndNow(projectId), ({ now, project }) =>
        Effect.fromResult(
          Result.map(findUndoable(project, target), ({ id }) =>
            project.members.preview(
              project.members
                .log()
                .map((one) => (one.id === id ? { ...one, isUndone: true } : one)),
              now.unix - project.settings.grace,
              offsets.map((offset) => now.unix + offset),
            ),
          ),
        ),
      ),

    setMetadata: (changed) =>
      state.answers.change(
        changed.idempotency,
        changed.projectId,
        withMoment((now) => {
          const { expected, metadata, projectId, userId } = changed
          const project = currentProject(projectId, now)
          const endDate = project?.members.get(userId)
          const member = project?.members.watched(userId)
          if (project === undefined || endDate === undefined || member === undefined) {
            return Effect.fail(new MetadataConflict())
          }
          if (member.metadata !== metadataJson(expected)) {
            return Effect.fail(new MetadataConflict())
          }
          member.metadata = metadataJson(metadata)
          project.members.countChange()
          const entry: Entry = { action: "updated", userId, from: endDate, to: endDate }
          return Effect.succeed(record(project, changed, entry, now, member.metadata))
        }),
      ),

    pause: (pausing) =>
      changePause(pausing, (project, { endDate, pause }, now) => {
        const { at, expected, until, userId } = pausing
        if (pause !== undefined || endDate !== expected.endDate) return undefined
        project.members.pause(userId, { since: at, until })
        project.members.countChange()
        state.alarms.set(project, userId, until)
        const entry: Entry = { action: "paused", userId, from: endDate, to: endDate }
        return record(project, pausing, entry, now, metadataOf(project.members, userId))
      }),

    resume: (resuming) =>
      changePause(resuming, (project, { endDate, pause }, now) => {
        const { at, expected, userId } = resuming
        const isSame = pause?.since === expected.pause.since && pause.until === expected.pause.until
        if (!isSame || endDate !== expected.endDate) return undefined
        project.members.resume(userId, resuming.endDate, changeTime(at, now.unix))
        state.alarms.arm(project, userId, resuming.endDate)
        const entry: Entry = { action: "resumed", userId, from: endDate, to: resuming.endDate }
        return record(project, resuming, entry, now, metadataOf(project.members, userId))
      }),

    end: (ending) =>
      change(ending, (project, from, now) => {
        const { userId } = ending
        const metadata = metadataOf(project.members, userId)
        project.members.delete(userId)
        const entry: Entry = { action: "ended", userId, from, to: undefined }
        return Result.succeed(record(project, ending, entry, now, metadata))
      }),

    move: (move) =>
      state.answers.change(
        move.idempotency,
        move.projectId,
        withMoment((now) => {
          const { expected, projectId, to, userId } = move
          const project = currentProject(projectId, now)
          if (
            project === undefined ||
            !isExpected(membershipOf(project, userId), expected.from) ||
            !isExpected(membershipOf(project, to), expected.to)
          ) {
            return Effect.fail(new MoveConflict())
          }
          const announced = announcedLater(project, [userId, to])
          const metadata = metadataOf(project.members, userId)
          const [left, replaced] = [expected.from.endDate, expected.to?.endDate]
          project.members.delete(userId)
          audit(project, move, { action: "moved", userId, subject: to, from: left, to: undefined })
          const ended = publishChange(state, project, move, now, metadata)
          setDate(project, { ...move, userId: to }, changeTime(move.at, now.unix))
          const member = project.members.watched(to)
          if (member !== undefined) member.announced = announced
          const entry: Entry = {
            action: "moved",
            userId: to,
            subject: userId,
            from: replaced,
            to: move.endDate,
          }
          audit(project, move, entry)
          const { granted: event } = move
          const joined = metadataOf(project.members, to)
          const granted = publishChange(state, project, { ...move, event }, now, joined)
          return Effect.succeed([ended, granted] as const)
        }),
      ),

    erase: (erasure) =>
      changeProject(erasure, (project, now) => {
        const wasMember = eraseMember(state, project, erasure.userId)
        addAuditRow(state, project.id, "person_erased", undefined, erasure)
        return wasMember ? publishChange(state, project, erasure, now) : undefined
      }),

    recall: state.answers.find,

    find: (projectId, userId) =>
      withMoment((now): Effect.Effect<Membership, MembershipNotFound> => {
        const project = currentProject(projectId, now)
        const membership = project && membershipOf(project, userId)
        return membership === undefined
          ? Effect.fail(new MembershipNotFound({ projectId, userId }))
          : Effect.succeed(membership)
      }),

    list: (projectId, { after = "", limit, only, prefix = "", userIds }) =>
      Effect.map(projectAndNow(projectId), ({ project }) => {
        const candidates =
          userIds === undefined ? project.members.sorted() : [...new Set(userIds)].toSorted()
        const page: Array<Membership> = []
        let place = placeBehind(candidates, (userId) => userId <= after || userId < prefix)
        for (; page.length < limit; place++) {
          const userId = candidates[place]
          if (userId === undefined || !userId.startsWith(prefix)) break
          const membership = membershipOf(project, userId)
          if (membership !== undefined && isIn(membership, only)) page.push(membership)
        }
        return page
      }),

    listEnding: (projectId, { after, before, limit }) =>
      Effect.map(projectAndNow(projectId), ({ now, project }) => {
        const place = after && positionOfCursor(after)
        const ending = project.members
          .select((endDate) => endDate + project.settings.grace > now.unix && endDate < before)
          .filter((dated) => place === undefined || comparePositions(dated, place) > 0)
          .toSorted(comparePositions)
          .slice(0, limit + 1)
        return endingPage(
          ending.flatMap(({ userId }) => membershipOf(project, userId) ?? []),
          limit,
        )
      }),

    recordShown: (projectId, { action, subject }, context) =>
      Effect.map(projectOf(state, projectId), () =>
        addAuditRow(state, projectId, action, subject, context),
      ),

    history,
    searchHistory: searchingHistory(history),

    selectedChanges: (projectId, page) =>
      Effect.map(projectAndNow(projectId), ({ project }) =>
        changedMembersOf([...project.history.rows.newestFirst()].toReversed(), page),
      ),
  }
}
