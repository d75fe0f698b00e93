/** Operations: their calls, and how each reads its input from a request. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Declaration, Reply } from "../api/declaration.ts"
import type { ApiError, ApiErrorOf, ApiErrorTag } from "../api/errors.ts"
import type { ChangeContext, IdempotencyKey, Origin } from "../base/change-context.ts"
import { InvalidInput } from "../base/errors.ts"
import { traceparentOfHeaders } from "../base/headers.ts"
import { type RequestInput, wireNameOf } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { currentUnixMillis } from "../base/time.ts"
import { ProjectId } from "../base/values.ts"
import type { Principal } from "../keys/identity.ts"
import type { Disclosure } from "../memberships/audit-trail.ts"
import { MembershipActs } from "../memberships/membership-acts.ts"
import {
  type BodyFormat,
  type JsonObject,
  jsonObject,
  objectWith,
  optionalObject,
  readBodyAs,
} from "./body.ts"
import type { ApiRequest } from "./request.ts"
import type { OperationResult, Success } from "./response.ts"
import type { Operation, PathParameter, PathParams } from "./routes.ts"

/** A request after authentication, limits and routing. */
export interface Call<Name extends PathParameter = PathParameter> {
  readonly request: ApiRequest
  readonly requestId: string
  readonly principal: Principal
  readonly params: PathParams<Name>
  /** The request's idempotency key. Every changing operation passes it on. */
  readonly idempotency?: IdempotencyKey | undefined
}

/** Performs operations. Parameters missing from an operation's path are empty. */
export type Operations<Of extends Operation = Operation> = {
  readonly [Name in Of]: (call: Call) => Effect.Effect<OperationResult, ApiError>
}

/** The operations on one kind of resource. */
export type OperationsOn<Resource extends string> = Operations<
  Extract<Operation, `${Resource}.${string}`>
>

const malformedPath: Effect.Effect<never, ApiError> = Effect.fail({
  _tag: "MalformedRequest",
  message: "The path is not percent-encoded correctly.",
})

const projectNotFound: Effect.Effect<never, ApiError> = Effect.fail({ _tag: "ProjectNotFound" })

const forbidden: Effect.Effect<never, ApiError> = Effect.fail({ _tag: "Forbidden" })

/** Fails unless the principal may use all projects, for data about all projects. */
export const requireAllProjects = ({ principal }: Call<never>): Effect.Effect<void, ApiError> =>
  principal.projects === "all" ? Effect.void : forbidden

const operationDecode = (param: string): string | undefined => {
  try {
    return decodeURIComponent(param)
  } catch {
    return undefined
  }
}

/** Decodes a path parameter. Fails with `MalformedRequest` on invalid percent-encoding. */
export const decodePathParam = (param: string): Effect.Effect<string, ApiError> => {
  const id = operationDecode(param)
  return id === undefined ? malformedPath : Effect.succeed(id)
}

/** Tells whether the sender may use a project, if it exists. */
export const mayUseProject = ({ projects }: Principal, id: string): boolean =>
  projects === "all" || projects.has(id)

/** Returns an API key's projects ordered by id: stores keep them as a set. */
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
  const id = operationDecode(params.project_id)
  if (id === undefined) return malformedPath
  return ProjectId.is(id) && mayUseProject(principal, id) ? Effect.succeed(id) : projectNotFound
}

/** Reads the body, up to `limit` bytes. */
export const readBody = <A>(
  { request: { body, headers } }: Call<never>,
  limit: number,
  format: BodyFormat<A>,
): Effect.Effect<A, ApiError> =>
  body._tag === "Deferred"
    ? Effect.flatMap(Effect.promise(body.read), (arrived) =>
        Effect.fromResult(readBodyAs(arrived, headers, limit, format)),
      )
    : Effect.fromResult(readBodyAs(body, headers, limit, format))

/**
 * Reads the JSON object in a body up to `limit` bytes.
 *
 * @param format - the exact fields in the object; all by default
 */
export const bodyOf = (
  call: Call<never>,
  limit: number,
  format = jsonObject,
): Effect.Effect<JsonObject, ApiError> => readBody(call, limit, format)

/** Formats a time, in milliseconds since the epoch. Returns `null` for `undefined`. */
export function isoOrNull(millis: number): string
export function isoOrNull(millis: number | undefined): string | null
export function isoOrNull(millis: number | undefined): string | null {
  return millis === undefined ? null : new Date(millis).toISOString()
}

/** The origin kept in the audit trail for a change. */
export const originOf = ({ principal, request, requestId }: Call<never>): Origin => ({
  requestId,
  keyId: principal.keyId,
  traceparent: traceparentOfHeaders(request.headers),
})

/** Builds the hook that audits a disclosure before the secret is returned. */
export const makeDisclosureAudit = Effect.map(
  MembershipActs,
  ({ recordShown }) =>
    (
      call: Call<"project_id">,
      action: Disclosure["action"],
      subject: string,
    ): Effect.Effect<void, ApiError> =>
      Effect.flatMap(Effect.all([projectOf(call), currentUnixMillis]), ([projectId, at]) =>
        recordShown({ projectId, action, subject }, { origin: originOf(call), at }),
      ),
)

/** A query's values by name. Fails if a parameter is repeated. */
const queryValues = (query: string): Result.Result<object, InvalidInput> => {
  if (query === "") return Result.succeed({})
  const sent = new URLSearchParams(query)
  const names = [...sent.keys()]
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  return repeated === undefined
    ? Result.succeed(Object.fromEntries(sent))
    : Result.fail(new InvalidInput({ field: repeated, problem: "was sent more than once" }))
}

