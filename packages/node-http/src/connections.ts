/** Tracks a server's connections, and closes them gracefully. */

import type * as Http from "node:http"
import type { Duplex } from "node:stream"
import { setImmediate } from "node:timers"
import { releaseSignal } from "./exchange.ts"

// How long a client sending consecutive requests has for its next one. The response then tells the
// client that the connection closes, and no request is lost.
const nextRequestMillis = 100

// How long a client has for its first request after it has connected. A balancer connects when it has a request, and
// may be slow to send it.
const firstRequestMillis = 1000

// A turn of the event loop that takes no longer leaves hardly any time in which somebody connects.
const quietMillis = 0.2

// On a busy machine, turns take longer: for each 100 ms of waiting, a turn may take 1 ms more.
const patience = 0.01

const maxWaitMillis = 1000

/**
 * Waits for a turn of the event loop in which nobody has connected. When a server stops listening, the system resets
 * connections that the server has not accepted yet, and with them the requests on them.
 */
const whenQuiet = (server: Http.Server, then: () => void): void => {
  let accepted = 0
  server.on("connection", () => accepted++)
  const start = performance.now()
  const waitTurn = (): void => {
    const before = accepted
    const began = performance.now()
    setImmediate(() => {
      const now = performance.now()
      const waited = now - start
      const isQuiet = accepted === before && now - began < quietMillis + patience * waited
      if (isQuiet || waited > maxWaitMillis) then()
      else waitTurn()
    })
  }
  // The first turn is a part of one.
  setImmediate(waitTurn)
}

/** A server's connections. */
export interface Connections {
  /** Registers a request. Returns `false` if the connection is closing and cannot answer it. */
  readonly admit: (request: Http.IncomingMessage, response: Http.ServerResponse) => boolean
  /** Returns the response to the latest request on a connection. */
  readonly latest: (socket: Duplex) => Http.ServerResponse | undefined
  /** Counts a connection as busy from now on. The caller closes it. */
  readonly hold: (socket: Duplex) => void
  /**
   * From now on, closes each connection with the next response on it, and ends streams and the waiting
   * for events. Accepts further connections.
   */
  readonly drain: () => void
  /**
   * Drains, and accepts no more connections. Closes idle connections after 0.1 s, those without a request yet a second
   * after they were opened, and all others after the timeout, in milliseconds.
   */
  readonly close: (timeout: number) => Promise<void>
}

/** Whether a response is unfinished. */
export const isPending = (
  response: Http.ServerResponse | undefined,
): response is Http.ServerResponse => response !== undefined && !response.writableFinished

/** Tracks a server's connections. Call it before the server listens. */
export const trackConnections = (server: Http.Server): Connections => {
  // When each was opened.
  const open = new Map<Duplex, number>()
  const held = new WeakSet<Duplex>()
  // Requests on a connection are answered in order, so the latest is answered last.
  const latest = new WeakMap<Duplex, Http.ServerResponse>()
  // Connections whose latest response announces that the connection closes.
  const ending = new WeakSet<Duplex>()
  let isDraining = false

  // `close` calls it, and would lose requests that are under way; `sweep` gives them 0.1 s.
  server.closeIdleConnections = () => {}
  server.on("connection", (socket) => {
    // A socket is announced again when a request on it is read anew, without the upgrade it asked for.
    if (open.has(socket)) return
    open.set(socket, performance.now())
    socket.on("close", () => open.delete(socket))
    // Node removes its own listener after a CONNECT, and an unhandled error stops the process.
    socket.on("error", () => {})
  })

  /** Whether a connection waits for its first request, which may be on its way. */
  const isNew = (socket: Duplex, openedAt: number): boolean =>
    latest.get(socket) === undefined && performance.now() - openedAt < firstRequestMillis

  const sweep = (): void => {
    for (const [socket, openedAt] of open) {
      releaseSignal(socket)
      if (held.has(socket) || isPending(latest.get(socket)) || isNew(socket, openedAt)) continue
      socket.destroy()
    }
  }
  const end = (socket: Duplex, response: Http.ServerResponse): void => {
    ending.add(socket)
    response.setHeader("Connection", "close")
  }
  const drain = (): void => {
    isDraining = true
    for (const socket of open.keys()) {
      const response = latest.get(socket)
      if (response?.headersSent === false) end(socket, response)
      releaseSignal(socket)
    }
  }
  const destroyAll = (): void => {
    for (const socket of open.keys()) socket.destroy()
  }

  return {
    admit: (request, response) => {
      // A server does not process requests after the one it closes with (RFC 9112, 9.6).
      if (ending.has(request.socket)) return false
      latest.set(request.socket, response)
      if (isDraining) end(request.socket, response)
      return true
    },
    latest: (socket) => latest.get(socket),
    hold: (socket) => void held.add(socket),
    drain,
    close: (timeout) =>
      new Promise((resolve) => {
        const wasDraining = isDraining
        drain()
        const deadline = setTimeout(destroyAll, timeout)
        const stop = (): void => {
          const sweeping = setTimeout(() => {
            // Whatever has arrived by now is read first, for example during a long garbage collection.
            setImmediate(() => {
              sweep()
              if (open.size > 0) sweeping.refresh()
            })
          }, nextRequestMillis)
          server.close(() => {
            clearTimeout(sweeping)
            clearTimeout(deadline)
            resolve()
          })
        }
        // Without it, clients keep their connections until now, and hardly anybody connects.
        if (wasDraining) whenQuiet(server, stop)
        else stop()
      }),
  }
}
