/** A balancer as proxies are: it keeps connections to its servers, uses idle ones again, and repeats nothing. */

import * as Http from "node:http"
import type { Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { now } from "../clock.ts"
import { listen } from "../world/ports.ts"
import type { Server } from "../world/server.ts"

/** Whether it asks the servers for their readiness, or only sees that connections are refused. */
export type Manner = "probing" | "passive"

/** A request that the balancer could not have answered. */
export interface Broken {
  /** The error's code. */
  readonly code: string
  /** For how long the connection had been idle, in milliseconds; `undefined` for a new one. */
  readonly idleMillis: number | undefined
  /** Whether the response had begun. */
  readonly isBegun: boolean
  /** The server's name. */
  readonly server: string
}

type Upstream = Pick<Server, "name" | "url">

export interface Balancer {
  readonly url: string
  /** How many requests used a connection again. */
  readonly reused: () => number
  /** Whether it sends to a server. */
  readonly sendsTo: (name: string) => boolean
  readonly close: () => void
}

const probeMillis = 500

const probeTimeoutMillis = 2000

// How many probes in a row fail before a server gets no more requests.
const fall = 2

// How long a passive balancer leaves a server alone after a refused connection.
const restMillis = 1000

const maxIdlePerServer = 64

/** Keeps connections for as long as the server does: like most proxies, it reads no `Keep-Alive`. */
class ConnectionPool extends Http.Agent {
  readonly idleSince = new WeakMap<object, number>()

  override keepSocketAlive(socket: Socket): boolean {
    this.idleSince.set(socket, now())
    socket.setKeepAlive(true)
    socket.unref()
    return true
  }
}

/** Starts a balancer before two servers or more. */
export const startBalancer = async (
  manner: Manner,
  upstreams: ReadonlyArray<Upstream>,
  onBroken: (broken: Broken) => void,
): Promise<Balancer> => {
  const agent = new ConnectionPool({ keepAlive: true, maxFreeSockets: maxIdlePerServer })
  // From when on a server gets requests again.
  const restsUntil = new Map<string, number>()
  const isReady = new Map<string, boolean>()
  let turn = 0
  let reused = 0

  const sendsTo = (name: string): boolean =>
    manner === "probing" ? isReady.get(name) === true : (restsUntil.get(name) ?? 0) <= now()

  const next = (): Upstream | undefined => {
    const able = upstreams.filter(({ name }) => sendsTo(name))
    return able[turn++ % Math.max(1, able.length)]
  }

  const pass = (
    request: Http.IncomingMessage,
    body: Buffer,
    response: Http.ServerResponse,
  ): void => {
    const upstream = next()
    if (upstream === undefined) return void response.writeHead(503).end("no server")
    const { connection: _, ...headers } = request.headers
    const url = new URL(request.url ?? "/", upstream.url)
    const outgoing = Http.request(url, { agent, method: request.method, headers }, (answer) => {
      const { connection: __, "keep-alive": ___, ...forwarded } = answer.headers
      response.writeHead(answer.statusCode ?? 502, forwarded)
      answer.pipe(response)
      answer.on("error", (fault) => fail(fault, true))
    })
    let idleMillis: number | undefined
    let isFailed = false
    const fail = (fault: NodeJS.ErrnoException, isBegun: boolean): void => {
      if (isFailed) return
      isFailed = true
      const code = fault.code ?? fault.message
      if (code === "ECONNREFUSED") {
        // Nothing was sent, so that another server may have it.
        restsUntil.set(upstream.name, now() + restMillis)
        isReady.set(upstream.name, false)
        return pass(request, body, response)
      }
      onBroken({ code, idleMillis, isBegun, server: upstream.name })
      if (isBegun) response.destroy()
      else response.writeHead(502).end(code)
    }
    outgoing.on("socket", (socket) => {
      if (!outgoing.reusedSocket) return
      reused++
      idleMillis = now() - (agent.idleSince.get(socket) ?? now())
    })
    outgoing.on("error", (fault) => fail(fault, response.headersSent))
    outgoing.end(body)
  }

  const server = Http.createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => pass(request, Buffer.concat(chunks), response))
  })
  const port = await listen(server)

  const closing = new AbortController()
  const probe = async ({ name, url }: Upstream): Promise<void> => {
    let failures = 0
    while (!closing.signal.aborted) {
      const signal = AbortSignal.timeout(probeTimeoutMillis)
      const isUp = await fetch(`${url}/readyz`, { signal }).then(
        ({ ok }) => ok,
        () => false,
      )
      failures = isUp ? 0 : failures + 1
      if (isUp || failures >= fall) isReady.set(name, isUp)
      await sleep(probeMillis)
    }
  }
  if (manner === "probing") for (const upstream of upstreams) void probe(upstream)

  return {
    url: `http://127.0.0.1:${port}`,
    reused: () => reused,
    sendsTo,
    close: () => {
      closing.abort()
      server.close()
      server.closeAllConnections()
      agent.destroy()
    },
  }
}
