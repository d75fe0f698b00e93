/** Answers requests Node's parser rejects, so these clients get an envelope too. */

import type * as Http from "node:http"
import type { Duplex } from "node:stream"
import {
  type ApiRequest,
  type ApiResponse,
  type Body,
  type HeaderFields,
  type Mountable,
  emptyBody,
  pathOf,
} from "@tenure/core/adapter"
import { http } from "./builtin.ts"
import { type Connections, isPending } from "./connections.ts"
import { answer, passBodyError, send, toApiRequest } from "./exchange.ts"
import { isPipelined } from "./pipelining.ts"

/** A request's first line, in two parts. */
interface RequestLine {
  readonly method: string
  readonly target: string
}

/** A packet rejected by the parser. */
export interface RejectedRequest {
  readonly packet: Buffer
  /** How many bytes in the packet were valid. */
  readonly parsed: number
}

const requestLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e\x80-\xff]+) HTTP\/1\.[01]$/
const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$/

/**
 * Returns where in the packet the rejected request starts: after the last complete head and its body.
 *
 * @param bodyLength - the previous request's body length, in bytes
 */
const startOf = ({ packet, parsed }: RejectedRequest, bodyLength: number): number => {
  const end = packet.subarray(0, parsed).lastIndexOf("\r\n\r\n")
  return end === -1 ? 0 : end + 4 + bodyLength
}

const parseLine = (line: string): RequestLine | undefined => {
  const [, method, target] = requestLine.exec(line) ?? []
  return method === undefined || target === undefined ? undefined : { method, target }
}

/** Reads a rejected request's first line. Returns `undefined` if it is unclear. */
const readLine = (rejected: RejectedRequest, bodyLength: number): RequestLine | undefined => {
  const { packet } = rejected
  const start = startOf(rejected, bodyLength)
  const end = packet.indexOf("\r\n", start)
  const line = parseLine(packet.toString("latin1", start, Math.max(start, end)))
  return line !== undefined && http.METHODS.includes(line.method) ? line : undefined
}

/** A request with a method unknown to Node. */
export type MalformedHead =
  | ({ readonly _tag: "Head"; readonly headers: HeaderFields } & RequestLine)
  /** The head is longer than Node allows. */
  | ({ readonly _tag: "TooLong" } & RequestLine)

const parseFields = (lines: ReadonlyArray<string>): HeaderFields => {
  const headers: Record<string, Array<string>> = Object.create(null)
  for (const line of lines) {
    const [, name = "", value = ""] = fieldLine.exec(line) ?? []
    const values = (headers[name.toLowerCase()] ??= [])
    values.push(value.trim())
  }
  return headers
}

/**
 * Reads the head of a request with an unknown method (RFC 9112), unless it follows a body. Returns
 * `undefined` for any other rejected packet.
 */
export const readMalformedHead = (rejected: RejectedRequest): MalformedHead | undefined => {
  const { packet, parsed } = rejected
  const start = startOf(rejected, 0)
  const end = packet.indexOf("\r\n\r\n", start)
  const [first = "", ...lines] = packet
    .toString("latin1", start, Math.max(start, Math.min(end, start + http.maxHeaderSize)))
    .split("\r\n")
  const line = parseLine(first)
  if (line === undefined || parsed - start > line.method.length) return undefined
  return end - start > http.maxHeaderSize
    ? { _tag: "TooLong", ...line }
    : { _tag: "Head", ...line, headers: parseFields(lines) }
}

// How long a client has to read the response before the connection is destroyed.
const lingerMillis = 1000

type ParserError = NodeJS.ErrnoException & {
  readonly rawPacket?: Buffer
  /** How many bytes in the packet the parser accepted. */
  readonly bytesParsed?: number
}
type Unreadable = Extract<Body, { readonly _tag: "Unreadable" }>

/** Returns a rejected request's fault. */
const faultOf = ({ code }: ParserError): Unreadable["error"] => {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { _tag: "RequestTimeout" }
    case "HPE_HEADER_OVERFLOW":
      return { _tag: "RequestHeadersTooLarge" }
    default:
      return { _tag: "MalformedRequest", message: "The request is not valid HTTP." }
  }
}

const unreadable = (error: ParserError): Unreadable => ({
  _tag: "Unreadable",
  error: faultOf(error),
})

