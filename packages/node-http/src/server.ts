/** A standalone server, with limits on slow clients and a graceful shutdown. */

import type * as Http from "node:http"
import {
  type Body,
  type Mountable,
  checkMountable,
  headerValues,
  isConnectable,
} from "@tenure/core/adapter"
import { Setting, fromCallSite } from "@tenure/core/internal"
import { http } from "./builtin.ts"
import { trackConnections } from "./connections.ts"
import {
  answer,
  bodyErrorOf,
  expectContinue,
  send,
  takeExpectation,
  toApiRequest,
} from "./exchange.ts"
import { toNodeHandler } from "./handler.ts"
import { answerMalformedRequests } from "./malformed-requests.ts"
import { enqueueRequest, guardPipeline, limitRefusals } from "./pipelining.ts"
import { attachRealtime } from "./realtime.ts"

// Node's timers take no more than 24 days.
const upToADay = { most: 86_400_000 }

export const serverOptions = Setting.object({
  /** The address to listen on. Default: `"127.0.0.1"`. */
  host: Setting.withDefault(
    Setting.string("an address or a host name", (host) => host !== ""),
    "127.0.0.1",
  ),
  /** The port to listen on; 0 takes a free one. Default: `0`. */
  port: Setting.withDefault(Setting.integer({ least: 0, most: 65_535 }), 0),
  /** Answers requests instead of `toNodeHandler(tenure)`. It may call that. */
  listener: Setting.callback<Http.RequestListener>(),
  /**
   * How long a request's header may take to arrive; at most `requestTimeout`. Default: `"10 seconds"`.
   */
  headersTimeout: Setting.withDefault(Setting.duration(upToADay), "10 seconds"),
  /** How long a whole request may take to arrive. Default: `"30 seconds"`. */
  requestTimeout: Setting.withDefault(Setting.duration(upToADay), "30 seconds"),
  /**
   * How long a connection may be inactive in both directions, for example because the client does not
   * read its response. Default: `"1 minute"`.
   */
  idleTimeout: Setting.withDefault(Setting.duration(upToADay), "1 minute"),
  /**
   * How long a connection stays open without a request. It must be longer than proxies in front keep
   * theirs. Default: `"75 seconds"`.
   */
  keepAliveTimeout: Setting.withDefault(Setting.duration(upToADay), "75 seconds"),
  /** How long `close` waits for requests in flight. Default: `"10 seconds"`. */
  shutdownTimeout: Setting.withDefault(Setting.duration({ least: 0, ...upToADay }), "10 seconds"),
})

/** The options as a host passes them. */
export interface ServerOptions extends Setting.InputOf<typeof serverOptions> {}

/** A listening server. */
export interface Server {
  /** The server's URL, for example `http://127.0.0.1:3000`. */
  readonly url: string
  /**
   * From now on, each response closes its connection, so the client's next request opens another. Ends
   * streams, WebSocket connections, and polls. Call it some time before `close`, when the load balancer
   * sends no more requests.
   */
  readonly drain: () => void
  /**
   * Accepts no more connections, and waits for responses in flight. After `shutdownTimeout`, closes the
   * remaining connections.
   */
  readonly close: () => Promise<void>
}

// How often Node checks for slow requests, in milliseconds.
const checkingInterval = 1000

const hostFault: Body = {
  _tag: "Unreadable",
  error: { _tag: "MalformedRequest", message: "The request must have exactly one Host header." },
}

/** Whether a request has exactly one Host header. HTTP/1.0 may omit it (RFC 9112, 3.2). */
const hasHost = ({ httpVersion, rawHeaders }: Http.IncomingMessage): boolean => {
  const { length } = headerValues(rawHeaders, "host")
  return length === 1 || (length === 0 && httpVersion !== "1.1")
}

const adviceOf = (code: unknown): string | undefined => {
  switch (code) {
    case "EADDRINUSE":
      return "another program listens there. Stop it, or pass another port; 0 takes a free one"
    case "EACCES":
      return "this process is not permitted to. Pass a port from 1024 on"
    case "EADDRNOTAVAIL":
      return "this machine has no such address. Pass another host, or 0.0.0.0 for all addresses"
    default:
      return undefined
  }
}

