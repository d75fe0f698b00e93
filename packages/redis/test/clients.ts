/** A client from each library, as a host makes it. */

import { Cluster, Redis } from "ioredis"
import { createClient, createCluster, createSentinel } from "redis"
import type { Client } from "../src/client.ts"

/** A client, and what tests do with the server besides. */
export interface Opened {
  readonly client: Client
  readonly close: () => void
}

// What tests break breaks connections, too.
const ignore = (): void => {}

/** Opens clients for a port on this machine. */
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

/** Opens clients for a cluster on this machine, by some servers' ports. */
export const clusterLibraries = {
  ioredis: async (ports: ReadonlyArray<number>): Promise<Opened> => {
    const client = new Cluster(ports.map((port) => ({ host: "127.0.0.1", port }))).on(
      "error",
      ignore,
    )
    return { client, close: () => client.disconnect() }
  },
  redis: async (ports: ReadonlyArray<number>): Promise<Opened> => {
    const rootNodes = ports.map((port) => ({ socket: { host: "127.0.0.1", port } }))
    const client = createCluster({ rootNodes }).on("error", ignore)
    // Until then, it refuses commands.
    await client.connect()
    return { client, close: () => client.destroy() }
  },
}

/** Opens clients for the server that a Sentinel calls `limits`. */
export const sentinelLibraries = {
  ioredis: async (port: number): Promise<Opened> => {
    const sentinels = [{ host: "127.0.0.1", port }]
    // What is sent again may count twice, if the answer alone was lost.
    const options = { sentinels, name: "limits", autoResendUnfulfilledCommands: false }
    const client = new Redis(options).on("error", ignore)
    return { client, close: () => client.disconnect() }
  },
  redis: async (port: number): Promise<Opened> => {
    const sentinelRootNodes = [{ host: "127.0.0.1", port }]
    const client = createSentinel({ name: "limits", sentinelRootNodes }).on("error", ignore)
    await client.connect()
    return { client, close: () => void client.destroy() }
  },
}

/** The libraries' names. */
export const names = ["ioredis", "redis"] as const
