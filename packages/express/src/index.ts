/** The errors of the parsers of Express, and what is left of the bodies that they refused. */

import { isIP } from "node:net"
import {
  type ArrivedBody,
  type Authenticate,
  type Mountable,
  abortedBody,
  checkMountable,
  consumedBody,
  pathOf,
  tooLargeBody,
} from "@tenure/core/adapter"
import { Setting } from "@tenure/core/internal"
import { type KnownRequest, handle, send } from "@tenure/node-http"
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from "express"

export { type Verified } from "@tenure/node-http"
export { verifyWebhook } from "@tenure/node-http"
export { type VerifyOptions } from "@tenure/node-http"

/** What is known of a refused body; empty for one that can still be read from the request. */
export interface ParserRefusal {
  readonly body?: ArrivedBody
}

const utf8 = new TextEncoder()

const propertyOf = (error: unknown, name: string): unknown =>
  typeof error === "object" && error !== null ? Reflect.get(error, name) : undefined

/** The text that a parser could not parse. */
const unparsed = (error: unknown): ArrivedBody => {
  const text = propertyOf(error, "body")
  return typeof text === "string" ? { _tag: "Bytes", bytes: utf8.encode(text) } : consumedBody
}

// Errors of decompression are those of zlib, which have a number.
const isFaultyCompression = (error: unknown, { headers }: Request): boolean =>
  headers["content-encoding"] !== undefined && typeof propertyOf(error, "errno") === "number"

/** Returns what a parser left of a body that it refused, or `undefined` for any other error. */
export const parserRefusal = (error: unknown, request: Request): ParserRefusal | undefined => {
  switch (propertyOf(error, "type")) {
    case "entity.parse.failed":
      return { body: unparsed(error) }
    case "entity.too.large":
      return { body: tooLargeBody }
    case "request.size.invalid":
      return { body: abortedBody }
    case "parameters.too.many":
    case "querystring.parse.rangeError":
      return { body: consumedBody }
    case "charset.unsupported":
    case "encoding.unsupported":
      return request.readableDidRead ? { body: consumedBody } : {}
    default:
      return isFaultyCompression(error, request) ? { body: consumedBody } : undefined
  }
}

/** Tenure as middleware for Express 4 and 5. */

/** Identifies who sent an Express request. */
export interface ExpressAuthenticate extends Authenticate<Request> {}

// With `trust proxy`, `req.ip` is whatever text the client has sent.
const ipOf = ({ ip = "", socket }: Request): string | undefined =>
  isIP(ip) === 0 ? socket.remoteAddress : ip

/** The options of the middleware. */
export const middlewareOptions = Setting.object({
  /**
   * Whether requests are counted by `req.ip`, which depends on the Express setting `trust proxy`, or
   * by the address of the socket if `req.ip` is not an IP address. If not, they are counted by the
   * address of the socket and Tenure's option `trustedProxies`.
   * Default: `false`.
   */
  useExpressIp: Setting.withDefault(Setting.boolean, false),
  /**
   * Authenticates requests in place of API keys, for example by a session that other middleware has
   * found. By default, `authenticate` of the options of `createTenure` does.
   */
  authenticate: Setting.callback<ExpressAuthenticate>(),
})

/** The options that a host passes. */
export interface MiddlewareOptions extends Setting.InputOf<typeof middlewareOptions> {}

/** Makes the function that has Tenure answer a request. */
const answering = (tenure: Mountable, given: MiddlewareOptions) => {
  checkMountable(tenure)
  const { authenticate, useExpressIp } = Setting.parse(middlewareOptions, given)
  return (
    request: Request,
    response: Response,
    next: NextFunction,
    known: Pick<KnownRequest, "path" | "body">,
  ): void => {
    const all: KnownRequest = {
      ...known,
      originalPath: pathOf(request.originalUrl),
      ...(useExpressIp && { remoteAddress: ipOf(request) }),
      ...(authenticate && { authenticate: () => authenticate(request) }),
    }
    handle(tenure, request, response, all, (reply) => {
      try {
        send(response, reply)
      } catch (fault) {
        next(fault)
      }
    })
  }
}

/**
 * Makes middleware that answers requests for the API, and passes all others on.
 *
 * You can mount it under a path. Use it before `express.json()`, or add `membershipErrors`. Throws a
 * `TypeError` if `tenure` is not what `await createTenure(…)` returns, and `InvalidInput` if an option is
 * invalid.
 *
 * @example
 * ```ts
 * import express from "express"
 * import { createTenure } from "tenure"
 * import { membershipMiddleware } from "tenure/express"
 * import { memory } from "tenure/memory"
 * import { nodeTransport } from "tenure/node"
 *
 * const tenure = await createTenure({ stores: memory(), transport: nodeTransport })
 * const app = express()
 * app.use("/members", membershipMiddleware(tenure))
 * app.listen(3000)
 * ```
 */
export const membershipMiddleware = (
  tenure: Mountable,
  given: MiddlewareOptions = {},
): RequestHandler => {
  const answer = answering(tenure, given)
  return (request, response, next) => {
    // Express removes the mount path from `url`, and other middleware may have rewritten it.
    const path = pathOf(request.url)
    if (!tenure.owns(path)) return next()
    answer(request, response, next, { path })
  }
}

/**
 * Makes middleware that answers requests for the API whose body a parser of Express, such as
 * `express.json()`, has refused. They are answered as if the parser were not there. All other errors are
 * passed on.
 *
 * Mount it under the same path as `membershipMiddleware`, with the same options, after the parser. Throws
 * what `membershipMiddleware` throws.
 *
 * @example
 * ```ts
 * import express from "express"
 * import { createTenure } from "tenure"
 * import { membershipErrors, membershipMiddleware } from "tenure/express"
 * import { memory } from "tenure/memory"
 *
 * const tenure = await createTenure({ stores: memory() })
 * const app = express()
 * app.use(express.json())
 * app.use("/members", membershipMiddleware(tenure), membershipErrors(tenure))
 * ```
 */
export const membershipErrors = (
  tenure: Mountable,
  given: MiddlewareOptions = {},
): ErrorRequestHandler => {
  const answer = answering(tenure, given)
  return (error, request, response, next) => {
    const path = pathOf(request.url)
    const refusal = tenure.owns(path) ? parserRefusal(error, request) : undefined
    if (refusal === undefined) return next(error)
    answer(request, response, next, { path, ...refusal })
  }
}
