/** The connections of a server: what each is busy with, and how they all end. */

import type * as Http from "node:http"
import type { Duplex } from "node:stream"

const sweepInterval = 20

/** The connections of a server. */
export interface Connections {
  /** Takes note of a request; `false` for one that comes too late to be answered. */
  readonly admit: (request: Http.IncomingMessage, response: Http.ServerResponse) => boolean
  /** The response to the latest request on a connection. */
  readonly latest: (socket: Duplex) => Http.ServerResponse | undefined
  /** Counts a connection as busy from now on, for a caller who sees to its end. */
  readonly hold: (socket: Duplex) => void
  /**
   * Takes no more connections, ends at once those without a request in flight, the others as soon
   * as theirs is answered, and after the timeout, in milliseconds, whatever is left.
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
  const announceClose = (): void => {
    for (const socket of open) {
      const response = latest.get(socket)
      if (response?.headersSent === false) response.setHeader("Connection", "close")
    }
  }
  const destroyAll = (): void => {
    for (const socket of open) socket.destroy()
  }

  return {
    admit: (request, response) => {
      // Behind the last response of a connection nothing is processed (RFC 9112, 9.6).
      if (isClosing) return false
      latest.set(request.socket, response)
      return true
    },
    latest: (socket) => latest.get(socket),
    hold: (socket) => void held.add(socket),
    close: (timeout) =>
      new Promise((resolve) => {
        isClosing = true
        announceClose()
        sweep()
        const sweeping = setInterval(sweep, sweepInterval)
        const deadline = setTimeout(destroyAll, timeout)
        server.close(() => {
          clearInterval(sweeping)
          clearTimeout(deadline)
          resolve()
        })
      }),
  }
}
