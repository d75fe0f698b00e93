/** A server of its own, with limits on slow clients and a graceful shutdown. */

import * as Http from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { type ApiRequest, type Body, emptyBody, pathOf } from "@tenure/core/ApiRequest"
import type { ApiResponse } from "@tenure/core/Envelope"
import { answer, type Mountable, send, toNodeHandler } from "./handler.ts"
import { announcesMore } from "./requestBody.ts"
import { parseUnknown } from "./requestHead.ts"

/** Options of a server. */
export interface ServerOptions {
  /** The address to listen on; `127.0.0.1` by default. */
  readonly host?: string | undefined
  /** The port to listen on; one that is free by default. */
  readonly port?: number | undefined
  /** Answers requests instead of Tenure's own handler, to which it may pass them on. */
  readonly listener?: Http.RequestListener | undefined
  /** The time for a request's header to arrive, in milliseconds; 10,000 by default. */
  readonly headersTimeout?: number | undefined
  /** The time for a whole request to arrive, in milliseconds; 30,000 by default. */
  readonly requestTimeout?: number | undefined
  /** The time for what is in flight to be finished on `close`, in milliseconds; 10,000 by default. */
  readonly shutdownTimeout?: number | undefined
}

/** A server that listens. */
export interface Server {
  /** Such as `http://127.0.0.1:3000`. */
  readonly url: string
  /**
   * Takes no more connections, finishes the requests in flight, and cuts off those that last longer
   * than the shutdown timeout.
   */
  readonly close: () => Promise<void>
}

// How often slow requests are looked for, and how long a client has to read why it is cut off.
const checkingInterval = 1000
const lingering = 1000

const sweepInterval = 20

type Fault = Extract<Body, { readonly _tag: "Unreadable" }>["error"]

const hostMissing: Body = {
  _tag: "Unreadable",
  error: { _tag: "MalformedRequest", message: "The Host header is missing." },
}

/** What is wrong with a request that the parser gave up on. */
const faultOf = ({ code }: NodeJS.ErrnoException): Fault => {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { _tag: "RequestTimeout" }
    case "HPE_HEADER_OVERFLOW":
      return { _tag: "RequestHeadersTooLarge" }
    default:
      return { _tag: "MalformedRequest", message: "The request is not valid HTTP." }
  }
}

/** Writes a response where node:http has none to write it with, and closes the connection. */
const writeRaw = (socket: Duplex, { body, headers, status }: ApiResponse): void => {
  const fields = { ...headers, "Content-Length": Buffer.byteLength(body), Connection: "close" }
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${Http.STATUS_CODES[status]}\r\n${head.join("")}\r\n${body}`)
  // To close while the client still sends would take the response away from it.
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), lingering)
  socket.once("close", () => clearTimeout(timer))
}

/** The request that the parser gave up on, as far as it can be told. */
const failedRequest = (
  error: NodeJS.ErrnoException & { readonly rawPacket?: Buffer },
  remoteAddress: string | undefined,
): ApiRequest => {
  const head =
    error.code === "HPE_INVALID_METHOD" && error.rawPacket !== undefined
      ? parseUnknown(error.rawPacket)
      : undefined
  return head === undefined
    ? {
        method: "",
        path: "",
        headers: {},
        body: { _tag: "Unreadable", error: faultOf(error) },
        remoteAddress,
      }
    : { ...head, path: pathOf(head.target), body: emptyBody, remoteAddress }
}

/** Answers what the parser gives up on, so that these clients get an envelope too. */
const answerFaults = (server: Http.Server, tenure: Mountable): void => {
  // The request that each connection is busy with.
  const current = new WeakMap<Duplex, Http.ServerResponse>()
  const faulty = new WeakSet<Duplex>()

  const note: Http.RequestListener = (request, response) => {
    current.set(request.socket, response)
  }
  for (const event of ["request", "checkContinue", "checkExpectation"]) {
    server.prependListener(event, note)
  }

  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (faulty.has(socket)) return
    faulty.add(socket)
    if (!socket.writable) return void socket.destroy()
    const response = current.get(socket)
    if (response === undefined || response.writableFinished) {
      const remoteAddress = "remoteAddress" in socket ? String(socket.remoteAddress) : undefined
      void tenure
        .handle(failedRequest(error, remoteAddress))
        .then((reply) => writeRaw(socket, reply))
    } else if (response.req.complete) {
      // What came after a whole request is faulty: that request is answered, and no other.
      response.once("finish", () => socket.destroy())
    } else {
      const body: Body = { _tag: "Unreadable", error: faultOf(error) }
      void answer(tenure, response.req, body).then((reply) => {
        send(response, reply, { Connection: "close" })
        response.once("finish", () => socket.destroy())
      })
    }
  })
}

const listen = (server: Http.Server, host: string, port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen({ host, port }, () => {
      server.off("error", reject)
      const address = server.address()
      const bound = typeof address === "object" ? address?.port : port
      resolve(`http://${host.includes(":") ? `[${host}]` : host}:${bound}`)
    })
  })

