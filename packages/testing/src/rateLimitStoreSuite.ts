/** What every `RateLimitStore` has to do. */

import { describe, expect } from "@effect/vitest"
import { ApiKeyId } from "@tenure/core/ApiKey"
import { type Client, type Policies, RateLimitStore, type Take } from "@tenure/core/RateLimitStore"
import * as TokenBucket from "@tenure/core/TokenBucket"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { propertyOn, type StoreHarness, testOn } from "./StoreHarness.ts"

const hour = 3_600_000
const five = TokenBucket.policy({ limit: 5, windowMillis: hour })
const twenty = TokenBucket.policy({ limit: 20, windowMillis: hour })
const hundred = TokenBucket.policy({ limit: 100, windowMillis: hour })

const policies: Policies = { address: hundred, key: hundred, burst: hundred }

const stranger = (address: string): Client => ({ address, keyId: undefined })
const client = (address: string, keyId: string): Client => ({ address, keyId: ApiKeyId(keyId) })

const take = Effect.fnUntraced(function* (of: Client, by: Policies = policies) {
  const store = yield* RateLimitStore
  return yield* store.take(of, by)
})

/** What is left of each bucket after a take. */
const remainders = (taken: Take, by: Policies = policies): Record<keyof Policies, number> => ({
  address: TokenBucket.remaining(taken.address, taken.now, by.address),
  key: TokenBucket.remaining(taken.key, taken.now, by.key),
  burst: TokenBucket.remaining(taken.burst, taken.now, by.burst),
})

/** A plain token bucket: tokens as fractions, filled as time goes by. */
interface NaiveBucket {
  tokens: number
  at: number
}

type Model = Map<string, NaiveBucket>

const modelPolicies: Policies = {
  address: TokenBucket.policy({ limit: 3, windowMillis: 3_000_000 }),
  key: TokenBucket.policy({ limit: 2, windowMillis: 8_000_000 }),
  burst: TokenBucket.policy({ limit: 10, windowMillis: 10_000_000, capacity: 4 }),
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

// Steps of 100 s and tokens every 1,000 s and more: what the steps themselves take does not count.
const steps: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.oneof(
    fc.constantFrom(...clients).map((one): Step => ({ _tag: "Take", client: one })),
    fc
      .integer({ min: 1, max: 40 })
      .map((hundreds): Step => ({ _tag: "Advance", millis: hundreds * 100_000 })),
  ),
  { maxLength: 60 },
)

/** Brings a bucket up to date. */
const fill = (model: Model, name: string, policy: TokenBucket.Policy, now: number): NaiveBucket => {
  const known = model.get(name) ?? { tokens: policy.capacity, at: now }
  const gained = ((now - known.at) * 1000) / policy.increment
  const filled = { tokens: Math.min(policy.capacity, known.tokens + gained), at: now }
  model.set(name, filled)
  return filled
}

// A token that has come back to within a rounding error has come back.
const epsilon = 1e-9

/** Takes from the model; gives whether that was admitted, and what is left of each bucket. */
const takeNaively = (model: Model, { address, keyId }: Client, now: number) => {
  const ofAddress = fill(model, `address ${address}`, modelPolicies.address, now)
  const keyed = (name: keyof Policies): NaiveBucket =>
    keyId === undefined
      ? { tokens: modelPolicies[name].capacity, at: now }
      : fill(model, `${name} ${keyId}`, modelPolicies[name], now)
  const [ofKey, ofBurst] = [keyed("key"), keyed("burst")]
  const asked = keyId === undefined ? [ofAddress] : [ofAddress, ofKey, ofBurst]
  const admitted = asked.every(({ tokens }) => tokens >= 1 - epsilon)
  if (admitted) for (const one of asked) one.tokens -= 1
  const left = ({ tokens }: NaiveBucket) => Math.floor(tokens + epsilon)
  return { admitted, address: left(ofAddress), key: left(ofKey), burst: left(ofBurst) }
}

