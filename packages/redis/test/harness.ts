/** Stores on a test Redis, emptied for each test: their certificate, and takes from their buckets. */

import {
  type BucketPolicies,
  type LimitedClient,
  Millis,
  RateLimitStore,
  type TakeResult,
  bucketPolicy,
} from "@tenure/core/store"
import { memory } from "@tenure/memory"
import { type StoreHarness, storeSuite } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { Redis } from "ioredis"
import { afterAll, beforeAll, describe, expect } from "vitest"
import type { Client } from "../src/client.ts"
import { redisLimits } from "../src/index.ts"
import { type Opened, libraries, names } from "./clients.ts"
import { type RedisServer, missing, startRedis, titled } from "./redis-server.ts"

/** Moves all instants into the past, which has the same effect as time passing. */
const shift = `
local cursor = '0'
repeat
  local found = redis.call('SCAN', cursor)
  cursor = found[1]
  for _, key in ipairs(found[2]) do
    local value = redis.call('GET', key)
    local count = #value / 8
    local format = '<' .. string.rep('d', count)
    local instants = { struct.unpack(format, value) }
    for i = 1, count do
      instants[i] = instants[i] - ARGV[1] * 1000
    end
    local expiry = math.max(1, math.ceil(instants[count] / 1000))
    redis.call('SET', key, struct.pack(format, unpack(instants, 1, count)), 'PXAT', expiry)
  end
until cursor == '0'
`

const onServers = <A>(ports: ReadonlyArray<number>, work: (redis: Redis) => Promise<A>) =>
  Effect.promise(async () => {
    await Promise.all(
      ports.map(async (port) => {
        const redis = new Redis(port, "127.0.0.1")
        await work(redis)
        redis.disconnect()
      }),
    )
  })

/** Limits in Redis, and everything else in memory. */
export const harnessOn = (
  client: () => Client,
  ports: () => ReadonlyArray<number>,
  runs: number,
): StoreHarness => {
  const limits = Layer.suspend(() => redisLimits({ client: client() }))
  const empty = Effect.suspend(() => onServers(ports(), (redis) => redis.flushall()))
  return {
    ports: ["RateLimitStore"],
    runs,
    layer: Layer.effectDiscard(empty).pipe(
      Layer.provideMerge(limits),
      Layer.provideMerge(memory()),
    ),
    advance: (millis) => onServers(ports(), (redis) => redis.eval(shift, 0, millis)),
  }
}

const hundred = bucketPolicy({ limit: 100, window: Millis(86_400_000) })
const policies: BucketPolicies = { address: hundred, key: hundred, burst: hundred }

/** A store on a client. */
export const storeOn = ({ client }: Opened) => {
  const runtime = ManagedRuntime.make(redisLimits({ client }))
  const take = (of: LimitedClient) =>
    runtime.runPromiseExit(RateLimitStore.use((store) => store.take(of, policies)))
  return {
    take,
    takeMany: (count: number, of: LimitedClient) =>
      Promise.all(Array.from({ length: count }, () => take(of))),
    close: () => runtime.dispose(),
  }
}

export const admitted = (exits: ReadonlyArray<Exit.Exit<TakeResult, unknown>>): number =>
  exits.filter((exit) => Exit.isSuccess(exit) && exit.value.admitted).length

/** Takes until every take is refused, by a server that answers. Returns how many were admitted. */
export const exhaust = async (
  takeMany: () => Promise<ReadonlyArray<Exit.Exit<TakeResult, unknown>>>,
): Promise<number> => {
  let total = 0
  const isExhausted = async (): Promise<boolean> => {
    const takes = await takeMany()
    total += admitted(takes)
    return takes.every((exit) => Exit.isSuccess(exit) && !exit.value.admitted)
  }
  await expect.poll(isExhausted).toBe(true)
  return total
}

/**
 * Declares the tests.
 *
 * @param runs - inputs per property
 */
export const certifyServer = (runs: number): void => {
  describe.skipIf(missing !== undefined)(titled("on one server"), () => {
    let server: RedisServer
    let opened: Opened
    beforeAll(async () => {
      server = await startRedis()
    })
    afterAll(() => server?.stop())

    describe.each(names)("through %s", (library) => {
      beforeAll(() => {
        opened = libraries[library](server.port)
      })
      afterAll(() => opened?.close())

      storeSuite(
        "redis",
        harnessOn(
          () => opened.client,
          () => [server.port],
          runs,
        ),
      )
    })
  })
}
