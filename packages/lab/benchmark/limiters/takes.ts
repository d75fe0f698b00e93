/** A process with one limiter in memory, so that no limiter pays for another's heap. */

import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as EffectLimiter from "effect/persistence/RateLimiter"
import * as ExpressRateLimit from "express-rate-limit"
import { RateLimiterMemory, RateLimiterUnion } from "rate-limiter-flexible"
import { batches } from "../rounds.ts"
import { announce } from "../servers/server.ts"
import {
  type Limiter,
  type Outcome,
  clientOf,
  byPromise,
  inSequence,
  isAdmitted,
  onRuntime,
  pointsOf,
  tenureService,
  tenureStore,
} from "./limiters.ts"

/** What a process says first. */
export interface Ready {
  readonly name: string
  /** The bytes that a client takes. */
  readonly bytes: number
}

const [name = "", given, count] = process.argv.slice(2)
const outcome: Outcome = given === "refused" ? "refused" : "admitted"
const clients = Array.from({ length: Number(count) }, (_, index) => clientOf(index))

const flexible = () =>
  ["key", "address", "burst"].map(
    (keyPrefix) => new RateLimiterMemory({ keyPrefix, points: pointsOf(outcome), duration: 3600 }),
  )

/** The union, which knows one key for all its limiters. */
const union = (): Limiter => {
  const all = new RateLimiterUnion(...flexible())
  return byPromise("rate-limiter-flexible, union", ({ keyId }) =>
    isAdmitted(() => all.consume(keyId)),
  )
}

const expressStore = () =>
  Object.assign(new ExpressRateLimit.MemoryStore(), { windowMs: 3_600_000 })

/** Three express-rate-limit stores, which count and leave it to the middleware to compare. */
const express = (): Limiter => {
  const [key, address, burst] = [expressStore(), expressStore(), expressStore()]
  const limit = pointsOf(outcome)
  return byPromise("express-rate-limit's MemoryStore", async (client) => {
    if ((await key.increment(client.keyId)).totalHits > limit) return false
    if ((await address.increment(client.address)).totalHits > limit) return false
    return (await burst.increment(client.keyId)).totalHits <= limit
  })
}

/** Effect's own limiter, by token buckets, in sequence. */
const effectLimiter = () =>
  onRuntime(
    "Effect's RateLimiter",
    Layer.provide(EffectLimiter.layer, EffectLimiter.layerStoreMemory),
    EffectLimiter.RateLimiter.use((limiter) => {
      const limit = pointsOf(outcome)
      const consume = (key: string) =>
        limiter.consume({ key, limit, algorithm: "token-bucket", window: "1 hour" })
      return Effect.succeed(({ address, keyId }) =>
        consume(`key:${keyId}`).pipe(
          Effect.andThen(consume(`address:${address}`)),
          Effect.andThen(consume(`burst:${keyId}`)),
          Effect.match({ onSuccess: () => true, onFailure: () => false }),
        ),
      )
    }),
  )

const stores = () => memory({ maxBuckets: clients.length })

const makers = new Map<string, () => Limiter | Promise<Limiter>>([
  ["store", () => tenureStore(stores(), outcome)],
  ["service", () => tenureService(stores(), outcome)],
  ["flexible", () => inSequence("rate-limiter-flexible", flexible())],
  ["union", union],
  ["express", express],
  ["effect", effectLimiter],
])

const make = makers.get(name)
if (make === undefined) throw new Error(`there is no limiter ${name}`)
const limiter = await make()

const draws = Array.from({ length: 1 << 18 }, () =>
  clientOf(Math.floor(Math.random() * clients.length)),
)
const batchSize = 500
let at = 0

/** Takes for the next clients, and checks whether the requests are admitted. */
const batch = async (): Promise<void> => {
  const some = draws.slice(at, at + batchSize)
  at = (at + batchSize) % (draws.length - batchSize)
  const admitted = await limiter.takeAll(some)
  const expected = outcome === "admitted" ? batchSize : 0
  if (admitted !== expected) throw new Error(`${name} admitted ${admitted} of ${batchSize}`)
}

const used = (): number => {
  globalThis.gc?.()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return arrayBuffers + heapUsed
}

// It knows all clients beforehand; for those limited to one, that was it. The first compile the code.
const warmUp = Math.ceil(clients.length / 10)
await limiter.takeAll(clients.slice(0, warmUp))
const before = used()
await limiter.takeAll(clients.slice(warmUp))
const bytes = (used() - before) / (clients.length - warmUp)
announce(
  { name: limiter.name, bytes } satisfies Ready,
  ({ seconds }: { readonly seconds: number }) => batches(batchSize, seconds, batch),
)
