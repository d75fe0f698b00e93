/** Sends responses. */

import type { ApiResponse } from "@tenure/core/Envelope"
import type { NodeResponse } from "./messages.ts"
import { discard, stream } from "./streams.ts"

/** Removes the headers of connections, which HTTP/2 does not have, from a response over HTTP/2. */
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
    if (typeof body !== "string") discard(body)
    return
  }
  if (typeof body === "string") {
    const length = Buffer.byteLength(body)
    const all = { ...headers, "Content-Length": length, ...more }
    response.writeHead(status, allowedHeaders(response, all))
    // The bytes of ASCII are the same, and Node makes them in less time.
    response.end(body, length === body.length ? "latin1" : "utf8")
  } else {
    response.writeHead(status, allowedHeaders(response, { ...headers, ...more }))
    // Node keeps the text of the header, in many parts unless it is sent by itself.
    response.flushHeaders?.()
    stream(body, response)
  }
}
