/** A process that serves: it says where, and answers when it is asked. */

import type { AddressInfo, Server } from "node:net"

/** Sends the port to the parent, and answers its messages, by default with the processor time. */
export const announce = (
  port: number,
  answer: (question: unknown) => object = () => process.cpuUsage(),
): void => {
  process.on("message", (question) => process.send?.(answer(question)))
  process.on("disconnect", () => process.exit())
  process.send?.(port)
}

/** Announces the port of a URL. */
export const announcePort = (url: string): void => announce(Number(new URL(url).port))

const isBound = (address: string | AddressInfo | null): address is AddressInfo =>
  typeof address === "object" && address !== null

/** Listens on a free port and announces it. */
export const listen = (server: Server, answer?: (question: unknown) => object): void => {
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    if (isBound(address)) announce(address.port, answer)
  })
}
