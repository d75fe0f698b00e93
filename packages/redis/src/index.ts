/** The rate limits of Tenure on Redis or Valkey. Everything else is kept in another store. */

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
   * A client of [`ioredis`](https://github.com/redis/ioredis) or of
   * [`redis`](https://github.com/redis/node-redis), for one server, for Sentinel or for a cluster. It
   * stays yours: to connect it, to listen for its errors, and to close it after Tenure.
   */
  client: Setting.guarded<Client>("a client of ioredis or of redis", isClient),
  /**
   * What the names of all keys in Redis begin with. Installations of Tenure that share a Redis need
   * one each. Default: `"tenure:"`.
   */
  prefix: Setting.withDefault(
    Setting.string("at most 100 characters", ({ length }) => length <= 100),
    "tenure:",
  ),
  /**
   * How long requests wait for Redis. After that it counts as down, until it answers in time again,
   * and requests do not wait. Default: `"1 second"`.
   */
  timeout: Setting.withDefault(Setting.duration({ least: 10, most: 10_000 }), "1 second"),
})

/** The options as a host passes them. */
export interface RedisLimitsOptions extends Setting.InputOf<typeof redisLimitsOptions> {}

// Full after a microsecond.
const trifle = bucketPolicy({ limit: 1000, window: Millis(1) })
const trifles = { address: trifle, key: trifle, burst: trifle }

/**
 * Makes the store of rate limits. Put it behind the store that keeps everything else. Fails with
 * `InvalidInput`, which names the option and says what is valid, if an option is invalid.
 *
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
        // Takes, because a server that refuses changes is of no use.
        ping: Effect.asVoid(buckets.takeOne(1, "address", `${prefix}ping`, trifles)),
        take: takes.make(buckets, names),
      }
    }),
  )
