/** Tenure as middleware for Express 4 and 5. */

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
import { Setting, parseAddress } from "@tenure/core/internal"
import { type KnownRequest, handle, send } from "@tenure/node-http"
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from "express"

/** The remains of a refused body; empty if the request can still be read. */
export interface ParserRefusal {
  readonly body?: ArrivedBody
}

const utf8 = new TextEncoder()

const propertyOf = (error: unknown, name: string): unknown =>
  typeof error === "object" && error !== null ? Reflect.get(error, name) : undefined

/** Returns the text a parser failed to parse. */
const unparsed = (error: unknown): ArrivedBody => {
  const text = propertyOf(error, "body")
  return typeof text === "string" ? { _tag: "Bytes", bytes: utf8.encode(text) } : consumedBody
}

// Decompression errors come from zlib and have a number.
const isFaultyCompression = (error: unknown, { headers }: Request): boolean =>
  headers["content-encoding"] !== undefined && typeof propertyOf(error, "errno") === "number"

/** Returns the remains of a body refused by a parser, or `undefined` for any other error. */
const parserRefusal = (error: unknown, request: Request): ParserRefusal | undefined => {
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

/** Identifies an Express request's principal. */
export interface ExpressAuthenticate extends Authenticate<Request> {}

// With `trust proxy`, `req.ip` is whatever text the client has sent.
const ipOf = ({ ip = "", socket }: Request): string | undefined =>
  parseAddress(ip) === undefined ? socket.remoteAddress : ip

export const middlewareOptions = Setting.object({
  /**
   * Whether rate limits count requests by `req.ip`, by the Express setting `trust proxy`, or by the
   * socket's address if that is no IP address. If not, Tenure's option `trustedProxies` decides. Default:
   * `false`.
   */
  useExpressIp: Setting.withDefault(Setting.boolean, false),
  /**
   * Authenticates requests in place of API keys, for example by a session from earlier middleware.
   * By default, `authenticate` in the options for `createTenure` does.
   */
  authenticate: Setting.callback<ExpressAuthenticate>(),
})

/** The options as a host passes them. */
export interface MiddlewareOptions extends Setting.InputOf<typeof middlewareOptions> {}

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
 * Creates middleware. It answers requests for the API and passes all others on.
 *
 * You can mount it under a path. Use it before `express.json()`, or add `membershipErrors`. Throws a
 * `TypeError` unless `tenure` comes from `await createTenure(…)`, and `InvalidInput` if an option is
 * invalid.
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
 * Creates error middleware. It answers requests for the API whose body was refused by an Express
 * parser, such as `express.json()`, as if there were no parser. It passes on all other errors.
 *
 * Mount it after the parser, under the same path and with the same options as `membershipMiddleware`.
 * Throws the same errors.
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
