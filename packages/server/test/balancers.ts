/** Load balancers that send requests only to ready servers. */

import { once } from "node:events"
import * as Http from "node:http"
import * as Net from "node:net"
import { send } from "@tenure/testing/conformance"

const probeMillis = 100

const isReady = (url: string): Promise<boolean> =>
  send(url, { path: "/readyz" }).then(
    ({ status }) => status === 200,
    () => false,
  )

/** Makes a pool for a balancer, which polls the readiness of each server. */
export const makePool = () => {
  const servers = new Map<string, boolean>()
  let turn = 0
  const ready = () => [...servers].filter(([, isUp]) => isUp).map(([url]) => url)
  const probing = setInterval(() => {
    for (const url of servers.keys()) void isReady(url).then((isUp) => servers.set(url, isUp))
  }, probeMillis)
  return {
    /** Adds a server. */
    add: (url: string) => void servers.set(url, false),
    /** Returns the URLs whose servers were ready in the last poll. */
    ready,
    /** Returns the next ready URL, in turn. */
    next: () => {
      const urls = ready()
      return new URL(urls[turn++ % urls.length] ?? "http://no-server-is-ready.invalid")
    },
    close: () => clearInterval(probing),
  }
}

type Pool = ReturnType<typeof makePool>

const listen = async (server: Net.Server): Promise<string> => {
  await once(server.listen(0, "127.0.0.1"), "listening")
  const address = server.address()
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`
}

/** Starts a proxy, which chooses a server for each request, and keeps its connections to them. */
export const startProxy = async (pool: Pool) => {
  const agent = new Http.Agent({ keepAlive: true })
  const server = Http.createServer((request, response) => {
    const { hostname, port } = pool.next()
    const { headers, method, url: path } = request
    const upstream = Http.request({ agent, hostname, port, method, path, headers }, (answer) => {
      const { connection: _, ...forwarded } = answer.headers
      response.writeHead(answer.statusCode ?? 502, forwarded)
      answer.pipe(response)
    })
    // It does not try again.
    upstream.on("error", ({ message }) => response.writeHead(502).end(message))
    request.pipe(upstream)
  })
  return {
    url: await listen(server),
    close: () => {
      server.close()
      server.closeAllConnections()
      agent.destroy()
    },
  }
}

/** Starts a balancer for connections, which chooses a server for each and reads nothing. */
export const startSwitch = async (pool: Pool) => {
  const sockets = new Set<Net.Socket>()
  const server = Net.createServer((near) => {
    const { hostname, port } = pool.next()
    const far = Net.connect(Number(port), hostname)
    near.pipe(far).pipe(near)
    for (const socket of [near, far]) {
      sockets.add(socket)
      // The client sees that its connection is closed.
      socket.on("error", () => {})
      socket.on("close", () => {
        sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
  })
  return {
    url: await listen(server),
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
