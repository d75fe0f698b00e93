/** Free ports for programs that cannot choose one themselves. */

import { randomInt } from "node:crypto"
import { createServer } from "node:net"

// Systems choose higher ports, even for connections: none takes one of these before a program listens,
// or while it is down.
const firstPort = 20_000
const lastPort = 32_767

const maxTries = 100

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
      .once("error", () => resolve(false))
      .listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

/** Returns a free port. */
export const freePort = async (): Promise<number> => {
  for (let tries = 0; tries < maxTries; tries++) {
    const port = randomInt(firstPort, lastPort + 1)
    if (await isFree(port)) return port
  }
  throw new Error("no port is free")
}
