/** Converts Node's requests and responses: bodies that are awaited, faults of the parser, and streams. */

import { AsyncResource } from "node:async_hooks"
import type { Duplex } from "node:stream"
import { inspect } from "node:util"
import {
  type ApiRequest,
  type ApiResponse,
  type ArrivedBody,
  type Body,
  type Mountable,
  abortedBody,
  consumedBody,
  emptyBody,
  hasUnknownCoding,
  keepRepeatedHeaders,
  pathOf,
  queryOf,
  tooLargeBody,
  unknownCodingBody,
} from "@tenure/core/adapter"
import type { BodyLimit } from "@tenure/core/internal"
import { afterPendingTurns, enqueueRequest, limitRefusals, nextTurn } from "./pipelining.ts"
import { stream } from "./streams.ts"
import type { NodeRequest, NodeResponse } from "./types.ts"

const faultEvent = Symbol("@tenure/node-http/fault")

const faults = new WeakMap<NodeRequest, ArrivedBody>()

/** Answers a request through `take` if its body is faulty, instead of an earlier `take`. */
const takeBodyError = (request: NodeRequest, take: (fault: ArrivedBody) => void): void =>
  // Not in a map over all requests, because entries in weak maps are costly for the garbage collector.
  void request.removeAllListeners(faultEvent).on(faultEvent, take)

/** The body's fault, if found before anybody read it. */
export const bodyErrorOf = (request: NodeRequest): ArrivedBody | undefined => faults.get(request)

/** Passes a fault to the body's reader. Returns `false` without one. */
export const passBodyError = (request: NodeRequest, fault: ArrivedBody): boolean => {
  faults.set(request, fault)
  return request.emit(faultEvent, fault)
}

const expectations = new WeakMap<NodeRequest, () => void>()

/**
 * Registers a waiting client's request.
 *
 * @param sendContinue - tells the client to send the body
 */
export const expectContinue = (request: NodeRequest, sendContinue: () => void): void =>
  void expectations.set(request, sendContinue)

/** Returns a function to request the body, if the client waits. The caller must then call it. */
export const takeExpectation = (request: NodeRequest): (() => void) | undefined => {
  const sendContinue = expectations.get(request)
  expectations.delete(request)
  return sendContinue
}

// A request over HTTP/2 needs neither field: its stream's end ends the body.
const hasBody = ({ headers, httpVersionMajor }: NodeRequest): boolean =>
  httpVersionMajor > 1 ||
  headers["transfer-encoding"] !== undefined ||
  Number(headers["content-length"] ?? 0) > 0

/** Whether a request announces a body longer than `limit` bytes. */
const announcesMore = ({ headers }: Pick<NodeRequest, "headers">, limit: number): boolean =>
  Number(headers["content-length"] ?? 0) > limit

const utf8 = new TextEncoder()

/** Why a body is not read, if it is not. */
const refusedBody = (request: NodeRequest, limit: number): Body | undefined => {
  if (hasUnknownCoding(request.headers)) return unknownCodingBody
  return announcesMore(request, limit) ? tooLargeBody : undefined
}

/** The body left on the request by a parser. */
const parsedBody = ({ body }: NodeRequest & { readonly body?: unknown }): Body => {
  if (body === undefined) return consumedBody
  if (body instanceof Uint8Array) return { _tag: "Bytes", bytes: body }
  if (typeof body === "string") return { _tag: "Bytes", bytes: utf8.encode(body) }
  return { _tag: "Parsed", value: body }
}

/** The body, if somebody else has read it. */
const readBefore = (request: NodeRequest, limit: number): Body | undefined =>
  request.readableDidRead ? (refusedBody(request, limit) ?? parsedBody(request)) : undefined

const concat = (chunks: ReadonlyArray<Buffer>): Buffer => {
  const [only] = chunks
  return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks)
}

