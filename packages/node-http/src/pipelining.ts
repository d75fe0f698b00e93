/** Answers requests in batches and in order. */

import type { EventEmitter } from "node:events"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { setImmediate } from "node:timers"
import type { ApiResponse } from "@tenure/core/adapter"
import { Setting } from "@tenure/core/internal"
import { http } from "./builtin.ts"
import type { NodeRequest, NodeResponse } from "./types.ts"

// Imported, because a host's tests may replace the global function.

// Larger batches save no more time, and their garbage lives until they end.
const maxTogether = 64

let batch: Array<() => void> = []

// Functions to run after the current batch, if there is one.
let last: Array<() => void> | undefined

const takeAll = (turns: ReadonlyArray<() => void>): void => {
  // Later arrivals belong to another batch.
  if (turns === batch) batch = []
  const rest: Array<() => void> = []
  last = rest
  for (const turn of turns) turn()
  last = undefined
  for (const run of rest) run()
}

/**
 * Runs a function once everything received by now has been read. The function must not throw, and runs
 * in an arbitrary async context.
 *
 * Under load, many requests arrive at once. Reading all, then answering all, then sending all responses
 * takes half the processor time needed to finish each request in turn, because each step finds its code
 * and data in the processor's caches.
 */
export const nextTurn = (turn: () => void): void => {
  if (batch.length === maxTogether) batch = []
  if (batch.push(turn) === 1) setImmediate(takeAll, batch)
}

/** Runs a function after all turns in this batch, or at once outside a turn. */
export const afterPendingTurns = (run: () => void): void => {
  if (last === undefined) run()
  else last.push(run)
}

// Node's parser emits all requests in one read, up to 2,600, before anybody can pause the connection.
// Reading in pieces costs other connections 3 % throughput, so it starts only when needed.
const pieceLength = 1024

// Callbacks for connections sending too much. Connections to unguarded servers have none.
const alarms = new WeakMap<Duplex, () => void>()

/** Returns a connection's only reader: Node's parser, unless the connection was upgraded. */
const readerOf = (socket: Duplex): Function | undefined => {
  const [reader, ...others] = socket.listeners("data")
  return others.length === 0 ? reader : undefined
}

// Connections whose upgrade is taken, but not read on yet.
const handedOver = new WeakSet<Duplex>()

/** Runs what takes an upgraded connection, once what arrived with the upgrade is back on the connection. */
export const handOver = (socket: Duplex, take: () => void): void => {
  handedOver.add(socket)
  queueMicrotask(() => {
    handedOver.delete(socket)
    take()
  })
}

/**
 * Makes Node parse a connection piece by piece.
 *
 * @param isBusy - whether requests wait, so the next piece must wait too
 */
const readInPieces = (socket: Duplex, isBusy: (socket: Duplex) => boolean): void => {
  const parse = readerOf(socket)
  if (parse === undefined) return
  const onData = (chunk: Buffer): void => {
    parse(chunk.subarray(0, pieceLength))
    if (chunk.length <= pieceLength) return
    const isUpgraded = !socket.listeners("data").includes(parse)
    // Whoever else has taken the connection reads already, and would get this too late.
    if (isUpgraded && !handedOver.has(socket)) return void socket.destroy()
    if (isBusy(socket) && !isUpgraded) socket.pause()
    // Comes back here at once, unless the connection is paused.
    socket.unshift(chunk.subarray(pieceLength))
  }
  // Like a listener by `idempotency`, this one goes when Node removes its own.
  socket.removeAllListeners("data").on("data", Object.assign(onData, { listener: parse }))
}

/** Reads all of a server's connections in pieces as soon as one sends too much. */
const guardReads = (server: EventEmitter, isBusy: (socket: Duplex) => boolean): void => {
  // The open connections, each with its parser.
  const open = new Map<Duplex, ReturnType<typeof readerOf>>()
  let isWary = false

  const alarm = (): void => {
    isWary = true
    for (const [socket, parser] of open) {
      // An upgraded connection is no longer parsed, and its new reader may depend on whole chunks.
      if (readerOf(socket) === parser) readInPieces(socket, isBusy)
    }
    open.clear()
  }
  const onConnection = (socket: Duplex): void => {
    if (isWary) return readInPieces(socket, isBusy)
    alarms.set(socket, alarm)
    // A connection read again has another parser.
    if (!open.has(socket)) socket.on("close", () => open.delete(socket))
    open.set(socket, readerOf(socket))
  }
  // TLS connections are parsed once they are secure.
  server.on("connection", onConnection).on("secureConnection", onConnection)
}

