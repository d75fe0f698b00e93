/** Rate limits on Redis or Valkey. Another store keeps everything else. */

import { Setting } from "@tenure/core/internal"
import { type InvalidInput, Millis, RateLimitStore, bucketPolicy } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Client, isClient, toRedis } from "./client.ts"
import { bucketNames, makeRedisBuckets } from "./script.ts"
import { makeClusterTakes, makeServerTakes } from "./takes.ts"

export { type Client } from "./client.ts"
export { type IoRedis } from "./client.ts"
export { type NodeRedis } from "./client.ts"

/** The options. */
export const redisLimitsOptions = Setting.object({
  /**
   * A client from [`ioredis`](https://github.com/redis/ioredis) or
   * [`redis`](https://github.com/redis/node-redis), for one server, Sentinel or a cluster. It stays
   * yours: connect it, listen for its errors, and close it after Tenure.
   */
  client: Setting.guarded<Client>("a client of ioredis or of redis", isClient),
  /**
   * The prefix for all keys in Redis. Installations sharing a Redis need different ones. Default:
   * `"tenure:"`.
   */
  prefix: Setting.withDefault(
    Setting.string("at most 100 characters", ({ length }) => length <= 100),
    "tenure:",
  ),
  /**
   * How long requests wait for Redis. After this time, Redis counts as down, and requests do not wait
   * until it answers in time again. Default: `"1 second"`.
   */
  timeout: Setting.withDefault(Setting.duration({ least: 10, most: 10_000 }), "1 second"),
})

/** The options as a host passes them. */
export interface RedisLimitsOptions extends Setting.InputOf<typeof redisLimitsOptions> {}

// Full after a microsecond.
const trifle = bucketPolicy({ limit: 1000, window: Millis(1) })
const trifles = { address: trifle, key: trifle, burst: trifle }

/**
 * Creates a rate-limit store. Put it after the store for everything else. Fails with `InvalidInput` if
 * an option is invalid: the error names the option and the valid values.
 * @example
 * ```ts
 * import { Redis } from "ioredis"
 * import { createTenure } from "tenure"
 * import { postgres } from "tenure/postgres"
 * import { redisLimits } from "tenure/redis"
 *
 * const client = new Redis("redis://localhost:6379")
 * const tenure = await createTenure({
 *   stores: [postgres({ url: "postgres://localhost/app" }), redisLimits({ client })],
 * })
 * ```
 */
export const redisLimits = (given: RedisLimitsOptions): Layer.Layer<RateLimitStore, InvalidInput> =>
  Layer.effect(
    RateLimitStore,
    Effect.gen(function* () {
      const { client, prefix, timeout } = yield* Setting.decode(redisLimitsOptions, given)
      const redis = toRedis(client)
      const buckets = yield* Effect.acquireRelease(
        Effect.sync(() => makeRedisBuckets(redis, timeout)),
        ({ close }) => Effect.sync(close),
      )
      const names = bucketNames(prefix)
      const takes = redis.isCluster ? { make: makeClusterTakes } : { make: makeServerTakes }
      return {
        // Takes a token, because a read-only server is useless.
        ping: Effect.asVoid(buckets.takeOne(1, "address", `${prefix}ping`, trifles)),
        take: takes.make(buckets, names),
      }
    }),
  )
