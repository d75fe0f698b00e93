/** Routes: the operations of each path, and how long their bodies may be. */

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

/** The name of an operation: a resource, and what the operation does with it. */
export type Operation = keyof typeof routes

type NamesIn<Text extends string> = Text extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesIn<Rest>
  : Text extends `${string}:${infer Name}`
    ? Name
    : never

/** An operation's path parameters; by default, those in any path. */
export type PathParameter<Of extends Operation = Operation> = NamesIn<
  (typeof routes)[Of]["pattern"]
>

/** The values of path parameters, percent-encoded. */
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

/** The operations of a path, by method. */
type Methods = ReadonlyMap<string, Operation>

/** The operations of a path, and its parameters. */
export type RouteMatch = PathMatch<Methods, PathParameter>

/** Which part of the API is served: `"contract"` for the endpoints of the contract, or `"all"`. */
export const apiParts = ["all", "contract"] as const

/** A part of the API. */
export type ApiPart = (typeof apiParts)[number]

/** The least role that may call an operation; `"none"` if no key is needed. */
export const requiredRole = (operation: Operation): Route["role"] => routes[operation].role

/** Whether an operation changes something, so that those who may only read may not call it. */
export const isChange = (operation: Operation): boolean =>
  rows[operation].method !== "GET" && rows[operation].changesNothing !== true

const rows: Readonly<Record<Operation, Route>> = routes

/** Whether the holder of a ticket may call an operation. */
export const takesTicket = (operation: Operation): boolean => rows[operation].takesTicket === true

/** The longest body, in bytes; `undefined` if the option says it. */
const maxBodyBytesOf = (operation: Operation): number | undefined => rows[operation].maxBodyBytes

/** The paths in a part of the API. */
export interface Routes {
  /**
   * Each path's pattern. If two of them match a path, the one with the literal segment comes
   * first.
   */
  readonly patterns: ReadonlyArray<PathPattern>
  /**
   * Finds the operations of a path.
   *
   * @param path - the path as on the wire, without the query
   * @param basePath - what precedes `/v2`, for example `/api`; empty for nothing
   * @returns `undefined` if the path is not one of the part's
   */
  readonly match: (path: string, basePath: string) => RouteMatch | undefined
  /** Tells whether a path is that of WebSocket connections. It has no operations. */
  readonly isRealtime: (path: string, basePath: string) => boolean
  /** Returns the pattern of a match. */
  readonly patternOf: (match: RouteMatch) => PathPattern | undefined
}

// In the place of the colon, a character that sorts after all others.
const rank = (pattern: string): string => pattern.replaceAll(":", "\uffff")

/** The methods of each path, in the order of the table. */
const methodsByPattern = (operations: ReadonlyArray<Operation>) =>
  operations.reduce((paths, operation) => {
    const { method, pattern } = routes[operation]
    return paths.set(pattern, new Map(paths.get(pattern)).set(method, operation))
  }, new Map<PathPattern, Methods>())

const docs: ReadonlySet<Operation> = new Set(["docs.document", "docs.asyncDocument", "docs.page"])

/** The operations of a part of the API. */
const operationsOf = (part: ApiPart, hasDocs: boolean): ReadonlyArray<Operation> =>
  part === "contract"
    ? Struct.keys(routes).filter((operation) => rows[operation].isContract === true)
    : Struct.keys(routes).filter((operation) => hasDocs || !docs.has(operation))

/**
 * Makes the routes of a part of the API.
 *
 * @param hasDocs - whether the whole API has those of its documentation, too
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

/** How an adapter reads the body of a request. */
export interface BodyLimit {
  /** The longest body, in bytes. The adapter reads no more. */
  readonly bytes: number
  /**
   * Whether the adapter leaves it to the core to read the body, because it may be long: only of
   * clients that may send it anything is kept.
   */
  readonly isDeferred: boolean
}

/** The limits of the operations that have their own. */
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
 * Makes the function that returns the limit of a request, by its method and path.
 *
 * @param maxBodyBytes - the limit of all operations that have none of their own, in bytes
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
