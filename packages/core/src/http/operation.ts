/** Operations: the call that each performs, and how its input is read from a request. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { Declaration, Reply } from "../api/declaration.ts"
import {
  type ApiError,
  type ApiErrorOf,
  type ApiErrorTag,
  describeApiError,
} from "../api/errors.ts"
import { encodeBase64Url, sha256 } from "../base/bytes.ts"
import {
  type ChangeContext,
  type IdempotencyKey,
  type Origin,
  digestOf,
  idempotencyKeyFormat,
  isIdempotencyKey,
  withReplayFlag,
} from "../base/change-context.ts"
import { InvalidInput } from "../base/errors.ts"
import {
  type HeaderFields,
  type Single,
  singleHeader,
  traceparentOfHeaders,
} from "../base/headers.ts"
import { faultOfJson, repeatedFields } from "../base/json-text.ts"
import type { RequestInput } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { currentUnixMillis } from "../base/time.ts"
import { ProjectId, type ProjectNotFound, getOwn } from "../base/values.ts"
import { roleCovers } from "../keys/api-key.ts"
import { type Principal, anonymous } from "../keys/identity.ts"
import type { Disclosure } from "../memberships/membership.ts"
import { Memberships } from "../memberships/memberships.ts"
import type { ApiRequest, ArrivedBody } from "./request.ts"
import { type OperationResult, type Outcome, type Success, failOutcome } from "./response.ts"
import {
  type Operation,
  type PathParameter,
  type PathParams,
  type RouteMatch,
  isChange,
  requiredRole,
  takesTicket,
} from "./routes.ts"

/** A JSON object. Read its own properties only, with `own`. */
export type JsonObject = Readonly<Record<string, unknown>>

/** What a body is expected to be. */
export interface BodyFormat<A> {
  readonly mediaType: string
  /** The content types with this media type. A charset has no meaning for JSON (RFC 8259, 11). */
  readonly contentType: RegExp
  /** Reads a request without a body. */
  readonly fromNothing: () => Outcome<A>
  readonly fromBytes: (bytes: Uint8Array) => Outcome<A>
  /** Reads a value that the host has already parsed. */
  readonly fromValue: (value: unknown) => Outcome<A>
}

// The body must be UTF-8 (RFC 8259, 8.1). A byte order mark is ignored.
const requestBodyUtf8 = new TextDecoder("utf-8", { fatal: true })

const requestBodyMalformed = (message: string): Outcome<never> =>
  failOutcome({ _tag: "MalformedRequest", message })

const unsupported = (message: string): Outcome<never> =>
  failOutcome({ _tag: "UnsupportedMediaType", message })

