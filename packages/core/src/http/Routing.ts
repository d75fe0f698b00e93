/** Decides which operation a request asks for, and whether its sender may perform it. */

import * as Result from "effect/Result"
import { anonymous, type Principal } from "../keys/Identity.ts"
import * as Role from "../keys/Role.ts"
import type { ApiError } from "./ApiError.ts"
import type { ApiRequest } from "./ApiRequest.ts"
import type { Call } from "./Operation.ts"
import * as Outcome from "./Outcome.ts"
import * as Route from "./Route.ts"

/** A call, and the operation that performs it. */
export interface Routed extends Call {
  readonly operation: Route.Operation
}

const permits = (operation: Route.Operation, principal: Principal): boolean => {
  const role = Route.roleOf(operation)
  return (
    role === "none" ||
    (Role.covers(principal.role, role) && !(principal.isReadOnly && Route.changes(operation)))
  )
}

const needsKey = (operation: Route.Operation | undefined): boolean =>
  operation === undefined || Route.roleOf(operation) !== "none"

/** Whether a ticket is as good as no key for an operation. */
const ignoresTicket = (operation: Route.Operation | undefined, { ticket }: Principal): boolean =>
  ticket !== undefined && (operation === undefined || !Route.takesTicket(operation))

/** The error of a path without the method. Those who may call nothing there do not learn its methods. */
const withoutMethod = (methods: Route.Match["value"], sender: Principal): ApiError =>
  [...methods.values()].some((operation) => permits(operation, sender))
    ? { _tag: "MethodNotAllowed", allow: [...methods.keys()] }
    : { _tag: "Forbidden" }

/**
 * Routes a request. Of several errors, the client receives the first in this order.
 *
 * @param found - what is at the path of the request
 */
export const route = (
  request: ApiRequest,
  requestId: string,
  principal: Outcome.Outcome<Principal>,
  found: Route.Match | undefined,
): Outcome.Outcome<Routed> => {
  if (request.body._tag === "Unreadable") return Outcome.fail(request.body.error)
  if (found === undefined) return Outcome.fail({ _tag: "RouteNotFound" })
  const { params, value: methods } = found
  const operation = methods.get(request.method)
  if (Result.isFailure(principal) && needsKey(operation)) return Outcome.fail(principal.failure)
  const sender = Result.isSuccess(principal) ? principal.success : anonymous
  if (ignoresTicket(operation, sender) && needsKey(operation)) {
    return Outcome.fail({ _tag: "Unauthorized" })
  }
  if (operation === undefined) return Outcome.fail(withoutMethod(methods, sender))
  return permits(operation, sender)
    ? Result.succeed({ operation, request, requestId, principal: sender, params })
    : Outcome.fail({ _tag: "Forbidden" })
}
