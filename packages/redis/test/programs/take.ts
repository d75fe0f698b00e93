/** A program that takes once, in the cluster that a port belongs to, for a key and an address. */

import { ApiKeyId } from "@tenure/core/ApiKey"
import { RateLimitStore } from "@tenure/core/RateLimitStore"
import * as TokenBucket from "@tenure/core/TokenBucket"
import { Millis } from "@tenure/core/Units"
import { redisLimits } from "@tenure/redis"
import * as Effect from "effect/Effect"
import { Cluster } from "ioredis"

const [port = "", keyId = "", address = ""] = process.argv.slice(2)
const client = new Cluster([{ host: "127.0.0.1", port: Number(port) }])
const policy = TokenBucket.policy({ limit: 100, window: Millis(86_400_000) })
const policies = { address: policy, key: policy, burst: policy }

await RateLimitStore.use((store) => store.take({ keyId: ApiKeyId(keyId), address }, policies)).pipe(
  Effect.provide(redisLimits({ client, timeout: 10_000 })),
  Effect.runPromise,
)
