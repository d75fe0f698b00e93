/** Stores of memberships that are wrong about projects. */

import { stateAt } from "@tenure/core/Membership"
import { MembershipStore } from "@tenure/core/MembershipStore"
import * as Effect from "effect/Effect"
import { mutantsOf } from "./Mutant.ts"

const all = { within: "all", after: undefined, limit: 1000 } as const

/** Stores of memberships that are wrong about projects. */
export const projects = mutantsOf(MembershipStore, {
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
