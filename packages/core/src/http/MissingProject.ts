/** Tells a project that does not exist from a thing in a project that does not exist. */

import * as Effect from "effect/Effect"
import type { ProjectNotFound } from "../base/Project.ts"
import * as ApiError from "./ApiError.ts"
import { idOf, projectOf } from "./Operation.ts"
import type { Routed } from "./Routing.ts"

type Find = (
  projectId: string,
) => Effect.Effect<unknown, Pick<ProjectNotFound, "_tag"> | ApiError.ApiError>

// The statuses of what is judged after the project: the body and the item.
const mayHide = new Set([400, 404, 413, 415, 422])

/**
 * Performs an operation. If somebody who may use all projects is refused, the project is looked up: that
 * it is missing counts before what else is wrong with a path that can be read, unless it is to be created. All others know which projects
 * they may use.
 */
export const told = <A>(
  call: Routed,
  operation: Effect.Effect<A, ApiError.ApiError>,
  find: Find,
): Effect.Effect<A, ApiError.ApiError> =>
  call.principal.projects === "all" &&
  call.params.project_id !== "" &&
  call.operation !== "projects.create"
    ? Effect.catchEager(operation, (error) =>
        mayHide.has(ApiError.describe(error).status) && error._tag !== "ProjectNotFound"
          ? Effect.forEach(Object.values(call.params), idOf, { discard: true }).pipe(
              Effect.andThen(Effect.flatMap(projectOf(call), find)),
              Effect.andThen(Effect.fail(error)),
            )
          : Effect.fail(error),
      )
    : operation
