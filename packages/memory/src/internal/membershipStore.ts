/** Memberships in memory. */

import type { EndDate } from "@tenure/core/EndDate"
import { type Action, MembershipNotFound, type UserId } from "@tenure/core/Membership"
import type { BulkExtension, Change, MembershipStore } from "@tenure/core/MembershipStore"
import * as Effect from "effect/Effect"
import { membershipOf, type Project } from "./projects.ts"
import type { State } from "./state.ts"

interface Entry {
  readonly action: Action
  readonly userId: UserId | undefined
  readonly from: EndDate | undefined
  readonly to: EndDate | undefined
}

/** Sets the end date of all members that the mode is about, and gives their number. */
const setAll = ({ members }: Project, { endDate, mode }: BulkExtension): number => {
  if (mode === "set") {
    members.setAll(endDate)
    return members.size()
  }
  const shorter = members.sorted().filter((userId) => (members.get(userId) ?? endDate) < endDate)
  for (const userId of shorter) members.set(userId, endDate)
  return shorter.length
}

/** Makes the store. Every change is one synchronous step. */
export const make = (state: State): MembershipStore["Service"] => {
  const record = (project: Project, { at, event, origin }: Change, entry: Entry): void => {
    project.history.push({ projectId: project.id, origin, at, ...entry })
    state.publish(project, event)
  }

  /** Changes one membership that exists. */
  const change = (
    changed: Change & { readonly userId: UserId },
    apply: (project: Project, from: EndDate) => Entry,
  ): Effect.Effect<void, MembershipNotFound> =>
    Effect.suspend(() => {
      const { projectId, userId } = changed
      const project = state.findProject(projectId)
      const from = project?.members.get(userId)
      if (project === undefined || from === undefined) {
        return Effect.fail(new MembershipNotFound({ projectId, userId }))
      }
      record(project, changed, apply(project, from))
      return Effect.void
    })

  return {
    createProject: (projectId) => Effect.sync(() => state.createProject(projectId)),

    grant: (grant) =>
      Effect.map(state.project(grant.projectId), (project) => {
        const { endDate, userId } = grant
        const from = project.members.get(userId)
        project.members.set(userId, endDate)
        record(project, grant, { action: "granted", userId, from, to: endDate })
      }),

    extend: (extension) =>
      change(extension, ({ members }, from) => {
        const { endDate, userId } = extension
        members.set(userId, endDate)
        return { action: "extended", userId, from, to: endDate }
      }),

    extendAll: (extension) =>
      Effect.map(state.project(extension.projectId), (project) => {
        const total = setAll(project, extension)
        record(project, extension, {
          action: "bulk_extended",
          userId: undefined,
          from: undefined,
          to: extension.endDate,
        })
        return total
      }),

    end: (ending) =>
      change(ending, ({ members }, from) => {
        members.delete(ending.userId)
        return { action: "ended", userId: ending.userId, from, to: undefined }
      }),

    find: (projectId, userId) =>
      Effect.suspend(() => {
        const project = state.findProject(projectId)
        const membership = project && membershipOf(project, userId)
        return membership === undefined
          ? Effect.fail(new MembershipNotFound({ projectId, userId }))
          : Effect.succeed(membership)
      }),

    list: (projectId, { after, limit }) =>
      Effect.map(state.project(projectId), (project) => {
        const userIds = project.members.sorted()
        const start = after === undefined ? 0 : userIds.findIndex((userId) => userId > after)
        const page = start === -1 ? [] : userIds.slice(start, start + limit)
        return page.flatMap((userId) => membershipOf(project, userId) ?? [])
      }),

    history: (projectId, { limit, userId }) =>
      Effect.map(state.project(projectId), ({ history }) =>
        [...history.newestFirst()]
          .filter((row) => userId === undefined || row.userId === userId)
          .slice(0, limit),
      ),
  }
}
