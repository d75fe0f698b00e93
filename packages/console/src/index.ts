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

/** The cookie that keeps the API key with which an operator has signed in. Scripts cannot read it. */

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

/** Returns the token of the session that a request belongs to. */
export const sessionToken = (request: ApiRequest): string | undefined => {
  const value = sessionPattern.exec(fieldOf(request, "cookie"))?.[1]
  return value === undefined ? undefined : decode(value)
}

/** Returns the token that a request signs in with. */
const tokenGiven = (request: ApiRequest): string =>
  fieldOf(request, "authorization").replace(/^bearer +/i, "")

// Without a path, the cookie is sent to the folder of the console, under whatever name a proxy has it.
const attributes = (request: ApiRequest): string => {
  // Browsers accept `Secure` from localhost without TLS, but not all of them.
  const isPlain = fieldOf(request, "origin").startsWith("http:")
  return `HttpOnly; SameSite=Strict${isPlain ? "" : "; Secure"}`
}

/** The header that begins a session, which ends with the browser's. */
export const startSession = (request: ApiRequest) => ({
  "Set-Cookie": `${sessionName}=${encodeURIComponent(tokenGiven(request))}; ${attributes(request)}`,
})

/** The header that ends a session. */
export const endSession = (request: ApiRequest) => ({
  "Set-Cookie": `${sessionName}=; Max-Age=0; ${attributes(request)}`,
})

/**
 * Requests as the console passes them on. Secrets of webhooks and data of events are shown only by
 * operations that the audit trail keeps: of others, that answer with many at once, the console asks for
 * less.
 */

const webhooks = /^(\/v2\/projects\/[^/]+\/integrations)\/webhooks$/

const events = /^\/v2\/projects\/[^/]+\/events$/

const withoutData = (request: ApiRequest): ApiRequest => {
  const query = new URLSearchParams(request.query)
  query.set("data", "false")
  // A stream would have the data.
  const headers = { ...request.headers, accept: "application/json" }
  return { ...request, query: query.toString(), headers }
}

/**
 * Returns whether the console passes on requests for a path of the API. A ticket would open a connection
 * that has the data of events.
 */
export const isForwardedHeader = (path: string): boolean => !path.startsWith("/v2/realtime")

/**
 * Returns a request without what would show secrets or data.
 *
 * @param request - its path is that of the API, without the base path
 */
export const redactLocation = (request: ApiRequest): ApiRequest => {
  const { method, path } = request
  if (method !== "GET") return request
  if (events.test(path)) return withoutData(request)
  return { ...request, path: path.replace(webhooks, "$1/health") }
}

/** Which requests come from the page: no other page can send them, whatever cookies a browser adds. */

const valueOf = (headers: HeaderFields, name: string): string | undefined => {
  const field = singleHeader(headers, name)
  return field._tag === "Value" ? field.value : undefined
}

// Forms of other pages cannot send this type.
const json = /^application\/json *(;|$)/i

const isSafe = (method: string): boolean => method === "GET" || method === "HEAD"

