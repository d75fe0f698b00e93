/** Finds the shard of a project, and notices if the map names the wrong one. */

import * as Effect from "effect/Effect"
import type { ProjectId } from "../base/Project.ts"
import { StoreUnavailable } from "../base/StoreUnavailable.ts"
import type { ApiKeyStore } from "../keys/ApiKeyStore.ts"
import type { ProjectDirectory } from "./ProjectDirectory.ts"
import type { Opened, Shard, Stores } from "./Shard.ts"
import type { ShardMap } from "./ShardMap.ts"

/** The shards, and which of them a project belongs to. */
export interface Shards {
  /** All of them; the first is the home. */
  readonly all: readonly [Shard, ...ReadonlyArray<Shard>]
  readonly home: Opened
  /** The projects of the others, as the home knows them. */
  readonly directory: ProjectDirectory["Service"]
  /** The API keys, which the home has. */
  readonly apiKeys: ApiKeyStore["Service"]
  readonly map: ShardMap
}

/**
 * Where a project is found: in its shard; in the directory alone, which still names it after a creation and a
 * deletion at the same time; or nowhere.
 */
type Place = "shard" | "directory" | "nowhere"

/** Runs operations on the shards of projects. */
export interface Routing {
  /**
   * Runs an operation on the stores of a project. If these do not have the project, but it exists, the map
   * is wrong or the project is being moved: then fails with `StoreUnavailable` rather than as if there were
   * no such project.
   */
  readonly on: <A, E>(
    projectId: ProjectId,
    operation: (stores: Stores) => Effect.Effect<A, E>,
  ) => Effect.Effect<A, E | StoreUnavailable>
  /**
   * Finds a project. Fails with `StoreUnavailable` if it is in another shard than the map names, or is being
   * moved.
   */
  readonly locate: (projectId: ProjectId) => Effect.Effect<Place, StoreUnavailable>
  /** Returns the shard of a project. Whatever no shard names belongs to the home, which does not have it. */
  readonly shardOf: (projectId: ProjectId) => Shard
}

const missing: ReadonlySet<string> = new Set([
  "ProjectNotFound",
  "MembershipNotFound",
  "WebhookNotFound",
  "EventNotFound",
])

const isMissing = (error: unknown): boolean =>
  typeof error === "object" &&
  error !== null &&
  "_tag" in error &&
  typeof error._tag === "string" &&
  missing.has(error._tag)

const exists = (shard: Shard, projectId: ProjectId): Effect.Effect<boolean, StoreUnavailable> =>
  shard.use(({ memberships }) =>
    Effect.as(memberships.findProject(projectId), true).pipe(
      Effect.catchTag("ProjectNotFound", () => Effect.succeed(false)),
    ),
  )

/** Makes the routing. */
export const make = ({ all, directory, home, map }: Shards): Routing => {
  const shardOf = (projectId: ProjectId): Shard => all[map(projectId) ?? 0] ?? home

  const locate: Routing["locate"] = Effect.fnUntraced(function* (projectId) {
    const shard = shardOf(projectId)
    if (yield* exists(shard, projectId)) return "shard"
    const isNamed = yield* directory.has(projectId)
    const found = yield* Effect.filter(
      (isNamed ? all : [home]).filter((other) => other !== shard),
      (other) => exists(other, projectId),
      { concurrency: "unbounded" },
    )
    if (found.length > 0) {
      const cause = `The project ${projectId} is not in the shard ${shard.name}, where the map has it`
      return yield* new StoreUnavailable({ cause })
    }
    if (!isNamed) return "nowhere"
    // It may have been created since it was looked for, or may have come from where it was not any more.
    return (yield* exists(shard, projectId)) ? "shard" : "directory"
  })

  return {
    shardOf,
    locate,
    on: <A, E>(
      projectId: ProjectId,
      operation: (stores: Stores) => Effect.Effect<A, E>,
    ): Effect.Effect<A, E | StoreUnavailable> =>
      Effect.catch(
        Effect.suspend(() => shardOf(projectId).use(operation)),
        (error) =>
          isMissing(error)
            ? Effect.andThen(locate(projectId), Effect.fail(error))
            : Effect.fail(error),
      ),
  }
}