/** Reports a connection sending too much. */
const raiseAlarm = (socket: Duplex, isBusy: (socket: Duplex) => boolean): void => {
  readInPieces(socket, isBusy)
  alarms.get(socket)?.()
}

// Honest clients pipeline fewer requests.
const maxWaiting = 128

interface Waiting {
  readonly response: NodeResponse
  readonly start: () => void
}

/** One connection's requests. */
interface Pipeline {
  /** The response to the current request, until sent. */
  current: NodeResponse | undefined
  /** The requests after it, oldest first. */
  waiting: Array<Waiting>
  /** How many requests in a row were refused by a rate limit. */
  refusals: number
  /** The last counted response. */
  counted: NodeResponse | undefined
}

const pipelines = new WeakMap<Duplex, Pipeline>()

const pipelineOf = (socket: Duplex): Pipeline => {
  const known = pipelines.get(socket)
  if (known !== undefined) return known
  const pipeline: Pipeline = { current: undefined, waiting: [], refusals: 0, counted: undefined }
  pipelines.set(socket, pipeline)
  // Node resumes when it reads the current request's body.
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
      // Resumes early only for the rest of a body: once Node has read the client's end of the
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
 * Calls `start` after every earlier request on the connection has been answered and its response sent.
 * Meanwhile, nothing is read from the connection. A client that pipelines requests or does not read
 * responses thus occupies at most one socket read, and gets no more turns than a client waiting for
 * each response.
 *
 * An HTTP/2 stream starts at once, because sessions have their own flow control.
 */
export const enqueueRequest = (
  { httpVersionMajor, socket }: NodeRequest,
  response: NodeResponse,
  start: () => void,
): void => {
  if (httpVersionMajor > 1) return start()
  const pipeline = pipelineOf(socket)
  // Both a server and its handler put requests in order.
  if (pipeline.current === response) return start()
  if (pipeline.current === undefined) return take(socket, pipeline, { response, start })
  if (pipeline.waiting.push({ response, start }) === maxWaiting) raiseAlarm(socket, pipelinesIsBusy)
  socket.pause()
}

/**
 * Reads little from each connection as soon as one sends many requests at once. Call it before the
 * server listens.
 */
export const guardPipeline = (server: EventEmitter): void => guardReads(server, pipelinesIsBusy)

/** Tells whether a request waits until earlier ones are answered. */
export const isPipelined = ({ socket }: NodeRequest, response: NodeResponse): boolean =>
  pipelines.get(socket)?.waiting.some((one) => one.response === response) ?? false

/** Returns the response to the latest request that waits on a connection. */
export const latestWaiting = (socket: Duplex): NodeResponse | undefined =>
  pipelines.get(socket)?.waiting.at(-1)?.response

/** Counts a response. Returns how many in a row were refusals. */
const countRefusal = (pipeline: Pipeline, status: number): number => {
  pipeline.counted = pipeline.current
  pipeline.refusals = status === 429 ? pipeline.refusals + 1 : 0
  return pipeline.refusals
}

/**
 * Closes a connection after a number of consecutive refusals, counting those no Tenure handler has
 * counted.
 */
const closeAfterRefusals = (
  { socket }: IncomingMessage,
  response: ServerResponse,
  most: number,
): void => {
  const pipeline = pipelineOf(socket)
  if (pipeline.counted === response) return
  if (countRefusal(pipeline, response.statusCode) >= most) socket.destroySoon()
}

export const orderOptions = Setting.object({
  /**
   * The maximum number of consecutive requests answered 429 on one connection before it is closed. In
   * the handlers for node:http, Express and Fastify, the option of `createTenure` takes precedence.
   * Default: `100`.
   */
  maxRefusals: Setting.withDefault(Setting.integer(), 100),
})

/** The options as a host passes them. */
export interface OrderOptions extends Setting.InputOf<typeof orderOptions> {}

/**
 * Puts all requests to a server in order, including the host's own, and closes connections after too
 * many refusals. Tenure's server and its handlers for node:http, Express and Fastify do this already;
 * use it for other hosts on Node. Throws `InvalidInput` if an option is invalid.
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
  // Listeners added later are in order too.
  return Object.assign(server, {
    emit: (event: string, ...args: ReadonlyArray<unknown>): boolean => {
      const [request, response] = args
      if (event !== "request" || !(request instanceof http.IncomingMessage))
        return emit(event, ...args)
      if (!(response instanceof http.ServerResponse)) return emit(event, ...args)
      enqueueRequest(request, response, () => {
        response.on("finish", () => closeAfterRefusals(request, response, maxRefusals))
        emit(event, request, response)
      })
      return true
    },
  })
}

/**
 * Counts a connection's refusals. Returns the response; after `most` consecutive refusals, it ends the
 * connection.
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
