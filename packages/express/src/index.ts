/** Tenure as middleware for Express 4 and 5. */

import { isIP } from "node:net"
import { pathOf } from "@tenure/core/ApiRequest"
import type { Authenticate } from "@tenure/core/Identity"
import { checkMountable, type Mountable } from "@tenure/core/Mountable"
import * as Setting from "@tenure/core/Setting"
import { handle, send } from "@tenure/node-http"
import type { Request, RequestHandler } from "express"

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

/**
 * Makes middleware that answers requests for the API, and passes all others on.
 *
 * You can mount it under a path, and use it before or after `express.json()`. Throws a `TypeError` if
 * `tenure` is not what `await Tenure.make(…)` returns, and `InvalidInput` if an option is invalid.
 *
 * @example
 * ```ts
 * import * as Tenure from "@tenure/core/Tenure"
 * import { membershipMiddleware } from "@tenure/express"
 * import { memory } from "@tenure/memory"
 * import { nodeTransport } from "@tenure/node-http"
 * import express from "express"
 *
 * const tenure = await Tenure.make({ stores: memory(), transport: nodeTransport })
 * const app = express()
 * app.use("/members", membershipMiddleware(tenure))
 * app.listen(3000)
 * ```
 */
export const membershipMiddleware = (tenure: Mountable, given: Options = {}): RequestHandler => {
  checkMountable(tenure)
  const { authenticate, useExpressIp } = Setting.readSync(options, given)
  return (request, response, next) => {
    // Express removes the mount path from `url`, and other middleware may have rewritten it.
    const path = pathOf(request.url)
    if (!tenure.owns(path)) return next()
    const known = {
      path,
      originalPath: pathOf(request.originalUrl),
      ...(useExpressIp && { remoteAddress: ipOf(request) }),
      ...(authenticate && { authenticate: () => authenticate(request) }),
    }
    handle(tenure, request, response, known, (reply) => {
      try {
        send(response, reply)
      } catch (fault) {
        next(fault)
      }
    })
  }
}
