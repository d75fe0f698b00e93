/**
 * Limiters that share their counters through Redis. The union of rate-limiter-flexible counts the key
 * three times, because it knows one key for all of its limiters.
 */

import { Millis, RateLimitStore, bucketPolicy } from "@tenure/core/store"
import { type Client as RedisClient, redisLimits } from "@tenure/redis"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { Redis } from "ioredis"
import { RateLimiterRedis, RateLimiterUnion } from "rate-limiter-flexible"
import { createClient } from "redis"
import { missing, startRedis } from "../../../redis/test/redis-server.ts"
import { type LimiterClient, clientOf } from "../limiters/clients.ts"
import { type Row, type Section, type Settings, ratioRows, rowsOf } from "../measurement.ts"
import { type Contestant, compare, inPairs, loops } from "../rounds.ts"
import type { Target } from "../target.ts"

/** A client of one of the libraries. All limiters that are compared have one of their own. */
interface Opened {
  readonly client: RedisClient
  /** Makes a limiter of rate-limiter-flexible. */
  readonly flexible: (keyPrefix: string) => RateLimiterRedis
  readonly close: () => void
}

const counter = { points: 1_000_000_000, duration: 3600 }

const ioredis = async (port: number): Promise<Opened> => {
  const client = new Redis(port, "127.0.0.1")
  return {
    client,
    flexible: (keyPrefix) => new RateLimiterRedis({ storeClient: client, keyPrefix, ...counter }),
    close: () => client.disconnect(),
  }
}

const nodeRedis = async (port: number): Promise<Opened> => {
  const client = createClient({ socket: { host: "127.0.0.1", port } })
  await client.connect()
  return {
    client,
    flexible: (keyPrefix) =>
      new RateLimiterRedis({ storeClient: client, useRedisPackage: true, keyPrefix, ...counter }),
    close: () => client.destroy(),
  }
}

/** A limiter on the server; the promise of a take tells whether it was admitted. */
interface Limiter {
  readonly name: string
  readonly take: (client: LimiterClient) => Promise<boolean>
  readonly close: () => unknown
}

const policy = bucketPolicy({ limit: 10_000_000, window: Millis(300 * 86_400_000) })

const policies = { address: policy, key: policy, burst: policy }

const tenure = async ({ client, close }: Opened): Promise<Limiter> => {
  const runtime = ManagedRuntime.make(redisLimits({ client }))
  const store = await runtime.runPromise(Effect.map(RateLimitStore, (service) => service))
  return {
    name: "Tenure's RateLimitStore",
    take: async ({ address, key }) => {
      const { admitted } = await Effect.runPromise(store.take({ address, keyId: key }, policies))
      return admitted
    },
    close: async () => {
      await runtime.dispose()
      close()
    },
  }
}

const inSequence = ({ close, flexible }: Opened): Limiter => {
  const [key, address, burst] = [flexible("key"), flexible("address"), flexible("burst")]
  return {
    name: "rate-limiter-flexible",
    take: async (client) => {
      await key.consume(client.key)
      await address.consume(client.address)
      await burst.consume(client.key)
      return true
    },
    close,
  }
}

const union = ({ close, flexible }: Opened): Limiter => {
  const all = new RateLimiterUnion(flexible("union"), flexible("of"), flexible("three"))
  return {
    name: "rate-limiter-flexible, union",
    take: async ({ key }) => {
      await all.consume(key)
      return true
    },
    close,
  }
}

const profile =
  "For a take among others, Redis works for 7 µs: 3 to find two of 200,000 keys, most of it waiting for memory, 1 to change them, 2 for the arithmetic and the reply, and 1 to receive it. The three scripts of rate-limiter-flexible take 22. A take that is alone costs client and server 47 µs on processors that are awake, three scripts in sequence 80, and the three of the union, sent together, 64. A script that does nothing would cost 18: so three times the rate of a sequence is out of reach there."

const targets: Record<string, Target> = {
  "rate-limiter-flexible": { of: "ratio", atLeast: 3, profile },
}

/** A situation: a library, which clients send requests, and how many at the same time. */
interface Situation {
  readonly measured: string
  readonly open: (port: number) => Promise<Opened>
  readonly clients: number
  readonly concurrency: number
}

const situations = ({ pick }: Settings): ReadonlyArray<Situation> => {
  const many = { clients: pick(100_000, 1000), concurrency: 64 }
  return [
    { measured: "100,000 keys, ioredis", open: ioredis, ...many },
    { measured: "100,000 keys, node-redis", open: nodeRedis, ...many },
    { measured: "one hot key, ioredis", open: ioredis, clients: 1, concurrency: 64 },
    {
      measured: "100,000 keys, one request at a time, ioredis",
      open: ioredis,
      ...many,
      concurrency: 1,
    },
  ]
}

/** The processor time that a server has spent, in microseconds. */
const spentBy = async (server: Redis): Promise<number> => {
  const info = await server.info("cpu")
  const [user = 0, system = 0] = ["user", "sys"].map((kind) =>
    Number(new RegExp(`^used_cpu_${kind}:(.*)`, "m").exec(info)?.[1]),
  )
  return 1_000_000 * (user + system)
}

/** Lets a limiter work. The processor time is that of this process and of the server. */
const contestant = (
  { name, take }: Limiter,
  { clients, concurrency }: Situation,
  server: Redis,
): Contestant => ({
  name,
  run: async (seconds) => {
    const before = await spentBy(server)
    let takes = 0
    const { cpu, rate } = await loops(concurrency, seconds, async () => {
      takes++
      const client = clientOf(Math.floor(Math.random() * clients))
      if (!(await take(client))) throw new Error(`${name} judged wrongly`)
    })
    return { rate, cpu: cpu + ((await spentBy(server)) - before) / takes }
  },
})

const measure = async (
  port: number,
  situation: Situation,
  settings: Settings,
): Promise<ReadonlyArray<Row>> => {
  const ours = await tenure(await situation.open(port))
  const sequence = inSequence(await situation.open(port))
  const together = union(await situation.open(port))
  const server = new Redis(port, "127.0.0.1")
  const run = (limiter: Limiter) => contestant(limiter, situation, server)
  // Of four situations, so half as long as usual.
  const scores = await compare(
    { tenure: run(ours), peers: [sequence, together].map(run) },
    { ...settings, seconds: settings.seconds / 2 },
  )
  // Alone, a take waits for two processes to be scheduled: that differs more from turn to turn than the limiters do.
  const ratio = await inPairs(run(ours), run(together), {
    rounds: settings.pick(50, 2),
    seconds: 0.1,
  })
  for (const { close } of [ours, sequence, together]) await close()
  server.disconnect()
  const measured = `take on Redis, ${situation.measured}: ${ours.name}`
  return [
    ...rowsOf(measured, "rate", scores, targets),
    ...rowsOf(measured, "cpu", scores),
    ...ratioRows(`${measured}: rate, of that of the union`, ratio, { of: "figure", atLeast: 1 }),
  ]
}

/** Takes a second, each on three buckets. */
export const limiterRedis: Section = {
  name: "limiter-redis",
  measure: async (settings) => {
    if (missing !== undefined) {
      console.warn(`limiter-redis is skipped because there is no Redis: ${missing}`)
      return { rows: [] }
    }
    const server = await startRedis()
    const rows: Array<Row> = []
    for (const situation of situations(settings)) {
      rows.push(...(await measure(server.port, situation, settings)))
    }
    await server.stop()
    return { rows }
  },
}
