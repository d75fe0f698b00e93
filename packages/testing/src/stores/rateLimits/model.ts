/** Random sequences of takes, compared with token buckets of fractions. */

import { expect } from "@effect/vitest"
import type { Client, Policies } from "@tenure/core/RateLimitStore"
import * as TokenBucket from "@tenure/core/TokenBucket"
import { Millis } from "@tenure/core/Units"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import type { StoreTests } from "../storeTests.ts"
import { client, remainders, stranger, take } from "./steps.ts"

/** A bucket whose fraction of tokens was computed at a given time. */
interface NaiveBucket {
  tokens: number
  readonly at: number
}

type Model = Map<string, NaiveBucket>

// Each of the buckets is the first to be empty in some sequences.
const policies: Policies = {
  address: TokenBucket.policy({ limit: 5, window: Millis(10_000_000) }),
  key: TokenBucket.policy({ limit: 3, window: Millis(12_000_000) }),
  burst: TokenBucket.policy({ limit: 10, window: Millis(10_000_000), capacity: 2 }),
}

type Step =
  | { readonly _tag: "Take"; readonly client: Client }
  | { readonly _tag: "Advance"; readonly millis: number }

const clients = [
  stranger("1"),
  stranger("2"),
  client("1", "a"),
  client("2", "a"),
  client("1", "b"),
  client("3", "b"),
]

// A step advances the clock by 100 s or more, and a token returns after 1,000 s or more, so that
// the duration of the test itself has no effect.
const steps: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.oneof(
    fc.constantFrom(...clients).map((one): Step => ({ _tag: "Take", client: one })),
    fc
      .integer({ min: 1, max: 40 })
      .map((hundreds): Step => ({ _tag: "Advance", millis: hundreds * 100_000 })),
  ),
  { maxLength: 60 },
)

/** Adds the tokens that have returned to a bucket. */
const fill = (model: Model, name: string, policy: TokenBucket.Policy, now: number): NaiveBucket => {
  const known = model.get(name) ?? { tokens: policy.capacity, at: now }
  const gained = ((now - known.at) * 1000) / policy.increment
  const filled = { tokens: Math.min(policy.capacity, known.tokens + gained), at: now }
  model.set(name, filled)
  return filled
}

// A token that is complete but for a rounding error is complete.
const epsilon = 1e-9

const isAvailable = ({ tokens }: NaiveBucket): boolean => tokens >= 1 - epsilon

const remaining = ({ tokens }: NaiveBucket): number => Math.floor(tokens + epsilon)

/** Takes from the model. Returns whether the take was admitted, and the remaining tokens. */
const takeNaively = (model: Model, { address, keyId }: Client, now: number) => {
  const ofAddress = fill(model, `address ${address}`, policies.address, now)
  const ofKey = (name: "key" | "burst"): NaiveBucket =>
    keyId === undefined
      ? { tokens: policies[name].capacity, at: now }
      : fill(model, `${name} ${keyId}`, policies[name], now)
  const [key, burst] = [ofKey("key"), ofKey("burst")]
  const needed = keyId === undefined ? [ofAddress] : [ofAddress, key, burst]
  const admitted = needed.every(isAvailable)
  if (admitted) for (const one of needed) one.tokens -= 1
  return {
    admitted,
    address: remaining(ofAddress),
    key: remaining(key),
    burst: remaining(burst),
  }
}

/** Declares the tests. */
export const modelTests = ({ advance, property }: StoreTests): void =>
  property(
    "behaves like simple token buckets, for any sequence of takes and waits",
    steps,
    Effect.fnUntraced(function* (sequence) {
      const model: Model = new Map()
      let now = 0
      for (const step of sequence) {
        if (step._tag === "Advance") {
          now += step.millis
          yield* advance(step.millis)
        } else {
          const taken = yield* take(step.client, policies)
          expect({ admitted: taken.admitted, ...remainders(taken, policies) }).toEqual(
            takeNaively(model, step.client, now),
          )
        }
      }
    }),
  )
