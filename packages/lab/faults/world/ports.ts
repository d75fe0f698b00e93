/** Ports on this machine. */

import type { Server as HttpServer } from "node:http"
import { type Server, createServer } from "node:net"

/** Listens on a port, or on a free one if it is 0, and returns the port. */
export const listen = (server: Server, port = 0): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, "127.0.0.1", () => {
      server.off("error", reject)
      const address = server.address()
      if (typeof address === "object" && address !== null) resolve(address.port)
      else reject(new TypeError("not a TCP server"))
    })
  })

/** Closes a server with all its connections. */
export const closeServer = (server: HttpServer): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })

/** Returns a port that is free now. */
export const freePort = async (): Promise<number> => {
  const server = createServer()
  const port = await listen(server)
  await new Promise((resolve) => server.close(resolve))
  return port
}