/**
 * Makes the function that closes connections on which nothing has arrived yet: node does not count
 * them among the idle ones.
 */
const trackSilent = (server: Http.Server): (() => void) => {
  const open = new Set<Socket>()
  server.on("connection", (socket) => {
    open.add(socket)
    socket.once("close", () => open.delete(socket))
  })
  return () => {
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
  }
}

const close = (server: Http.Server, closeSilent: () => void, timeout: number): Promise<void> =>
  new Promise((resolve) => {
    closeSilent()
    // Connections that are kept alive become idle one by one.
    const sweep = setInterval(() => server.closeIdleConnections(), sweepInterval)
    const deadline = setTimeout(() => server.closeAllConnections(), timeout)
    server.close(() => {
      clearInterval(sweep)
      clearTimeout(deadline)
      resolve()
    })
  })

/**
 * Starts a server.
 *
 * @returns a promise that rejects if the address cannot be listened on
 * @example
 * ```ts
 * import * as Tenure from "@tenure/core/Tenure"
 * import { memory } from "@tenure/memory"
 * import { nodeTransport, serve } from "@tenure/node-http"
 *
 * const tenure = await Tenure.make({ stores: memory(), transport: nodeTransport })
 * const server = await serve(tenure, { port: 3000 })
 * process.once("SIGTERM", async () => {
 *   await server.close()
 *   await tenure.close()
 * })
 * ```
 */
export const serve = async (tenure: Mountable, options: ServerOptions = {}): Promise<Server> => {
  const { host = "127.0.0.1", port = 0, shutdownTimeout = 10_000 } = options
  const listener = options.listener ?? toNodeHandler(tenure)
  const server = Http.createServer({
    headersTimeout: options.headersTimeout ?? 10_000,
    requestTimeout: options.requestTimeout ?? 30_000,
    connectionsCheckingInterval: checkingInterval,
    // Checked below instead, where there is an envelope to answer with.
    requireHostHeader: false,
  })
  let isClosing = false

  const onRequest = (request: Http.IncomingMessage, response: Http.ServerResponse): void => {
    if (isClosing) response.setHeader("Connection", "close")
    if (request.httpVersion === "1.1" && request.headers.host === undefined) {
      void answer(tenure, request, hostMissing).then((reply) => send(response, reply))
    } else {
      listener(request, response)
    }
  }

  server.on("request", onRequest)
  // An expectation other than 100-continue may be ignored (RFC 9110, 10.1.1).
  server.on("checkExpectation", onRequest)
  server.on("checkContinue", (request, response) => {
    if (!announcesMore(request, tenure.maxBodyBytes)) response.writeContinue()
    onRequest(request, response)
  })
  server.on("connect", (request, socket) => {
    void answer(tenure, request, emptyBody).then((reply) => writeRaw(socket, reply))
  })
  answerFaults(server, tenure)
  const closeSilent = trackSilent(server)

  const url = await listen(server, host, port)
  return {
    url,
    close: () => {
      isClosing = true
      return close(server, closeSilent, shutdownTimeout)
    },
  }
}
