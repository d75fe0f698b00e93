/** A TCP proxy in front of a database, which misbehaves on demand. */

import { once } from "node:events"
import { type AddressInfo, type Socket, connect, createServer } from "node:net"

export interface Proxy {
  /** The URL of the database, through the proxy. */
  readonly url: string
  /** From now on, new connections lead to the database of another URL. */
  readonly turnTo: (url: string) => void
  /** From now on, everything takes so much longer, in each direction. */
  readonly delay: (millis: number) => void
  /** Nothing more comes through the connections that are open now. New ones work. */
  readonly silence: () => void
  /** How many connections clients have open. */
  readonly open: () => number
  readonly stop: () => Promise<void>
}

interface Link {
  readonly near: Socket
  readonly far: Socket
  isSilent: boolean
}

/** Starts a proxy in front of the database of a URL. */
export const startProxy = async (url: string): Promise<Proxy> => {
  let target = new URL(url)
  const links = new Set<Link>()
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
    from.on("data", (chunk) => later(() => to.write(chunk)))
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

  const proxied = new URL(url)
  proxied.hostname = "127.0.0.1"
  const address: AddressInfo | string | null = server.address()
  proxied.port = typeof address === "object" ? String(address?.port) : ""
  return {
    url: proxied.href,
    turnTo: (other) => {
      target = new URL(other)
    },
    delay: (millis) => {
      delayMillis = millis
    },
    silence: () => {
      for (const link of links) link.isSilent = true
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
