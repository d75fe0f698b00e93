/** A TCP proxy in front of a server, and its faults on demand. */

import { once } from "node:events"
import { type Socket, connect, createServer } from "node:net"

/** A running proxy. */
export interface Proxy {
  /** The server's URL, through the proxy. */
  readonly url: string
  readonly port: number
  /** From now on, new connections lead to another server. */
  readonly turnTo: (url: string) => void
  /** From now on, everything takes so much longer, in each direction. */
  readonly delay: (millis: number) => void
  /** Nothing more comes through the connections open now. New ones work. */
  readonly silence: () => void
  /** From now on, nothing comes from the server. */
  readonly hold: () => void
  /** Everything held comes, and everything after it. */
  readonly release: () => void
  /** How many connections clients have open. */
  readonly open: () => number
  readonly stop: () => Promise<void>
}

interface Link {
  readonly near: Socket
  readonly far: Socket
  isSilent: boolean
}

/** Starts a proxy in front of a server. */
export const startProxy = async (url: string): Promise<Proxy> => {
  let target = new URL(url)
  const links = new Set<Link>()
  let held: Array<() => void> | undefined
  let delayMillis = 0

  /** Carries bytes, and their end, in one direction. */
  const carry = (link: Link, from: Socket, to: Socket): void => {
    let readyAt = 0
    const later = (run: () => void): void => {
      // In order, also if the delay changes.
      const now = performance.now()
      readyAt = Math.max(readyAt, now + delayMillis)
      setTimeout(() => link.isSilent || run(), readyAt - now)
    }
    const write = (chunk: Buffer): void => void to.write(chunk)
    from.on("data", (chunk) =>
      later(() =>
        held !== undefined && from === link.far ? held.push(() => write(chunk)) : write(chunk),
      ),
    )
    from.on("close", () => later(() => to.destroy()))
    from.on("error", () => {})
  }

  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ host: target.hostname, port: Number(target.port), noDelay: true })
    const link = { near, far, isSilent: false }
    links.add(link)
    near.on("close", () => links.delete(link))
    carry(link, near, far)
    carry(link, far, near)
  }).listen(0, "127.0.0.1")
  await once(server, "listening")

  const address = server.address()
  const port = typeof address === "object" ? (address?.port ?? NaN) : NaN
  const proxied = Object.assign(new URL(url), { hostname: "127.0.0.1", port: String(port) })
  return {
    url: proxied.href,
    port,
    turnTo: (other) => {
      target = new URL(other)
    },
    delay: (millis) => {
      delayMillis = millis
    },
    silence: () => {
      for (const link of links) link.isSilent = true
    },
    hold: () => {
      held = []
    },
    release: () => {
      const writes = held ?? []
      held = undefined
      for (const write of writes) write()
    },
    open: () => links.size,
    stop: async () => {
      server.close()
      for (const { far, near } of links) {
        near.destroy()
        far.destroy()
      }
      await once(server, "close")
    },
  }
}
