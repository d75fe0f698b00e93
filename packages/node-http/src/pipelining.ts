/** Answers requests that arrive together one right after the other. */

import type { EventEmitter } from "node:events"
import { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { setImmediate } from "node:timers"
import type { ApiResponse } from "@tenure/core/adapter"
import { Setting } from "@tenure/core/internal"
import type { NodeRequest, NodeResponse } from "./types.ts"

// Imported, because a host's tests may replace the global function.

// Larger batches save no more time, and what their responses leave behind lives until their end.
const mostTogether = 64

let batch: Array<() => void> = []

// What runs after the batch that is running now, if one is.
let last: Array<() => void> | undefined

const takeAll = (turns: ReadonlyArray<() => void>): void => {
  // What arrives from now on is for another batch.
  if (turns === batch) batch = []
  const rest: Array<() => void> = []
  last = rest
  for (const turn of turns) turn()
  last = undefined
  for (const run of rest) run()
}

/**
 * Runs a function once everything that has arrived by now is read. It must not throw, and it runs in
 * an arbitrary async context.
 *
 * Under load, many requests arrive at once. Reading all of them, then answering all, then sending all
 * responses takes half the processor time of finishing each request in turn, because what each step
 * needs stays in the processor's caches.
 */
export const nextTurn = (turn: () => void): void => {
  if (batch.length === mostTogether) batch = []
  if (batch.push(turn) === 1) setImmediate(takeAll, batch)
}

/** Runs a function after all turns of this batch, or at once if it is not called in a turn. */
export const afterPendingTurns = (run: () => void): void => {
  if (last === undefined) run()
  else last.push(run)
}

/** Hands what connections send to Node's parser in small pieces, once one of them sends too much. */

// Node's parser makes all requests of a read, 2,600 of the shortest, before anybody can pause the
// connection. Reading in pieces costs others a thirtieth of their throughput, so it starts when needed.
const pieceLength = 1024

// What to do if a connection sends too much. Not known for connections of servers that are not guarded.
const alarms = new WeakMap<Duplex, () => void>()

/** The only reader of a connection: Node's parser, unless the connection was upgraded. */
const readerOf = (socket: Duplex): Function | undefined => {
  const [reader, ...others] = socket.listeners("data")
  return others.length === 0 ? reader : undefined
}

/**
 * Has a connection parsed piece by piece.
 *
 * @param isBusy - whether requests wait, so that the next piece must wait too
 */
const readInPieces = (socket: Duplex, isBusy: (socket: Duplex) => boolean): void => {
  const parse = readerOf(socket)
  if (parse === undefined) return
  const onData = (chunk: Buffer): void => {
    parse(chunk.subarray(0, pieceLength))
    if (chunk.length <= pieceLength) return
    // Nobody sends so much behind an upgrade before it is answered.
    if (!socket.listeners("data").includes(parse)) return void socket.destroy()
    if (isBusy(socket)) socket.pause()
    // Comes back here at once, unless the connection is paused.
    socket.unshift(chunk.subarray(pieceLength))
  }
  // Like a listener by `once`, this one goes when Node removes its own.
  socket.removeAllListeners("data").on("data", Object.assign(onData, { listener: parse }))
}

/** Has all connections of a server read in pieces as soon as one of them sends too much. */
const guardReads = (server: EventEmitter, isBusy: (socket: Duplex) => boolean): void => {
  // The open connections, each with its parser.
  const open = new Map<Duplex, ReturnType<typeof readerOf>>()
  let isWary = false

  const alarm = (): void => {
    isWary = true
    for (const [socket, parser] of open) {
      // An upgraded connection is no longer parsed. Who reads it now may depend on whole chunks.
      if (readerOf(socket) === parser) readInPieces(socket, isBusy)
    }
    open.clear()
  }
  const onConnection = (socket: Duplex): void => {
    if (isWary) return readInPieces(socket, isBusy)
    alarms.set(socket, alarm)
    // A connection that is read again has another parser.
    if (!open.has(socket)) socket.on("close", () => open.delete(socket))
    open.set(socket, readerOf(socket))
  }
  // The connections of a server with TLS are parsed once they are secure.
  server.on("connection", onConnection).on("secureConnection", onConnection)
}

/** Tells that a connection sends too much. */
const raiseAlarm = (socket: Duplex, isBusy: (socket: Duplex) => boolean): void => {
  readInPieces(socket, isBusy)
  alarms.get(socket)?.()
}

/** Takes the requests of each connection one after the other. */

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

const pipelinesIsBusy = (socket: Duplex): boolean =>
  (pipelines.get(socket)?.waiting.length ?? 0) > 0

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
    nextTurn(() => {
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
export const enqueueRequest = (
  { httpVersionMajor, socket }: NodeRequest,
  response: NodeResponse,
  start: () => void,
): void => {
  if (httpVersionMajor > 1) return start()
  const pipeline = pipelineOf(socket)
  // Both a server and the handler that it calls put their requests in order.
  if (pipeline.current === response) return start()
  if (pipeline.current === undefined) return take(socket, pipeline, { response, start })
  if (pipeline.waiting.push({ response, start }) === mostWaiting)
    raiseAlarm(socket, pipelinesIsBusy)
  socket.pause()
}

/**
 * Reads little from each connection of a server as soon as one of them sends many requests at once.
 * Call it before the server listens.
 */
export const guardPipeline = (server: EventEmitter): void => guardReads(server, pipelinesIsBusy)

/** Tells whether a request waits until earlier ones are answered. */
export const isPipelined = ({ socket }: NodeRequest, response: NodeResponse): boolean =>
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
export const orderOptions = Setting.object({
  /**
   * How many requests in a row may be answered 429 on one connection before it is closed. The option
   * of `createTenure` takes precedence in the handlers for node:http, Express and Fastify. Default:
   * `100`.
   */
  maxRefusals: Setting.withDefault(Setting.integer(), 100),
})

/** The options that a host passes. */
export interface OrderOptions extends Setting.InputOf<typeof orderOptions> {}

/**
 * Puts all requests of a server in order, those of the host included, and closes connections after so
 * many refusals. Tenure's own server and the handlers for node:http, Express and Fastify do this by
 * themselves; use it for other hosts on Node. Throws `InvalidInput` if an option is invalid.
 *
 * @returns the same server
 * @example
 * ```ts
 * import { Hono } from "hono"
 * import { orderRequests } from "tenure/node"
 * import { serve } from "@hono/node-server"
 *
 * orderRequests(serve({ fetch: new Hono().fetch }))
 * ```
 */
export const orderRequests = <Server extends EventEmitter>(
  server: Server,
  given: OrderOptions = {},
): Server => {
  const { maxRefusals } = Setting.parse(orderOptions, given)
  guardPipeline(server)
  const emit = server.emit.bind(server)
  // Listeners that are added later are in order too.
  return Object.assign(server, {
    emit: (event: string, ...args: ReadonlyArray<unknown>): boolean => {
      const [request, response] = args
      if (event !== "request" || !(request instanceof IncomingMessage)) return emit(event, ...args)
      if (!(response instanceof ServerResponse)) return emit(event, ...args)
      enqueueRequest(request, response, () => {
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
