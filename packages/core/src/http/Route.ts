/**
 * The routes of the API, in one table. Matching, the patterns for routers of hosts, the `Allow`
 * header and the OpenAPI document derive from it.
 */

import * as Struct from "effect/Struct"
import * as PathTree from "./PathTree.ts"

const prefix = "/v2/"

/** A method and a path. Segments of the pattern that start with `:` are parameters. */
interface Route {
  readonly method: "DELETE" | "GET" | "PATCH" | "POST" | "PUT"
  readonly pattern: `${typeof prefix}${string}`
}

/** The route of each operation. `Allow` lists the methods of a path in the order of this table. */
export const table = {
  "memberships.extend": {
    method: "PATCH",
    pattern: "/v2/projects/:project_id/memberships/:user_id/extend",
  },
  "memberships.extendAll": {
    method: "PATCH",
    pattern: "/v2/projects/:project_id/memberships/extend",
  },
  "webhooks.list": {
    method: "GET",
    pattern: "/v2/projects/:project_id/integrations/webhooks",
  },
  "webhooks.create": {
    method: "POST",
    pattern: "/v2/projects/:project_id/integrations/webhooks",
  },
  "webhooks.delete": {
    method: "DELETE",
    pattern: "/v2/projects/:project_id/integrations/webhooks/:webhook_id",
  },
} as const satisfies Readonly<Record<string, Route>>

/** The name of an operation: a resource, and what the operation does with it. */
export type Operation = keyof typeof table

type NamesIn<Pattern extends string> = Pattern extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesIn<Rest>
  : Pattern extends `${string}:${infer Name}`
    ? Name
    : never

/** The names of the path parameters of an operation; by default, of all operations. */
export type Parameter<Of extends Operation = Operation> = NamesIn<(typeof table)[Of]["pattern"]>

/** The values of path parameters, percent-encoded. */
export type Params<Name extends Parameter = Parameter> = Readonly<Record<Name, string>>

const noParams: Params = { project_id: "", user_id: "", webhook_id: "" }

/** The operations of a path, by method. */
type Methods = ReadonlyMap<string, Operation>

/** The methods of each path, in the order of the table. */
const methodsByPattern = Struct.keys(table).reduce((paths, operation) => {
  const { method, pattern } = table[operation]
  return paths.set(pattern, new Map(paths.get(pattern)).set(method, operation))
}, new Map<Route["pattern"], Methods>())

// In the place of the colon, a character that sorts after all others.
const rank = (pattern: string): string => pattern.replaceAll(":", "\uffff")

/**
 * The pattern of each path, in the notation of most routers and without a base path. If two of them
 * match a path, the one with the literal segment comes first.
 */
export const patterns: ReadonlyArray<Route["pattern"]> = [...methodsByPattern.keys()].toSorted(
  (a, b) => (rank(a) < rank(b) ? -1 : 1),
)

const find = PathTree.make(methodsByPattern, noParams)

/** The operations of a path, and its parameters. */
export type Match = PathTree.Found<Methods, Parameter>

/**
 * Finds the operations of a path.
 *
 * @param path - the path as on the wire, without the query
 * @param basePath - what precedes `/v2`, for example `/api`; empty for nothing
 * @returns `undefined` if the path is not one of the API's
 */
export const match = (path: string, basePath: string): Match | undefined =>
  path.startsWith(basePath) && path.startsWith(prefix, basePath.length)
    ? find(path, basePath.length)
    : undefined