/** Decodes UTF-8. Returns `undefined` if the bytes are none. */
const requestBodyDecode = (bytes: Uint8Array): string | undefined => {
  try {
    return requestBodyUtf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** Reads a field as its definition says, or fails with an error that names it. */
export const readField = <O>(
  body: JsonObject,
  name: string,
  setting: Setting.Setting<unknown, O>,
): Result.Result<O, InvalidInput> => setting.read(getOwn(body, name), name)

/** Parses JSON. Returns `undefined` if the text is not JSON. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const asObject = (value: unknown): Outcome<JsonObject> =>
  Predicate.isObject(value)
    ? Result.succeed(value)
    : requestBodyMalformed("The body must be a JSON object.")

const objectWithout = (
  faultOf: (text: string) => InvalidInput | undefined,
): BodyFormat<JsonObject> => ({
  mediaType: "application/json",
  contentType: /^application\/json[ \t]*(;|$)/i,
  fromNothing: () => requestBodyMalformed("The request has no body."),
  fromBytes: (bytes) => {
    const text = requestBodyDecode(bytes)
    const value = text === undefined ? undefined : parseJson(text)
    if (text === undefined || value === undefined)
      return requestBodyMalformed("The body is not valid JSON.")
    const fault = Predicate.isObject(value) ? faultOf(text) : undefined
    return fault === undefined ? asObject(value) : Result.fail(fault)
  },
  fromValue: asObject,
})

/** A JSON object whose text says the same as its value. */
const jsonObject = objectWithout(faultOfJson)

/** The same, or nothing. */
export const optionalObject: BodyFormat<JsonObject> = {
  ...jsonObject,
  fromNothing: () => Result.succeed({}),
}

// The body of nearly all extensions.
const singleField = /^\s*\{\s*"\w+"\s*:\s*(?:"[^"\\]*"|\d+)\s*\}\s*$/

/**
 * A JSON object of which only some fields are read. They must not be there twice; in the others, which the
 * contract does not forbid, anything may be.
 */
export const objectWith = (...fields: ReadonlyArray<string>): BodyFormat<JsonObject> =>
  objectWithout((text) => (singleField.test(text) ? undefined : repeatedFields(text, fields)))

/** Text with JSON in each line. */
export const jsonLines: BodyFormat<string> = {
  mediaType: "application/x-ndjson",
  contentType: /^application\/x-ndjson[ \t]*(;|$)/i,
  fromNothing: () => Result.succeed(""),
  fromBytes: (bytes) => {
    const text = requestBodyDecode(bytes)
    return text === undefined
      ? requestBodyMalformed("The body is not valid UTF-8.")
      : Result.succeed(text)
  },
  fromValue: () =>
    requestBodyMalformed(
      "The body was parsed before it came to the API, which takes it as text or bytes.",
    ),
}

const hasType = ({ contentType }: BodyFormat<unknown>, type: Single): boolean =>
  type._tag === "Value" && contentType.test(type.value)

const wrongType = ({ mediaType }: BodyFormat<unknown>): string =>
  `The content type must be ${mediaType}.`

const isEncoded = (headers: HeaderFields): boolean => {
  const encoding = singleHeader(headers, "content-encoding")
  return (
    encoding._tag === "Repeated" ||
    (encoding._tag === "Value" && !/^identity$/i.test(encoding.value))
  )
}

/**
 * Returns what is wrong with a body by its header fields, or `undefined` for one in the format.
 *
 * @param isRead - whether the host has read the body: what it has made itself may have no type
 */
const mediaFault = (
  headers: HeaderFields,
  format: BodyFormat<unknown>,
  isRead: boolean,
): string | undefined => {
  if (isEncoded(headers)) return "The body must be sent without a content encoding."
  const type = singleHeader(headers, "content-type")
  return hasType(format, type) || (isRead && type._tag === "Absent") ? undefined : wrongType(format)
}

/** Reads a body that the host has read, if its header fields allow it. */
const ofHost = <A>(
  headers: HeaderFields,
  format: BodyFormat<A>,
  read: () => Outcome<A>,
): Outcome<A> => {
  const fault = mediaFault(headers, format, true)
  return fault === undefined ? read() : unsupported(fault)
}

/**
 * Reads the body of a request.
 *
 * @param limit - the longest body, in bytes
 */
const readBodyAs = <A>(
  body: ArrivedBody,
  headers: HeaderFields,
  limit: number,
  format: BodyFormat<A>,
): Outcome<A> => {
  switch (body._tag) {
    case "TooLarge":
      return failOutcome({ _tag: "PayloadTooLarge", limit })
    case "Consumed":
      return ofHost(headers, format, () =>
        requestBodyMalformed(
          "The body was read before it came to the API, and nothing of it was kept.",
        ),
      )
    case "Unreadable":
      return failOutcome(body.error)
    case "Parsed":
      return ofHost(headers, format, () => format.fromValue(body.value))
    case "Bytes": {
      if (body.bytes.length > limit) return failOutcome({ _tag: "PayloadTooLarge", limit })
      if (body.bytes.length === 0) return format.fromNothing()
      const fault = mediaFault(headers, format, false)
      return fault === undefined ? format.fromBytes(body.bytes) : unsupported(fault)
    }
  }
}

/** A request that has passed authentication, limits and routing. */
export interface Call<Name extends PathParameter = PathParameter> {
  readonly request: ApiRequest
  readonly requestId: string
  readonly principal: Principal
  readonly params: PathParams<Name>
  /** The idempotency key of the request, which every operation that changes something passes on. */
  readonly once?: IdempotencyKey | undefined
}

/** How operations are performed. Parameters that the path of an operation does not have are empty. */
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

/** Fails unless the sender may use all projects, for what tells of all of them. */
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
  const id = operationDecode(params.project_id)
  if (id === undefined) return malformedPath
  return ProjectId.is(id) && mayUseProject(principal, id) ? Effect.succeed(id) : projectNotFound
}

/** Reads the body, which has at most `limit` bytes. */
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
 * Reads the JSON object in the body, which has at most `limit` bytes.
 *
 * @param format - how exact the object is; all of it by default
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

/** The origin that the audit trail keeps of a change. */
export const originOf = ({ principal, request, requestId }: Call<never>): Origin => ({
  requestId,
  keyId: principal.keyId,
  traceparent: traceparentOfHeaders(request.headers),
})

/** A call, and the operation that performs it. */
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

/** The error of a path without the method. Those who may call nothing there do not learn its methods. */
const withoutMethod = (methods: RouteMatch["value"], sender: Principal): ApiError =>
  [...methods.values()].some((operation) => permits(operation, sender))
    ? { _tag: "MethodNotAllowed", allow: [...methods.keys()] }
    : { _tag: "Forbidden" }

/**
 * Routes a request. Of several errors, the client receives the first in this order.
 *
 * @param found - what is at the path of the request
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

const idempotencyName = "idempotency-key"

const malformed: ApiError = {
  _tag: "MalformedRequest",
  message: `The Idempotency-Key header must be sent once, and be ${idempotencyKeyFormat}, with or without quotation marks.`,
}

// A String of a structured field (RFC 9651, 3.3.3), as draft-ietf-httpapi-idempotency-key-header-07 has the key.
const quoted = /^"((?:[^"\\]|\\["\\])*)"$/

/** Returns the key in a field: in quotation marks, or as it is. `undefined` if the marks do not match. */
const unquote = (value: string): string | undefined =>
  value.startsWith('"') ? quoted.exec(value)?.[1]?.replaceAll(/\\(.)/g, "$1") : value

/** Reads the idempotency key of a request that has such a field. */
const keyOf = ({ headers }: ApiRequest): Outcome<string> => {
  const field = singleHeader(headers, idempotencyName)
  const key = field._tag === "Value" ? unquote(field.value) : undefined
  return isIdempotencyKey(key) ? Result.succeed(key) : failOutcome(malformed)
}

const utf8 = new TextEncoder()

const textOf = (value: unknown): string => {
  try {
    return JSON.stringify(value)
  } catch {
    // It is nested so deeply that every operation refuses it.
    return ""
  }
}

/** The bytes of a body as far as they are known. A value that a host has parsed is written anew. */
const bytesOf = (body: ArrivedBody): Uint8Array =>
  body._tag === "Bytes" ? body.bytes : utf8.encode(body._tag === "Parsed" ? textOf(body.value) : "")

/** Returns the digest of a request with its idempotency key: of its method, its path with the query, and its body. */
const fingerprintOf = (
  key: string,
  { method, path, query = "" }: ApiRequest,
  body: ArrivedBody,
): string => {
  const bytes = bytesOf(body)
  const target = utf8.encode(`${key}\n${method} ${path}?${query}\n`)
  const all = new Uint8Array(target.length + bytes.length)
  all.set(target)
  all.set(bytes, target.length)
  return encodeBase64Url(sha256(all))
}

/** Waits for the body of a request. */
const arrivedBody = ({ body }: ApiRequest): Effect.Effect<ArrivedBody> =>
  body._tag === "Deferred" ? Effect.promise(body.read) : Effect.succeed(body)

/** Performs an operation whose call has an idempotency key. */
const performOnce = Effect.fnUntraced(function* (
  call: Call,
  operation: (call: Call) => Effect.Effect<OperationResult, ApiError>,
) {
  const { params, principal, request } = call
  // Nobody sends a body for a project that is not theirs.
  if (params.project_id !== "") yield* projectOf(call)
  const key = yield* Effect.fromResult(keyOf(request))
  const body = yield* arrivedBody(request)
  const known: IdempotencyKey = {
    owner: principal.keyId,
    key: digestOf(key),
    fingerprint: fingerprintOf(key, request, body),
  }
  const { isReplay, result } = yield* withReplayFlag(known, (once) =>
    operation({ ...call, request: { ...request, body }, once }),
  )
  return isReplay ? { ...result, isReplay } : result
})

/** Performs an operation, once if the request has an idempotency key and is not a mere reading. */
export const performWithIdempotency = (
  call: Call,
  operation: (call: Call) => Effect.Effect<OperationResult, ApiError>,
): Effect.Effect<OperationResult, ApiError> =>
  Object.hasOwn(call.request.headers, idempotencyName) && call.request.method !== "GET"
    ? performOnce(call, operation)
    : operation(call)

type Find = (projectId: string) => Effect.Effect<unknown, Pick<ProjectNotFound, "_tag"> | ApiError>

// The statuses of what is judged after the project: the body and the item.
const mayHide = new Set([400, 404, 413, 415, 422])

/**
 * Performs an operation. If somebody who may use all projects is refused, the project is looked up: that
 * it is missing counts before what else is wrong with a path that can be read, unless it is to be created. All others know which projects
 * they may use.
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
              Effect.andThen(Effect.flatMap(projectOf(call), find)),
              Effect.andThen(Effect.fail(error)),
            )
          : Effect.fail(error),
      )
    : operation

/** Makes the function that an operation calls before it answers. */
export const makeDisclosureAudit = Effect.map(
  Memberships,
  ({ recordShown }) =>
    (
      call: Call<"project_id">,
      action: Disclosure["action"],
      subject: string,
    ): Effect.Effect<void, ApiError> =>
      Effect.flatMap(projectOf(call), (projectId) =>
        recordShown({ projectId, action, subject }, originOf(call)),
      ),
)

/** The values of a query by name. Fails if a parameter is repeated. */
const queryValues = (query: string): Result.Result<object, InvalidInput> => {
  if (query === "") return Result.succeed({})
  const sent = new URLSearchParams(query)
  const names = [...sent.keys()]
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  return repeated === undefined
    ? Result.succeed(Object.fromEntries(sent))
    : Result.fail(new InvalidInput({ field: repeated, problem: "was sent more than once" }))
}

/** The names of the ids in the path of an operation, besides the project's. */
const idsIn = ({ pattern }: Declaration): ReadonlyArray<string> =>
  [...pattern.matchAll(/:(\w+)/g)].flatMap(([, name]) =>
    name === undefined || name === "project_id" ? [] : [name],
  )

const none = Result.succeed({})

const noProject = Effect.succeed(undefined)

/** Makes the function that reads the input of an operation. Without generators: each extension takes these steps. */
export const makeReader = <O, E>(
  declared: Declaration,
  input: RequestInput<O, E>,
  maxBodyBytes: number,
) => {
  const { isContract = false, method, pattern } = declared
  const ids = idsIn(declared)
  const isOfProject = pattern.includes("/:project_id")
  const isInQuery = method === "GET" || method === "DELETE"
  const inputs = input.alternatives ?? [input]
  const hasBody = !isInQuery && inputs.some(({ wireNames }) => wireNames.length > 0)
  const isBodyOptional = inputs.every(
    ({ fields, needsField }) =>
      !needsField && Object.values(fields).every(({ isOptional }) => isOptional === true),
  )
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

  // The endpoints of the contract ignore parameters that they do not know.
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
              Effect.fromResult(input.fromRequest(path, body, "json", isContract)),
            )
          : Effect.fromResult(input.fromRequest(path, query.success, "query", isContract))
      },
    )
}

