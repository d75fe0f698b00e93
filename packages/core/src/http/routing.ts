/** Finds the requested operation, and decides which error the client sees if there are several. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type ApiError, describeApiError } from "../api/errors.ts"
import type { ProjectId, ProjectNotFound } from "../base/values.ts"
import { roleCovers } from "../keys/api-key.ts"
import { type Principal, anonymous } from "../keys/identity.ts"
import { type Call, decodePathParam, projectOf } from "./operation.ts"
import type { ApiRequest } from "./request.ts"
import { type Outcome, failOutcome } from "./response.ts"
import { type Operation, type RouteMatch, isChange, requiredRole, takesTicket } from "./routes.ts"

/** A call and its operation. */
export interface RoutedCall extends Call {
  readonly operation: Operation
}

const permits = (operation: Operation, principal: Principal): boolean => {
  const role = requiredRole(operation)
  return (
    role === "none" ||
    (roleCovers(principal.role, role) && !(principal.isReadOnly && isChange(operation)))
  )
}

const needsKey = (operation: Operation | undefined): boolean =>
  operation === undefined || requiredRole(operation) !== "none"

/** Whether a ticket is as good as no key for an operation. */
const ignoresTicket = (operation: Operation | undefined, { ticket }: Principal): boolean =>
  ticket !== undefined && (operation === undefined || !takesTicket(operation))

/**
 * The error for a path without the method. Principals without access to any operation there do not
 * learn its methods.
 */
const withoutMethod = (methods: RouteMatch["value"], sender: Principal): ApiError =>
  [...methods.values()].some((operation) => permits(operation, sender))
    ? { _tag: "MethodNotAllowed", allow: [...methods.keys()] }
    : { _tag: "Forbidden" }

/**
 * Routes a request. If there are several errors, the client receives the first in this order.
 *
 * @param found - the match for the request's path
 */
export const routeRequest = (
  request: ApiRequest,
  requestId: string,
  principal: Outcome<Principal>,
  found: RouteMatch | undefined,
): Outcome<RoutedCall> => {
  if (request.body._tag === "Unreadable") return failOutcome(request.body.error)
  if (found === undefined) return failOutcome({ _tag: "RouteNotFound" })
  const { params, value: methods } = found
  const operation = methods.get(request.method)
  if (Result.isFailure(principal) && needsKey(operation)) return failOutcome(principal.failure)
  const sender = Result.isSuccess(principal) ? principal.success : anonymous
  if (ignoresTicket(operation, sender) && needsKey(operation)) {
    return failOutcome({ _tag: "Unauthorized" })
  }
  if (operation === undefined) return failOutcome(withoutMethod(methods, sender))
  return permits(operation, sender)
    ? Result.succeed({ operation, request, requestId, principal: sender, params })
    : failOutcome({ _tag: "Forbidden" })
}

type Find = (project: {
  readonly projectId: ProjectId
}) => Effect.Effect<unknown, Pick<ProjectNotFound, "_tag"> | ApiError>

// Statuses decided after the project is known: for the body and the item.
const mayHide = new Set([400, 404, 413, 415, 422])

/**
 * Performs an operation. If it refuses a principal with access to all projects, the project is looked
 * up: a missing project takes precedence over other errors at a readable path, unless the project is to
 * be created. Other principals know their projects.
 */
export const preferProjectNotFound = <A>(
  call: RoutedCall,
  operation: Effect.Effect<A, ApiError>,
  find: Find,
): Effect.Effect<A, ApiError> =>
  call.principal.projects === "all" &&
  call.params.project_id !== "" &&
  call.operation !== "projects.create"
    ? Effect.catch(operation, (error) =>
        mayHide.has(describeApiError(error).status) && error._tag !== "ProjectNotFound"
          ? Effect.forEach(Object.values(call.params), decodePathParam, { discard: true }).pipe(
              Effect.andThen(Effect.flatMap(projectOf(call), (projectId) => find({ projectId }))),
              Effect.andThen(Effect.fail(error)),
            )
          : Effect.fail(error),
      )
    : operation
