/** WebSocket connections to the API on a host's server. */

import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { Duplex } from "node:stream"
import { inspect } from "node:util"
import {
  type ApiResponse,
  type Connectable,
  type Mountable,
  type RealtimeSession,
  checkMountable,
  emptyBody,
  pathOf,
} from "@tenure/core/adapter"
import { Setting, handlerOptions } from "@tenure/core/internal"
import type { WebSocket, WebSocketServer } from "ws"
import { http } from "./builtin.ts"
import { isPending } from "./connections.ts"
import { toApiRequest } from "./exchange.ts"
import { nodeHandlerOptions } from "./handler.ts"
import { handOver, latestWaiting } from "./pipelining.ts"
import type { NodeResponse } from "./types.ts"

export const realtimeOptions = Setting.object({
  ...nodeHandlerOptions<IncomingMessage>().fields,
  /** The path where the host mounts the API, for example `"/members"`. Default: `""`. */
  mountPath: handlerOptions.fields.basePath,
})

/** The options as a host passes them. */
export interface RealtimeOptions extends Setting.InputOf<typeof realtimeOptions> {}

/** Connections attached to a server. */
export interface Attached {
  /** Closes the open connections: their clients reconnect. Accepts further ones. */
  readonly drain: () => void
  /** Accepts no more connections, and closes the open ones: their clients reconnect. */
  readonly close: () => void
}

// How long a client may take to close, too, in milliseconds.
const closeTimeout = 2000

// The maximum number of frames read after a connection was closed, because some may be under way.
const maxLate = 1000

// No frame in the protocol is longer.
const maxPayload = 16_384

/** Loads the library only when needed. */
const makeWebSockets = async (): Promise<WebSocketServer> => {
  const { WebSocketServer: make } = await import("ws")
  return new make({
    noServer: true,
    maxPayload,
    // Compression would take memory for each connection.
    perMessageDeflate: false,
    autoPong: false,
    // Only requests offering the protocol are admitted.
    handleProtocols: () => "tenure.v1",
  })
}

