/** Answers to what node:http gives no response for, so that these clients get an envelope too. */

import * as Http from "node:http"
import type { Duplex } from "node:stream"
import { type ApiRequest, type Body, emptyBody, pathOf } from "@tenure/core/ApiRequest"
import type { ApiResponse } from "@tenure/core/Envelope"
import type { Mountable } from "@tenure/core/Tenure"
import { type Connections, isPending } from "./connections.ts"
import { answer, send, toApiRequest } from "./handler.ts"
import { parseRequestLine, parseUnknown } from "./requestHead.ts"

// How long a client has to read why it is cut off.
const lingering = 1000

type ParserError = NodeJS.ErrnoException & { readonly rawPacket?: Buffer }
type Unreadable = Extract<Body, { readonly _tag: "Unreadable" }>

/** What is wrong with a request that the parser gave up on. */
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

/** The request that the parser gave up on, as far as it can be told. */
const failedRequest = (
  error: ParserError,
  isFirst: boolean,
  remoteAddress: string | undefined,
): ApiRequest => {
  const { code, rawPacket } = error
  const head =
    code === "HPE_INVALID_METHOD" && rawPacket !== undefined ? parseUnknown(rawPacket) : undefined
  if (head !== undefined) {
    return { ...head, path: pathOf(head.target), body: emptyBody, remoteAddress }
  }
  // Behind other requests, the packet may begin with one of those.
  const line = isFirst && rawPacket !== undefined ? parseRequestLine(rawPacket) : undefined
  const { method = "", target = "" } = line ?? {}
  return { method, path: pathOf(target), headers: {}, body: unreadable(error), remoteAddress }
}

/** Writes a response where node:http has none to write it with, and closes the connection. */
const writeRaw = (socket: Duplex, { body, headers, status }: ApiResponse): void => {
  if (socket.destroyed) return
  const fields = { ...headers, "Content-Length": Buffer.byteLength(body), Connection: "close" }
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${Http.STATUS_CODES[status]}\r\n${head.join("")}\r\n${body}`)
  // To close while the client still sends would take the response away from it.
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), lingering)
  socket.once("close", () => clearTimeout(timer))
}

/** Answers what the parser gives up on, and CONNECT. */
export const answerFaults = (
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
    const response = connections.latest(socket)
    // The requests before are answered, and this one is not: it could only be out of turn.
    if (isPending(response)) response.once("finish", () => socket.destroy())
    else answerRaw(socket, toApiRequest(request, emptyBody))
  })

  server.on("clientError", (error: ParserError, socket) => {
    if (faulty.has(socket)) return
    faulty.add(socket)
    const response = connections.latest(socket)
    if (isPending(response) && socket.writable) {
      response.once("finish", () => socket.destroy())
      // What came after a whole request is faulty: that request is answered, and no other.
      if (response.req.complete || response.headersSent) return
      const request = toApiRequest(response.req, unreadable(error))
      void answer(tenure, request, (reply) => send(response, reply, { Connection: "close" }))
    } else if (socket.writable && response?.req.complete !== false) {
      const remoteAddress = "remoteAddress" in socket ? String(socket.remoteAddress) : undefined
      answerRaw(socket, failedRequest(error, response === undefined, remoteAddress))
    } else {
      // There is nobody to answer: the connection is gone, or its request was answered halfway.
      socket.destroy()
    }
  })
}
