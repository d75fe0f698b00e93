/** The connections of a server: what each is busy with, and how they all end. */

import type * as Http from "node:http"
import * as Net from "node:net"
import type { Duplex } from "node:stream"

// Clients that send one request after another learn from a response that the connection ends, and
// lose none: it is too late to tell them when the connection is closed between two requests.
const farewellMillis = 100

/** The connections of a server. */
export interface Connections {
  /** Takes note of a request; `false` for one that comes too late to be answered. */
  readonly admit: (request: Http.IncomingMessage, response: Http.ServerResponse) => boolean
  /** The response to the latest request on a connection. */
  readonly latest: (socket: Duplex) => Http.ServerResponse | undefined
  /** Counts a connection as busy from now on, for a caller who sees to its end. */
  readonly hold: (socket: Duplex) => void
  /**
   * Takes no more connections and ends those that are open: each with the response to its next
   * request, if that comes within a tenth of a second, those without a request in flight after that,
   * and after the timeout, in milliseconds, whatever is left.
   */
  readonly close: (timeout: number) => Promise<void>
}

/** Tells whether a response is still to be finished. */
export const isPending = (
  response: Http.ServerResponse | undefined,
): response is Http.ServerResponse => response !== undefined && !response.writableFinished

/** Keeps track of a server's connections, from before it listens. */
export const trackConnections = (server: Http.Server): Connections => {
  const open = new Set<Duplex>()
  const held = new WeakSet<Duplex>()
  // The requests on a connection are answered in their order: the latest is the last to be.
  const latest = new WeakMap<Duplex, Http.ServerResponse>()
  // Connections of which the client has been told that they end with the latest response.
  const ending = new WeakSet<Duplex>()
  let isClosing = false

  server.on("connection", (socket) => {
    open.add(socket)
    socket.once("close", () => open.delete(socket))
    // Node's own listener leaves with a CONNECT, and an error that nobody hears ends the process.
    socket.on("error", () => {})
  })

  const sweep = (): void => {
    for (const socket of open) {
      if (!held.has(socket) && !isPending(latest.get(socket))) socket.destroy()
    }
  }
  const end = (socket: Duplex, response: Http.ServerResponse): void => {
    ending.add(socket)
    response.setHeader("Connection", "close")
  }
  const announceClose = (): void => {
    for (const socket of open) {
      const response = latest.get(socket)
      if (response?.headersSent === false) end(socket, response)
    }
  }
  const destroyAll = (): void => {
    for (const socket of open) socket.destroy()
  }

  return {
    admit: (request, response) => {
      // Behind the last response of a connection nothing is processed (RFC 9112, 9.6).
      if (ending.has(request.socket)) return false
      latest.set(request.socket, response)
      if (isClosing) end(request.socket, response)
      return true
    },
    latest: (socket) => latest.get(socket),
    hold: (socket) => void held.add(socket),
    close: (timeout) =>
      new Promise((resolve) => {
        isClosing = true
        announceClose()
        const deadline = setTimeout(destroyAll, timeout)
        const sweeping = setTimeout(() => {
          sweep()
          sweeping.refresh()
        }, farewellMillis)
        // That of http.Server would close connections at once that are between two requests.
        Net.Server.prototype.close.call(server, () => {
          clearTimeout(sweeping)
          clearTimeout(deadline)
          resolve()
        })
      }),
  }
}
