/** The link between a process and the database, which faults can cut, silence and slow down. */

import { type Socket, connect, createServer } from "node:net"
import { type Pipe, type Weather, fair, pipe } from "./pipe.ts"
import { listen } from "./ports.ts"

interface Connection {
  readonly sockets: readonly [Socket, Socket]
  readonly pipes: readonly [Pipe, Pipe]
  /** Whether it has died, so that neither end learns that the other has ended. */
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

export const openLink = async (target: number) => {
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

  /** Changes how bytes pass. */
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
    /** Has bytes pass as they do while all is well. */
    clear: (): void => change(fair()),
    /** Refuses new connections until `accept`, and resets the others. */
    refuse,
    accept: async (): Promise<void> => {
      if (!server.listening) await listen(server, port)
    },
    /** Lets all connections die without a word. New ones work. */
    silence: (): void => {
      for (const connection of connections) {
        connection.isSilent = true
        for (const one of connection.pipes) one.silence()
      }
    },
    close: refuse,
  }
}

export type Link = Awaited<ReturnType<typeof openLink>>
