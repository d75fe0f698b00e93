/** The storage port for the names of projects that other stores have. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Conflict, Replayed } from "../base/Once.ts"
import type { Occasion } from "../base/Origin.ts"
import type { ProjectId } from "../base/Project.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"

/**
 * Knows the projects that are elsewhere, in the other stores of `Shards`. API keys open them as they open
 * those that are here. The other ports of the store know nothing of them.
 *
 * A change with an idempotency key is made once, as by a `MembershipStore`.
 */
export class ProjectDirectory extends Context.Service<
  ProjectDirectory,
  {
    /** Adds a project, with a row of the audit trail that says that it was created. Does nothing if it is known. */
    readonly add: (
      projectId: ProjectId,
      occasion: Occasion,
    ) => Effect.Effect<Replayed | void, Conflict | StoreUnavailable>

    /**
     * Removes a project, and the access of API keys to it, with a row of the audit trail that says that it
     * was deleted. Does nothing if it is unknown.
     */
    readonly remove: (
      projectId: ProjectId,
      occasion: Occasion,
    ) => Effect.Effect<Replayed | void, Conflict | StoreUnavailable>

    /** Tells whether a project is elsewhere. */
    readonly has: (projectId: ProjectId) => Effect.Effect<boolean, StoreUnavailable>

    /**
     * Returns at most `limit` projects that are elsewhere, as `listProjects` of a `MembershipStore` returns
     * those that are here.
     */
    readonly list: (page: {
      readonly within: ReadonlySet<string> | "all"
      readonly after: ProjectId | undefined
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<ProjectId>, StoreUnavailable>
  }
>()("@tenure/core/ProjectDirectory") {}
