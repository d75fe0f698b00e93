/** A TCP proxy in front of a server of this machine, which holds bytes back on demand. */

import { once } from "node:events"
import { type Socket, connect, createServer } from "node:net"
import { freePort } from "@tenure/testing/conformance"

/** A running proxy. */
export interface Proxy {
  readonly port: number
  /** From now on, everything from the server takes so much longer. */
  readonly delay: (millis: number) => void
  /** From now on, nothing comes from the server. */
  readonly hold: () => void
  /** Everything that was held comes, and everything after it. */
  readonly release: () => void
  readonly stop: () => Promise<void>
}

/** Starts a proxy in front of a port. */
export const startProxy = async (target: number): Promise<Proxy> => {
  const sockets = new Set<Socket>()
  let held: Array<() => void> | undefined
  let delayMillis = 0

  const pass = (write: () => void): void => {
    if (held !== undefined) held.push(write)
    else if (delayMillis > 0) setTimeout(write, delayMillis)
    else write()
  }

  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ host: "127.0.0.1", port: target, noDelay: true })
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one)
      one.on("error", () => {})
      one.on("close", () => {
        sockets.delete(one)
        other.destroy()
      })
    }
    near.on("data", (bytes) => far.write(bytes))
    far.on("data", (bytes) => pass(() => near.write(bytes)))
  })
  const port = await freePort()
  await once(server.listen(port, "127.0.0.1"), "listening")

  return {
    port,
    delay: (millis) => {
      delayMillis = millis
    },
    hold: () => {
      held = []
    },
    release: () => {
      const writes = held ?? []
      held = undefined
      for (const write of writes) write()
    },
    stop: async () => {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, "close")
    },
  }
}
