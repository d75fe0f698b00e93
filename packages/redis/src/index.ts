/** The rate limits of Tenure on Redis or Valkey. Everything else is kept in another store. */

import type { InvalidInput } from "@tenure/core/InvalidInput"
import { RateLimitStore } from "@tenure/core/RateLimitStore"
import * as Setting from "@tenure/core/Setting"
import * as TokenBucket from "@tenure/core/TokenBucket"
import { Millis } from "@tenure/core/Units"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Buckets from "./Buckets.ts"
import { type Client, isClient, toRedis } from "./Client.ts"
import * as ClusterTakes from "./ClusterTakes.ts"
import { named } from "./Names.ts"
import * as Takes from "./Takes.ts"

export type { Client, IoRedis, NodeRedis } from "./Client.ts"

/** The options. */
export const options = Setting.struct({
  /**
   * A client of [`ioredis`](https://github.com/redis/ioredis) or of
   * [`redis`](https://github.com/redis/node-redis), for one server, for Sentinel or for a cluster. It
   * stays yours: to connect it, to listen for its errors, and to close it after Tenure.
   */
  client: Setting.checked<Client>("a client of ioredis or of redis", isClient),
  /**
   * What the names of all keys in Redis begin with. Installations of Tenure that share a Redis need
   * one each. Default: `"tenure:"`.
   */
  prefix: Setting.withDefault(
    Setting.text("at most 100 characters", ({ length }) => length <= 100),
    "tenure:",
  ),
  /**
   * How long requests wait for Redis. After that it counts as down, until it answers in time again,
   * and requests do not wait. Default: `"1 second"`.
   */
  timeout: Setting.withDefault(Setting.millis({ least: 10, most: 10_000 }), "1 second"),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

// Full after a microsecond.
const trifle = TokenBucket.policy({ limit: 1000, window: Millis(1) })
const trifles = { address: trifle, key: trifle, burst: trifle }

/**
 * Makes the store of rate limits. Put it behind the store that keeps everything else. Fails with
 * `InvalidInput`, which names the option and says what is valid, if an option is invalid.
 *
 * @example
 * ```ts
 * import { Redis } from "ioredis"
 * import { Tenure } from "tenure"
 * import { postgres } from "tenure/postgres"
 * import { redisLimits } from "tenure/redis"
 *
 * const client = new Redis("redis://localhost:6379")
 * const tenure = await Tenure.make({
 *   stores: [postgres({ url: "postgres://localhost/app" }), redisLimits({ client })],
 * })
 * ```
 */
export const redisLimits = (given: Options): Layer.Layer<RateLimitStore, InvalidInput> =>
  Layer.effect(
    RateLimitStore,
    Effect.gen(function* () {
      const { client, prefix, timeout } = yield* Setting.read(options, given)
      const redis = toRedis(client)
      const buckets = yield* Effect.acquireRelease(
        Effect.sync(() => Buckets.make(redis, timeout)),
        ({ close }) => Effect.sync(close),
      )
      const names = named(prefix)
      const takes = redis.isCluster ? ClusterTakes : Takes
      return {
        // Takes, because a server that refuses changes is of no use.
        ping: Effect.asVoid(buckets.takeOne(1, "address", `${prefix}ping`, trifles)),
        take: takes.make(buckets, names),
      }
    }),
  )
