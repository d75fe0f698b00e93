/**
 * Limiters that are asked for three buckets a request: the key's, the address's and the key's burst. For a refused
 * request Tenure takes nothing from any bucket; all others have by then taken from the buckets that they asked before,
 * and ask no further.
 */

import { RateLimiter } from "@tenure/core/effect"
import { Setting, rateLimiterOptions } from "@tenure/core/internal"
import { ApiKeyId, Millis, RateLimitStore, bucketPolicy } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import type { RateLimiterAbstract } from "rate-limiter-flexible"

/** A key and an address; a request draws on the key's two buckets and the address's one. */
export interface LimiterClient {
  readonly keyId: ApiKeyId
  readonly address: string
}

/** The client with a number. */
export const clientOf = (index: number): LimiterClient => ({
  keyId: ApiKeyId(`b9019cc1-e966-4695-ad2c-${index.toString(16).padStart(12, "0")}`),
  address: `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`,
})

/** A limiter as a host would call it. */
export interface Limiter {
  readonly name: string
  /** Takes for each client in turn. Returns the number that were admitted. */
  readonly takeAll: (clients: ReadonlyArray<LimiterClient>) => Promise<number>
  readonly close: () => unknown
}

/** Whether every request is admitted, or every one refused but a client's first. */
export type Outcome = "admitted" | "refused"

/** The points that a limiter with a counter has. */
export const pointsOf = (outcome: Outcome): number => (outcome === "admitted" ? 1_000_000_000 : 1)

type Take = (client: LimiterClient) => Effect.Effect<boolean, unknown>

/** A limiter that is an effect. */
export const onRuntime = async <R, E>(
  name: string,
  layer: Layer.Layer<R, E>,
  make: Effect.Effect<Take, never, R>,
): Promise<Limiter> => {
  const runtime = ManagedRuntime.make(layer)
  const take = await runtime.runPromise(make)
  const takeAll = Effect.fnUntraced(function* (clients: ReadonlyArray<LimiterClient>) {
    let admitted = 0
    for (const client of clients) if (yield* take(client)) admitted++
    return admitted
  })
  return {
    name,
    takeAll: (clients) => runtime.runPromise(takeAll(clients)),
    close: () => runtime.dispose(),
  }
}

// Tokens come back slowly, so that all buckets are kept, like the others' counters.
const policyOf = (outcome: Outcome) =>
  bucketPolicy(
    outcome === "admitted"
      ? { limit: 10_000_000, window: Millis(300 * 86_400_000) }
      : { limit: 1, window: Millis(3_600_000) },
  )

export const storeName = "Tenure's RateLimitStore"

/** Tenure's store alone, as the service asks it. */
export const tenureStore = <E>(
  stores: Layer.Layer<RateLimitStore, E>,
  outcome: Outcome = "admitted",
): Promise<Limiter> => {
  const policy = policyOf(outcome)
  const policies = { address: policy, key: policy, burst: policy }
  return onRuntime(
    storeName,
    stores,
    RateLimitStore.use((store) =>
      Effect.succeed((client) =>
        Effect.map(store.take(client, policies), ({ admitted }) => admitted),
      ),
    ),
  )
}

const many = { limit: 10_000_000, window: "300 days" } as const
const one = { limit: 1, window: "1 hour" } as const

/** The service as the handler uses it: with the report for the headers, and with the refusals that it remembers. */
export const tenureService = <E>(
  stores: Layer.Layer<RateLimitStore, E>,
  outcome: Outcome,
): Promise<Limiter> => {
  const limit = outcome === "admitted" ? many : one
  const options = Setting.parse(rateLimiterOptions, {
    perKey: limit,
    perAddress: limit,
    burst: limit,
  })
  return onRuntime(
    "Tenure's RateLimiter",
    Layer.provide(RateLimiter.layer(options), stores),
    RateLimiter.use((limiter) =>
      Effect.succeed((client) =>
        Effect.map(limiter.take(client), ({ _tag }) => _tag === "Admitted"),
      ),
    ),
  )
}

const nothing = (): void => {}

/** A limiter that tells by a promise whether it has admitted a request. */
export const byPromise = (
  name: string,
  take: (client: LimiterClient) => Promise<boolean>,
  close: () => unknown = nothing,
): Limiter => ({
  name,
  close,
  takeAll: async (clients) => {
    let admitted = 0
    for (const client of clients) if (await take(client)) admitted++
    return admitted
  },
})

/** Whether a take by rate-limiter-flexible succeeds: it rejects with something that is no error if it refuses. */
export const isAdmitted = async (take: () => Promise<unknown>): Promise<boolean> => {
  try {
    await take()
    return true
  } catch (refusal) {
    if (refusal instanceof Error) throw refusal
    return false
  }
}

/** Three rate-limiter-flexible limiters in sequence; the first that refuses is the last asked. */
export const inSequence = (
  name: string,
  [key, address, burst]: ReadonlyArray<RateLimiterAbstract>,
  close?: () => unknown,
): Limiter =>
  byPromise(
    name,
    (client) =>
      isAdmitted(async () => {
        await key?.consume(client.keyId)
        await address?.consume(client.address)
        await burst?.consume(client.keyId)
      }),
    close,
  )
