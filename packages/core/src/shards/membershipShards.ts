/** The port `MembershipStore` over several shards. */

import * as Effect from "effect/Effect"
import type { Faults } from "../base/Faults.ts"
import { InvalidInput } from "../base/InvalidInput.ts"
import { isReplayed } from "../base/Once.ts"
import type { Occasion } from "../base/Origin.ts"
import { type ProjectId, ProjectNotFound } from "../base/Project.ts"
import type { AuditRow, ProjectSummary } from "../memberships/Membership.ts"
import type { MembershipStore } from "../memberships/MembershipStore.ts"
import * as expiryShards from "./expiryShards.ts"
import type { Routing, Shards } from "./Routing.ts"
import type { Shard } from "./Shard.ts"

type Store = MembershipStore["Service"]

const byId = (one: { readonly id: string }, other: { readonly id: string }): number =>
  one.id < other.id ? -1 : 1

/** Returns what a shard knows of an idempotency key. Fails if it belongs to another request. */
const recallIn = (shard: Shard, { once }: Occasion) =>
  once === undefined
    ? Effect.undefined
    : shard.use(({ memberships }) => memberships.recall(once, undefined))

/** Returns those of a few projects that a shard has. */
const summariesIn = (shard: Shard, ids: ReadonlyArray<ProjectId>) =>
  shard.use(({ memberships }) =>
    memberships.listProjects({ within: new Set(ids), after: undefined, limit: ids.length }),
  )

