/** What every `RateLimitStore` has to do. */

import { describe, expect } from "@effect/vitest"
import { type Bucket, RateLimitStore, type Take } from "@tenure/core/RateLimitStore"
import * as TokenBucket from "@tenure/core/TokenBucket"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { propertyOn, type StoreHarness, testOn } from "./StoreHarness.ts"

const hour = 3_600_000
const five = TokenBucket.policy({ limit: 5, windowMillis: hour })
const twenty = TokenBucket.policy({ limit: 20, windowMillis: hour })
const hundred = TokenBucket.policy({ limit: 100, windowMillis: hour })

const bucket = (key: string, policy: TokenBucket.Policy): Bucket => ({ key, policy })

const take = Effect.fnUntraced(function* (...buckets: ReadonlyArray<Bucket>) {
  const store = yield* RateLimitStore
  return yield* store.take(buckets)
})

/** What is left of each bucket after a take. */
const remainders = (buckets: ReadonlyArray<Bucket>, { now, tats }: Take): ReadonlyArray<number> =>
  buckets.map(({ policy }, index) => TokenBucket.remaining(tats[index], now, policy))

/** A plain token bucket: tokens as fractions, filled as time goes by. */
interface NaiveBucket {
  tokens: number
  at: number
}

type Model = Map<string, NaiveBucket>

const models = [
  bucket("a", TokenBucket.policy({ limit: 3, windowMillis: 3_000_000 })),
  bucket("b", TokenBucket.policy({ limit: 2, windowMillis: 8_000_000 })),
  bucket("c", TokenBucket.policy({ limit: 10, windowMillis: 10_000_000, capacity: 4 })),
]

type Step =
  | { readonly _tag: "Take"; readonly buckets: ReadonlyArray<Bucket> }
  | { readonly _tag: "Advance"; readonly millis: number }

// Steps of 100 s and tokens every 1,000 s and more: what the steps themselves take does not count.
const steps: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.oneof(
    fc.subarray(models, { minLength: 1 }).map((buckets): Step => ({ _tag: "Take", buckets })),
    fc
      .integer({ min: 1, max: 40 })
      .map((hundreds): Step => ({ _tag: "Advance", millis: hundreds * 100_000 })),
  ),
  { maxLength: 60 },
)

/** Brings a bucket up to date. */
const fill = (model: Model, { key, policy }: Bucket, now: number): NaiveBucket => {
  const known = model.get(key) ?? { tokens: policy.capacity, at: now }
  const gained = ((now - known.at) * 1000) / policy.increment
  const filled = { tokens: Math.min(policy.capacity, known.tokens + gained), at: now }
  model.set(key, filled)
  return filled
}

// A token that has come back to within a rounding error has come back.
const epsilon = 1e-9

/** Takes from the model; gives whether that was admitted, and what is left of each bucket. */
const takeNaively = (
  model: Model,
  buckets: ReadonlyArray<Bucket>,
  now: number,
): ReadonlyArray<boolean | number> => {
  const filled = buckets.map((one) => fill(model, one, now))
  const admitted = filled.every(({ tokens }) => tokens >= 1 - epsilon)
  if (admitted) for (const one of filled) one.tokens -= 1
  return [admitted, ...filled.map(({ tokens }) => Math.floor(tokens + epsilon))]
}

/** Declares the suite. */
export const rateLimitStoreSuite = (name: string, harness: StoreHarness): void => {
  const test = testOn(harness)
  const { advance } = harness

  describe(`${name}: RateLimitStore`, () => {
    test("starts with full buckets and counts them down", () =>
      Effect.gen(function* () {
        const buckets = [bucket("a", five), bucket("b", twenty)]
        for (let left = 4; left >= 0; left--) {
          const taken = yield* take(...buckets)
          expect(taken.admitted).toBe(true)
          expect(remainders(buckets, taken)).toEqual([left, left + 15])
        }
        expect((yield* take(...buckets)).admitted).toBe(false)
      }))

    test("takes from all buckets or from none", () =>
      Effect.gen(function* () {
        const small = bucket("small", five)
        const large = bucket("large", hundred)
        yield* Effect.forEach(Array.from({ length: 30 }), () => take(small, large))
        const taken = yield* take(large)
        expect(remainders([large], taken)).toEqual([94])
      }))

    test("admits exactly as many as there are tokens, however many ask at once", () =>
      Effect.gen(function* () {
        const [a, b, c] = [bucket("a", hundred), bucket("b", twenty), bucket("c", hundred)]
        const takes = yield* Effect.all(
          Array.from({ length: 400 }, () => take(a, b, c)),
          { concurrency: "unbounded" },
        )
        expect(takes.filter(({ admitted }) => admitted)).toHaveLength(20)
        expect(remainders([a, c], yield* take(a, c))).toEqual([79, 79])
      }))

    test("keeps buckets apart by their keys, whatever those are", () =>
      Effect.gen(function* () {
        const keys = ["__proto__", "constructor", "", "address:::1/64", "a b'c\"d\\e"]
        for (const key of keys) {
          const one = bucket(key, five)
          expect(remainders([one], yield* take(one))).toEqual([4])
        }
      }))

    test("tells when a bucket is full again, by its own clock", () =>
      Effect.gen(function* () {
        const one = bucket("a", five)
        const first = yield* take(one)
        expect(first.tats).toEqual([first.now + five.increment])
        const second = yield* take(one)
        expect(second.tats).toEqual([first.now + 2 * five.increment])
      }))

    test("admits after the wait that follows from a refusal, and not a second before", () =>
      Effect.gen(function* () {
        const one = bucket("a", five)
        yield* Effect.forEach(Array.from({ length: 5 }), () => take(one))
        const refused = yield* take(one)
        expect(refused.admitted).toBe(false)
        const wait = TokenBucket.wait(refused.tats[0], refused.now, five) / 1000
        yield* advance(Math.ceil(wait) - 1000)
        expect((yield* take(one)).admitted).toBe(false)
        yield* advance(1000)
        expect((yield* take(one)).admitted).toBe(true)
        expect((yield* take(one)).admitted).toBe(false)
      }))

    propertyOn(harness)(
      "behaves as plain token buckets do, in any sequence of takes and waits",
      steps,
      Effect.fnUntraced(function* (sequence) {
        const model: Model = new Map()
        let now = 0
        for (const step of sequence) {
          if (step._tag === "Advance") {
            now += step.millis
            yield* advance(step.millis)
          } else {
            const taken = yield* take(...step.buckets)
            expect([taken.admitted, ...remainders(step.buckets, taken)]).toEqual(
              takeNaively(model, step.buckets, now),
            )
          }
        }
      }),
    )
  })
}
