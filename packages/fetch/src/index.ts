/** Tenure for hosts that speak fetch: web requests in, web responses out. */

import {
  type ApiRequest,
  type ArrivedBody,
  type Body,
  consumed,
  emptyBody,
  hasUnknownCoding,
  pathOf,
  queryOf,
  tooLarge,
  unknownCoding,
} from "@tenure/core/ApiRequest"
import type { BodyLimit } from "@tenure/core/BodyLimit"
import type { HeaderFields } from "@tenure/core/HeaderFields"
import type { Authenticate } from "@tenure/core/Identity"
import { checkMountable, type Mountable } from "@tenure/core/Mountable"
import * as Setting from "@tenure/core/Setting"
import { readStream, readWhole } from "./readBody.ts"
import { toWebStream } from "./streams.ts"
import { turnEnd } from "./turn.ts"

/** The options of the handler. */
export const options = Setting.struct({
  /**
   * Authenticates requests in place of API keys. By default, `authenticate` of the options of
   * `Tenure.make` does.
   */
  authenticate: Setting.callback<Authenticate<Request>>(),
})

/** The options that a host passes. */
export interface Options extends Setting.Input<typeof options> {}

/** What the host knows about a request, and the web request does not contain. */
export interface RequestInfo {
  /**
   * The IP address of the client. If missing or not an address, the client shares the limits of one
   * address with all others without one.
   */
  readonly remoteAddress?: string | undefined
  /** The parsed body, if the host has read it. A web request can be read only once. */
  readonly parsedBody?: unknown
}

/** Answers requests for the API. Returns `undefined` for all others. */
export type FetchHandler = (request: Request, info?: RequestInfo) => Promise<Response> | undefined

// A web request with one of these methods has no body (Fetch, 5.3).
const withoutBody = new Set(["GET", "HEAD"])

// A web request joins the values of a repeated header with commas.
const joined = /, *(?=bearer )/i

const headersOf = (request: Request): HeaderFields => {
  const headers: Record<string, string> = Object.fromEntries(request.headers)
  const { authorization } = headers
  return authorization !== undefined && joined.test(authorization)
    ? { ...headers, authorization: authorization.split(joined) }
    : headers
}

const read = (
  request: Request,
  hasLength: boolean,
  limit: number,
): ArrivedBody | Promise<ArrivedBody> => {
  // HTTP limits a body to its announced length, and reading it at once is faster than streaming it.
  if (hasLength) return readWhole(request)
  return request.body === null ? emptyBody : readStream(request.body, limit)
}

const bodyOf = (
  request: Request,
  headers: HeaderFields,
  { parsedBody }: RequestInfo,
  { bytes: limit, isDeferred }: BodyLimit,
): Body | Promise<Body> => {
  if (parsedBody !== undefined) return { _tag: "Parsed", value: parsedBody }
  if (request.bodyUsed) return consumed
  if (hasUnknownCoding(headers)) return unknownCoding
  if (withoutBody.has(request.method)) return emptyBody
  const { "content-length": length } = headers
  if (Number(length) > limit) return tooLarge
  const hasLength = length !== undefined
  return isDeferred
    ? { _tag: "Deferred", read: async () => read(request, hasLength, limit) }
    : read(request, hasLength, limit)
}

/**
 * Makes a handler of web requests, for Hono, Next.js, Bun, Deno, workers and other hosts that speak
 * fetch.
 *
 * The handler matches the whole path of the URL. To mount the API under a path, set `basePath` in the
 * options of `Tenure.make`. Throws a `TypeError` if `tenure` is not what `await Tenure.make(…)` returns,
 * and `InvalidInput` if an option is invalid.
 *
 * @example
 * ```ts
 * import { Tenure } from "tenure"
 * import { fetchHandler } from "tenure/fetch"
 * import { memory } from "tenure/memory"
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
export const fetchHandler = (tenure: Mountable, given: Options = {}): FetchHandler => {
  checkMountable(tenure)
  const { authenticate } = Setting.readSync(options, given)
  return (request, info = {}) => {
    const path = pathOf(request.url)
    return tenure.owns(path) ? answer(tenure, request, path, info, authenticate) : undefined
  }
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
    query: queryOf(request.url),
    headers,
    body: await bodyOf(request, headers, info, tenure.bodyLimit(request.method, path)),
    remoteAddress: info.remoteAddress,
    signal: () => request.signal,
    ...(authenticate && { authenticate: () => authenticate(request) }),
  }
  await turnEnd()
  const { body, headers: fields, status } = await tenure.handle(apiRequest)
  const content = typeof body === "string" ? body : toWebStream(body)
  return new Response(content, { status, headers: fields })
}
