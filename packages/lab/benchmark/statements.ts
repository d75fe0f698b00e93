/** Counts the statements that reach PostgreSQL, whoever sends them. */

import { type Socket, connect, createServer } from "node:net"
import { listen } from "../listening.ts"

/** A way to the database that counts. */
export interface Counted {
  readonly url: string
  /** How many statements have passed. */
  readonly count: () => number
  readonly close: () => void
}

// A message is its type, its length without the type, and the rest. The first has no type.
const [typeBytes, lengthBytes] = [1, 4]
const statements = new Set(["E", "Q"].map((type) => type.charCodeAt(0)))

/** Calls a function for each statement that a client sends. */
const watch = (client: Socket, onStatement: () => void): void => {
  let rest = Buffer.alloc(0)
  let head = 0
  client.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= head + lengthBytes) {
      const end = head + rest.readUInt32BE(head)
      if (rest.length < end) return
      if (head > 0 && statements.has(rest[0] ?? 0)) onStatement()
      rest = rest.subarray(end)
      head = typeBytes
    }
  })
}

/** Opens a way to a database that does not ask for encryption. */
export const countStatements = async (database: string): Promise<Counted> => {
  const { hostname, port } = new URL(database)
  let count = 0
  const server = createServer((client) => {
    const upstream = connect({ host: hostname, port: Number(port), noDelay: true })
    client.setNoDelay(true)
    watch(client, () => count++)
    client.pipe(upstream).pipe(client)
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on("error", () => other.destroy())
    }
  })
  const url = new URL(database)
  url.host = `127.0.0.1:${await listen(server)}`
  return { url: url.href, count: () => count, close: () => server.close() }
}