/** Reads a stream up to its end or the limit. */
const readStream = (
  request: NodeRequest,
  limit: number,
  done: (body: ArrivedBody) => void,
): void => {
  const chunks: Array<Buffer> = []
  let length = 0

  const onData = (data: Buffer | string): void => {
    // The host may have set an encoding: then chunks are strings.
    const chunk =
      typeof data === "string" ? Buffer.from(data, request.readableEncoding ?? "utf8") : data
    length += chunk.length
    chunks.push(chunk)
    if (length <= limit) return
    request.off("data", onData).off("end", onEnd).resume()
    done(tooLargeBody)
  }
  const onEnd = (): void => {
    // A cancelled HTTP/2 stream ends too.
    if (!request.aborted) done({ _tag: "Bytes", bytes: concat(chunks) })
  }
  request
    .on("data", onData)
    .on("end", onEnd)
    // The connection is gone, so there is no response to send.
    .on("error", () => {})
}

/**
 * Creates a body, read when the core asks for it.
 *
 * @param sendContinue - tells a waiting client to send the body
 */
const deferred = (
  request: NodeRequest,
  limit: number,
  sendContinue: (() => void) | undefined,
): Body => {
  // A fault before the core reads the body is kept and replaces the body.
  takeBodyError(request, () => {})
  return {
    _tag: "Deferred",
    read: () =>
      new Promise((resolve) => {
        const fault = bodyErrorOf(request)
        if (fault !== undefined) return resolve(fault)
        // The client may have gone meanwhile.
        if (request.destroyed) return resolve(abortedBody)
        takeBodyError(request, resolve)
        sendContinue?.()
        readStream(request, limit, resolve)
        request.once("close", () => resolve(abortedBody))
      }),
  }
}

/** Passes on only the first body. */
const onlyFirst = (done: (body: Body) => void): ((body: Body) => void) => {
  let isDone = false
  return (body) => {
    if (isDone) return
    isDone = true
    done(body)
  }
}

/**
 * Reads a request's body, and calls `done` with it. If the client waits for 100 Continue, or the body
 * may be long, the core reads it later. Calls `done` with `TooLarge` as soon as the body exceeds the
 * limit, and not at all if the connection breaks before its end. Discards the unread rest. If a body
 * parser has read the body, uses the parser's result.
 */
const readBody = (
  request: NodeRequest,
  { bytes: limit, isDeferred }: BodyLimit,
  done: (body: Body) => void,
): void => {
  const known = hasBody(request) ? (bodyErrorOf(request) ?? readBefore(request, limit)) : emptyBody
  if (known !== undefined) return done(known)
  const refused = refusedBody(request, limit)
  const sendContinue = takeExpectation(request)
  if (refused === undefined && (isDeferred || sendContinue !== undefined)) {
    return done(deferred(request, limit, sendContinue))
  }
  const settle = onlyFirst(done)
  takeBodyError(request, settle)
  if (refused === undefined) return readStream(request, limit, settle)
  request.resume()
  settle(refused)
}

// The current request on each HTTP/1.1 connection.
const departures = new WeakMap<Duplex, AbortController>()

/**
 * Returns a signal, aborted when the client has disconnected. A client that has only ended its side
 * looks the same: it gets the data available by then.
 */
const abortSignalOf = (
  { httpVersionMajor, socket }: NodeRequest,
  response: NodeResponse,
): AbortSignal => {
  const departure = new AbortController()
  const leave = (): void => departure.abort()
  if (response.destroyed) leave()
  // In HTTP/2, all streams share a socket.
  if (httpVersionMajor > 1) {
    response.on("close", leave)
    return departure.signal
  }
  departures.set(socket, departure)
  socket.on("end", leave)
  response.on("close", () => {
    leave()
    socket.off("end", leave)
  })
  if (socket.readableEnded) leave()
  return departure.signal
}

/** Ends the waiting for events on a connection, or the stream, because the connection is to close. */
export const releaseSignal = (socket: Duplex): void => departures.get(socket)?.abort()

