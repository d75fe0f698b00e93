/** Tenure as a node:http request listener. */

import { AsyncLocalStorage } from "node:async_hooks"
import type { IncomingMessage, ServerResponse } from "node:http"
import { inspect } from "node:util"
import { type ApiRequest, type Body, pathOf } from "@tenure/core/ApiRequest"
import type { ApiResponse } from "@tenure/core/Envelope"
import { keepRepeated } from "@tenure/core/HeaderFields"
import type { Authenticate } from "@tenure/core/Identity"
import type { Mountable } from "@tenure/core/Tenure"
import { readBody } from "./requestBody.ts"
import { takeTurn } from "./turns.ts"

/** A request listener; with `next` a middleware, which passes on what is not the API's. */
export type NodeHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: () => void,
) => void

/** A request whose body is known, as the core takes it. */
export const toApiRequest = (request: IncomingMessage, body: Body): ApiRequest => ({
  method: request.method ?? "",
  path: pathOf(request.url ?? ""),
  headers: keepRepeated(request.headers, request.rawHeaders),
  body,
  remoteAddress: request.socket.remoteAddress,
})

/** What an adapter knows better than a request of node:http does. */
export type Known = Partial<
  Pick<ApiRequest, "path" | "originalPath" | "remoteAddress" | "authenticate">
>

/** Options of a request listener. */
export interface HandlerOptions {
  /** The host's own authentication in place of API keys; that of Tenure's options by default. */
  readonly authenticate?: Authenticate<IncomingMessage> | undefined
}

/** Reads a request, has it answered, and delivers the response. */
export const handle = (
  tenure: Mountable,
  request: IncomingMessage,
  known: Known,
  deliver: (response: ApiResponse) => void,
): void => {
  // The host's authentication runs in the context in which its request was handed over: neither a
  // body nor a turn comes in that.
  const inContext = AsyncLocalStorage.snapshot()
  readBody(request, tenure.maxBodyBytes, (body) => {
    // Read before the turn comes: a connection that breaks until then has no address any more.
    const apiRequest = { ...toApiRequest(request, body), ...known }
    takeTurn(() => void inContext(answer, tenure, apiRequest, deliver))
  })
}

const defective: ApiResponse = { status: 500, headers: { Connection: "close" }, body: "" }

const warn = (defect: unknown): void =>
  process.emitWarning(defect instanceof Error ? defect : inspect(defect))

const responseTo = async (tenure: Mountable, request: ApiRequest): Promise<ApiResponse> => {
  try {
    return await tenure.handle(request)
  } catch (defect) {
    warn(defect)
    return defective
  }
}

/**
 * Has a request answered, and the response delivered. A defect on the way costs this request its
 * answer, and the process nothing.
 */
export const answer = async (
  tenure: Mountable,
  request: ApiRequest,
  deliver: (response: ApiResponse) => void,
): Promise<void> => {
  const response = await responseTo(tenure, request)
  try {
    deliver(response)
  } catch (fault) {
    warn(fault)
  }
}

/** Sends a response, unless another was sent or the connection is gone. */
export const send = (
  response: ServerResponse,
  { body, headers, status }: ApiResponse,
  more?: Readonly<Record<string, string>>,
): void => {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, {
    ...headers,
    "Content-Length": Buffer.byteLength(body),
    ...more,
  })
  response.end(body)
}

/**
 * Makes a request listener for `http.createServer`.
 *
 * Called with a third argument, as middleware is, it passes requests outside the API on to it;
 * without one it answers those 404.
 *
 * @example
 * ```ts
 * import { createServer } from "node:http"
 * import * as Tenure from "@tenure/core/Tenure"
 * import { memory } from "@tenure/memory"
 * import { toNodeHandler } from "@tenure/node-http"
 *
 * const tenure = await Tenure.make({ stores: memory() })
 * createServer(toNodeHandler(tenure)).listen(3000, "127.0.0.1")
 * ```
 */
export const toNodeHandler =
  (tenure: Mountable, { authenticate }: HandlerOptions = {}): NodeHandler =>
  (request, response, next) => {
    if (next !== undefined && !tenure.owns(pathOf(request.url ?? ""))) return next()
    const known = authenticate && { authenticate: () => authenticate(request) }
    handle(tenure, request, { ...known }, (reply) => {
      try {
        send(response, reply)
      } catch (fault) {
        // Nobody is left who could answer.
        response.destroy()
        throw fault
      }
    })
  }