/** Returns how a request is refused that the page did not send, and `undefined` for those it did. */
export const crossSiteRefusal = ({ headers, method }: ApiRequest): ApiResponse | undefined => {
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

/** The console as adapters mount it: the files of the page, and the API for those who may use it. */

/** Who may use the console: a function of the host, or everybody who has the API key of an operator. */
export type Authorize = Authenticate<ApiRequest> | "api-key"

/** The options of the console. */
export const consoleOptions = Setting.object({
  /**
   * Says who may use the console: a function that returns an identity, as that of `authenticate` does, or
   * `undefined` for everybody else; or `"api-key"`, with which operators and admins sign in with
   * their API keys. An adapter's option `authenticate` receives the host's request and takes precedence.
   * Without either, every request is answered 403.
   */
  authorize: Setting.optional(
    Setting.guarded<Authorize>(
      'a function, or "api-key"',
      (given) => given === "api-key" || Predicate.isFunction(given),
    ),
  ),
  /** Where the console is, after the `basePath` of the API. Default: `"/console"`. */
  path: Setting.withDefault(handlerOptions.fields.basePath, "/console"),
})

/** The options that a host passes. */
export interface ConsoleOptions extends Setting.InputOf<typeof consoleOptions> {}

const forbidden = plainText(403, "You may not use the console.")

const signInPage = html.replace("<html", "<html data-sign-in")

/** The paths of the console that are not the API's. */
const places = ["/", "/session", ...Object.keys(files).map((name) => `/${name}`)]

const owned = new Set(["", ...places])

const api = "/api"

const isFile = (name: string): name is keyof typeof files => Object.hasOwn(files, name)

/** The role in an answer that says who sent a request. */
const roleOf = ({ body }: ApiResponse): unknown => {
  const { data }: { readonly data?: unknown } = typeof body === "string" ? JSON.parse(body) : {}
  return Predicate.hasProperty(data, "role") ? data.role : undefined
}

const whoPath = "/v2/identity"

/** Throws unless what the page calls is there. */
const checkApi = ({ basePath, owns }: Mountable): void => {
  if (owns(`${basePath}${whoPath}`)) return
  throw new TypeError(
    'the console needs the whole API: leave `api: "contract"` out of createTenure',
  )
}

/** How senders of requests are told apart. */
type Access =
  | { readonly _tag: "Host"; readonly authenticate: Authenticate<void> }
  | { readonly _tag: "ApiKey" }

const accessOf = (request: ApiRequest, authorize: Authorize | undefined): Access | undefined => {
  if (request.authenticate !== undefined)
    return { _tag: "Host", authenticate: request.authenticate }
  if (authorize === "api-key") return { _tag: "ApiKey" }
  return authorize && { _tag: "Host", authenticate: () => authorize(request) }
}

/** Says who sends a request of the page to the API. */
const signed = (request: ApiRequest, access: Access): ApiRequest => {
  if (access._tag === "Host") return { ...request, authenticate: access.authenticate }
  const token = sessionToken(request)
  const authorization = token === undefined ? undefined : `Bearer ${token}`
  return { ...request, headers: { ...request.headers, authorization } }
}

/** Says what the client sent: the log and the response name that. */
const asSent = (request: ApiRequest): ApiRequest => ({
  ...request,
  originalPath: request.originalPath ?? request.path,
})

const isRead = ({ method }: ApiRequest): boolean => method === "GET" || method === "HEAD"

const notAllowed = (allow: string): ApiResponse =>
  plainText(405, "The method is not allowed.", { Allow: allow })

/** Leads a browser to the page, from the path without the slash that its links are relative to. */
const withSlash = ({ originalPath, path }: ApiRequest): ApiResponse => {
  const name = (originalPath ?? path).split("/").at(-1) ?? ""
  return plainText(308, "The console is at the path with a slash.", { Location: `${name}/` })
}

/**
 * Makes the operator's web page. Every adapter mounts it as it mounts the API, by default at
 * `/console/`. The page does what the API allows its user to do, and nothing else.
 *
 * Throws a `TypeError` if `tenure` is not what `await createTenure(…)` returns, or serves only the
 * contract's part of the API, and `InvalidInput` if an option is invalid.
 *
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

  /** Returns the path of the API, without the base path; `undefined` for other paths. */
  const pathOfApi = (target: string): string | undefined => {
    if (!target.startsWith(`${apiPath}/`)) return undefined
    const inner = target.slice(apiPath.length)
    return isForwardedHeader(inner) && tenure.owns(tenure.basePath + inner) ? inner : undefined
  }

  /** Sends a request to the API, for a path of it. */
  const call = (request: ApiRequest): Promise<ApiResponse> =>
    tenure.handle({ ...request, path: tenure.basePath + request.path })

  /** Asks the API who sends a request. */
  const identify = (request: ApiRequest): Promise<ApiResponse> =>
    call({
      ...asSent(request),
      path: whoPath,
      method: "GET",
      query: undefined,
      body: emptyBody,
    })

  const answerPage = async (request: ApiRequest, access: Access): Promise<ApiResponse> => {
    if (access._tag === "ApiKey") return htmlPage(signInPage)
    const { headers, status } = await identify(signed(request, access))
    if (status === 200) return htmlPage(html)
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
    if (place === "") return withSlash(request)
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
      // At the root of a host, there is no path without the slash.
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