/** Declares the suite. */
export const rateLimitStoreSuite = (name: string, harness: StoreHarness): void => {
  const test = testOn(harness)
  const { advance } = harness

  describe(`${name}: RateLimitStore`, () => {
    test("starts with full buckets and counts them down", () =>
      Effect.gen(function* () {
        const mixed = { address: twenty, key: hundred, burst: five }
        for (let left = 4; left >= 0; left--) {
          const taken = yield* take(client("1", "a"), mixed)
          expect(taken.admitted).toBe(true)
          expect(remainders(taken, mixed)).toEqual({
            address: left + 15,
            key: left + 95,
            burst: left,
          })
        }
        expect((yield* take(client("1", "a"), mixed)).admitted).toBe(false)
      }))

    test("takes from all buckets or from none", () =>
      Effect.gen(function* () {
        for (const small of ["address", "key", "burst"] as const) {
          const mixed = { ...policies, [small]: five }
          const one = client(small, small)
          yield* Effect.forEach(Array.from({ length: 30 }), () => take(one, mixed))
          const left = { address: 95, key: 95, burst: 95, [small]: 0 }
          expect(remainders(yield* take(one, mixed), mixed)).toEqual(left)
        }
      }))

    test("takes of a client without a key from the address alone", () =>
      Effect.gen(function* () {
        yield* take(client("1", "a"))
        const taken = yield* take(stranger("1"))
        expect(remainders(taken)).toEqual({ address: 98, key: 100, burst: 100 })
        expect([taken.key, taken.burst]).toEqual([taken.now, taken.now])
        expect(remainders(yield* take(client("1", "a")))).toEqual({
          address: 97,
          key: 98,
          burst: 98,
        })
      }))

    test("admits exactly as many as there are tokens, however many ask at once", () =>
      Effect.gen(function* () {
        const mixed = { ...policies, burst: twenty }
        const takes = yield* Effect.all(
          Array.from({ length: 400 }, () => take(client("1", "a"), mixed)),
          { concurrency: "unbounded" },
        )
        expect(takes.filter(({ admitted }) => admitted)).toHaveLength(20)
        const left = { address: 80, key: 80, burst: 0 }
        expect(remainders(yield* take(client("1", "a"), mixed), mixed)).toEqual(left)
      }))

    test("admits exactly as many where clients share an address, or a key", () =>
      Effect.gen(function* () {
        const mixed = { ...policies, address: twenty }
        const sharing = ["a", "b", "c"].map((key) => client("1", key))
        const roaming = ["2", "3", "4"].map((address) => client(address, "d"))
        const takes = yield* Effect.all(
          [...sharing, ...roaming].flatMap((one) =>
            Array.from({ length: 50 }, () => take(one, mixed)),
          ),
          { concurrency: "unbounded" },
        )
        // Twenty of the address that is shared, and twenty of each that the key was used from.
        expect(takes.filter(({ admitted }) => admitted)).toHaveLength(80)
        expect(remainders(yield* take(client("5", "d"), mixed), mixed)).toMatchObject({ key: 39 })
      }))

    test("keeps buckets apart by their ids, whatever those are", () =>
      Effect.gen(function* () {
        const ids = ["__proto__", "constructor", "", "address:::1/64", "a b'c\"d\\e"]
        for (const id of ids) {
          const left = { address: 99, key: 99, burst: 99 }
          expect(remainders(yield* take(client(id, id)))).toEqual(left)
        }
      }))

    test("tells when a bucket is full again, by its own clock", () =>
      Effect.gen(function* () {
        const mixed = { address: five, key: twenty, burst: hundred }
        const first = yield* take(client("1", "a"), mixed)
        const { now } = first
        expect(first).toMatchObject({
          address: now + five.increment,
          key: now + twenty.increment,
          burst: now + hundred.increment,
        })
        expect(yield* take(client("1", "a"), mixed)).toMatchObject({
          address: now + 2 * five.increment,
          key: now + 2 * twenty.increment,
          burst: now + 2 * hundred.increment,
        })
      }))

    test("admits after the wait that follows from a refusal, and not a second before", () =>
      Effect.gen(function* () {
        const mixed = { ...policies, address: five }
        const one = take(stranger("1"), mixed)
        yield* Effect.forEach(Array.from({ length: 5 }), () => one)
        const refused = yield* one
        expect(refused.admitted).toBe(false)
        const wait = TokenBucket.wait(refused.address, refused.now, five) / 1000
        yield* advance(Math.ceil(wait) - 1000)
        expect((yield* one).admitted).toBe(false)
        yield* advance(1000)
        expect((yield* one).admitted).toBe(true)
        expect((yield* one).admitted).toBe(false)
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
            const taken = yield* take(step.client, modelPolicies)
            expect({ admitted: taken.admitted, ...remainders(taken, modelPolicies) }).toEqual(
              takeNaively(model, step.client, now),
            )
          }
        }
      }),
    )
  })
}