/** Facts an adapter knows better than the Node request. */
export type KnownRequest = Partial<
  Pick<ApiRequest, "path" | "originalPath" | "remoteAddress" | "authenticate" | "body" | "signal">
>

/** Converts a request for the core. Known facts take precedence over Node's. */
export const toApiRequest = (
  { headers, method = "", rawHeaders, socket, url = "" }: NodeRequest,
  body: Body,
  known: KnownRequest = {},
): ApiRequest => ({
  method,
  path: known.path ?? pathOf(url),
  originalPath: known.originalPath,
  query: queryOf(url),
  headers: keepRepeatedHeaders(headers, rawHeaders),
  body: known.body ?? body,
  remoteAddress: known.remoteAddress ?? socket.remoteAddress,
  scheme: socket.encrypted === true ? "https" : undefined,
  signal: known.signal,
  authenticate: known.authenticate,
})

/**
 * Reads a request, answers it, and calls `deliver` with the response. For adapters to hosts on Node.
 * Requests on one connection are answered one after the other.
 *
 * @param response - Node's response; once it is sent, the next request may be read
 */
export const handle = (
  tenure: Mountable,
  request: NodeRequest,
  response: NodeResponse,
  known: KnownRequest,
  deliver: (response: ApiResponse) => void,
): void => {
  // Keeps the request's async context for the host's functions, because neither the body's end nor a
  // turn runs in it. Twenty times as fast as `AsyncLocalStorage.snapshot`.
  const context = new AsyncResource("TENURE")
  const deliverInContext = (reply: ApiResponse): void =>
    context.runInAsyncScope(deliver, undefined, limitRefusals(request, reply, tenure.maxRefusals))
  const { path = pathOf(request.url ?? "") } = known
  enqueueRequest(request, response, () =>
    readBody(request, tenure.bodyLimit(request.method ?? "", path), (body) => {
      // Converted before the turn, because a broken connection has no address.
      const signal = request.method === "GET" ? () => abortSignalOf(request, response) : undefined
      const apiRequest = toApiRequest(request, body, { ...known, path, signal })
      nextTurn(() =>
        context.runInAsyncScope(answer, undefined, tenure, apiRequest, deliverInContext),
      )
    }),
  )
}

/**
 * Answers a request, and calls `deliver` with the response. If `deliver` throws, emits a process
 * warning and affects no other request.
 */
export const answer = (
  tenure: Mountable,
  request: ApiRequest,
  deliver: (response: ApiResponse) => void,
): void =>
  tenure.answer(request, (response) =>
    afterPendingTurns(() => {
      try {
        deliver(response)
      } catch (fault) {
        process.emitWarning(fault instanceof Error ? fault : inspect(fault))
      }
    }),
  )

/** Removes connection headers from a response over HTTP/2, where they are invalid. */
const allowedHeaders = (
  { req }: NodeResponse,
  headers: Readonly<Record<string, string | number>>,
): Readonly<Record<string, string | number>> => {
  if (req.httpVersionMajor === 1) return headers
  const { Connection: _connection, Upgrade: _upgrade, ...allowed } = headers
  return allowed
}

/** Sends a response, unless one has been sent already or the connection is gone. */
export const send = (
  response: NodeResponse,
  { body, headers, status }: ApiResponse,
  more?: Readonly<Record<string, string>>,
): void => {
  if (response.headersSent || response.destroyed) {
    if (typeof body !== "string") body.close()
    return
  }
  if (typeof body === "string") {
    const length = Buffer.byteLength(body)
    const all = { ...headers, "Content-Length": length, ...more }
    response.writeHead(status, allowedHeaders(response, all))
    // ASCII has the same bytes in both encodings, and Node encodes latin1 faster.
    response.end(body, length === body.length ? "latin1" : "utf8")
  } else {
    response.writeHead(status, allowedHeaders(response, { ...headers, ...more }))
    // Node keeps the header's text, in many parts unless sent by itself.
    response.flushHeaders?.()
    stream(body, response)
  }
}
