/** Takes the requests of each connection one after the other. */

import type { EventEmitter } from "node:events"
import { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import type { ApiResponse } from "@tenure/core/Envelope"
import * as Setting from "@tenure/core/Setting"
import type { NodeRequest, NodeResponse } from "./messages.ts"
import { guardReads, raiseAlarm } from "./reads.ts"
import { takeTurn } from "./turns.ts"

// Clients that pipeline honestly have fewer requests under way.
const mostWaiting = 128

interface Waiting {
  readonly response: NodeResponse
  readonly start: () => void
}

/** The requests of one connection. */
interface Pipeline {
  /** The response to the request that was taken last, until it is sent. */
  current: NodeResponse | undefined
  /** The requests that have arrived behind it, oldest first. */
  waiting: Array<Waiting>
  /** How many requests in a row were refused by a rate limit. */
  refusals: number
  /** The response that was counted last. */
  counted: NodeResponse | undefined
}

const pipelines = new WeakMap<Duplex, Pipeline>()

const pipelineOf = (socket: Duplex): Pipeline => {
  const known = pipelines.get(socket)
  if (known !== undefined) return known
  const pipeline: Pipeline = { current: undefined, waiting: [], refusals: 0, counted: undefined }
  pipelines.set(socket, pipeline)
  // Node reads on when it reads the body of the current request.
  socket.on("resume", () => {
    if (pipeline.waiting.length > 0) socket.pause()
  })
  return pipeline
}

const isBusy = (socket: Duplex): boolean => (pipelines.get(socket)?.waiting.length ?? 0) > 0

/**
 * Takes a request.
 *
 * @param isHeld - whether the socket stays paused until the response is sent
 */
const take = (
  socket: Duplex,
  pipeline: Pipeline,
  { response, start }: Waiting,
  isHeld = false,
): void => {
  pipeline.current = response
  response.on("close", () => {
    const next = socket.writableEnded || socket.destroyed ? undefined : pipeline.waiting.shift()
    pipeline.current = next?.response
    if (next === undefined) {
      pipeline.waiting = []
      if (isHeld) socket.resume()
      return
    }
    // Not at once: a client with many requests must not keep others waiting for their turn.
    takeTurn(() => {
      // Reads on early only for the rest of a body: once Node has read that the client ends the
      // connection, it sends no response.
      const isLast = pipeline.waiting.length === 0
      const isHeldOn = !isLast || next.response.req.complete
      if (!isHeldOn) socket.resume()
      take(socket, pipeline, next, isHeldOn)
    })
  })
  start()
}

/**
 * Calls `start` once every earlier request of the connection has been answered and its response sent.
 * Meanwhile nothing is read from the connection. A client that pipelines requests or does not read
 * responses thus holds at most what one read of its socket brings, and takes no more turns than a
 * client that waits for each response.
 *
 * A stream of HTTP/2 starts at once: sessions have flow control of their own.
 */
export const inOrder = (
  { httpVersionMajor, socket }: NodeRequest,
  response: NodeResponse,
  start: () => void,
): void => {
  if (httpVersionMajor > 1) return start()
  const pipeline = pipelineOf(socket)
  // Both a server and the handler that it calls put their requests in order.
  if (pipeline.current === response) return start()
  if (pipeline.current === undefined) return take(socket, pipeline, { response, start })
  if (pipeline.waiting.push({ response, start }) === mostWaiting) raiseAlarm(socket, isBusy)
  socket.pause()
}

/**
 * Reads little from each connection of a server as soon as one of them sends many requests at once.
 * Call it before the server listens.
 */
export const guard = (server: EventEmitter): void => guardReads(server, isBusy)

/** Tells whether a request waits until earlier ones are answered. */
export const isWaiting = ({ socket }: NodeRequest, response: NodeResponse): boolean =>
  pipelines.get(socket)?.waiting.some((one) => one.response === response) ?? false

/** Counts a response. Returns how many in a row were refusals. */
const countRefusal = (pipeline: Pipeline, status: number): number => {
  pipeline.counted = pipeline.current
  pipeline.refusals = status === 429 ? pipeline.refusals + 1 : 0
  return pipeline.refusals
}

/** Closes a connection after so many refusals in a row that no handler of Tenure for Node has counted. */
const closeAfterRefusals = (
  { socket }: IncomingMessage,
  response: ServerResponse,
  most: number,
): void => {
  const pipeline = pipelineOf(socket)
  if (pipeline.counted === response) return
  if (countRefusal(pipeline, response.statusCode) >= most) socket.destroySoon()
}

/** The options of `orderRequests`. */
export const orderOptions = Setting.struct({
  /**
   * How many requests in a row may be answered 429 on one connection before it is closed. The option
   * of `Tenure.make` takes precedence in the handlers for node:http, Express and Fastify. Default:
   * `100`.
   */
  maxRefusals: Setting.withDefault(Setting.count(), 100),
})

/** The options that a host passes. */
export interface OrderOptions extends Setting.Input<typeof orderOptions> {}

/**
 * Puts all requests of a server in order, those of the host included, and closes connections after so
 * many refusals. Tenure's own server and the handlers for node:http, Express and Fastify do this by
 * themselves; use it for other hosts on Node. Throws `InvalidInput` if an option is invalid.
 *
 * @returns the same server
 * @example
 * ```ts
 * import { serve } from "@hono/node-server"
 * import { Hono } from "hono"
 * import { orderRequests } from "tenure/node"
 *
 * orderRequests(serve({ fetch: new Hono().fetch }))
 * ```
 */
export const orderRequests = <Server extends EventEmitter>(
  server: Server,
  given: OrderOptions = {},
): Server => {
  const { maxRefusals } = Setting.readSync(orderOptions, given)
  guard(server)
  const emit = server.emit.bind(server)
  // Listeners that are added later are in order too.
  return Object.assign(server, {
    emit: (event: string, ...args: ReadonlyArray<unknown>): boolean => {
      const [request, response] = args
      if (event !== "request" || !(request instanceof IncomingMessage)) return emit(event, ...args)
      if (!(response instanceof ServerResponse)) return emit(event, ...args)
      inOrder(request, response, () => {
        response.on("finish", () => closeAfterRefusals(request, response, maxRefusals))
        emit(event, request, response)
      })
      return true
    },
  })
}

/**
 * Counts the refusals on a connection. Returns the response, with which the connection ends if it is
 * the refusal number `most` in a row.
 */
export const limitRefusals = (
  { httpVersionMajor, socket }: NodeRequest,
  response: ApiResponse,
  most: number,
): ApiResponse => {
  if (httpVersionMajor > 1) return response
  return countRefusal(pipelineOf(socket), response.status) < most
    ? response
    : { ...response, headers: { ...response.headers, Connection: "close" } }
}
