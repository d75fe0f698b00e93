/** Decides which operation a request asks for. */

import * as Result from "effect/Result"
import type { Principal } from "../keys/Identity.ts"
import type { ApiRequest } from "./ApiRequest.ts"
import type { Call } from "./Operation.ts"
import * as Outcome from "./Outcome.ts"
import * as Route from "./Route.ts"

/** A call, and the operation that performs it. */
export interface Routed extends Call {
  readonly operation: Route.Operation
}

/** Routes a request. Of several errors, the client receives the first in this order. */
export const route = (
  request: ApiRequest,
  requestId: string,
  principal: Outcome.Outcome<Principal>,
  basePath: string,
): Outcome.Outcome<Routed> => {
  if (request.body._tag === "Unreadable") return Outcome.fail(request.body.error)
  const found = Route.match(request.path, basePath)
  if (found === undefined) return Outcome.fail({ _tag: "RouteNotFound" })
  if (Result.isFailure(principal)) return Outcome.fail(principal.failure)
  const { params, value: methods } = found
  const operation = methods.get(request.method)
  return operation === undefined
    ? Outcome.fail({ _tag: "MethodNotAllowed", allow: [...methods.keys()] })
    : Result.succeed({ operation, request, requestId, principal: principal.success, params })
}
