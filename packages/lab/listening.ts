/** Servers that listen on a free port. */

import type { Server } from "node:net"

/** A listening server's port. */
export const portOf = (server: Server): number => {
  const address = server.address()
  if (typeof address !== "object" || address === null) throw new TypeError("not a TCP server")
  return address.port
}

/** Has a server listen on this machine. Returns its port. */
export const listen = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return portOf(server)
}