/** The names for the ids in an operation's path, besides the project's. */
const idsIn = ({ pattern }: Declaration): ReadonlyArray<string> =>
  [...pattern.matchAll(/:(\w+)/g)].flatMap(([, name]) =>
    name === undefined || name === "project_id" ? [] : [name],
  )

const none = Result.succeed({})

const noProject = Effect.succeed(undefined)

/** Makes the function that reads an operation's input. Without generators: each extension takes these steps. */
export const makeReader = <O, E>(
  declared: Declaration,
  input: RequestInput<O, E>,
  maxBodyBytes: number,
) => {
  const { isContract = false, method, pattern } = declared
  const ids = idsIn(declared)
  const isOfProject = pattern.includes("/:project_id")
  const isInQuery = method === "GET" || method === "DELETE" || declared.lines !== undefined
  const inputs = input.alternatives ?? [input]
  const hasBody = !isInQuery && inputs.some(({ wireNames }) => wireNames.length > 0)
  // Without a field that chooses another, the first one counts.
  const [{ fields, needsField } = input] = inputs
  const isBodyOptional =
    !needsField && Object.values(fields).every(({ isOptional }) => isOptional === true)
  const strict = isBodyOptional ? optionalObject : jsonObject
  const format = isContract ? objectWith(...input.wireNames) : strict
  const nothing = Setting.object({})

  /** Decodes the ids in the path, beside the project's. */
  const pathOf = (
    { params }: Call,
    projectId: ProjectId | undefined,
  ): Record<string, unknown> | undefined => {
    const values: Readonly<Record<string, string>> = params
    const path: Record<string, unknown> = { project_id: projectId }
    for (const id of ids) {
      path[id] = operationDecode(values[id] ?? "")
      if (path[id] === undefined) return undefined
    }
    return path
  }

  // The contract's endpoints ignore unknown parameters.
  const queryOf = ({ request: { query = "" } }: Call): Result.Result<object, InvalidInput> => {
    if (isContract) return none
    const values = queryValues(query)
    return isInQuery ? values : Result.flatMap(values, (given) => nothing.read(given, ""))
  }

  return (call: Call): Effect.Effect<O, ApiError | E> =>
    Effect.flatMapEager(
      isOfProject ? projectOf(call) : noProject,
      (projectId): Effect.Effect<O, ApiError | E> => {
        const path = pathOf(call, projectId)
        if (path === undefined) return malformedPath
        const query = queryOf(call)
        if (Result.isFailure(query)) return Effect.fail(query.failure)
        return hasBody
          ? Effect.flatMapEager(bodyOf(call, maxBodyBytes, format), (body) =>
              Effect.fromResult(input.fromRequest(path, body, "json")),
            )
          : Effect.fromResult(input.fromRequest(path, query.success, "query"))
      },
    )
}

/** An act's reply: the data, and differences from the usual reply. */
export interface Replied<Data extends object | null> extends Partial<Omit<Success, "data">> {
  readonly data: Data
}

/** An operation's errors: its declared errors, and those common to all. */
type DeclaredError<Tag extends ApiErrorTag> = ApiErrorOf<
  | Tag
  | "Forbidden"
  | "IdempotencyInProgress"
  | "IdempotencyMismatch"
  | "InvalidInput"
  | "ProjectNotFound"
  | "RateLimited"
  | "StoreUnavailable"
  | "Unauthorized"
>

/**
 * Makes the function that names the field of an act's error as requests have it.
 *
 * @param inputs - the operation's alternative inputs
 */
const makeWireError = (inputs: ReadonlyArray<RequestInput<unknown, unknown>>) => {
  const names = new Map(
    inputs
      .flatMap(({ fields, path }) => Object.entries({ ...path, ...fields }))
      .map(([name, setting]) => [name, wireNameOf(name, setting)]),
  )
  return <E>(error: E): E | InvalidInput => {
    if (!(error instanceof InvalidInput)) return error
    const field = names.get(error.field) ?? error.field
    return field === error.field ? error : new InvalidInput({ field, problem: error.problem })
  }
}

/**
 * Makes an operation from its declaration: it reads the request's input, performs an act with it, and
 * replies.
 *
 * @param maxBodyBytes - the longest body, in bytes
 */
export const perform = <Input, Data extends object | null, Tag extends ApiErrorTag>(
  declared: Declaration & {
    readonly input: RequestInput<Input, DeclaredError<Tag>>
    readonly reply: Reply<Data>
    readonly errors: ReadonlyArray<Tag>
  },
  maxBodyBytes: number,
  act: (
    input: Input,
    context: ChangeContext,
    call: Call,
  ) => Effect.Effect<Replied<Data>, DeclaredError<Tag>>,
): ((call: Call) => Effect.Effect<OperationResult, ApiError>) => {
  const read = makeReader(declared, declared.input, maxBodyBytes)
  const { message } = declared.reply
  const wireError = makeWireError(declared.input.alternatives ?? [declared.input])
  return (call) =>
    Effect.flatMapEager(read(call), (input) =>
      Effect.flatMapEager(currentUnixMillis, (at) => {
        const context = { origin: originOf(call), at, idempotency: call.idempotency }
        return Effect.mapBoth(act(input, context, call), {
          onFailure: wireError,
          onSuccess: (reply) => ({ message, ...reply }),
        })
      }),
    )
}
