/** Tenure as a middleware of Express 4 and 5. */

import { pathOf } from "@tenure/core/ApiRequest"
import type { Authenticate } from "@tenure/core/Identity"
import type { Mountable } from "@tenure/core/Tenure"
import { handle, send } from "@tenure/node-http"
import type { Request, RequestHandler } from "express"

export { type Verified, verifyWebhook, type VerifyOptions } from "@tenure/node-http"

/** Options of the middleware. */
export interface Options {
  /**
   * Whether the client's address is the one that Express gives as `req.ip`, by its own setting
   * `trust proxy`; the socket's by default, and proxies as `trustedProxies` of Tenure says.
   */
  readonly useExpressIp?: boolean | undefined
  /**
   * The host's own authentication in place of API keys, such as by a session that other middleware
   * has found; that of Tenure's options by default.
   */
  readonly authenticate?: Authenticate<Request> | undefined
}

/**
 * Makes a middleware that answers what is the API's, and passes everything else on.
 *
 * It may come before `express.json()` or after it, and be mounted under a path of its own.
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
export const membershipMiddleware =
  (tenure: Mountable, { authenticate, useExpressIp = false }: Options = {}): RequestHandler =>
  (request, response, next) => {
    // That of the mount path's inside, and of whatever other middleware has made of it.
    const path = pathOf(request.url)
    if (!tenure.owns(path)) return next()
    const known = {
      path,
      originalPath: pathOf(request.originalUrl),
      ...(useExpressIp && { remoteAddress: request.ip }),
      ...(authenticate && { authenticate: () => authenticate(request) }),
    }
    handle(tenure, request, known, (reply) => {
      try {
        send(response, reply)
      } catch (fault) {
        next(fault)
      }
    })
  }
