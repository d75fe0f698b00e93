/**
 * The routes of the API, in one table. Matching, the patterns for routers of hosts, the `Allow`
 * header and the OpenAPI document derive from it.
 */

import * as Struct from "effect/Struct"
import type { Role } from "../keys/Role.ts"
import * as PathTree from "./PathTree.ts"

const prefix = "/v2/"

/** A path as routers write it, without a base path. Segments that start with `:` are parameters. */
export type Pattern = `${typeof prefix}${string}`

/** A method, a path and who may call it. */
interface Route {
  readonly method: "DELETE" | "GET" | "PATCH" | "POST" | "PUT"
  readonly pattern: Pattern
  /** The least role that may call it; `"none"` if no key is needed. */
  readonly role: Role | "none"
  /** Whether those who may only read may call it, although it is not a GET. */
  readonly changesNothing?: boolean
  /** Whether the holder of a ticket may call it. */
  readonly takesTicket?: boolean
  /** The longest body, in bytes, where it is not that of the option. */
  readonly maxBodyBytes?: number
}

/** The route of each operation. `Allow` lists the methods of a path in the order of this table. */
export const table = {
  "memberships.extend": {
    method: "PATCH",
    pattern: "/v2/projects/:project_id/memberships/:user_id/extend",
    role: "client",
  },
  "memberships.extendAll": {
    method: "PATCH",
    pattern: "/v2/projects/:project_id/memberships/extend",
    role: "client",
  },
  "memberships.import": {
    method: "POST",
    pattern: "/v2/projects/:project_id/memberships/import",
    role: "operator",
    maxBodyBytes: 2_097_152,
  },
  "memberships.list": {
    method: "GET",
    pattern: "/v2/projects/:project_id/memberships",
    role: "client",
  },
  "memberships.get": {
    method: "GET",
    pattern: "/v2/projects/:project_id/memberships/:user_id",
    role: "client",
  },
  "memberships.grant": {
    method: "PUT",
    pattern: "/v2/projects/:project_id/memberships/:user_id",
    role: "operator",
  },
  "memberships.end": {
    method: "DELETE",
    pattern: "/v2/projects/:project_id/memberships/:user_id",
    role: "operator",
  },
  "memberships.history": {
    method: "GET",
    pattern: "/v2/projects/:project_id/memberships/:user_id/history",
    role: "operator",
  },
  "projects.list": {
    method: "GET",
    pattern: "/v2/projects",
    role: "client",
  },
  "projects.create": {
    method: "PUT",
    pattern: "/v2/projects/:project_id",
    role: "admin",
  },
  "projects.get": {
    method: "GET",
    pattern: "/v2/projects/:project_id",
    role: "client",
  },
  "projects.delete": {
    method: "DELETE",
    pattern: "/v2/projects/:project_id",
    role: "admin",
  },
  "projects.audit": {
    method: "GET",
    pattern: "/v2/projects/:project_id/audit",
    role: "operator",
  },
  "webhooks.list": {
    method: "GET",
    pattern: "/v2/projects/:project_id/integrations/webhooks",
    role: "client",
  },
  "webhooks.create": {
    method: "POST",
    pattern: "/v2/projects/:project_id/integrations/webhooks",
    role: "client",
  },
  "webhooks.health": {
    method: "GET",
    pattern: "/v2/projects/:project_id/integrations/health",
    role: "client",
  },
  "webhooks.get": {
    method: "GET",
    pattern: "/v2/projects/:project_id/integrations/webhooks/:webhook_id",
    role: "client",
  },
  "webhooks.delete": {
    method: "DELETE",
    pattern: "/v2/projects/:project_id/integrations/webhooks/:webhook_id",
    role: "client",
  },
  "webhooks.ping": {
    method: "POST",
    pattern: "/v2/projects/:project_id/integrations/webhooks/:webhook_id/ping",
    role: "operator",
  },
  "webhooks.enable": {
    method: "POST",
    pattern: "/v2/projects/:project_id/integrations/webhooks/:webhook_id/enable",
    role: "operator",
  },
  "webhooks.rotate": {
    method: "POST",
    pattern: "/v2/projects/:project_id/integrations/webhooks/:webhook_id/rotate",
    role: "operator",
  },
  "webhooks.deliveries": {
    method: "GET",
    pattern: "/v2/projects/:project_id/integrations/webhooks/:webhook_id/deliveries",
    role: "operator",
  },
  "webhooks.delivery": {
    method: "GET",
    pattern: "/v2/projects/:project_id/integrations/webhooks/:webhook_id/deliveries/:event_id",
    role: "operator",
  },
  "webhooks.replay": {
    method: "POST",
    pattern: "/v2/projects/:project_id/integrations/webhooks/:webhook_id/replay",
    role: "operator",
  },
  "events.list": {
    method: "GET",
    pattern: "/v2/projects/:project_id/events",
    role: "client",
    takesTicket: true,
  },
  "events.publish": {
    method: "POST",
    pattern: "/v2/projects/:project_id/events",
    role: "operator",
  },
  "events.get": {
    method: "GET",
    pattern: "/v2/projects/:project_id/events/:event_id",
    role: "operator",
  },
  "realtime.issueTicket": {
    method: "POST",
    pattern: "/v2/realtime/tickets",
    role: "client",
    changesNothing: true,
  },
  "apiKeys.list": {
    method: "GET",
    pattern: "/v2/api-keys",
    role: "admin",
  },
  "apiKeys.issue": {
    method: "POST",
    pattern: "/v2/api-keys",
    role: "admin",
  },
  "apiKeys.revoke": {
    method: "DELETE",
    pattern: "/v2/api-keys/:key_id",
    role: "admin",
  },
  "audit.list": { method: "GET", pattern: "/v2/audit", role: "admin" },
  "identity.get": { method: "GET", pattern: "/v2/identity", role: "client" },
  "status.activity": { method: "GET", pattern: "/v2/status/activity", role: "admin" },
  "status.get": { method: "GET", pattern: "/v2/status", role: "admin" },
  "docs.document": { method: "GET", pattern: "/v2/openapi.json", role: "none" },
  "docs.asyncDocument": { method: "GET", pattern: "/v2/asyncapi.json", role: "none" },
  "docs.page": { method: "GET", pattern: "/v2/docs", role: "none" },
} as const satisfies Readonly<Record<string, Route>>

