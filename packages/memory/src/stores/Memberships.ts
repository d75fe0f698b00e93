/** Memberships in memory. */

import type { ApiKeyId } from "@tenure/core/ApiKey"
import type { EndDate } from "@tenure/core/EndDate"
import * as EndingPage from "@tenure/core/EndingPage"
import type { Event } from "@tenure/core/Event"
import {
  type Action,
  bulkActions,
  conflictOf,
  type Dated,
  type EndDateConflict,
  type EndsLater,
  isEndsLater,
  laterOf,
  type Membership,
  MembershipNotFound,
  stateAt,
  type UserId,
} from "@tenure/core/Membership"
import type { Change, MembershipStore } from "@tenure/core/MembershipStore"
import * as Moment from "@tenure/core/Moment"
import * as Origin from "@tenure/core/Origin"
import { type ProjectId, ProjectNotFound } from "@tenure/core/Project"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Page from "../projects/Page.ts"
import { membershipOf, type Project, summaryOf } from "../projects/Project.ts"
import * as Trail from "../projects/Trail.ts"
import * as State from "../State.ts"
import * as Expiry from "./Expiry.ts"

/** What a row of the audit trail says besides who made the change, and when. */
interface Entry {
  readonly action: Action
  readonly userId: UserId | undefined
  readonly from: EndDate | undefined
  readonly to: EndDate | undefined
}

const audit = (project: Project, { at, origin, reason }: Change, entry: Entry): void => {
  Trail.add(project.history, {
    ...entry,
    projectId: project.id,
    origin: Origin.kept(origin),
    reason,
    at,
    subject: undefined,
  })
}

type Only = Parameters<MembershipStore["Service"]["list"]>[1]["only"]

const isIn = (membership: Membership, only: Only): boolean =>
  only === undefined || stateAt(membership, only.at) === only.state

