/** Stores on a Redis of the tests, emptied for each test. */

import { memory } from "@tenure/memory"
import type { StoreHarness } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Redis } from "ioredis"
import type { Client } from "../src/client.ts"
import { redisLimits } from "../src/index.ts"

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
