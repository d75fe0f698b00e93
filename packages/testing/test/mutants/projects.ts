/** Stores of memberships that are wrong about projects. */

import {
  type AuditRow,
  type DatedMembership,
  MembershipStore,
  hostOrigin,
  stateAt,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { change } from "../../src/support/fixtures.ts"
import { mutantsOf } from "./Mutant.ts"

const all = { within: "all", after: undefined, limit: 1000 } as const

/** Stores of memberships that are wrong about projects. */
export const projects = mutantsOf(MembershipStore, {
  "deletes no projects": () => ({ deleteProject: () => Effect.void }),

  "deletes projects that do not exist": ({ deleteProject }) => ({
    deleteProject: (projectId, occasion) =>
      Effect.catchTag(deleteProject(projectId, occasion), "ProjectNotFound", () => Effect.void),
  }),

  "forgets who deleted a project": ({ deleteProject }) => ({
    deleteProject: (projectId, { origin: _, ...occasion }) =>
      deleteProject(projectId, { ...occasion, origin: hostOrigin }),
  }),

  "deletes a project that was created since then, if the deletion is repeated": ({
    deleteProject,
  }) => ({
    deleteProject: (projectId, { at, origin }) => deleteProject(projectId, { at, origin }),
  }),

  "keeps the members of a project that was deleted": ({
    createProject,
    deleteProject,
    list,
    import: importAll,
  }) => {
    const kept = new Map<string, ReadonlyArray<DatedMembership>>()
    return {
      deleteProject: Effect.fnUntraced(function* (projectId, occasion) {
        const members = yield* list(projectId, { after: undefined, limit: 1000 })
        const result = yield* deleteProject(projectId, occasion)
        kept.set(projectId, members)
        return result
      }),
      createProject: Effect.fnUntraced(function* (projectId, occasion) {
        const result = yield* createProject(projectId, occasion)
        const memberships = kept.get(projectId) ?? []
        kept.delete(projectId)
        if (memberships.length > 0) {
          yield* Effect.orDie(importAll({ ...change(projectId), memberships }))
        }
        return result
      }),
    }
  },

  "keeps the trail of a project that was deleted": ({ deleteProject, history }) => {
    const kept = new Map<string | undefined, ReadonlyArray<AuditRow>>()
    const trail = { userId: undefined, limit: 1000 }
    return {
      deleteProject: Effect.fnUntraced(function* (projectId, occasion) {
        kept.set(projectId, yield* history(projectId, trail))
        return yield* deleteProject(projectId, occasion)
      }),
      history: (projectId, page) =>
        Effect.map(history(projectId, page), (rows) => [...rows, ...(kept.get(projectId) ?? [])]),
    }
  },

  "lists the projects of others": ({ listProjects }) => ({
    listProjects: (page) => listProjects({ ...page, within: "all" }),
  }),

  "takes the page before it leaves out the projects of others": ({ listProjects }) => ({
    listProjects: ({ within, ...page }) =>
      Effect.map(listProjects({ ...page, within: "all" }), (found) =>
        found.filter(({ id }) => within === "all" || within.has(id)),
      ),
  }),

  "lists one project too many": ({ listProjects }) => ({
    listProjects: (page) => listProjects({ ...page, limit: page.limit + 1 }),
  }),

  "lists projects from the first one on each page": ({ listProjects }) => ({
    listProjects: (page) => listProjects({ ...page, after: undefined }),
  }),

  "lists all projects if none are asked for": ({ listProjects }) => ({
    listProjects: (page) =>
      listProjects(page.within !== "all" && page.within.size === 0 ? { ...page, ...all } : page),
  }),

  "forgets the last bulk extension": ({ findProject }) => ({
    findProject: (projectId) =>
      Effect.map(findProject(projectId), (found) => ({ ...found, lastBulkEndDate: undefined })),
  }),

  "counts no memberships": ({ findProject }) => ({
    findProject: (projectId) =>
      Effect.map(findProject(projectId), (found) => ({ ...found, memberships: 0 })),
  }),

  "remembers only bulk extensions that set all": ({ extendAll, findProject }) => {
    let last: unknown
    return {
      extendAll: Effect.fnUntraced(function* (extension) {
        const before = yield* findProject(extension.projectId)
        const total = yield* extendAll(extension)
        last = extension.mode === "set" ? undefined : before
        return total
      }),
      findProject: (projectId) =>
        Effect.map(findProject(projectId), (found) =>
          last === undefined ? found : { ...found, lastBulkEndDate: undefined },
        ),
    }
  },

  "takes the page before it selects the state": ({ list }) => ({
    list: (projectId, { only, ...page }) =>
      Effect.map(list(projectId, page), (found) =>
        found.filter((one) => only === undefined || stateAt(one, only.at) === only.state),
      ),
  }),

  "takes a membership to be active in the instant in which it ends": ({ list }) => ({
    list: (projectId, { only, ...page }) =>
      list(projectId, { ...page, only: only && { ...only, at: only.at - 1 } }),
  }),

  "lists memberships in either state": ({ list }) => ({
    list: (projectId, { after, limit }) => list(projectId, { after, limit }),
  }),

  "has no bulk extensions among the changes of a user": ({ history }) => ({
    history: (projectId, page) =>
      Effect.map(history(projectId, page), (rows) =>
        page.userId === undefined ? rows : rows.filter(({ userId }) => userId === page.userId),
      ),
  }),

  "has all bulk extensions among the changes of a user": ({ history }) => ({
    history: (projectId, { limit, ...page }) =>
      Effect.map(history(projectId, { ...page, userId: undefined, limit: 1000 }), (rows) =>
        rows.filter(({ userId }) => [page.userId, undefined].includes(userId)).slice(0, limit),
      ),
  }),

  "starts each page of a trail with the newest row": ({ history }) => ({
    history: (projectId, page) => history(projectId, { ...page, after: undefined }),
  }),
})
