/** Routes: each path's operations, and the limits for their bodies. */

import * as Struct from "effect/Struct"
import { apiKeyOperations, identityOperations } from "../api/api-keys.ts"
import { auditOperations } from "../api/audit.ts"
import { type PathPattern, type Route, ofResource } from "../api/declaration.ts"
import { eventOperations } from "../api/events.ts"
import { membershipOperations } from "../api/memberships.ts"
import { projectOperations } from "../api/projects.ts"
import { realtimeOperations } from "../api/realtime.ts"
import { docsOperations, statusOperations } from "../api/service-info.ts"
import { webhookOperations } from "../api/webhooks.ts"
import { type PathMatch, makePathTree } from "./path-tree.ts"

/** Each operation's route. `Allow` lists a path's methods in this order. */
export const routes = {
  ...ofResource("memberships", membershipOperations),
  ...ofResource("projects", projectOperations),
  ...ofResource("webhooks", webhookOperations),
  ...ofResource("events", eventOperations),
  ...ofResource("realtime", realtimeOperations),
  ...ofResource("apiKeys", apiKeyOperations),
  ...ofResource("audit", auditOperations),
  ...ofResource("identity", identityOperations),
  ...ofResource("status", statusOperations),
  ...ofResource("docs", docsOperations),
} as const satisfies Readonly<Record<string, Route>>

/** An operation's name: a resource, and an action on it. */
export type Operation = keyof typeof routes

type NamesIn<Text extends string> = Text extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesIn<Rest>
  : Text extends `${string}:${infer Name}`
    ? Name
    : never

/** An operation's path parameters; by default, any path's. */
export type PathParameter<Of extends Operation = Operation> = NamesIn<
  (typeof routes)[Of]["pattern"]
>

/** Path parameter values, percent-encoded. */
export type PathParams<Name extends PathParameter = PathParameter> = Readonly<Record<Name, string>>

const routeNoParams: PathParams = {
  project_id: "",
  user_id: "",
  webhook_id: "",
  event_id: "",
  bulk_extension_id: "",
  key_id: "",
}

const realtime: PathPattern = "/v2/realtime"

/** A path's operations, by method. */
type Methods = ReadonlyMap<string, Operation>

/** A path's operations and parameters. */
export type RouteMatch = PathMatch<Methods, PathParameter>

/** The served part of the API: `"contract"` for the contract's endpoints, or `"all"`. */
export const apiParts = ["all", "contract"] as const

export type ApiPart = (typeof apiParts)[number]

/** The least role allowed to call an operation; `"none"` if no key is needed. */
export const requiredRole = (operation: Operation): Route["role"] => routes[operation].role

/** Whether an operation changes something. Read-only principals may not call it then. */
export const isChange = (operation: Operation): boolean =>
  rows[operation].method !== "GET" && rows[operation].changesNothing !== true

const rows: Readonly<Record<Operation, Route>> = routes

/** Whether a ticket is enough to call an operation. */
export const takesTicket = (operation: Operation): boolean => rows[operation].takesTicket === true

/** The longest body, in bytes; `undefined` if the option says it. */
const maxBodyBytesOf = (operation: Operation): number | undefined => rows[operation].maxBodyBytes

/** A part's paths. */
export interface Routes {
  /** Each path's pattern. If two match a path, the literal segment comes first. */
  readonly patterns: ReadonlyArray<PathPattern>
  /**
   * Finds a path's operations.
   *
   * @param path - the path as on the wire, without the query
   * @param basePath - the prefix before `/v2`, for example `/api`; empty for none
   * @returns `undefined` if the path is outside the part
   */
  readonly match: (path: string, basePath: string) => RouteMatch | undefined
  /** Tells whether a path is for WebSocket connections. It has no operations. */
  readonly isRealtime: (path: string, basePath: string) => boolean
  /** Returns a match's pattern. */
  readonly patternOf: (match: RouteMatch) => PathPattern | undefined
}

// In the colon's place, a character that sorts after all others.
const rank = (pattern: string): string => pattern.replaceAll(":", "\uffff")

/** Each path's methods, in the table's order. */
const methodsByPattern = (operations: ReadonlyArray<Operation>) =>
  operations.reduce((paths, operation) => {
    const { method, pattern } = routes[operation]
    return paths.set(pattern, new Map(paths.get(pattern)).set(method, operation))
  }, new Map<PathPattern, Methods>())

const docs: ReadonlySet<Operation> = new Set(["docs.document", "docs.asyncDocument", "docs.page"])

/** The operations in a part of the API. */
const operationsOf = (part: ApiPart, hasDocs: boolean): ReadonlyArray<Operation> =>
  part === "contract"
    ? Struct.keys(routes).filter((operation) => rows[operation].isContract === true)
    : Struct.keys(routes).filter((operation) => hasDocs || !docs.has(operation))

/**
 * Makes the routes for a part of the API.
 *
 * @param hasDocs - whether the whole API includes its documentation's routes
 */
export const makeRoutes = (part: ApiPart, hasDocs = true): Routes => {
  const methods = methodsByPattern(operationsOf(part, hasDocs))
  const find = makePathTree(methods, routeNoParams)
  const connections: ReadonlyArray<PathPattern> = part === "all" ? [realtime] : []
  const patterns = new Map([...methods].map(([pattern, found]) => [found, pattern]))
  return {
    patterns: [...methods.keys(), ...connections].toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1)),
    isRealtime: (path, basePath) => connections.some((one) => path === basePath + one),
    match: (path, basePath) =>
      path.startsWith(basePath) && path.startsWith("/v2/", basePath.length)
        ? find(path, basePath.length)
        : undefined,
    patternOf: ({ value }) => patterns.get(value),
  }
}

/** Tells an adapter how to read a request's body. */
export interface BodyLimit {
  /** The longest body, in bytes. The adapter reads no more. */
  readonly bytes: number
  /**
   * Whether the core reads the body in place of the adapter, because it may be long: it is kept in
   * memory only for authorized clients.
   */
  readonly isDeferred: boolean
}

/** The operations with their own limits. */
const ownLimits = new Map(
  Struct.keys(routes).flatMap((operation) => {
    const bytes = maxBodyBytesOf(operation)
    return bytes === undefined ? [] : [[operation, { bytes, isDeferred: true }] as const]
  }),
)

// Spares requests with another method a second look for their path.
const bodyLimitMethods = new Set<string>(
  [...ownLimits.keys()].map((operation) => routes[operation].method),
)

/**
 * Makes the function that returns a request's limit, by its method and path.
 *
 * @param maxBodyBytes - the limit for operations without their own, in bytes
 */
export const makeBodyLimit = (
  { match }: Routes,
  basePath: string,
  maxBodyBytes: number,
): ((method: string, path: string) => BodyLimit) => {
  const usual: BodyLimit = { bytes: maxBodyBytes, isDeferred: false }
  return (method, path) => {
    if (!bodyLimitMethods.has(method)) return usual
    const operation = match(path, basePath)?.value.get(method)
    return (operation && ownLimits.get(operation)) ?? usual
  }
}
