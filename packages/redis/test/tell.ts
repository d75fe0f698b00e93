/** Commands for servers of the tests. */

import { Redis } from "ioredis"
import type { RedisServer } from "./redis-server.ts"

/** Sends a command to a server. */
export const tell = async (
  { port }: RedisServer,
  command: string,
  ...args: ReadonlyArray<string | number>
): Promise<unknown> => {
  const redis = new Redis(port, "127.0.0.1", { enableReadyCheck: false })
  try {
    return await redis.call(command, ...args)
  } finally {
    redis.disconnect()
  }
}

/** Asks a server until it answers as wanted. */
export const until = async (
  server: RedisServer,
  command: ReadonlyArray<string>,
  wanted: RegExp,
): Promise<void> => {
  const [name = "", ...args] = command
  while (!wanted.test(String(await tell(server, name, ...args)))) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
