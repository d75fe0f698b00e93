/** Tenure as middleware for Express 4 and 5. */

import { isIP } from "node:net"
import { pathOf } from "@tenure/core/ApiRequest"
import type { Authenticate } from "@tenure/core/Identity"
import { checkMountable, type Mountable } from "@tenure/core/Mountable"
import * as Setting from "@tenure/core/Setting"
import { handle, type Known, send } from "@tenure/node-http"
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from "express"
import * as ParserRefusal from "./parserRefusal.ts"

export { type Verified, verifyWebhook, type VerifyOptions } from "@tenure/node-http"

/** Identifies who sent an Express request. */
export interface ExpressAuthenticate extends Authenticate<Request> {}

// With `trust proxy`, `req.ip` is whatever text the client has sent.
const ipOf = ({ ip = "", socket }: Request): string | undefined =>
  isIP(ip) === 0 ? socket.remoteAddress : ip

/** The options of the middleware. */
export const options = Setting.struct({
  /**
   * Whether requests are counted by `req.ip`, which depends on the Express setting `trust proxy`, or
   * by the address of the socket if `req.ip` is not an IP address. If not, they are counted by the
   * address of the socket and Tenure's option `trustedProxies`.
   * Default: `false`.
   */
  useExpressIp: Setting.withDefault(Setting.flag, false),
  /**
   * Authenticates requests in place of API keys, for example by a session that other middleware has
   * found. By default, `authenticate` of the options of `Tenure.make` does.
   */
  authenticate: Setting.callback<ExpressAuthenticate>(),
})

/** The options that a host passes. */
export interface Options extends Setting.Input<typeof options> {}

/** Makes the function that has Tenure answer a request. */
const answering = (tenure: Mountable, given: Options) => {
  checkMountable(tenure)
  const { authenticate, useExpressIp } = Setting.readSync(options, given)
  return (
    request: Request,
    response: Response,
    next: NextFunction,
    known: Pick<Known, "path" | "body">,
  ): void => {
    const all: Known = {
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
 * `TypeError` if `tenure` is not what `await Tenure.make(…)` returns, and `InvalidInput` if an option is
 * invalid.
 *
 * @example
 * ```ts
 * import express from "express"
 * import { Tenure } from "tenure"
 * import { membershipMiddleware } from "tenure/express"
 * import { memory } from "tenure/memory"
 * import { nodeTransport } from "tenure/node"
 *
 * const tenure = await Tenure.make({ stores: memory(), transport: nodeTransport })
 * const app = express()
 * app.use("/members", membershipMiddleware(tenure))
 * app.listen(3000)
 * ```
 */
export const membershipMiddleware = (tenure: Mountable, given: Options = {}): RequestHandler => {
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
 * import { Tenure } from "tenure"
 * import { membershipErrors, membershipMiddleware } from "tenure/express"
 * import { memory } from "tenure/memory"
 *
 * const tenure = await Tenure.make({ stores: memory() })
 * const app = express()
 * app.use(express.json())
 * app.use("/members", membershipMiddleware(tenure), membershipErrors(tenure))
 * ```
 */
export const membershipErrors = (tenure: Mountable, given: Options = {}): ErrorRequestHandler => {
  const answer = answering(tenure, given)
  return (error, request, response, next) => {
    const path = pathOf(request.url)
    const refusal = tenure.owns(path) ? ParserRefusal.of(error, request) : undefined
    if (refusal === undefined) return next(error)
    answer(request, response, next, { path, ...refusal })
  }
}
