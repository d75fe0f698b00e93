/**
 * Limiters in memory that are asked for three buckets a request: the key's, the address's and the
 * key's burst. Of a refused request Tenure takes nothing from any bucket; all others have by then
 * taken from the buckets that they asked before, and ask no further.
 */

import { RateLimiter } from "@tenure/core/effect"
import {
  Setting,
  makeBucketTable,
  rateLimiterOptions as limiterOptions,
} from "@tenure/core/internal"
import {
  type BucketPolicies,
  Millis,
  RateLimitStore,
  bucketPolicy,
  toMicros,
} from "@tenure/core/store"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as EffectLimiter from "effect/persistence/RateLimiter"
import * as ExpressRateLimit from "express-rate-limit"
import { RateLimiterMemory, RateLimiterUnion } from "rate-limiter-flexible"
import type { LimiterClient } from "./clients.ts"

/** A limiter as a host would call it. */
export interface Limiter {
  readonly name: string
  /** Takes for each client in turn. Returns the number that were admitted. */
  readonly takeAll: (clients: ReadonlyArray<LimiterClient>) => Promise<number>
}

/** Whether every request is admitted, or every one refused but the first of a client. */
export type Outcome = "admitted" | "refused"

const plenty = 1_000_000_000
const pointsOf = (outcome: Outcome): number => (outcome === "admitted" ? plenty : 1)

/** Makes a limiter, with room for this many clients. */
type Make = (outcome: Outcome, clients: number) => Limiter

// Tokens come back slowly, so that all buckets are kept, as the counters of the others are.
const limitOf = (outcome: Outcome) =>
  outcome === "admitted"
    ? { limit: 10_000_000, window: Millis(300 * 86_400_000) }
    : { limit: 1, window: Millis(3_600_000) }

const policiesOf = (outcome: Outcome): BucketPolicies => {
  const policy = bucketPolicy(limitOf(outcome))
  return { address: policy, key: policy, burst: policy }
}

/** A client as Tenure knows it. */
const callerOf = ({ address, key }: LimiterClient) => ({ address, keyId: key })

const onRuntime = <R, E>(
  name: string,
  layer: Layer.Layer<R, E>,
  takeAll: (clients: ReadonlyArray<LimiterClient>) => Effect.Effect<number, unknown, R>,
): Limiter => {
  const runtime = ManagedRuntime.make(layer)
  return {
    name,
    takeAll: (clients) => runtime.runPromise(takeAll(clients)),
  }
}

/** The pure table, without Effect. */
const tenureTable: Make = (outcome, clients) => {
  const table = makeBucketTable(clients)
  const policies = policiesOf(outcome)
  return {
    name: "Tenure's BucketTable",
    takeAll: async (all) =>
      all.filter(
        (one) => table.take(callerOf(one), policies, toMicros(Millis(Date.now()))).admitted,
      ).length,
  }
}

/** The store, as the service asks it. */
const tenureStore: Make = (outcome, clients) => {
  const policies = policiesOf(outcome)
  return onRuntime("Tenure's RateLimitStore", memory({ maxBuckets: clients }), (all) =>
    Effect.gen(function* () {
      const store = yield* RateLimitStore
      let admitted = 0
      for (const client of all) {
        const take = yield* store.take(callerOf(client), policies)
        if (take.admitted) admitted++
      }
      return admitted
    }),
  )
}

/** The service as the handler uses it: with the report for the headers and with suspension. */
const tenureService: Make = (outcome, clients) => {
  const given = limitOf(outcome)
  const layer = RateLimiter.layer(
    Setting.parse(limiterOptions, { perKey: given, perAddress: given, burst: given }),
  )
  return onRuntime(
    "Tenure's RateLimiter",
    Layer.provide(layer, memory({ maxBuckets: clients })),
    (all) =>
      Effect.gen(function* () {
        const limiter = yield* RateLimiter
        let admitted = 0
        for (const client of all) {
          const decision = yield* limiter.take(callerOf(client))
          if (decision._tag === "Admitted") admitted++
        }
        return admitted
      }),
  )
}

