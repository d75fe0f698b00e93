/** The API, and the mounts beside it, in an Effect host's `HttpRouter`. */

import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { identity } from "effect/Function"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerError, RouteNotFound } from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import { keepRepeatedHeaders } from "../base/headers.ts"
import * as Setting from "../base/setting.ts"
import type { Identity } from "../keys/identity.ts"
import { Handler } from "./handler.ts"
import type { Mountable } from "./mountable.ts"
import {
  type ApiRequest,
  type ArrivedBody,
  type Body,
  abortedBody,
  hasUnknownCoding,
  pathOf,
  queryOf,
  tooLargeBody,
  unknownCodingBody,
} from "./request.ts"
import type { ApiResponse } from "./response.ts"
import type { BodyLimit } from "./routes.ts"

/** Options for the routes. */
export const routerOptions = <R>() =>
  Setting.object({
    /** The host's own authentication in place of API keys. Takes precedence over `tenureLayer`'s option. */
    authenticate:
      Setting.callback<
        (
          request: HttpServerRequest.HttpServerRequest,
        ) => Effect.Effect<Identity | undefined, never, R>
      >(),
  })

/** The options as a host passes them. */
export interface RouterOptions<R = never> extends Setting.InputOf<
  ReturnType<typeof routerOptions<R>>
> {}

const bodyOfError = ({ reason }: HttpServerError): ArrivedBody =>
  reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
    ? tooLargeBody
    : abortedBody

/** Reads the body up to a limit in bytes, or takes it from the host, if already read. */
const readBody = (
  request: HttpServerRequest.HttpServerRequest,
  limit: number,
): Effect.Effect<ArrivedBody> =>
  request.arrayBuffer.pipe(
    Effect.provideService(HttpServerRequest.MaxBodySize, ByteSize.bytes(limit)),
    Effect.match({
      onSuccess: (buffer): ArrivedBody => ({ _tag: "Bytes", bytes: new Uint8Array(buffer) }),
      onFailure: bodyOfError,
    }),
  )

/** Returns the body, or a function that reads it once the core asks for it. */
const bodyOf = (
  request: HttpServerRequest.HttpServerRequest,
  { bytes, isDeferred }: BodyLimit,
): Effect.Effect<Body> => {
  if (hasUnknownCoding(request.headers)) return Effect.succeed(unknownCodingBody)
  const read = readBody(request, bytes)
  return isDeferred
    ? Effect.succeed({ _tag: "Deferred", read: () => Effect.runPromise(read) })
    : read
}

/** Returns the header fields as sent, names and values in turn, or none if the platform hides them. */
const rawHeadersOf = ({ source }: HttpServerRequest.HttpServerRequest): ReadonlyArray<string> =>
  Predicate.hasProperty(source, "rawHeaders") &&
  Array.isArray(source.rawHeaders) &&
  source.rawHeaders.every(Predicate.isString)
    ? source.rawHeaders
    : []

/** The bytes in a text stream. */
const bytesOf = (texts: AsyncIterable<string>) =>
  Stream.encodeText(Stream.fromAsyncIterable(texts, identity))

const toResponse = ({ body, headers, status }: ApiResponse) => {
  const head = { status, headers, contentType: headers["Content-Type"] }
  return typeof body === "string"
    ? HttpServerResponse.text(body, head)
    : HttpServerResponse.stream(bytesOf(body), head)
}

/** The part behind the routes. */
interface Mounted extends Pick<Mountable, "basePath" | "bodyLimit" | "owns" | "patterns"> {
  readonly handle: Handler["Service"]["handle"]
}

/** Answers a request that may wait for events, until its client has gone. */
const answerWaiting = Effect.fnUntraced(function* (handle: Mounted["handle"], request: ApiRequest) {
  const departure = new AbortController()
  const leave = Effect.sync(() => departure.abort())
  // Also if the client goes before the response stream begins.
  yield* Effect.addFinalizer(() => leave)
  const answered = handle({ ...request, signal: () => departure.signal })
  const fiber = yield* Effect.forkDetach(answered, { startImmediately: true })
  return yield* Effect.onInterrupt(Fiber.join(fiber), () =>
    Effect.andThen(leave, Fiber.await(fiber)),
  )
})

const notFound = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.fail(new HttpServerError({ reason: new RouteNotFound({ request }) }))

