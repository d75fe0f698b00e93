/** A server of its own, with limits on slow clients and a graceful shutdown. */

import * as Http from "node:http"
import type { Body } from "@tenure/core/ApiRequest"
import { valuesOf } from "@tenure/core/HeaderFields"
import type { Mountable } from "@tenure/core/Tenure"
import { trackConnections } from "./connections.ts"
import { answerFaults } from "./faults.ts"
import { answer, send, toApiRequest, toNodeHandler } from "./handler.ts"
import { announcesMore } from "./requestBody.ts"

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
  /**
   * The time after which a connection is cut off on which nothing moves either way, such as that of
   * a client that does not read its response, in milliseconds; 60,000 by default.
   */
  readonly idleTimeout?: number | undefined
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

// How often slow requests are looked for.
const checkingInterval = 1000

const hostFault: Body = {
  _tag: "Unreadable",
  error: { _tag: "MalformedRequest", message: "There has to be one Host header." },
}

/** Whether a request names its host, once (RFC 9112, 3.2). */
const hasHost = ({ httpVersion, rawHeaders }: Http.IncomingMessage): boolean => {
  const { length } = valuesOf(rawHeaders, "host")
  return length === 1 || (length === 0 && httpVersion !== "1.1")
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

const makeServer = (options: ServerOptions): Http.Server => {
  const server = Http.createServer({
    headersTimeout: options.headersTimeout ?? 10_000,
    requestTimeout: options.requestTimeout ?? 30_000,
    connectionsCheckingInterval: checkingInterval,
    // Checked below instead, where there is an envelope to answer with.
    requireHostHeader: false,
  })
  server.timeout = options.idleTimeout ?? 60_000
  return server
}

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
  const server = makeServer(options)
  const connections = trackConnections(server)

  const onRequest: Http.RequestListener = (request, response) => {
    if (!connections.admit(request, response)) return
    if (hasHost(request)) listener(request, response)
    else void answer(tenure, toApiRequest(request, hostFault), (reply) => send(response, reply))
  }

  server.on("request", onRequest)
  // An expectation other than 100-continue may be ignored (RFC 9110, 10.1.1).
  server.on("checkExpectation", onRequest)
  server.on("checkContinue", (request, response) => {
    if (!announcesMore(request, tenure.maxBodyBytes)) response.writeContinue()
    onRequest(request, response)
  })
  answerFaults(server, tenure, connections)

  const url = await listen(server, host, port)
  return { url, close: () => connections.close(shutdownTimeout) }
}
