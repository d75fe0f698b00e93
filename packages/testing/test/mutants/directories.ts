/** Directories of projects that are wrong. */

import {
  type ApiKey,
  ApiKeyStore,
  MembershipStore,
  ProjectDirectory,
  type ProjectId,
} from "@tenure/core/store"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { mutantsOf } from "./Mutant.ts"

/** Directories of projects that are wrong. */
export const directories = mutantsOf(ProjectDirectory, {
  "adds nothing": () => ({ add: () => Effect.void }),

  "removes nothing": () => ({ remove: () => Effect.void }),

  "says in the audit trail that a known project was added": ({ add, has, remove }) => ({
    add: Effect.fnUntraced(function* (projectId, occasion) {
      if (yield* has(projectId)) yield* remove(projectId, { ...occasion, once: undefined })
      return yield* add(projectId, occasion)
    }),
  }),

  "says in the audit trail that an unknown project was removed": ({ add, has, remove }) => ({
    remove: Effect.fnUntraced(function* (projectId, occasion) {
      if (!(yield* has(projectId))) yield* add(projectId, { ...occasion, once: undefined })
      return yield* remove(projectId, occasion)
    }),
  }),

  "creates the projects that it adds": ({ add }, context) => ({
    add: (projectId, occasion) =>
      Effect.tap(add(projectId, occasion), () =>
        Effect.orDie(Context.get(context, MembershipStore).createProject(projectId, occasion)),
      ),
  }),

  "forgets idempotency keys": ({ add, remove }) => ({
    add: (projectId, occasion) => add(projectId, { ...occasion, once: undefined }),
    remove: (projectId, occasion) => remove(projectId, { ...occasion, once: undefined }),
  }),

  "adds again what a request has added before": ({ add }) => ({
    add: (projectId, occasion) =>
      Effect.tap(add(projectId, occasion), () => add(projectId, { ...occasion, once: undefined })),
  }),

  "removes again what a request has removed before": ({ remove }) => ({
    remove: (projectId, occasion) =>
      Effect.tap(remove(projectId, occasion), () =>
        remove(projectId, { ...occasion, once: undefined }),
      ),
  }),

  "makes a change of another request with the same key": ({ add, remove }) => ({
    add: (projectId, occasion) =>
      Effect.tapError(add(projectId, occasion), () =>
        add(projectId, { ...occasion, once: undefined }),
      ),
    remove: (projectId, occasion) =>
      Effect.tapError(remove(projectId, occasion), () =>
        remove(projectId, { ...occasion, once: undefined }),
      ),
  }),

  "gives keys their access back to a project that is added again": ({ add, remove }, context) => {
    const keys = Context.get(context, ApiKeyStore)
    const opening = new Map<ProjectId, ReadonlyArray<ApiKey>>()
    return {
      remove: Effect.fnUntraced(function* (projectId, occasion) {
        const found = yield* Effect.orDie(keys.list({ within: "all", after: undefined, limit: 10 }))
        opening.set(
          projectId,
          found.filter(({ projects }) => projects !== "all" && projects.has(projectId)),
        )
        return yield* remove(projectId, occasion)
      }),
      add: (projectId, occasion) =>
        Effect.tap(add(projectId, occasion), () =>
          Effect.forEach(opening.get(projectId) ?? [], (key) =>
            Effect.orDie(keys.add({ ...key, projects: new Set([projectId]) }, occasion)),
          ),
        ),
    }
  },

  "knows every project": () => ({ has: () => Effect.succeed(true) }),

  "lists projects in any order": ({ list }) => ({
    list: (page) => Effect.map(list(page), (ids) => ids.toReversed()),
  }),

  "lists projects as people sort them": ({ list }) => ({
    list: (page) =>
      Effect.map(list(page), (ids) => ids.toSorted((one, other) => one.localeCompare(other))),
  }),

  "lists a page with its cursor": ({ has, list }) => ({
    list: (page) =>
      Effect.gen(function* () {
        const { after } = page
        const first: ReadonlyArray<ProjectId> =
          after !== undefined && (yield* has(after)) ? [after] : []
        return [...first, ...(yield* list(page))].slice(0, page.limit)
      }),
  }),

  "lists more than it was asked for": ({ list }) => ({
    list: (page) => list({ ...page, limit: page.limit + 1 }),
  }),

  "lists projects that a key does not open": ({ list }) => ({
    list: (page) => list({ ...page, within: "all" }),
  }),
})
