/** The Redis that keeps the rate limits in some runs, which faults can kill and silence. */

import { Redis } from "ioredis"
import { startRedis } from "../../../redis/test/redis-server.ts"
import { openLink } from "./proxy.ts"

export const startLimiter = async () => {
  let server = await startRedis()
  const { port } = server
  const link = await openLink(port)
  const url = `redis://127.0.0.1:${link.port}`
  // What fails is told to who asks for limits.
  const client = new Redis(url).on("error", () => {})
  return {
    url,
    link,
    client,
    /** Kills it, and its data with it. */
    kill: (): Promise<void> => server.stop(),
    start: async (): Promise<void> => {
      server = await startRedis([], port)
    },
    close: async (): Promise<void> => {
      client.disconnect()
      await link.close()
      await server.stop()
    },
  }
}

export type Limiter = Awaited<ReturnType<typeof startLimiter>>
