/** Has Tenure answer a request. */

import { AsyncResource } from "node:async_hooks"
import { inspect } from "node:util"
import { type ApiRequest, type Body, pathOf, queryOf } from "@tenure/core/ApiRequest"
import type { ApiResponse } from "@tenure/core/Envelope"
import { keepRepeated } from "@tenure/core/HeaderFields"
import type { Mountable } from "@tenure/core/Mountable"
import { signalOf } from "./departures.ts"
import type { NodeRequest, NodeResponse } from "./messages.ts"
import { inOrder, limitRefusals } from "./pipelines.ts"
import { readBody } from "./requestBody.ts"
import { afterTurns, takeTurn } from "./turns.ts"

/** What an adapter knows better than the Node request. */
export type Known = Partial<
  Pick<ApiRequest, "path" | "originalPath" | "remoteAddress" | "authenticate" | "body" | "signal">
>

/** Converts a request to that of the core. What is known takes precedence over what Node has read. */
export const toApiRequest = (
  { headers, method = "", rawHeaders, socket, url = "" }: NodeRequest,
  body: Body,
  known: Known = {},
): ApiRequest => ({
  method,
  path: known.path ?? pathOf(url),
  originalPath: known.originalPath,
  query: queryOf(url),
  headers: keepRepeated(headers, rawHeaders),
  body: known.body ?? body,
  remoteAddress: known.remoteAddress ?? socket.remoteAddress,
  signal: known.signal,
  authenticate: known.authenticate,
})

/**
 * Reads a request, has Tenure answer it, and calls `deliver` with the response. For adapters to hosts
 * that build on Node. The requests of one connection are answered one after the other.
 *
 * @param response - the response of Node, which tells when the next request may be read
 */
export const handle = (
  tenure: Mountable,
  request: NodeRequest,
  response: NodeResponse,
  known: Known,
  deliver: (response: ApiResponse) => void,
): void => {
  // Keeps the async context of the request for the functions of the host: neither the end of the body
  // nor a turn runs in it. Twenty times as fast as `AsyncLocalStorage.snapshot`.
  const context = new AsyncResource("TENURE")
  const deliverInContext = (reply: ApiResponse): void =>
    context.runInAsyncScope(deliver, undefined, limitRefusals(request, reply, tenure.maxRefusals))
  const { path = pathOf(request.url ?? "") } = known
  inOrder(request, response, () =>
    readBody(request, tenure.bodyLimit(request.method ?? "", path), (body) => {
      // Converted before the turn, because a connection that breaks meanwhile has no address.
      const signal = request.method === "GET" ? () => signalOf(request, response) : undefined
      const apiRequest = toApiRequest(request, body, { ...known, path, signal })
      takeTurn(() =>
        context.runInAsyncScope(answer, undefined, tenure, apiRequest, deliverInContext),
      )
    }),
  )
}

/**
 * Has Tenure answer a request, and calls `deliver` with the response. What `deliver` throws emits a
 * process warning and affects no other request.
 */
export const answer = (
  tenure: Mountable,
  request: ApiRequest,
  deliver: (response: ApiResponse) => void,
): void =>
  tenure.answer(request, (response) =>
    afterTurns(() => {
      try {
        deliver(response)
      } catch (fault) {
        process.emitWarning(fault instanceof Error ? fault : inspect(fault))
      }
    }),
  )
