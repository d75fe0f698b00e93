/** A program that takes once, in the cluster that a port belongs to, for a key and an address. */

import { ApiKeyId, Millis, RateLimitStore, bucketPolicy } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { Cluster } from "ioredis"
import { redisLimits } from "../../src/index.ts"

const [port = "", keyId = "", address = ""] = process.argv.slice(2)
const client = new Cluster([{ host: "127.0.0.1", port: Number(port) }])
const policy = bucketPolicy({ limit: 100, window: Millis(86_400_000) })
const policies = { address: policy, key: policy, burst: policy }

await RateLimitStore.use((store) => store.take({ keyId: ApiKeyId(keyId), address }, policies)).pipe(
  Effect.provide(redisLimits({ client, timeout: 10_000 })),
  Effect.runPromise,
)
