/** The operator's console: its page, the session in a cookie, and the API behind it. */

import {
  type ApiRequest,
  type ApiResponse,
  type Authenticate,
  type HeaderFields,
  type Mountable,
  checkMountable,
  emptyBody,
  singleHeader,
} from "@tenure/core/adapter"
import { Setting, handlerOptions } from "@tenure/core/internal"
import * as Predicate from "effect/Predicate"
import { files, html } from "./files.generated.ts"
import {
  htmlPage,
  noContent,
  plainText,
  refusalPage,
  staticFile,
  withSecurityHeaders,
} from "./responses.ts"

// The cookie contains the operator's API key, and scripts cannot read it.
const sessionName = "tenure_console"

const sessionPattern = new RegExp(`(?:^|; *)${sessionName}=([^;]*)`)

const fieldOf = ({ headers }: ApiRequest, field: string): string => {
  const found = singleHeader(headers, field)
  return found._tag === "Value" ? found.value : ""
}

const decode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Returns the token in a request's session cookie. */
const sessionToken = (request: ApiRequest): string | undefined => {
  const value = sessionPattern.exec(fieldOf(request, "cookie"))?.[1]
  return value === undefined ? undefined : decode(value)
}

/** Returns the token a sign-in request sends. */
const tokenGiven = (request: ApiRequest): string =>
  fieldOf(request, "authorization").replace(/^bearer +/i, "")

// Without a path, browsers send the cookie to the console's folder, whatever name a proxy gives it.
const attributes = (request: ApiRequest): string => {
  // Not all browsers accept `Secure` from localhost without TLS.
  const isPlain = fieldOf(request, "origin").startsWith("http:")
  return `HttpOnly; SameSite=Strict${isPlain ? "" : "; Secure"}`
}

/** Header fields to begin a session. It ends when the browser closes. */
const startSession = (request: ApiRequest) => ({
  "Set-Cookie": `${sessionName}=${encodeURIComponent(tokenGiven(request))}; ${attributes(request)}`,
})

/** Header fields to end a session. */
const endSession = (request: ApiRequest) => ({
  "Set-Cookie": `${sessionName}=; Max-Age=0; ${attributes(request)}`,
})

const webhooks = /^(\/v2\/projects\/[^/]+\/integrations)\/webhooks$/

const events = /^\/v2\/projects\/[^/]+\/events$/

const withoutData = (request: ApiRequest): ApiRequest => {
  const query = new URLSearchParams(request.query)
  query.set("data", "summary")
  // A stream would have the data.
  const headers = { ...request.headers, accept: "application/json" }
  return { ...request, query: query.toString(), headers }
}

/**
 * Tells whether the console forwards requests for an API path. A ticket would open a connection to
 * event data.
 */
const isForwardedHeader = (path: string): boolean => !path.startsWith("/v2/realtime")

/**
 * Removes everything from a request that would return secrets or data: only audited operations may return webhook secrets or
 * event data, and those that return many at once show less.
 *
 * @param request - its path is the API's, without the base path
 */
const redactLocation = (request: ApiRequest): ApiRequest => {
  const { method, path } = request
  if (method !== "GET") return request
  if (events.test(path)) return withoutData(request)
  return { ...request, path: path.replace(webhooks, "$1/health") }
}

const valueOf = (headers: HeaderFields, name: string): string | undefined => {
  const field = singleHeader(headers, name)
  return field._tag === "Value" ? field.value : undefined
}

// A cross-site form cannot send this content type; requiring it blocks CSRF.
const json = /^application\/json *(;|$)/i

const isSafe = (method: string): boolean => method === "GET" || method === "HEAD"

/** Refuses a cross-site request; returns `undefined` for one from the page. */
const crossSiteRefusal = ({ headers, method }: ApiRequest): ApiResponse | undefined => {
  const site = valueOf(headers, "sec-fetch-site")
  if (site === undefined) {
    return refusalPage(
      403,
      "FORBIDDEN",
      "The browser does not tell where the request comes from. Open the console over HTTPS, or at localhost.",
    )
  }
  if (site !== "same-origin") {
    return refusalPage(403, "FORBIDDEN", "The request comes from another page.")
  }
  return isSafe(method) || json.test(valueOf(headers, "content-type") ?? "")
    ? undefined
    : refusalPage(415, "UNSUPPORTED_MEDIA_TYPE", "The content type must be application/json.")
}