const isNotFound = (error: unknown): boolean =>
  error instanceof HttpServerError && error.reason._tag === "RouteNotFound"

const isPath = (pattern: string): pattern is HttpRouter.PathInput => pattern.startsWith("/")

const add = Effect.fnUntraced(function* <R>(mounted: Mounted, given: RouterOptions<R>) {
  const { authenticate } = yield* Setting.decode(routerOptions<R>(), given)
  const { basePath, bodyLimit, handle, owns, patterns } = mounted
  const router = yield* HttpRouter.HttpRouter
  const run = Effect.runPromiseWith(yield* Effect.context<R>())

  const answer = Effect.fnUntraced(function* (
    request: HttpServerRequest.HttpServerRequest,
    path: string,
  ) {
    const apiRequest: ApiRequest = {
      method: request.method,
      path,
      query: queryOf(request.originalUrl),
      headers: keepRepeatedHeaders(request.headers, rawHeadersOf(request)),
      body: yield* bodyOf(request, bodyLimit(request.method, path)),
      remoteAddress: Option.getOrUndefined(request.remoteAddress),
      ...(authenticate && { authenticate: () => run(authenticate(request)) }),
    }
    return toResponse(
      yield* request.method === "GET"
        ? answerWaiting(handle, apiRequest)
        : // As in every other host, a request runs to its end even if its client disconnects.
          Effect.uninterruptible(handle(apiRequest)),
    )
  })

  const route = (request: HttpServerRequest.HttpServerRequest) => {
    const path = pathOf(request.originalUrl)
    // The router also matches a path's other spellings, for example with a slash at its end.
    return owns(path) ? answer(request, path) : notFound(request)
  }
  const prefixed = basePath === "" ? router : router.prefixed(basePath)
  for (const pattern of patterns.filter(isPath)) yield* prefixed.add("*", pattern, route)

  // The router finds no route for unknown methods, very long ids, invalid percent-encoding and the bare
  // base path. The API answers these too.
  yield* router.addGlobalMiddleware((routes) =>
    Effect.catch(routes, (error) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
        const path = pathOf(request.originalUrl)
        return isNotFound(error) && owns(path) ? answer(request, path) : Effect.fail(error)
      }),
    ),
  )
})

/**
 * Adds the API to the host's router, next to the host's own routes. The host's global middleware
 * applies to both. To serve the API under a path, set `tenureLayer`'s option `basePath`. Fails with
 * `InvalidInput` if an option is invalid.
 *
 * @example
 * ```ts
 * import * as Layer from "effect/Layer"
 * import { HttpRouter } from "effect/http"
 * import { NodeHttpServer } from "@effect/platform-node"
 * import { createServer } from "node:http"
 * import { memory } from "tenure/memory"
 * import { tenureLayer } from "tenure/effect"
 * import { tenureRouterLayer } from "tenure/http-router"
 *
 * const app = HttpRouter.serve(tenureRouterLayer()).pipe(
 *   // The server listens once Tenure is ready.
 *   Layer.provide(NodeHttpServer.layer(createServer, { port: 3000 })),
 *   Layer.provide(tenureLayer()),
 *   Layer.provide(memory()),
 * )
 * ```
 */
export const tenureRouterLayer = <R = never>(given: RouterOptions<R> = {}) =>
  Layer.effectDiscard(Effect.flatMap(Handler, (handler) => add(handler, given)))

/**
 * Adds pages mounted beside the API to the host's router, for example the operator's page. Fails with
 * `InvalidInput` if an option is invalid.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Layer from "effect/Layer"
 * import { promisesFromEffect } from "tenure/effect"
 * import { tenureConsole } from "tenure/console"
 * import { mountTenure, tenureRouterLayer } from "tenure/http-router"
 *
 * const page = Layer.unwrap(
 *   Effect.map(promisesFromEffect, (tenure) =>
 *     mountTenure(tenureConsole(tenure, { authorize: "api-key" })),
 *   ),
 * )
 * const routes = Layer.mergeAll(tenureRouterLayer(), page)
 * ```
 */
export const mountTenure = <R = never>(mountable: Mountable, given: RouterOptions<R> = {}) => {
  const handle = (request: ApiRequest) => Effect.promise(() => mountable.handle(request))
  return Layer.effectDiscard(add({ ...mountable, handle }, given))
}
