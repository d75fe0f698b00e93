/** The paths of the API, and which operation a request asks for. */

/** The operations of the API. */
export type Operation = "extend" | "extendAll" | "createWebhook" | "listWebhooks" | "deleteWebhook"

/** What a path names: a resource of a project, its ids still percent-encoded. */
export interface Route {
  /** The operation that each allowed method asks for. */
  readonly operations: Readonly<Partial<Record<string, Operation>>>
  readonly projectId: string
  /** The user's or the webhook's id; empty where the path has none. */
  readonly id: string
}

const membership = { PATCH: "extend" } as const
const memberships = { PATCH: "extendAll" } as const
const webhooks = { GET: "listWebhooks", POST: "createWebhook" } as const
const webhook = { DELETE: "deleteWebhook" } as const

// In a path they mean another path, which clients and hosts that resolve it have asked for instead
// (RFC 3986, 5.2.4).
const dotSegment = /^(\.|%2e){1,2}$/i

const prefix = "/v2/projects/"

/** What the segments after the project's id name, and the id among them. */
const resource = (
  rest: ReadonlyArray<string>,
): readonly [Route["operations"], string] | undefined => {
  const [first = "", second = "", third = ""] = rest
  if (first === "memberships") {
    if (rest.length === 2 && second === "extend") return [memberships, ""]
    if (rest.length === 3 && second !== "" && third === "extend") return [membership, second]
  }
  if (first === "integrations" && second === "webhooks") {
    if (rest.length === 2) return [webhooks, ""]
    if (rest.length === 3 && third !== "") return [webhook, third]
  }
  return undefined
}

/**
 * Finds what a path names.
 *
 * @param path - the path as on the wire, without the query
 * @param basePath - what precedes `/v2`, such as `/api`; empty where nothing does
 * @returns `undefined` where the path is none of the API's
 */
export const match = (path: string, basePath: string): Route | undefined => {
  const start = basePath.length + prefix.length
  if (!path.startsWith(basePath) || !path.startsWith(prefix, basePath.length)) return undefined
  const [projectId = "", ...rest] = path.slice(start).split("/")
  const found = resource(rest)
  if (found === undefined || projectId === "" || dotSegment.test(projectId)) return undefined
  const [operations, id] = found
  return dotSegment.test(id) ? undefined : { operations, projectId, id }
}
