/** Tells a project that does not exist from a thing in a project that does not exist. */

import * as Effect from "effect/Effect"
import type { ProjectNotFound } from "../base/Project.ts"
import * as ApiError from "./ApiError.ts"
import { type Call, projectOf } from "./Operation.ts"

type Find = (
  projectId: string,
) => Effect.Effect<unknown, Pick<ProjectNotFound, "_tag"> | ApiError.ApiError>

/**
 * Performs an operation. If somebody who may use all projects is answered that a thing was not found,
 * the project is looked up, which may be what is missing. All others know which projects they may use.
 */
export const told = <A>(
  call: Call,
  operation: Effect.Effect<A, ApiError.ApiError>,
  find: Find,
): Effect.Effect<A, ApiError.ApiError> =>
  call.principal.projects === "all" && call.params.project_id !== ""
    ? Effect.tapError(operation, (error) =>
        ApiError.describe(error).status === 404 && error._tag !== "ProjectNotFound"
          ? Effect.flatMap(projectOf(call), find)
          : Effect.void,
      )
    : operation
