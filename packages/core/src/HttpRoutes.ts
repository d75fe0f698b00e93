/** The API in the `HttpRouter` of an Effect host. */

import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerError, RouteNotFound } from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import {
  type ApiRequest,
  type Body,
  brokenOff,
  pathOf,
  pathPatterns,
  tooLarge,
} from "./ApiRequest.ts"
import type { ApiResponse } from "./Envelope.ts"
import { Handler } from "./Handler.ts"
import { keepRepeated } from "./HeaderFields.ts"
import type { Identity } from "./Identity.ts"

/** Options of the routes. */
export interface Options<R = never> {
  /** The host's own authentication in place of API keys; that of Tenure's options by default. */
  readonly authenticate?:
    | ((
        request: HttpServerRequest.HttpServerRequest,
      ) => Effect.Effect<Identity | undefined, never, R>)
    | undefined
}

const bodyOfError = ({ reason }: HttpServerError): Body =>
  reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge" ? tooLarge : brokenOff

/** Reads the body up to a limit in bytes, or takes what the host has read already. */
const readBody = (
  request: HttpServerRequest.HttpServerRequest,
  limit: number,
): Effect.Effect<Body> =>
  request.arrayBuffer.pipe(
    Effect.provideService(HttpServerRequest.MaxBodySize, ByteSize.bytes(limit)),
    Effect.match({
      onSuccess: (buffer): Body => ({ _tag: "Bytes", bytes: new Uint8Array(buffer) }),
      onFailure: bodyOfError,
    }),
  )

/** The header fields as they were sent, where the platform tells. */
const rawHeadersOf = ({ source }: HttpServerRequest.HttpServerRequest): ReadonlyArray<string> =>
  Predicate.hasProperty(source, "rawHeaders") &&
  Array.isArray(source.rawHeaders) &&
  source.rawHeaders.every(Predicate.isString)
    ? source.rawHeaders
    : []

const toResponse = ({ body, headers, status }: ApiResponse) =>
  HttpServerResponse.text(body, { status, headers, contentType: "application/json" })

const notFound = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.fail(new HttpServerError({ reason: new RouteNotFound({ request }) }))

const isNotFound = (error: unknown): boolean =>
  error instanceof HttpServerError && error.reason._tag === "RouteNotFound"

const make = Effect.fnUntraced(function* <R>({ authenticate }: Options<R>) {
  const { basePath, handle, maxBodyBytes, owns } = yield* Handler
  const router = yield* HttpRouter.HttpRouter
  const run = Effect.runPromiseWith(yield* Effect.context<R>())

  const answer = Effect.fnUntraced(function* (
    request: HttpServerRequest.HttpServerRequest,
    path: string,
  ) {
    const apiRequest: ApiRequest = {
      method: request.method,
      path,
      headers: keepRepeated(request.headers, rawHeadersOf(request)),
      body: yield* readBody(request, maxBodyBytes),
      remoteAddress: Option.getOrUndefined(request.remoteAddress),
      ...(authenticate && { authenticate: () => run(authenticate(request)) }),
    }
    // What has begun is done, as with every other host, even if the client has gone.
    return toResponse(yield* Effect.uninterruptible(handle(apiRequest)))
  })

  const route = (request: HttpServerRequest.HttpServerRequest) => {
    const path = pathOf(request.originalUrl)
    // The router takes other spellings for the same, such as those with a slash at the end.
    return owns(path) ? answer(request, path) : notFound(request)
  }
  const mounted = basePath === "" ? router : router.prefixed(basePath)
  for (const pattern of pathPatterns) yield* mounted.add("*", pattern, route)

  // Methods that the router does not know, and ids that are too long for it or not percent-encoded
  // correctly, find no route, and the answers to these are the API's as well.
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
 * The API in the host's router, among the host's own routes: middleware of the host that is global
 * comes before it as before those. Where it is not to be at the root, `basePath` of Tenure's options
 * says so.
 *
 * @example
 * ```ts
 * import { NodeHttpServer } from "@effect/platform-node"
 * import * as HttpRoutes from "@tenure/core/HttpRoutes"
 * import * as Tenure from "@tenure/core/Tenure"
 * import { memory } from "@tenure/memory"
 * import { HttpRouter } from "effect/http"
 * import * as Layer from "effect/Layer"
 * import { createServer } from "node:http"
 *
 * const app = HttpRouter.serve(HttpRoutes.layer()).pipe(
 *   // Inside of Tenure, so that it listens when that is there.
 *   Layer.provide(NodeHttpServer.layer(createServer, { port: 3000 })),
 *   Layer.provide(Tenure.layer()),
 *   Layer.provide(memory()),
 * )
 * ```
 */
export const layer = <R = never>(options: Options<R> = {}) => Layer.effectDiscard(make(options))
