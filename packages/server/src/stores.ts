/** The rate limits on Redis, if there is one. */

import { redisLimits } from "@tenure/redis"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Log from "./log.ts"
import { reasonsOf } from "./reasons.ts"

/** Opens a client. Its library is loaded only here. */
const open = async (url: Redacted.Redacted) => {
  const { Redis } = await import("ioredis")
  const client = new Redis(Redacted.value(url))
  // The client connects again and again: each outage is logged once.
  let isLost = false
  client.on("error", (error) => {
    if (!isLost) Log.warn("Redis cannot be reached", reasonsOf(error))
    isLost = true
  })
  client.on("ready", () => {
    if (isLost) Log.info("Redis is connected again")
    isLost = false
  })
  return client
}

/** The store of rate limits at a URL, or none. */
export const limitsAt = (url: Redacted.Redacted | undefined) =>
  url === undefined
    ? Layer.empty
    : Layer.unwrap(
        Effect.acquireRelease(
          Effect.promise(() => open(url)),
          (client) => Effect.sync(() => client.disconnect()),
        ).pipe(Effect.map((client) => redisLimits({ client }))),
      )
