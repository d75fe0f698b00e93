/** Tells whether a server is up. */

import { connect } from "node:net"

/** Tells whether a server of this machine accepts connections at a port. */
export const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
      .once("connect", () => {
        socket.destroy()
        resolve(true)
      })
      .once("error", () => resolve(false))
  })
