/** What the operations share: the call that each performs, and reading its parts. */

import * as Effect from "effect/Effect"
import type { Once } from "../base/Once.ts"
import type { Origin } from "../base/Origin.ts"
import { ProjectId } from "../base/Project.ts"
import * as Traceparent from "../base/Traceparent.ts"
import type { Principal } from "../keys/Identity.ts"
import type { ApiError } from "./ApiError.ts"
import type { ApiRequest } from "./ApiRequest.ts"
import type { Reply } from "./Envelope.ts"
import * as RequestBody from "./RequestBody.ts"
import type * as Route from "./Route.ts"

/** A request that has passed authentication, limits and routing. */
export interface Call<Name extends Route.Parameter = Route.Parameter> {
  readonly request: ApiRequest
  readonly requestId: string
  readonly principal: Principal
  readonly params: Route.Params<Name>
  /** The idempotency key of the request, which every operation that changes something passes on. */
  readonly once?: Once | undefined
}

/** How operations are performed. A call has the parameters that the operation's path has. */
export type Operations<Of extends Route.Operation = Route.Operation> = {
  readonly [Name in Of]: (call: Call<Route.Parameter<Name>>) => Effect.Effect<Reply, ApiError>
}

/** The operations on one kind of resource. */
export type OperationsOn<Resource extends string> = Operations<
  Extract<Route.Operation, `${Resource}.${string}`>
>

const malformedPath: Effect.Effect<never, ApiError> = Effect.fail({
  _tag: "MalformedRequest",
  message: "The path is not percent-encoded correctly.",
})

const projectNotFound: Effect.Effect<never, ApiError> = Effect.fail({ _tag: "ProjectNotFound" })

const forbidden: Effect.Effect<never, ApiError> = Effect.fail({ _tag: "Forbidden" })

/** Fails unless the sender may use all projects, for what tells of all of them. */
export const permitAll = ({ principal }: Call<never>): Effect.Effect<void, ApiError> =>
  principal.projects === "all" ? Effect.void : forbidden

const decode = (param: string): string | undefined => {
  try {
    return decodeURIComponent(param)
  } catch {
    return undefined
  }
}

/** Decodes a path parameter. Fails with `MalformedRequest` on invalid percent-encoding. */
export const idOf = (param: string): Effect.Effect<string, ApiError> => {
  const id = decode(param)
  return id === undefined ? malformedPath : Effect.succeed(id)
}

/** Tells whether the sender may use a project, if it exists. */
export const opens = ({ projects }: Principal, id: string): boolean =>
  projects === "all" || projects.has(id)

/** Returns the projects of a key in the order of their ids: stores keep them as a set. */
export const sortedProjects = (projects: Principal["projects"]): "all" | ReadonlyArray<string> =>
  projects === "all" ? projects : [...projects].toSorted()

/**
 * Reads the project in the path. Fails with `ProjectNotFound` if the sender may not use it,
 * whether it exists or not.
 */
export const projectOf = ({
  params,
  principal,
}: Call<"project_id">): Effect.Effect<ProjectId, ApiError> => {
  const id = decode(params.project_id)
  if (id === undefined) return malformedPath
  return ProjectId.is(id) && opens(principal, id) ? Effect.succeed(id) : projectNotFound
}

/** Reads the body, which has at most `limit` bytes. */
export const readBody = <A>(
  { request: { body, headers } }: Call<never>,
  limit: number,
  format: RequestBody.Format<A>,
): Effect.Effect<A, ApiError> =>
  body._tag === "Deferred"
    ? Effect.flatMap(Effect.promise(body.read), (arrived) =>
        Effect.fromResult(RequestBody.read(arrived, headers, limit, format)),
      )
    : Effect.fromResult(RequestBody.read(body, headers, limit, format))

/**
 * Reads the JSON object in the body, which has at most `limit` bytes.
 *
 * @param format - how exact the object is; all of it by default
 */
export const bodyOf = (
  call: Call<never>,
  limit: number,
  format = RequestBody.object,
): Effect.Effect<RequestBody.JsonObject, ApiError> => readBody(call, limit, format)

/** Formats a time, in milliseconds since the epoch. Returns `null` for `undefined`. */
export const timeOf = (millis: number | undefined): string | null =>
  millis === undefined ? null : new Date(millis).toISOString()

/** The origin that the audit trail keeps of a change. */
export const originOf = ({ principal, request, requestId }: Call<never>): Origin => ({
  requestId,
  keyId: principal.keyId,
  traceparent: Traceparent.ofHeaders(request.headers),
})