const memoryLimiters = (outcome: Outcome) => {
  const make = (keyPrefix: string) =>
    new RateLimiterMemory({ keyPrefix, points: pointsOf(outcome), duration: 3600 })
  return { key: make("key"), address: make("address"), burst: make("burst") }
}

/** Three limiters of rate-limiter-flexible, in sequence. */
const flexible: Make = (outcome) => {
  const { address, burst, key } = memoryLimiters(outcome)
  const take = async (client: LimiterClient): Promise<boolean> => {
    try {
      await key.consume(client.key)
      await address.consume(client.address)
      await burst.consume(client.key)
      return true
    } catch {
      return false
    }
  }
  return {
    name: "rate-limiter-flexible",
    takeAll: (all) => inSequence(all, take),
  }
}

/** The union of rate-limiter-flexible, which knows one key for all of its limiters. */
const flexibleUnion: Make = (outcome) => {
  const { address, burst, key } = memoryLimiters(outcome)
  const union = new RateLimiterUnion(key, address, burst)
  const take = (client: LimiterClient): Promise<boolean> =>
    union.consume(client.key).then(
      () => true,
      () => false,
    )
  return {
    name: "rate-limiter-flexible, union",
    takeAll: (all) => inSequence(all, take),
  }
}

const inSequence = async (
  clients: ReadonlyArray<LimiterClient>,
  take: (client: LimiterClient) => Promise<boolean>,
): Promise<number> => {
  let admitted = 0
  for (const client of clients) if (await take(client)) admitted++
  return admitted
}

const expressStore = () =>
  Object.assign(new ExpressRateLimit.MemoryStore(), { windowMs: 3_600_000 })

/** Three stores of express-rate-limit, which count and leave it to the middleware to compare. */
const expressStores: Make = (outcome) => {
  const [key, address, burst] = [expressStore(), expressStore(), expressStore()]
  const limit = pointsOf(outcome)
  const take = async (client: LimiterClient): Promise<boolean> => {
    if ((await key.increment(client.key)).totalHits > limit) return false
    if ((await address.increment(client.address)).totalHits > limit) return false
    return (await burst.increment(client.key)).totalHits <= limit
  }
  return {
    name: "express-rate-limit's MemoryStore",
    takeAll: (all) => inSequence(all, take),
  }
}

/** Effect's own limiter, by token buckets, in sequence. */
const effectLimiter: Make = (outcome) => {
  const limit = pointsOf(outcome)
  const layer = Layer.provide(EffectLimiter.layer, EffectLimiter.layerStoreMemory)
  return onRuntime("Effect's RateLimiter", layer, (all) =>
    Effect.gen(function* () {
      const limiter = yield* EffectLimiter.RateLimiter
      const consume = (key: string) =>
        limiter.consume({ key, limit, algorithm: "token-bucket", window: "1 hour" })
      let admitted = 0
      for (const { address, key } of all) {
        admitted += yield* consume(`key:${key}`).pipe(
          Effect.andThen(consume(`address:${address}`)),
          Effect.andThen(consume(`burst:${key}`)),
          Effect.match({ onSuccess: () => 1, onFailure: () => 0 }),
        )
      }
      return admitted
    }),
  )
}

const makers = {
  tenureTable,
  tenureStore,
  tenureService,
  flexible,
  flexibleUnion,
  expressStores,
  effectLimiter,
}

/** All limiters, by name. */
export type LimiterName = keyof typeof makers

/** Makes a limiter by its name. */
export const limiterNamed = (name: string, outcome: Outcome, clients: number): Limiter => {
  const make = new Map<string, Make>(Object.entries(makers)).get(name)
  if (make === undefined) throw new Error(`there is no limiter ${name}`)
  return make(outcome, clients)
}
