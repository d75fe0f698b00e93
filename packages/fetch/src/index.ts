/** Tenure for hosts that speak fetch: web requests in, web responses out. */

import {
  type ApiRequest,
  type Body,
  consumed,
  emptyBody,
  pathOf,
  tooLarge,
} from "@tenure/core/ApiRequest"
import type { HeaderFields } from "@tenure/core/HeaderFields"
import type { Authenticate } from "@tenure/core/Identity"
import type { Mountable } from "@tenure/core/Tenure"
import { readStream, readWhole } from "./readBody.ts"
import { turnEnd } from "./turn.ts"

/** Options of the handler. */
export interface Options {
  /** The host's own authentication in place of API keys; that of Tenure's options by default. */
  readonly authenticate?: Authenticate<Request> | undefined
}

/** What a web request does not say of itself. */
export interface RequestInfo {
  /** The address of the client; without it all clients share the limits of one address. */
  readonly remoteAddress?: string | undefined
  /** The body as the host has parsed it, where it has: a web request can be read once only. */
  readonly parsedBody?: unknown
}

/** Answers what is the API's; `undefined` for everything else. */
export type FetchHandler = (request: Request, info?: RequestInfo) => Promise<Response> | undefined

// A web request with one of these has no body (Fetch, 5.3).
const withoutBody = new Set(["GET", "HEAD"])

// A web request joins the values of a field that was sent several times.
const joined = /, *(?=bearer )/i

const headersOf = (request: Request): HeaderFields => {
  const headers: Record<string, string> = Object.fromEntries(request.headers)
  const { authorization } = headers
  return authorization !== undefined && joined.test(authorization)
    ? { ...headers, authorization: authorization.split(joined) }
    : headers
}

const bodyOf = (
  request: Request,
  { "content-length": length }: HeaderFields,
  { parsedBody }: RequestInfo,
  limit: number,
): Body | Promise<Body> => {
  if (parsedBody !== undefined) return { _tag: "Parsed", value: parsedBody }
  if (request.bodyUsed) return consumed
  if (withoutBody.has(request.method)) return emptyBody
  if (length === undefined)
    return request.body === null ? emptyBody : readStream(request.body, limit)
  // HTTP holds a body to the length that is announced, and servers read it faster than a stream.
  return Number(length) > limit ? tooLarge : readWhole(request)
}

/**
 * Makes a handler of web requests, for Hono, Next.js, Bun, Deno, workers and whatever else speaks
 * fetch. A path is the whole path of the request's URL: where the API is not to be at the root,
 * `basePath` of Tenure's options says so.
 *
 * @example
 * ```ts
 * import * as Tenure from "@tenure/core/Tenure"
 * import { fetchHandler } from "@tenure/fetch"
 * import { memory } from "@tenure/memory"
 *
 * const tenure = await Tenure.make({ stores: memory() })
 * const api = fetchHandler(tenure)
 *
 * export default {
 *   fetch: (request: Request) =>
 *     api(request, { remoteAddress: request.headers.get("cf-connecting-ip") ?? undefined }) ??
 *     new Response("the rest of your backend"),
 * }
 * ```
 */
export const fetchHandler =
  (tenure: Mountable, { authenticate }: Options = {}): FetchHandler =>
  (request, info = {}) => {
    const path = pathOf(request.url)
    return tenure.owns(path) ? answer(tenure, request, path, info, authenticate) : undefined
  }

const answer = async (
  tenure: Mountable,
  request: Request,
  path: string,
  info: RequestInfo,
  authenticate: Options["authenticate"],
): Promise<Response> => {
  const headers = headersOf(request)
  const apiRequest: ApiRequest = {
    method: request.method,
    path,
    headers,
    body: await bodyOf(request, headers, info, tenure.maxBodyBytes),
    remoteAddress: info.remoteAddress,
    ...(authenticate && { authenticate: () => authenticate(request) }),
  }
  await turnEnd()
  const response = await tenure.handle(apiRequest)
  return new Response(response.body, { status: response.status, headers: response.headers })
}