/** Who may use the console: a function from the host, or everybody with an operator's API key. */
export type Authorize = Authenticate<ApiRequest> | "api-key"

export const consoleOptions = Setting.object({
  /**
   * Who may use the console: a function returning an identity, or `undefined` to refuse; or `"api-key"`,
   * for operators and admins with their API keys. An adapter's option `authenticate` takes precedence.
   * Without either, every request is answered 403.
   */
  authorize: Setting.optional(
    Setting.guarded<Authorize>(
      'a function, or "api-key"',
      (given) => given === "api-key" || Predicate.isFunction(given),
    ),
  ),
  /** The console's path after the API's `basePath`. Default: `"/console"`. */
  path: Setting.withDefault(handlerOptions.fields.basePath, "/console"),
})

/** The options as a host passes them. */
export interface ConsoleOptions extends Setting.InputOf<typeof consoleOptions> {}

const forbidden = plainText(403, "You may not use the console.")

// The links of the page to its files.
const links = /((?:href|src)=")/g

const signInPage = html.replace("<html", "<html data-sign-in")

/** The console's own paths. */
const places = ["/", "/session", ...Object.keys(files).map((name) => `/${name}`)]

const owned = new Set(["", ...places])

const api = "/api"

const isFile = (name: string): name is keyof typeof files => Object.hasOwn(files, name)

/** Returns the role in a response from the identity operation. */
const roleOf = ({ body }: ApiResponse): unknown => {
  const { data }: { readonly data?: unknown } = typeof body === "string" ? JSON.parse(body) : {}
  return Predicate.hasProperty(data, "role") ? data.role : undefined
}

const whoPath = "/v2/identity"

/** Throws unless the API includes the page's operations. */
const checkApi = ({ basePath, owns }: Mountable): void => {
  if (owns(`${basePath}${whoPath}`)) return
  throw new TypeError(
    'the console needs the whole API: leave `api: "contract"` out of createTenure',
  )
}

/** How requests are authenticated. */
type Access =
  | { readonly _tag: "Host"; readonly authenticate: Authenticate<void> }
  | { readonly _tag: "ApiKey" }

const accessOf = (request: ApiRequest, authorize: Authorize | undefined): Access | undefined => {
  if (request.authenticate !== undefined)
    return { _tag: "Host", authenticate: request.authenticate }
  if (authorize === "api-key") return { _tag: "ApiKey" }
  return authorize && { _tag: "Host", authenticate: () => authorize(request) }
}

/** Adds the principal to a request from the page to the API. */
const signed = (request: ApiRequest, access: Access): ApiRequest => {
  if (access._tag === "Host") return { ...request, authenticate: access.authenticate }
  const token = sessionToken(request)
  const authorization = token === undefined ? undefined : `Bearer ${token}`
  return { ...request, headers: { ...request.headers, authorization } }
}

/** Restores the client's original path for the log and the response. */
const asSent = (request: ApiRequest): ApiRequest => ({
  ...request,
  originalPath: request.originalPath ?? request.path,
})

const isRead = ({ method }: ApiRequest): boolean => method === "GET" || method === "HEAD"

const notAllowed = (allow: string): ApiResponse =>
  plainText(405, "The method is not allowed.", { Allow: allow })

const entities: Readonly<Record<string, string>> = { "&": "&amp;", '"': "&quot;", "<": "&lt;" }

/**
 * Returns the page with links that work at the path that the browser shows, with or without a slash at its end: some
 * hosts and proxies redirect to one of the two. Links stay relative, because a proxy may remove a prefix.
 */
const linked = (page: string, { originalPath, path }: ApiRequest): string => {
  const name = (originalPath ?? path).split("/").at(-1) ?? ""
  if (name === "") return page
  const folder = `./${name.replace(/[&"<]/g, (one) => entities[one] ?? one)}/`
  return page.replace(links, (_, before: string) => before + folder)
}

/**
 * Creates the operator's web page. Every adapter mounts it like the API, by default at `/console`. A
 * user can do there only what the API allows.
 *
 * Throws a `TypeError` if `tenure` does not come from `await createTenure(…)` or serves only the
 * contract's part of the API, and `InvalidInput` if an option is invalid.
 * @example
 * ```ts
 * import express from "express"
 * import { createTenure } from "tenure"
 * import { membershipMiddleware } from "tenure/express"
 * import { memory } from "tenure/memory"
 * import { tenureConsole } from "tenure/console"
 *
 * const tenure = await createTenure({ stores: memory() })
 * const app = express()
 * app.use(membershipMiddleware(tenure))
 * app.use(membershipMiddleware(tenureConsole(tenure, { authorize: "api-key" })))
 * ```
 */
export const tenureConsole = (tenure: Mountable, given: ConsoleOptions = {}): Mountable => {
  checkMountable(tenure)
  checkApi(tenure)
  const { authorize, path } = Setting.parse(consoleOptions, given)
  const basePath = `${tenure.basePath}${path}`
  const apiPath = `${basePath}${api}`

  /** Returns the API path, without the base path; `undefined` for other paths. */
  const pathOfApi = (target: string): string | undefined => {
    if (!target.startsWith(`${apiPath}/`)) return undefined
    const inner = target.slice(apiPath.length)
    return isForwardedHeader(inner) && tenure.owns(tenure.basePath + inner) ? inner : undefined
  }

  /** Calls the API at a path. */
  const call = (request: ApiRequest): Promise<ApiResponse> =>
    tenure.handle({ ...request, path: tenure.basePath + request.path })

  /** Asks the API for the principal. */
  const identify = (request: ApiRequest): Promise<ApiResponse> =>
    call({
      ...asSent(request),
      path: whoPath,
      method: "GET",
      query: undefined,
      body: emptyBody,
    })

  const answerPage = async (request: ApiRequest, access: Access): Promise<ApiResponse> => {
    if (access._tag === "ApiKey") return htmlPage(linked(signInPage, request))
    const { headers, status } = await identify(signed(request, access))
    if (status === 200) return htmlPage(linked(html, request))
    if (status === 401) return forbidden
    const { "Retry-After": wait } = headers
    return plainText(
      status,
      "The console cannot be opened now. Try again later.",
      wait === undefined ? {} : { "Retry-After": wait },
    )
  }

  const signIn = async (request: ApiRequest): Promise<ApiResponse> => {
    const identity = await identify(request)
    if (identity.status !== 200) return withSecurityHeaders(identity)
    return roleOf(identity) === "client"
      ? refusalPage(403, "FORBIDDEN", "The console is for the keys of operators and admins.")
      : noContent(startSession(request))
  }

  const answerSession = async (request: ApiRequest, access: Access): Promise<ApiResponse> => {
    if (access._tag === "Host") return forbidden
    const refused = crossSiteRefusal(request)
    if (refused !== undefined) return refused
    if (request.method === "POST") return signIn(request)
    if (request.method === "DELETE") return noContent(endSession(request))
    return notAllowed("POST, DELETE")
  }

  const handle = async (request: ApiRequest): Promise<ApiResponse> => {
    const access = accessOf(request, authorize)
    if (access === undefined) return forbidden
    const inner = pathOfApi(request.path)
    if (inner !== undefined) {
      const refused = crossSiteRefusal(request)
      if (refused !== undefined) return refused
      const sent = { ...asSent(signed(request, access)), path: inner }
      return withSecurityHeaders(await call(redactLocation(sent)))
    }
    const place = request.path.slice(basePath.length)
    if (place === "/session") return answerSession(request, access)
    if (!isRead(request)) return notAllowed("GET, HEAD")
    const name = place.slice(1)
    return isFile(name) ? staticFile(files[name], request.query) : answerPage(request, access)
  }

  return {
    handle,
    answer: (request, deliver) => void handle(request).then(deliver),
    owns: (target) =>
      pathOfApi(target) !== undefined ||
      (target.startsWith(basePath) && owned.has(target.slice(basePath.length))),
    basePath,
    patterns: [
      // At a host's root, there is no path without the slash.
      ...(basePath === "" ? [] : [""]),
      ...places,
      ...tenure.patterns.filter(isForwardedHeader).map((pattern) => `${api}${pattern}`),
    ],
    bodyLimit: (method, target) => {
      const inner = pathOfApi(target)
      return tenure.bodyLimit(method, inner === undefined ? target : tenure.basePath + inner)
    },
    maxRefusals: tenure.maxRefusals,
  }
}