/** Refuses a request for a connection. */
const refuse = (socket: Duplex, { body, headers, status }: ApiResponse): void => {
  const text = typeof body === "string" ? body : ""
  const fields = { ...headers, "Content-Length": Buffer.byteLength(text), Connection: "close" }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n${text}`,
  )
  socket.once("finish", () => socket.destroy())
}

/** Closes a connection, and cuts it if the client does not close it, too. */
const end = (webSocket: WebSocket, code: number, reason: string): void => {
  webSocket.close(code, reason)
  const cutting = setTimeout(() => webSocket.terminate(), closeTimeout)
  webSocket.once("close", () => clearTimeout(cutting))
}

/** Connects a socket to a session. */
const join = (webSocket: WebSocket, session: RealtimeSession): void => {
  let late = 0
  /** Tells whether the connection is open. Cuts it if a client goes on sending when it is not. */
  const isOpen = (): boolean => {
    if (webSocket.readyState === webSocket.OPEN) return true
    late++
    if (late > maxLate) webSocket.terminate()
    return false
  }
  const receiver = session.start({
    send: (text) =>
      new Promise((resolve, reject) => {
        webSocket.send(text, (error) => (error ? reject(error) : resolve()))
      }),
    close: (code, reason) => end(webSocket, code, reason),
  })
  webSocket.on("message", (data, isBinary) => {
    if (isOpen()) receiver.receive(isBinary ? undefined : String(data))
  })
  webSocket.on("ping", (data) => {
    if (!isOpen()) return
    receiver.count()
    // A client sending pings without reading gets no further pongs.
    if (webSocket.bufferedAmount === 0) webSocket.pong(data)
  })
  webSocket.on("pong", () => {
    if (isOpen()) receiver.count()
  })
}

// How many upgrades are ignored on a connection before it is closed: a host may listen to each
// connection, and its listeners add up.
const maxIgnored = 100

const ignored = new WeakMap<Duplex, number>()

/** Prints a request's head without its upgrade. */
const withoutUpgrade = (
  { httpVersion, method, rawHeaders, url }: IncomingMessage,
  isLast: boolean,
): string => {
  const lines = rawHeaders.flatMap((name, index) =>
    index % 2 === 1 || /^upgrade$/i.test(name) ? [] : [`${name}: ${rawHeaders[index + 1]}\r\n`],
  )
  const closing = isLast ? "Connection: close\r\n" : ""
  return `${method} ${url} HTTP/${httpVersion}\r\n${lines.join("")}${closing}\r\n`
}

// The responses on each connection that are not finished, oldest first.
const unfinished = new WeakMap<Duplex, Array<ServerResponse>>()

const latestResponse = (socket: Duplex): NodeResponse | undefined =>
  latestWaiting(socket) ?? unfinished.get(socket)?.at(-1)

/**
 * Has a listener for the client's end of the connection wait for the responses: Node sends none after it.
 * The end may have arrived with the upgrade, so pausing the connection does not hold it back.
 */
const endAfterResponses = (socket: Duplex, onEnd: () => void): void => {
  const wait = (): void => {
    const last = latestResponse(socket)
    const run = (): void => {
      if (!socket.destroyed) onEnd.call(socket)
    }
    if (last === undefined || last.writableFinished) run()
    else last.once("close", run)
  }
  // Like a listener by `idempotency`, this one goes when Node removes its own.
  socket.removeListener("end", onEnd).on("end", Object.assign(wait, { listener: onEnd }))
}

const isListener = (value: unknown): value is () => void => typeof value === "function"

const endListeners = (socket: Duplex): ReadonlyArray<() => void> =>
  socket.listeners("end").filter(isListener)

/**
 * Makes a server read a request again as if it had no upgrade. Servers may ignore upgrades (RFC 9110,
 * 7.8), and Node does so unless somebody listens for upgrades. Java's clients, for example, request
 * HTTP/2 every time.
 */
const ignoreUpgrade = (
  server: Server,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void => {
  const count = (ignored.get(socket) ?? 0) + 1
  ignored.set(socket, count)
  socket.unshift(head)
  socket.unshift(Buffer.from(withoutUpgrade(request, count === maxIgnored), "latin1"))
  const known = endListeners(socket)
  server.emit("encrypted" in socket ? "secureConnection" : "connection", socket)
  for (const onEnd of endListeners(socket)) {
    if (!known.includes(onEnd)) endAfterResponses(socket, onEnd)
  }
}

const register = (socket: Duplex, response: ServerResponse): void => {
  const responses = unfinished.get(socket) ?? []
  while (responses.length > 0 && !isPending(responses[0])) responses.shift()
  responses.push(response)
  unfinished.set(socket, responses)
}

/**
 * Runs a function once the earlier requests on a connection are answered. Node has removed its listeners
 * from the socket because of the upgrade, so this does their work until then.
 */
const afterEarlier = (server: Server, socket: Duplex, run: () => void): void => {
  const responses = unfinished.get(socket) ?? []
  const last = latestResponse(socket)
  if (last === undefined || last.writableFinished) return handOver(socket, run)
  const onDrain = (): void => void responses.find(isPending)?.emit("drain")
  const cut = (): void => void socket.destroy()
  socket.on("drain", onDrain).on("timeout", cut).on("error", cut)
  last.once("close", () => {
    socket.off("drain", onDrain).off("timeout", cut).off("error", cut)
    // A request behind the one that closes the connection is not processed (RFC 9112, 9.6).
    if (socket.destroyed || socket.writableEnded) return
    // In place of the time that an idle connection has.
    if (socket instanceof Socket) socket.setTimeout(server.timeout)
    run()
  })
  // The rest of what has just arrived waits on the connection.
  handOver(socket, () => {})
}

/** Takes an upgrade, and returns `true`, if no listener shall see it. */
type TakeUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean

// What is attached to each server.
const attached = new WeakMap<Server, Array<TakeUpgrade>>()

/**
 * Has a server ask before each upgrade. An upgrade that nobody takes is ignored, if the host listens to
 * none. Libraries such as `ws` may refuse all upgrades that are not theirs.
 */
const takeUpgrades = (server: Server, take: TakeUpgrade): void => {
  const known = attached.get(server)
  if (known !== undefined) return void known.push(take)
  const takers = [take]
  attached.set(server, takers)
  const emit = server.emit.bind(server)
  const emitOthers = (event: string, ...args: ReadonlyArray<unknown>): boolean => {
    const [request, second, head] = args
    if (!(request instanceof http.IncomingMessage)) return emit(event, ...args)
    if (second instanceof http.ServerResponse) register(request.socket, second)
    const isTaken =
      event === "upgrade" &&
      second instanceof Duplex &&
      head instanceof Buffer &&
      takers.some((one) => one(request, second, head))
    return isTaken || emit(event, ...args)
  }
  Object.assign(server, { emit: emitOthers })
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (server.listenerCount("upgrade") > 1) return
    afterEarlier(server, socket, () => ignoreUpgrade(server, request, socket, head))
  })
}

/**
 * Serves the API's WebSocket connections, `GET /v2/realtime`, on a host's server: from node:http or
 * node:https, such as Express's or Fastify's (`app.server`). Upgrades to paths outside the API stay with
 * the host.
 *
 * Throws a `TypeError` unless `tenure` comes from `await createTenure(…)`, and `InvalidInput` if an
 * option is invalid.
 *
 * @returns functions to end the connections. Call `close` before the server's, because that waits for
 *   them.
 * @example
 * ```ts
 * import { attachRealtime, toNodeHandler } from "tenure/node"
 * import { createServer } from "node:http"
 * import { createTenure } from "tenure"
 * import { memory } from "tenure/memory"
 *
 * const tenure = await createTenure({ stores: memory() })
 * const server = createServer(toNodeHandler(tenure)).listen(3000, "127.0.0.1")
 * const realtime = attachRealtime(server, tenure)
 * process.once("SIGTERM", () => {
 *   realtime.close()
 *   server.close()
 * })
 * ```
 */
export const attachRealtime = (
  server: Server,
  tenure: Mountable & Connectable,
  given: RealtimeOptions = {},
): Attached => {
  checkMountable(tenure)
  const { authenticate, mountPath } = Setting.parse(realtimeOptions, given)
  const open = new Set<WebSocket>()
  let webSockets: Promise<WebSocketServer> | undefined
  let isClosed = false

  /** Returns the path below the mount path, or `undefined` outside the API. */
  const pathIn = ({ url = "" }: IncomingMessage): string | undefined => {
    const path = pathOf(url)
    return path.startsWith(mountPath) ? path.slice(mountPath.length) : undefined
  }

  const connect = async (
    request: IncomingMessage,
    path: string,
    socket: Duplex,
    head: Buffer,
  ): Promise<void> => {
    const departure = new AbortController()
    socket.once("close", () => departure.abort())
    socket.on("error", () => {})
    const { response, session } = await tenure.connect(
      toApiRequest(request, emptyBody, {
        path,
        originalPath: mountPath === "" ? undefined : mountPath + path,
        signal: () => departure.signal,
        authenticate: authenticate && (() => authenticate(request)),
      }),
    )
    if (session === undefined) return refuse(socket, response)
    const library = await (webSockets ??= makeWebSockets())
    if (isClosed) return void socket.destroy()
    library.handleUpgrade(request, socket, head, (webSocket) => {
      open.add(webSocket)
      webSocket.once("close", () => open.delete(webSocket))
      // After invalid frames, the library closes the connection.
      webSocket.on("error", () => {})
      join(webSocket, session)
    })
  }

  const admit = (request: IncomingMessage, path: string, socket: Duplex, head: Buffer): void => {
    if (isClosed) return void socket.destroy()
    void connect(request, path, socket, head).catch((fault: unknown) => {
      socket.destroy()
      process.emitWarning(fault instanceof Error ? fault : inspect(fault))
    })
  }

  takeUpgrades(server, (request, socket, head) => {
    const path = pathIn(request)
    if (path === undefined || !tenure.owns(path)) return false
    afterEarlier(server, socket, () =>
      tenure.connectsAt(path)
        ? admit(request, path, socket, head)
        : ignoreUpgrade(server, request, socket, head),
    )
    return true
  })
  const drain = (): void => {
    for (const webSocket of open) end(webSocket, 1001, "Connect again.")
  }

  return {
    drain,
    close: () => {
      isClosed = true
      drain()
    },
  }
}
