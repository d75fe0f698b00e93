/** The Redis that keeps the rate limits in some runs, which faults can kill and silence. */

import { Redis } from "ioredis"
import { startRedis } from "../../../redis/test/redis-server.ts"
import { type Link, openLink } from "./proxy.ts"

export interface Limiter {
  readonly url: string
  readonly link: Link
  /** Kills it, and its data with it. */
  readonly kill: () => Promise<void>
  readonly start: () => Promise<void>
  readonly client: Redis
  readonly close: () => Promise<void>
}

export const startLimiter = async (): Promise<Limiter> => {
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
    kill: () => server.stop(),
    start: async () => {
      server = await startRedis([], port)
    },
    close: async () => {
      client.disconnect()
      await link.close()
      await server.stop()
    },
  }
}
