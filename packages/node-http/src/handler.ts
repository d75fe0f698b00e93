/** Tenure as a request handler for node:http and node:http2. */

import { type Authenticate, type Mountable, checkMountable, pathOf } from "@tenure/core/adapter"
import { Setting } from "@tenure/core/internal"
import { handle, send } from "./exchange.ts"
import type { NodeRequest, NodeResponse } from "./types.ts"

/** Answers a request. With `next` it is middleware, and calls `next` for paths outside the API. */
export type NodeHandler<Request extends NodeRequest = NodeRequest> = (
  request: Request,
  response: NodeResponse,
  next?: () => void,
) => void

export const nodeHandlerOptions = <Request extends NodeRequest>() =>
  Setting.object({
    /**
     * Authenticates requests in place of API keys. By default, `authenticate` in the options for
     * `createTenure` does.
     */
    authenticate: Setting.callback<Authenticate<Request>>(),
  })

/** The options as a host passes them. */
export interface NodeHandlerOptions<
  Request extends NodeRequest = NodeRequest,
> extends Setting.InputOf<ReturnType<typeof nodeHandlerOptions<Request>>> {}

/**
 * Creates a request handler for `createServer` from node:http or node:http2.
 *
 * As middleware, with a third argument `next`, the handler calls `next` for paths outside the API.
 * Without it, the handler answers them 404. Throws a `TypeError` unless `tenure` comes from `await
 * createTenure(…)`, and `InvalidInput` if an option is invalid.
 * @example
 * ```ts
 * import { createServer } from "node:http"
 * import { createTenure } from "tenure"
 * import { memory } from "tenure/memory"
 * import { toNodeHandler } from "tenure/node"
 *
 * const tenure = await createTenure({ stores: memory() })
 * createServer(toNodeHandler(tenure)).listen(3000, "127.0.0.1")
 * ```
 */
export const toNodeHandler = <Request extends NodeRequest = NodeRequest>(
  tenure: Mountable,
  given: NodeHandlerOptions<Request> = {},
): NodeHandler<Request> => {
  checkMountable(tenure)
  const { authenticate } = Setting.parse(nodeHandlerOptions<Request>(), given)
  return (request, response, next) => {
    if (next !== undefined && !tenure.owns(pathOf(request.url ?? ""))) return next()
    const known = authenticate && { authenticate: () => authenticate(request) }
    handle(tenure, request, response, { ...known }, (reply) => {
      try {
        send(response, reply)
      } catch (fault) {
        // The response cannot be completed, so the client must not wait for it.
        response.destroy()
        throw fault
      }
    })
  }
}
