/** The rate limits on Redis, if there is one. */

import { redisLimits } from "@tenure/redis"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

/** Opens a client. Its library is loaded only here. */
const open = async (url: Redacted.Redacted) => {
  const { Redis } = await import("ioredis")
  // What fails is reported when a request asks for its limits.
  return new Redis(Redacted.value(url)).on("error", () => {})
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
