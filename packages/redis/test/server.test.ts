/** What the store does to the server, and what it puts up with from it. */

import { assert } from "@effect/vitest"
import { bucketSpan } from "@tenure/core/internal"
import {
  ApiKeyId,
  type BucketPolicies,
  Millis,
  RateLimitStore,
  StoreUnavailable,
  type TakeResult,
  bucketPolicy,
} from "@tenure/core/store"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { Redis } from "ioredis"
import { afterAll, afterEach, beforeAll, beforeEach, describe, it } from "vitest"
import type { Client } from "../src/client.ts"
import { redisLimits } from "../src/index.ts"
import { type Opened, libraries, names } from "./clients.ts"
import { type RedisServer, missing, startRedis, titled } from "./redis-server.ts"

const year = bucketPolicy({ limit: 366, window: Millis(366 * 86_400_000) })
const hundred = bucketPolicy({ limit: 100, window: Millis(3_600_000) })
const policies: BucketPolicies = { address: hundred, key: year, burst: hundred }

const caller = { address: "192.0.2.1", keyId: ApiKeyId("a") }

/** Runs work with the store on a client. */
const withStore = <A>(
  client: Client,
  work: (take: () => Promise<TakeResult>) => Promise<A>,
): Promise<A> =>
  Effect.gen(function* () {
    const store = yield* RateLimitStore
    return yield* Effect.promise(() => work(() => Effect.runPromise(store.take(caller, policies))))
  }).pipe(Effect.provide(redisLimits({ client })), Effect.runPromise)

/** The instants that are stored at a key. */
const instantsAt = async (redis: Redis, name: string): Promise<ReadonlyArray<number>> => {
  const value = (await redis.getBuffer(name)) ?? Buffer.alloc(0)
  return Array.from({ length: value.length / 8 }, (_, index) => value.readDoubleLE(8 * index))
}

const times = <A>(count: number, work: () => Promise<A>): Promise<ReadonlyArray<A>> =>
  Promise.all(Array.from({ length: count }, work))

const admitted = (takes: ReadonlyArray<TakeResult>): number =>
  takes.filter((take) => take.admitted).length

describe("a client", () => {
  it.each([null, "OK", [], [0], [0, 1, 0, 0, 0, 1, 0, 0, 0]])(
    "that replies %j for one take makes the store unavailable",
    async (reply) => {
      const answer = async () => reply
      const client = { isCluster: false, evalsha: answer, eval: answer }
      const error = await withStore(client, (take) => take().catch((reason: unknown) => reason))
      assert.instanceOf(error, StoreUnavailable)
    },
  )

  it("gets a lone take at once, and one script for the takes of a turn while it is busy", async () => {
    const scripts: Array<number> = []
    const isIdle = Deferred.makeUnsafe<void>()
    const answer = async (_script: string, keys: number) => {
      const clients = keys / 2
      scripts.push(clients)
      await Effect.runPromise(Deferred.await(isIdle))
      return [0, ...Array.from({ length: clients }, () => [1, 0, 0, 0]).flat()]
    }
    const client = { isCluster: false, evalsha: answer, eval: answer }
    await withStore(client, async (take) => {
      const lone = take()
      await new Promise<void>((resolve) => process.nextTick(resolve))
      assert.deepStrictEqual(scripts, [1])
      // Each in its own callback, as requests on several connections.
      const together = times(5, () => new Promise((resolve) => setImmediate(() => resolve(take()))))
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
      Deferred.doneUnsafe(isIdle, Effect.void)
      await Promise.all([lone, together])
      assert.deepStrictEqual(scripts, [1, 5])
    })
  })
})

describe.skipIf(missing !== undefined)(titled("a server"), () => {
  let server: RedisServer
  let redis: Redis
  beforeAll(async () => {
    server = await startRedis()
    redis = new Redis(server.port, "127.0.0.1")
  })
  beforeEach(() => redis.flushall())
  afterAll(async () => {
    redis?.disconnect()
    await server?.stop()
  })

  describe.each(names)("through %s", (library) => {
    let opened: Opened
    beforeEach(() => {
      opened = libraries[library](server.port)
    })
    afterEach(() => opened.close())

    it("keeps when buckets are full, to the microsecond, and each for a minute longer at most", () =>
      withStore(opened.client, async (take) => {
        // Each take fills the buckets 36 seconds later: some leave the expiry as it is.
        for (let count = 0; count < 6; count++) {
          const { address, burst, key } = await take()
          assert.strictEqual(await redis.dbsize(), 2)
          for (const [name, tats] of Object.entries({
            "tenure:address:192.0.2.1": [address],
            "tenure:key:a": [key, burst],
          })) {
            const stored = await instantsAt(redis, name)
            assert.deepStrictEqual(stored.slice(0, -1), tats)
            const full = Math.max(...tats)
            const expiry = Number(await redis.call("PEXPIRETIME", name))
            assert.strictEqual(expiry, Math.ceil((stored.at(-1) ?? 0) / 1000))
            assert.isAtLeast(1000 * expiry, full)
            assert.isAtMost(expiry, Math.ceil(full / 1000) + 60_000)
          }
        }
      }))

    it("runs one script for takes that come together, and none for more than 32", () =>
      withStore(opened.client, async (take) => {
        await take()
        await redis.config("RESETSTAT")
        await times(1000, take)
        const stats = await redis.info("commandstats")
        assert.match(stats, /cmdstat_evalsha:calls=32,/)
      }))

    it("admits exactly as many while the server forgets its scripts", () =>
      withStore(opened.client, async (take) => {
        const takes: Array<TakeResult> = []
        for (let round = 0; round < 20; round++) {
          const flushed = redis.script("FLUSH")
          takes.push(...(await times(20, take)))
          await flushed
        }
        assert.strictEqual(admitted(takes), 100)
      }))

    it("takes an instant from before the clock was set back for an empty bucket", () =>
      withStore(opened.client, async (take) => {
        const { now } = await take()
        const span = bucketSpan(hundred)
        const name = "tenure:address:192.0.2.1"
        await redis.set(name, Buffer.from(new Float64Array([now + 10 * span, 0]).buffer))
        const refused = await take()
        assert.deepStrictEqual([refused.admitted, refused.address], [false, refused.now + span])
        assert.strictEqual((await instantsAt(redis, name))[0], refused.address)
      }))

    it("is unavailable when the server refuses changes", async () => {
      await redis.config("SET", "min-replicas-to-write", "1")
      try {
        await withStore(opened.client, async (take) => {
          const error = await take().catch((reason: unknown) => reason)
          assert.instanceOf(error, StoreUnavailable)
        })
        const ping = RateLimitStore.use((store) => Effect.flip(store.ping)).pipe(
          Effect.provide(redisLimits({ client: opened.client })),
        )
        assert.instanceOf(await Effect.runPromise(ping), StoreUnavailable)
      } finally {
        await redis.config("SET", "min-replicas-to-write", "0")
      }
    })
  })

  it("is shared exactly by the clients of several processes", async () => {
    const [first, second] = [libraries.ioredis(server.port), libraries.redis(server.port)]
    const takes = await withStore(first.client, (one) =>
      withStore(second.client, async (other) => Promise.all([times(150, one), times(150, other)])),
    )
    assert.strictEqual(admitted(takes.flat()), 100)
    first.close()
    second.close()
  })
})