/** Makes the store. Every change is one synchronous step. */
export const make = (state: State.State): MembershipStore["Service"] => {
  const record = (project: Project, changed: Change, entry: Entry, now: Moment.Moment): Event => {
    audit(project, changed, entry)
    return State.publishChange(state, project, changed, now)
  }

  /** Sets the end date of a member. */
  const setDate = (project: Project, { endDate, userId }: Dated): void => {
    project.members.set(userId, endDate)
    state.alarms.arm(project, userId, endDate)
  }

  /** Sets the end date of a member, who may be new. */
  const grant = (
    project: Project,
    changed: Change,
    dated: Dated,
    action: "granted" | "imported",
  ): void => {
    const { endDate, userId } = dated
    const from = project.members.get(userId)
    setDate(project, dated)
    audit(project, changed, { action, userId, from, to: endDate })
  }

  const nameOf = (keyId: ApiKeyId | undefined): string | undefined =>
    keyId && state.keys.get(keyId)?.name

  const projectAndNow = (projectId: ProjectId) =>
    Effect.all({ project: State.projectOf(state, projectId), now: Moment.now })

  /** Changes one membership that exists, if `apply` succeeds. */
  const change = <A, E>(
    changed: Change & { readonly userId: UserId },
    apply: (project: Project, from: EndDate, now: Moment.Moment) => Result.Result<A, E>,
    answerOf?: (value: A) => string,
  ) =>
    state.answers.change(
      changed.once,
      changed.projectId,
      Moment.nowWith((now): Effect.Effect<A, MembershipNotFound | E> => {
        const { projectId, userId } = changed
        const project = state.projects.get(projectId)
        const from = project?.members.get(userId)
        if (project === undefined || from === undefined) {
          return Effect.fail(new MembershipNotFound({ projectId, userId }))
        }
        return Effect.fromResult(apply(project, from, now))
      }),
      answerOf,
    )

  /** Changes a project that exists. */
  const changeProject = <A>(
    { once, projectId }: Change,
    apply: (project: Project, now: Moment.Moment) => A,
    answerOf?: (value: A) => string,
  ) =>
    state.answers.change(
      once,
      projectId,
      Effect.map(projectAndNow(projectId), ({ now, project }) => apply(project, now)),
      answerOf,
    )

  return {
    ping: Effect.void,
    expiry: Expiry.make(state),

    createProject: (projectId, occasion) =>
      state.answers.change(
        occasion.once,
        undefined,
        Effect.sync(() => State.createProject(state, projectId, occasion)),
      ),

    deleteProject: (projectId, occasion) =>
      state.answers.change(
        occasion.once,
        undefined,
        Effect.suspend(() =>
          State.deleteProject(state, projectId, occasion)
            ? Effect.void
            : Effect.fail(new ProjectNotFound({ projectId })),
        ),
      ),

    findProject: (projectId) => Effect.map(State.projectOf(state, projectId), summaryOf),

    listProjects: (page) =>
      Effect.sync(() =>
        Page.of([...state.projects.keys()], page).flatMap((id) => {
          const project = state.projects.get(id)
          return project === undefined ? [] : summaryOf(project)
        }),
      ),

    grant: (granted) =>
      changeProject(granted, (project, now) => {
        grant(project, granted, granted, "granted")
        return State.publishChange(state, project, granted, now)
      }),

    import: (imported) =>
      changeProject(imported, (project, now) => {
        for (const one of imported.memberships) grant(project, imported, one, "imported")
        return State.publishChange(state, project, imported, now)
      }),

    extend: (extension) =>
      change(
        extension,
        (project, from, now): Result.Result<Event | EndsLater, EndDateConflict> => {
          const { endDate, expectedEndDate, projectId, userId } = extension
          const conflict = conflictOf({ projectId, userId, endDate: from }, expectedEndDate)
          if (conflict !== undefined) return Result.fail(conflict)
          const later = laterOf(from, extension)
          if (later !== undefined) return Result.succeed(later)
          setDate(project, extension)
          const entry: Entry = { action: "extended", userId, from, to: endDate }
          return Result.succeed(record(project, extension, entry, now))
        },
        (result) => (isEndsLater(result) ? String(result.endDate) : ""),
      ),

    extendAll: (extension) =>
      changeProject(
        extension,
        (project, now) => {
          const { endDate: to, mode } = extension
          project.members.extendAll(mode, to)
          state.alarms.arm(project, undefined, to)
          project.lastBulkEndDate = to
          const action = bulkActions[mode]
          const entry = { action, userId: undefined, from: undefined, to }
          return { total: project.members.size(), event: record(project, extension, entry, now) }
        },
        ({ total }) => String(total),
      ),

    count: (projectId, endDate) =>
      Effect.map(State.projectOf(state, projectId), ({ members }) => ({
        total: members.size(),
        later: members.count((one) => one > endDate),
      })),

    end: (ending) =>
      change(ending, (project, from, now) => {
        const { userId } = ending
        project.members.delete(userId)
        const entry: Entry = { action: "ended", userId, from, to: undefined }
        return Result.succeed(record(project, ending, entry, now))
      }),

    erase: (erasure) =>
      changeProject(erasure, (project, now) => {
        const wasMember = State.erase(state, project, erasure.userId)
        State.audit(state, project.id, "person_erased", undefined, erasure)
        return wasMember ? State.publishChange(state, project, erasure, now) : undefined
      }),

    recall: state.answers.find,

    find: (projectId, userId) =>
      Effect.suspend(() => {
        const project = state.projects.get(projectId)
        const membership = project && membershipOf(project, userId)
        return membership === undefined
          ? Effect.fail(new MembershipNotFound({ projectId, userId }))
          : Effect.succeed(membership)
      }),

    list: (projectId, { after, limit, only, userIds }) =>
      Effect.map(State.projectOf(state, projectId), (project) => {
        const candidates =
          userIds === undefined ? project.members.sorted() : [...new Set(userIds)].toSorted()
        const start = after === undefined ? 0 : candidates.findIndex((userId) => userId > after)
        const page: Array<Membership> = []
        for (const userId of start === -1 ? [] : candidates.slice(start)) {
          if (page.length === limit) break
          const membership = membershipOf(project, userId)
          if (membership !== undefined && isIn(membership, only)) page.push(membership)
        }
        return page
      }),

    listEnding: (projectId, { after, before, limit }) =>
      Effect.map(projectAndNow(projectId), ({ now, project }) => {
        const place = after && EndingPage.placeOf(after)
        const ending = project.members
          .select((endDate) => endDate > now.unix && endDate < before)
          .filter((dated) => place === undefined || EndingPage.compare(dated, place) > 0)
          .toSorted(EndingPage.compare)
          .slice(0, limit + 1)
        return EndingPage.of(
          ending.map((dated) => ({ ...dated, projectId })),
          limit,
        )
      }),

    recordShown: (projectId, { action, subject }, occasion) =>
      Effect.map(State.projectOf(state, projectId), () =>
        State.audit(state, projectId, action, subject, occasion),
      ),

    history: (projectId, { userId, ...page }) =>
      projectId === undefined
        ? Effect.sync(() => Trail.page(state.otherHistory, nameOf, undefined, page))
        : Effect.map(State.projectOf(state, projectId), ({ history, members }) =>
            Trail.page(
              history,
              nameOf,
              userId && { id: userId, isMember: members.get(userId) !== undefined },
              page,
            ),
          ),
  }
}