/** Makes the store. */
export const make = (shards: Shards, routing: Routing, faults: Faults): Store => {
  const { all, apiKeys, directory, home, map } = shards
  const { locate, on, shardOf } = routing

  /** Returns projects of the directory: from their shards, or from where they are while they are moved. */
  const summariesOf = Effect.fnUntraced(function* (ids: ReadonlyArray<ProjectId>) {
    const byShard = new Map<Shard, Array<ProjectId>>()
    for (const id of ids) byShard.set(shardOf(id), [...(byShard.get(shardOf(id)) ?? []), id])
    const mapped = (yield* Effect.forEach(byShard, ([shard, own]) => summariesIn(shard, own), {
      concurrency: "unbounded",
    })).flat()
    const found = new Set(mapped.map(({ id }) => id))
    const missing = ids.filter((id) => !found.has(id))
    if (missing.length === 0) return mapped
    const moving = (yield* Effect.forEach(all, (shard) => summariesIn(shard, missing), {
      concurrency: "unbounded",
    })).flat()
    // Both ends of a move have it for a while.
    return [...mapped, ...new Map(moving.map((project) => [project.id, project])).values()]
  })

  const listProjects: Store["listProjects"] = Effect.fnUntraced(function* ({ limit, ...page }) {
    const listed: Array<ProjectSummary> = []
    let after = page.after
    // A project that is just being created or deleted may be in the directory alone.
    for (;;) {
      const asked = { within: page.within, after, limit: limit - listed.length }
      const [here, elsewhere] = yield* Effect.all(
        [home.use(({ memberships }) => memberships.listProjects(asked)), directory.list(asked)],
        { concurrency: "unbounded" },
      )
      const named = new Set(elsewhere)
      const own = here.filter(({ id }) => !named.has(id))
      const next = [...own.map(({ id }) => id), ...elsewhere].toSorted().slice(0, asked.limit)
      const ids = new Set(next)
      const others = yield* summariesOf(elsewhere.filter((id) => ids.has(id)))
      listed.push(...[...own.filter(({ id }) => ids.has(id)), ...others].toSorted(byId))
      const last = next.at(-1)
      if (last === undefined || next.length < asked.limit || listed.length === limit) return listed
      after = last
    }
  })

  /** Adds the names of keys, which are in the home. */
  const named = Effect.fnUntraced(function* (rows: ReadonlyArray<AuditRow>) {
    const ids = new Set(rows.flatMap(({ origin: { keyId } }) => keyId ?? []))
    if (ids.size === 0) return rows
    const names = yield* apiKeys.names(ids)
    return rows.map((row) => ({
      ...row,
      keyName: row.origin.keyId && names.get(row.origin.keyId),
    }))
  })

  return {
    ping: home.stores.memberships.ping,
    expiry: expiryShards.make(shards, faults),

    createProject: Effect.fnUntraced(function* (projectId, occasion) {
      if (map(projectId) === undefined) {
        return yield* new InvalidInput({
          field: "projectId",
          problem: "must be one that an entry of the databases names",
        })
      }
      const shard = shardOf(projectId)
      // A key of another request must be refused before anything is created.
      const known = shard === home ? undefined : yield* recallIn(home, occasion)
      if (known !== undefined) return known
      const place = yield* locate(projectId)
      // Keys that opened what was deleted must not open what is created.
      if (place === "directory")
        yield* directory.remove(projectId, { ...occasion, once: undefined })
      const created = yield* shard.use(({ memberships }) =>
        memberships.createProject(projectId, occasion),
      )
      if (shard === home) return created
      const added = yield* directory.add(projectId, occasion)
      // The same request may have been answered elsewhere, before its name was removed above.
      if (isReplayed(added) && !(yield* directory.has(projectId)))
        yield* directory.add(projectId, { ...occasion, once: undefined })
      return added
    }),

    deleteProject: Effect.fnUntraced(function* (projectId, occasion) {
      const remove = on(projectId, ({ memberships }) =>
        memberships.deleteProject(projectId, occasion),
      )
      const shard = shardOf(projectId)
      if (shard === home) return yield* remove
      const known = yield* recallIn(home, occasion)
      // A key of another request must be refused before anything is removed.
      yield* recallIn(shard, occasion)
      // One that is being moved has to stay known.
      const place = known === undefined ? yield* locate(projectId) : "directory"
      if (place === "nowhere") return yield* new ProjectNotFound({ projectId })
      // Its name goes first: no key may open a project that is created again.
      const removed = yield* directory.remove(projectId, occasion)
      if (place === "shard" && !isReplayed(removed)) return yield* remove
      // There may be no more to delete.
      return yield* Effect.catchTag(remove, "ProjectNotFound", () => Effect.succeed(removed))
    }),

    findProject: (projectId) =>
      on(projectId, ({ memberships }) => memberships.findProject(projectId)),
    listProjects,

    grant: (change) => on(change.projectId, ({ memberships }) => memberships.grant(change)),
    import: (change) => on(change.projectId, ({ memberships }) => memberships.import(change)),
    extend: (change) => on(change.projectId, ({ memberships }) => memberships.extend(change)),
    extendAll: (change) => on(change.projectId, ({ memberships }) => memberships.extendAll(change)),
    end: (change) => on(change.projectId, ({ memberships }) => memberships.end(change)),
    erase: (change) => on(change.projectId, ({ memberships }) => memberships.erase(change)),

    count: (projectId, endDate) =>
      on(projectId, ({ memberships }) => memberships.count(projectId, endDate)),
    recall: (once, projectId) =>
      projectId === undefined
        ? home.use(({ memberships }) => memberships.recall(once, projectId))
        : on(projectId, ({ memberships }) => memberships.recall(once, projectId)),
    find: (projectId, userId) =>
      on(projectId, ({ memberships }) => memberships.find(projectId, userId)),
    list: (projectId, page) =>
      on(projectId, ({ memberships }) => memberships.list(projectId, page)),

    listEnding: (projectId, page) =>
      on(projectId, ({ memberships }) => memberships.listEnding(projectId, page)),
    recordShown: (projectId, ...rest) =>
      on(projectId, ({ memberships }) => memberships.recordShown(projectId, ...rest)),
    history: (projectId, page) =>
      projectId === undefined
        ? home.use(({ memberships }) => memberships.history(projectId, page))
        : Effect.flatMap(
            on(projectId, ({ memberships }) => memberships.history(projectId, page)),
            shardOf(projectId) === home ? Effect.succeed : named,
          ),
  }
}