/** Says why a server cannot listen, and what to do. Keeps the code of the system. */
const listeningError = (fault: NodeJS.ErrnoException, host: string, port: number): Error => {
  const { code } = fault
  const advice = adviceOf(code)
  if (advice === undefined) return fault
  const message = `The server cannot listen on ${formatHost(host)}:${port}: ${advice} (${code}).`
  return Object.assign(new Error(message, { cause: fault }), { _tag: "ListeningFailed", code })
}

const formatHost = (host: string): string => (host.includes(":") ? `[${host}]` : host)

const listen = (server: Http.Server, host: string, port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const fail = (fault: Error) => reject(listeningError(fault, host, port))
    server.once("error", fail)
    server.listen({ host, port }, () => {
      server.off("error", fail)
      const address = server.address()
      const bound = typeof address === "object" ? address?.port : port
      resolve(`http://${formatHost(host)}:${bound}`)
    })
  })

const makeServer = (settings: Setting.OutputOf<typeof serverOptions>): Http.Server => {
  // Node refuses fractions, and a header timeout above the request timeout.
  const requestTimeout = Math.ceil(settings.requestTimeout)
  const server = http.createServer({
    headersTimeout: Math.min(Math.ceil(settings.headersTimeout), requestTimeout),
    requestTimeout,
    connectionsCheckingInterval: checkingInterval,
    keepAliveTimeout: Math.ceil(settings.keepAliveTimeout),
    // Checked below, to answer with an envelope.
    requireHostHeader: false,
  })
  server.timeout = settings.idleTimeout
  // A client that ends its side after a request still gets the response.
  return Object.assign(server, { httpAllowHalfOpen: true })
}

/**
 * Starts a server.
 *
 * @returns the server. The promise rejects with a `TypeError` unless `tenure` comes from `await
 *   createTenure(…)`, with `InvalidInput` if an option is invalid, and with an error
 *   that says what to do if it cannot listen. Its `code` is that of the system, such as `EADDRINUSE`.
 * @example
 * ```ts
 * import { createTenure } from "tenure"
 * import { memory } from "tenure/memory"
 * import { nodeTransport, serve } from "tenure/node"
 *
 * const tenure = await createTenure({ stores: memory(), transport: nodeTransport })
 * const server = await serve(tenure, { port: 3000 })
 * process.once("SIGTERM", async () => {
 *   await server.close()
 *   await tenure.close()
 * })
 * ```
 */
export const serve = (tenure: Mountable, given: ServerOptions = {}): Promise<Server> =>
  fromCallSite(serve, () => start(tenure, given))

const start = async (tenure: Mountable, given: ServerOptions): Promise<Server> => {
  checkMountable(tenure)
  const settings = Setting.parse(serverOptions, given)
  const listener = settings.listener ?? toNodeHandler(tenure)
  const server = makeServer(settings)
  const connections = trackConnections(server)
  guardPipeline(server)

  const onRequest: Http.RequestListener = (request, response) => {
    if (!connections.admit(request, response)) return
    enqueueRequest(request, response, () => {
      const fault = bodyErrorOf(request) ?? (hasHost(request) ? undefined : hostFault)
      if (fault !== undefined) {
        const apiRequest = toApiRequest(request, fault)
        return void answer(tenure, apiRequest, (reply) =>
          send(response, limitRefusals(request, reply, tenure.maxRefusals)),
        )
      }
      listener(request, response)
      // Other requests go to the listener. It reads the body without asking for it.
      const sendContinue = takeExpectation(request)
      if (!response.headersSent) sendContinue?.()
    })
  }

  server.on("request", onRequest)
  // A server may ignore an expectation other than 100-continue (RFC 9110, 10.1.1).
  server.on("checkExpectation", onRequest)
  server.on("checkContinue", (request, response) => {
    expectContinue(request, () => response.writeContinue())
    onRequest(request, response)
  })
  answerMalformedRequests(server, tenure, connections)
  const realtime = isConnectable(tenure) ? attachRealtime(server, tenure) : undefined

  const url = await listen(server, settings.host, settings.port)
  return {
    url,
    drain: () => {
      realtime?.drain()
      connections.drain()
    },
    close: () => {
      realtime?.close()
      return connections.close(settings.shutdownTimeout)
    },
  }
}