/** What an act replies: the data, and what differs from the usual reply. */
export interface Replied<Data extends object | null> extends Partial<Omit<Success, "data">> {
  readonly data: Data
}

/** The errors of an operation: those that it declares, and those of every one. */
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
 * Makes an operation as it is declared: it reads the input of a request, performs an act with it, and replies.
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
  return (call) =>
    Effect.flatMapEager(read(call), (input) =>
      Effect.flatMapEager(currentUnixMillis, (at) => {
        const context = { origin: originOf(call), at, once: call.once }
        return Effect.map(act(input, context, call), (reply) => ({ message, ...reply }))
      }),
    )
}

const parseLimit = (given: unknown): number | undefined =>
  typeof given === "string" && /^([1-9]\d{0,2}|1000)$/.test(given) ? Number(given) : undefined

/** The parameters of every paged list. */
export const pageQuery = {
  // The most items to return.
  limit: Setting.withDefault(
    Setting.custom<string, number>("a whole number from 1 to 1,000", parseLimit),
    "100",
  ),
  // The cursor that the page before has as `next`.
  after: Setting.optional(Setting.string("a cursor, as `next` of the page before", () => true)),
}

/**
 * Reads query parameters as their definitions say. Fails with `InvalidInput`, which names the
 * parameter, if one is invalid, unknown or repeated.
 */
export const readQuery = <F extends Setting.SettingFields>(
  { query = "" }: { readonly query?: string | undefined },
  parameters: F,
): Effect.Effect<{ readonly [Name in keyof F]: Setting.OutputOf<F[Name]> }, InvalidInput> => {
  const sent = new URLSearchParams(query)
  const names = [...sent.keys()]
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  return repeated === undefined
    ? Setting.decode(Setting.object(parameters), Object.fromEntries(sent))
    : Effect.fail(new InvalidInput({ field: repeated, problem: "was sent more than once" }))
}
