/** The link between a process and the database, which faults can cut, silence and slow down. */

import { type Socket, connect, createServer } from "node:net"
import { type Pipe, type Weather, fair, pipe } from "./pipe.ts"
import { listen } from "./ports.ts"

export interface Link {
  readonly port: number
  /** Resets all connections. */
  readonly reset: () => void
  /** Lets all connections die without a word. New ones work. */
  readonly silence: () => void
  /** Resets all connections, and refuses new ones until `accept`. */
  readonly refuse: () => Promise<void>
  readonly accept: () => Promise<void>
  /** Changes how bytes pass. */
  readonly change: (weather: Partial<Weather>) => void
  /** Has bytes pass as they do while all is well. */
  readonly clear: () => void
  readonly close: () => Promise<void>
}

interface Connection {
  readonly sockets: readonly [Socket, Socket]
  readonly pipes: readonly [Pipe, Pipe]
  /** Whether it has died, so that neither end learns of the end of the other. */
  isSilent: boolean
}

const join = (outer: Socket, target: number, weather: Weather): Connection => {
  const inner = connect({ port: target, host: "127.0.0.1", allowHalfOpen: true })
  for (const socket of [outer, inner]) {
    socket.setNoDelay(true)
    socket.on("error", () => {})
  }
  return {
    sockets: [outer, inner],
    pipes: [pipe(outer, inner, weather), pipe(inner, outer, weather)],
    isSilent: false,
  }
}

export const openLink = async (target: number): Promise<Link> => {
  const weather = fair()
  const connections = new Set<Connection>()

  const end = (connection: Connection): void => {
    connections.delete(connection)
    for (const socket of connection.sockets) socket.resetAndDestroy()
  }

  const server = createServer({ allowHalfOpen: true }, (outer) => {
    const connection = join(outer, target, weather)
    connections.add(connection)
    for (const socket of connection.sockets) {
      socket.on("close", () => {
        if (!connection.isSilent) end(connection)
      })
    }
  })
  const port = await listen(server)

  const reset = (): void => {
    for (const connection of connections) end(connection)
  }

  const change = (changed: Partial<Weather>): void => {
    Object.assign(weather, changed)
    for (const { pipes } of connections) for (const one of pipes) one.resume()
  }

  const refuse = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      reset()
    })

  return {
    port,
    reset,
    change,
    clear: () => change(fair()),
    refuse,
    close: refuse,
    silence: () => {
      for (const connection of connections) {
        connection.isSilent = true
        for (const one of connection.pipes) one.silence()
      }
    },
    accept: async () => {
      if (!server.listening) await listen(server, port)
    },
  }
}
