/** A client of each library, as a host makes it. */

import type { Client } from "@tenure/redis"
import { Redis } from "ioredis"
import { createClient } from "redis"

/** A client, and what tests do with the server besides. */
export interface Opened {
  readonly client: Client
  readonly close: () => void
}

// What tests break breaks connections, too.
const ignore = (): void => {}

/** Opens clients for a port of this machine. */
export const libraries = {
  ioredis: (port: number): Opened => {
    const client = new Redis(port, "127.0.0.1").on("error", ignore)
    return { client, close: () => client.disconnect() }
  },
  redis: (port: number): Opened => {
    const client = createClient({ socket: { host: "127.0.0.1", port } }).on("error", ignore)
    void client.connect().catch(ignore)
    return { client, close: () => client.destroy() }
  },
}

/** The names of the libraries. */
export const names = ["ioredis", "redis"] as const
