/** Tells those who wait, or send a stream, when the client has gone or its connection is to close. */

import type { Duplex } from "node:stream"
import type { NodeRequest, NodeResponse } from "./messages.ts"

// Of each connection of HTTP/1.1, the request that is being answered.
const departures = new WeakMap<Duplex, AbortController>()

/**
 * Returns a signal that aborts when the client has gone. A client that has ended its side of the
 * connection cannot be told from one that has gone: it gets what there is by then.
 */
export const signalOf = (
  { httpVersionMajor, socket }: NodeRequest,
  response: NodeResponse,
): AbortSignal => {
  const departure = new AbortController()
  const leave = (): void => departure.abort()
  if (response.destroyed) leave()
  // The socket of HTTP/2 is that of all streams.
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
export const dismiss = (socket: Duplex): void => departures.get(socket)?.abort()