/** The name of an operation: a resource, and what the operation does with it. */
export type Operation = keyof typeof table

type NamesIn<Text extends string> = Text extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesIn<Rest>
  : Text extends `${string}:${infer Name}`
    ? Name
    : never

/** The names of the path parameters of an operation; by default, of all operations. */
export type Parameter<Of extends Operation = Operation> = NamesIn<(typeof table)[Of]["pattern"]>

/** The values of path parameters, percent-encoded. */
export type Params<Name extends Parameter = Parameter> = Readonly<Record<Name, string>>

const noParams: Params = {
  project_id: "",
  user_id: "",
  webhook_id: "",
  event_id: "",
  key_id: "",
}

const realtime: Pattern = "/v2/realtime"

/** The operations of a path, by method. */
type Methods = ReadonlyMap<string, Operation>

/** The operations of a path, and its parameters. */
export type Match = PathTree.Found<Methods, Parameter>

/** Which part of the API is served: `"contract"` for the endpoints of the contract, or `"all"`. */
export const parts = ["all", "contract"] as const

/** A part of the API. */
export type Part = (typeof parts)[number]

const contract: ReadonlyArray<Operation> = [
  "memberships.extend",
  "memberships.extendAll",
  "webhooks.list",
  "webhooks.create",
  "webhooks.delete",
]

/** The least role that may call an operation; `"none"` if no key is needed. */
export const roleOf = (operation: Operation): Route["role"] => table[operation].role

/** Whether an operation changes something, so that those who may only read may not call it. */
export const changes = (operation: Operation): boolean =>
  rows[operation].method !== "GET" && rows[operation].changesNothing !== true

const rows: Readonly<Record<Operation, Route>> = table

/** Whether the holder of a ticket may call an operation. */
export const takesTicket = (operation: Operation): boolean => rows[operation].takesTicket === true

/** The longest body of an operation, in bytes; `undefined` if it is that of the option. */
export const maxBodyBytesOf = (operation: Operation): number | undefined =>
  rows[operation].maxBodyBytes

/** The paths of a part of the API. */
export interface Routes {
  /**
   * The pattern of each path. If two of them match a path, the one with the literal segment comes
   * first.
   */
  readonly patterns: ReadonlyArray<Pattern>
  /**
   * Finds the operations of a path.
   *
   * @param path - the path as on the wire, without the query
   * @param basePath - what precedes `/v2`, for example `/api`; empty for nothing
   * @returns `undefined` if the path is not one of the part's
   */
  readonly match: (path: string, basePath: string) => Match | undefined
  /** Tells whether a path is that of WebSocket connections. It has no operations. */
  readonly isRealtime: (path: string, basePath: string) => boolean
  /** Returns the pattern of a match. */
  readonly patternOf: (match: Match) => Pattern | undefined
}

// In the place of the colon, a character that sorts after all others.
const rank = (pattern: string): string => pattern.replaceAll(":", "\uffff")

/** The methods of each path, in the order of the table. */
const methodsByPattern = (operations: ReadonlyArray<Operation>) =>
  operations.reduce((paths, operation) => {
    const { method, pattern } = table[operation]
    return paths.set(pattern, new Map(paths.get(pattern)).set(method, operation))
  }, new Map<Pattern, Methods>())

const docs: ReadonlySet<Operation> = new Set(["docs.document", "docs.asyncDocument", "docs.page"])

/** The operations of a part of the API. */
const operationsOf = (part: Part, hasDocs: boolean): ReadonlyArray<Operation> =>
  part === "contract"
    ? contract
    : Struct.keys(table).filter((operation) => hasDocs || !docs.has(operation))

/**
 * Makes the routes of a part of the API.
 *
 * @param hasDocs - whether the whole API has those of its documentation, too
 */
export const make = (part: Part, hasDocs = true): Routes => {
  const methods = methodsByPattern(operationsOf(part, hasDocs))
  const find = PathTree.make(methods, noParams)
  const connections: ReadonlyArray<Pattern> = part === "all" ? [realtime] : []
  const patterns = new Map([...methods].map(([pattern, found]) => [found, pattern]))
  return {
    patterns: [...methods.keys(), ...connections].toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1)),
    isRealtime: (path, basePath) => connections.some((one) => path === basePath + one),
    match: (path, basePath) =>
      path.startsWith(basePath) && path.startsWith(prefix, basePath.length)
        ? find(path, basePath.length)
        : undefined,
    patternOf: ({ value }) => patterns.get(value),
  }
}