const tooLong: Unreadable = { _tag: "Unreadable", error: { _tag: "RequestHeadersTooLarge" } }

/** Returns the body length a request announces, if it does. */
const bodyLengthOf = (request: Http.IncomingMessage | undefined): number | undefined =>
  request?.headers["transfer-encoding"] === undefined
    ? Number(request?.headers["content-length"] ?? 0)
    : undefined

type Parts = Pick<ApiRequest, "method" | "path" | "headers" | "body">

const partsOf = (line: RequestLine | undefined, body: Body, headers: HeaderFields = {}): Parts => ({
  method: line?.method ?? "",
  path: pathOf(line?.target ?? ""),
  headers,
  body,
})

/**
 * Reads the rejected request, as far as possible.
 *
 * @param before - the previous request on the connection
 */
const readFailed = (error: ParserError, before: Http.IncomingMessage | undefined): Parts => {
  const { bytesParsed = 0, code, rawPacket } = error
  const bodyLength = bodyLengthOf(before)
  const body = unreadable(error)
  if (rawPacket === undefined || bodyLength === undefined) return partsOf(undefined, body)
  const rejected = { packet: rawPacket, parsed: bytesParsed }
  if (code !== "HPE_INVALID_METHOD") return partsOf(readLine(rejected, bodyLength), body)
  const unknown = bodyLength === 0 ? readMalformedHead(rejected) : undefined
  if (unknown === undefined) return partsOf(undefined, body)
  return unknown._tag === "Head"
    ? partsOf(unknown, emptyBody, unknown.headers)
    : partsOf(unknown, tooLong)
}

/** Closes a connection after the client has had time to read the response. */
const linger = (socket: Duplex): void => {
  socket.end()
  // Closing while the client still sends would discard the response.
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), lingerMillis)
  socket.once("close", () => clearTimeout(timer))
}

/** Writes a response to the socket, and closes the connection. */
const writeRaw = (socket: Duplex, { body, headers, status }: ApiResponse): void => {
  // None of these requests opens a stream.
  if (!socket.writable || typeof body !== "string") return
  const fields = { ...headers, "Content-Length": Buffer.byteLength(body), Connection: "close" }
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${head.join("")}\r\n${body}`)
  linger(socket)
}

/** Answers requests rejected by the parser, and CONNECT. */
export const answerMalformedRequests = (
  server: Http.Server,
  tenure: Mountable,
  connections: Connections,
): void => {
  const faulty = new WeakSet<Duplex>()

  const answerRaw = (socket: Duplex, request: ApiRequest): void => {
    connections.hold(socket)
    void answer(tenure, request, (reply) => writeRaw(socket, reply))
  }

  server.on("connect", (request, socket) => {
    // Node has removed its own listener.
    socket.on("timeout", () => socket.destroy())
    const response = connections.latest(socket)
    const apiRequest = toApiRequest(request, emptyBody)
    const answerConnect = (): void => answerRaw(socket, apiRequest)
    // The requests before it are answered first.
    if (isPending(response)) response.once("finish", answerConnect)
    else answerConnect()
  })

  server.on("clientError", (error: ParserError, socket) => {
    if (faulty.has(socket)) return
    faulty.add(socket)
    const response = connections.latest(socket)
    const remoteAddress = "remoteAddress" in socket ? String(socket.remoteAddress) : undefined
    const answerFailed = (): void =>
      answerRaw(socket, { ...readFailed(error, response?.req), remoteAddress })

    if (isPending(response) && socket.writable) {
      // The fault is either after a complete request, answered first, or in its body.
      if (response.req.complete) return void response.once("finish", answerFailed)
      if (response.headersSent) return void response.once("finish", () => linger(socket))
      // Node closes the connection by this method after its last response.
      Object.assign(socket, { destroySoon: () => linger(socket) })
      response.setHeader("Connection", "close")
      const fault = unreadable(error)
      // The request's owner answers it. Another response would count it twice.
      if (passBodyError(response.req, fault) || isPipelined(response.req, response)) return
      void answer(tenure, toApiRequest(response.req, fault), (reply) => send(response, reply))
    } else if (socket.writable && response?.req.complete !== false) {
      answerFailed()
    } else {
      // The connection is gone, or a response has been sent before its request was complete.
      socket.destroy()
    }
  })
}
