/** The console as adapters mount it: the files of the page, and the API for those who may use it. */

import { type ApiRequest, emptyBody } from "@tenure/core/ApiRequest"
import type { ApiResponse } from "@tenure/core/Envelope"
import * as Handler from "@tenure/core/Handler"
import type { Authenticate } from "@tenure/core/Identity"
import { checkMountable, type Mountable } from "@tenure/core/Mountable"
import * as Setting from "@tenure/core/Setting"
import * as Predicate from "effect/Predicate"
import * as Discretion from "./discretion.ts"
import { files, html } from "./files.ts"
import * as Origin from "./origin.ts"
import * as Responses from "./responses.ts"
import * as Session from "./session.ts"

/** Who may use the console: a function of the host, or everybody who has the API key of an operator. */
export type Authorize = Authenticate<ApiRequest> | "api-key"

/** The options of the console. */
export const consoleOptions = Setting.struct({
  /**
   * Says who may use the console: a function that returns an identity, as that of `authenticate` does, or
   * `undefined` for everybody else; or `"api-key"`, with which operators and admins sign in with
   * their API keys. An adapter's option `authenticate` receives the host's request and takes precedence.
   * Without either, every request is answered 403.
   */
  authorize: Setting.optional(
    Setting.checked<Authorize>(
      'a function, or "api-key"',
      (given) => given === "api-key" || Predicate.isFunction(given),
    ),
  ),
  /** Where the console is, after the `basePath` of the API. Default: `"/console"`. */
  path: Setting.withDefault(Handler.options.fields.basePath, "/console"),
})

/** The options that a host passes. */
export interface ConsoleOptions extends Setting.Input<typeof consoleOptions> {}

const forbidden = Responses.plain(403, "You may not use the console.")

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
  throw new TypeError('the console needs the whole API: leave `api: "contract"` out of Tenure.make')
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
  const token = Session.tokenOf(request)
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
  Responses.plain(405, "The method is not allowed.", { Allow: allow })

/** Leads a browser to the page, from the path without the slash that its links are relative to. */
const withSlash = ({ originalPath, path }: ApiRequest): ApiResponse => {
  const name = (originalPath ?? path).split("/").at(-1) ?? ""
  return Responses.plain(308, "The console is at the path with a slash.", { Location: `${name}/` })
}

/**
 * Makes the operator's web page. Every adapter mounts it as it mounts the API, by default at
 * `/console/`. The page does what the API allows its user to do, and nothing else.
 *
 * Throws a `TypeError` if `tenure` is not what `await Tenure.make(…)` returns, or serves only the
 * contract's part of the API, and `InvalidInput` if an option is invalid.
 *
 * @example
 * ```ts
 * import express from "express"
 * import { Tenure } from "tenure"
 * import { tenureConsole } from "tenure/console"
 * import { membershipMiddleware } from "tenure/express"
 * import { memory } from "tenure/memory"
 *
 * const tenure = await Tenure.make({ stores: memory() })
 * const app = express()
 * app.use(membershipMiddleware(tenure))
 * app.use(membershipMiddleware(tenureConsole(tenure, { authorize: "api-key" })))
 * ```
 */
export const tenureConsole = (tenure: Mountable, given: ConsoleOptions = {}): Mountable => {
  checkMountable(tenure)
  checkApi(tenure)
  const { authorize, path } = Setting.readSync(consoleOptions, given)
  const basePath = `${tenure.basePath}${path}`
  const apiPath = `${basePath}${api}`

  /** Returns the path of the API, without the base path; `undefined` for other paths. */
  const pathOfApi = (target: string): string | undefined => {
    if (!target.startsWith(`${apiPath}/`)) return undefined
    const inner = target.slice(apiPath.length)
    return Discretion.isPassed(inner) && tenure.owns(tenure.basePath + inner) ? inner : undefined
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
    if (access._tag === "ApiKey") return Responses.page(signInPage)
    const { headers, status } = await identify(signed(request, access))
    if (status === 200) return Responses.page(html)
    if (status === 401) return forbidden
    const { "Retry-After": wait } = headers
    return Responses.plain(
      status,
      "The console cannot be opened now. Try again later.",
      wait === undefined ? {} : { "Retry-After": wait },
    )
  }

  const signIn = async (request: ApiRequest): Promise<ApiResponse> => {
    const identity = await identify(request)
    if (identity.status !== 200) return Responses.guarded(identity)
    return roleOf(identity) === "client"
      ? Responses.refusal(403, "FORBIDDEN", "The console is for the keys of operators and admins.")
      : Responses.done(Session.begin(request))
  }

  const answerSession = async (request: ApiRequest, access: Access): Promise<ApiResponse> => {
    if (access._tag === "Host") return forbidden
    const refused = Origin.refusalOf(request)
    if (refused !== undefined) return refused
    if (request.method === "POST") return signIn(request)
    if (request.method === "DELETE") return Responses.done(Session.end(request))
    return notAllowed("POST, DELETE")
  }

  const handle = async (request: ApiRequest): Promise<ApiResponse> => {
    const access = accessOf(request, authorize)
    if (access === undefined) return forbidden
    const inner = pathOfApi(request.path)
    if (inner !== undefined) {
      const refused = Origin.refusalOf(request)
      if (refused !== undefined) return refused
      const sent = { ...asSent(signed(request, access)), path: inner }
      return Responses.guarded(await call(Discretion.discreet(sent)))
    }
    const place = request.path.slice(basePath.length)
    if (place === "/session") return answerSession(request, access)
    if (!isRead(request)) return notAllowed("GET, HEAD")
    if (place === "") return withSlash(request)
    const name = place.slice(1)
    return isFile(name) ? Responses.file(files[name], request.query) : answerPage(request, access)
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
      ...tenure.patterns.filter(Discretion.isPassed).map((pattern) => `${api}${pattern}`),
    ],
    bodyLimit: (method, target) => {
      const inner = pathOfApi(target)
      return tenure.bodyLimit(method, inner === undefined ? target : tenure.basePath + inner)
    },
    maxRefusals: tenure.maxRefusals,
  }
}
