/** Certifies a `RateLimitStore`, also with a clock that is ahead or set back. */

import { expect } from "@effect/vitest"
import { waitMicros } from "@tenure/core/internal"
import {
  ApiKeyId,
  type BucketPolicies,
  type BucketPolicy,
  type LimitedClient,
  Micros,
  Millis,
  RateLimitStore,
  type TakeResult,
  bucketPolicy,
  remainingTokens,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import type { StoreTests } from "./declare.ts"
import { dayMillis, hour, times, together } from "./steps.ts"

const five = bucketPolicy({ limit: 5, window: Millis(hour) })
/** Tokens return after a fraction in milliseconds. */
const seven = bucketPolicy({ limit: 7, window: Millis(hour) })
const twenty = bucketPolicy({ limit: 20, window: Millis(hour) })
const hundred = bucketPolicy({ limit: 100, window: Millis(hour) })

const policies: BucketPolicies = { address: hundred, key: hundred, burst: hundred }

/** A client without a valid API key. */
const stranger = (address: string): LimitedClient => ({ address, keyId: undefined })

const client = (address: string, keyId: string): LimitedClient => ({
  address,
  keyId: ApiKeyId(keyId),
})

const take = Effect.fnUntraced(function* (of: LimitedClient, by: BucketPolicies = policies) {
  const store = yield* RateLimitStore
  return yield* store.take(of, by)
})

/** Takes for clients at the same time. */
const takeAll = (clients: ReadonlyArray<LimitedClient>, by?: BucketPolicies) =>
  together(clients.map((one) => take(one, by)))

/** Returns each bucket's remaining tokens after a take. */
const remainders = (
  taken: TakeResult,
  by: BucketPolicies = policies,
): Record<keyof BucketPolicies, number> => ({
  address: remainingTokens(taken.address, taken.now, by.address),
  key: remainingTokens(taken.key, taken.now, by.key),
  burst: remainingTokens(taken.burst, taken.now, by.burst),
})

/** A bucket with a fraction of tokens, computed at a given time. */
interface NaiveBucket {
  tokens: number
  readonly at: number
}

type Model = Map<string, NaiveBucket>

// In some sequences, each bucket is the first to be empty.
const modelPolicies: BucketPolicies = {
  address: bucketPolicy({ limit: 5, window: Millis(10_000_000), capacity: 6 }),
  key: bucketPolicy({ limit: 3, window: Millis(12_000_000) }),
  burst: bucketPolicy({ limit: 10, window: Millis(10_000_000), capacity: 2 }),
}

type Step =
  | { readonly _tag: "Take"; readonly client: LimitedClient }
  | { readonly _tag: "Advance"; readonly millis: number }

const modelClients = [
  stranger("1"),
  stranger("2"),
  client("1", "a"),
  client("2", "a"),
  client("1", "b"),
  client("3", "b"),
]

// A step advances the clock by 100 s or more, and a token returns after 1,000 s or more, so the test's
// own duration has no effect.
const steps: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.oneof(
    fc.constantFrom(...modelClients).map((one): Step => ({ _tag: "Take", client: one })),
    fc
      .integer({ min: 1, max: 40 })
      .map((hundreds): Step => ({ _tag: "Advance", millis: hundreds * 100_000 })),
  ),
  { maxLength: 60, size: "+1" },
)

/** Adds returned tokens to a bucket. */
const fill = (model: Model, name: string, policy: BucketPolicy, now: number): NaiveBucket => {
  const known = model.get(name) ?? { tokens: policy.capacity, at: now }
  const gained = ((now - known.at) * 1000) / policy.increment
  const filled = { tokens: Math.min(policy.capacity, known.tokens + gained), at: now }
  model.set(name, filled)
  return filled
}

// A token complete except for a rounding error is complete.
const epsilon = 1e-9

const isAvailable = ({ tokens }: NaiveBucket): boolean => tokens >= 1 - epsilon

const remaining = ({ tokens }: NaiveBucket): number => Math.floor(tokens + epsilon)

/** Takes from the model. Returns whether the take was admitted, and the remaining tokens. */
const takeNaively = (model: Model, { address, keyId }: LimitedClient, now: number) => {
  const ofAddress = fill(model, `address ${address}`, modelPolicies.address, now)
  const ofKey = (name: "key" | "burst"): NaiveBucket =>
    keyId === undefined
      ? { tokens: modelPolicies[name].capacity, at: now }
      : fill(model, `${name} ${keyId}`, modelPolicies[name], now)
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

const modelTests = ({ advance, property }: StoreTests): void =>
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
          const taken = yield* take(step.client, modelPolicies)
          if (step.client.keyId === undefined)
            expect([taken.key, taken.burst]).toEqual([taken.now, taken.now])
          expect({ admitted: taken.admitted, ...remainders(taken, modelPolicies) }).toEqual(
            takeNaively(model, step.client, now),
          )
        }
      }
    }),
  )

/** The buckets a take uses. */
const bucketTests = ({ test }: StoreTests): void => {
  test("has separate buckets for different ids, whatever characters they contain", function* () {
    const ids = ["__proto__", "constructor", "address:::1/64", "a b'c\"d\\e", "a", "A"]
    for (const id of ids) {
      const left = { address: 99, key: 99, burst: 99 }
      expect(remainders(yield* take(client(id, id)))).toEqual(left)
    }
  })

  test("keeps an empty bucket while many others are used", function* () {
    const small = { ...policies, address: five, key: five }
    const one = client("one", "one")
    yield* Effect.replicateEffect(take(one, small), 5)
    yield* times(300, (index) => take(client(`${index}`, `${index}`), small))
    expect((yield* take(one, small)).admitted).toBe(false)
  })
}

const descending = (one: number, other: number): number => other - one

const admittedOf = (takes: ReadonlyArray<TakeResult>): number =>
  takes.filter(({ admitted }) => admitted).length

/** Concurrent takes. */
const concurrencyTests = ({ test }: StoreTests): void => {
  test("admits exactly as many concurrent takes as there are tokens", function* () {
    const mixed = { ...policies, burst: twenty }
    expect(admittedOf(yield* times(400, () => take(client("1", "a"), mixed)))).toBe(20)
    const left = { address: 80, key: 80, burst: 0 }
    expect(remainders(yield* take(client("1", "a"), mixed), mixed)).toEqual(left)
  })

  test("admits exactly as many when clients share an address or a key", function* () {
    const mixed = { ...policies, address: twenty }
    const sharing = ["a", "b", "c"].map((key) => client("1", key))
    const roaming = ["2", "3", "4"].map((address) => client(address, "d"))
    const clients = [...sharing, ...roaming].flatMap((one) => Array.from({ length: 50 }, () => one))
    // Twenty for the shared address, and twenty for each address with the same key.
    expect(admittedOf(yield* takeAll(clients, mixed))).toBe(80)
    expect(remainders(yield* take(client("5", "d"), mixed), mixed)).toMatchObject({ key: 39 })
  })

  test("tells each of many concurrent takes what its own client has left", function* () {
    const clients = Array.from({ length: 10 }, (_, index) => client("shared", `${index}`))
    for (const [index, one] of clients.entries()) yield* Effect.replicateEffect(take(one), index)
    const takes = yield* takeAll([...clients, ...clients])
    const left = takes.map((taken) => remainders(taken))
    for (const index of clients.keys()) {
      const keys = [left[index]?.key, left[index + clients.length]?.key]
      expect(keys.toSorted()).toEqual([98 - index, 99 - index])
    }
    expect(left.map(({ address }) => address).toSorted(descending)).toEqual(
      Array.from({ length: 20 }, (_, index) => 54 - index),
    )
  })

  test("refuses only those of many concurrent takes that lack a token", function* () {
    const one = { ...five, capacity: 1 }
    const mixed = { address: one, key: one, burst: five }
    // Each shares its key with the one before, and its address with the one behind.
    const clients = Array.from({ length: 40 }, (_, index) =>
      client(`${index >> 1}`, `${(index + 1) >> 1}`),
    )
    const takes = yield* takeAll(clients, mixed)
    const admitted = clients.filter((_, index) => takes[index]?.admitted)
    for (const [index, { address, keyId }] of clients.entries()) {
      const taken = [
        admitted.filter((other) => other.address === address).length,
        admitted.filter((other) => other.keyId === keyId).length,
      ]
      expect(Math.max(...taken)).toBe(1)
      if (takes[index]?.admitted === true) expect(taken).toEqual([1, 1])
    }
  })
}

/** When tokens return. */
const timeTests = ({ advance, clockErrorMillis, test }: StoreTests): void => {
  const expectFullAt = (
    taken: TakeResult,
    expected: Pick<TakeResult, keyof BucketPolicies>,
  ): void => {
    for (const bucket of ["address", "key", "burst"] as const) {
      const error = Math.abs(taken[bucket] - expected[bucket]) / 1000
      expect(error, bucket).toBeLessThanOrEqual(clockErrorMillis)
    }
  }

  test("returns when each bucket will be full, by the clock of the store", function* () {
    const mixed = { address: seven, key: twenty, burst: hundred }
    const first = yield* take(client("1", "a"), mixed)
    const second = yield* take(client("1", "a"), mixed)
    for (const [index, taken] of [first, second].entries()) {
      const after = (policy: BucketPolicy) => Micros(first.now + (index + 1) * policy.increment)
      expectFullAt(taken, { address: after(seven), key: after(twenty), burst: after(hundred) })
    }
  })

  test("admits a client after the wait that a refusal implies, and not a second earlier", function* () {
    const mixed = { ...policies, address: five }
    const one = take(stranger("1"), mixed)
    yield* Effect.replicateEffect(one, 5)
    const refused = yield* one
    expect(refused.admitted).toBe(false)
    const wait = waitMicros(refused.address, refused.now, five) / 1000
    yield* advance(Math.ceil(wait) - 1000)
    expect((yield* one).admitted).toBe(false)
    yield* advance(1000)
    expect((yield* one).admitted).toBe(true)
    expect((yield* one).admitted).toBe(false)
  })
}

export const rateLimitStoreSuite = (on: StoreTests): void => {
  const { advance, test } = on

  test("responds to a ping", function* () {
    yield* (yield* RateLimitStore).ping
  })
  bucketTests(on)
  concurrencyTests(on)
  timeTests(on)

  test.each([
    ["address", { ...policies, address: five }],
    ["key", { ...policies, key: five }],
    ["burst", { ...policies, burst: five }],
  ] as const)(
    "admits no more than the %s bucket holds, even a second before it is full",
    function* ([, mixed]) {
      const one = take(client("1", "a"), mixed)
      yield* one
      yield* advance(five.increment / 1000 - 1000)
      const takes = yield* Effect.replicateEffect(one, 5)
      expect(takes.map(({ admitted }) => admitted)).toEqual([true, true, true, true, false])
    },
  )

  modelTests(on)
}

const buckets = ["address", "key", "burst"] as const

/** Returns a client's wait after a refusal, in whole milliseconds. */
const waitOf = (taken: TakeResult, by: BucketPolicies): number =>
  Math.ceil(Math.max(...buckets.map((name) => waitMicros(taken[name], taken.now, by[name]))) / 1000)

/** Takes for clients at the same time. A refused client waits as told, and must then be admitted. */
const takeAsTold = Effect.fnUntraced(function* (
  { advance }: Pick<StoreTests, "advance">,
  clients: ReadonlyArray<LimitedClient>,
  by: BucketPolicies,
) {
  const first = yield* takeAll(clients, by)
  if (first.every(({ admitted }) => admitted)) return
  yield* advance(Math.max(...first.map((taken) => waitOf(taken, by))))
  const second = yield* takeAll(clients, by)
  expect(second.map(({ admitted }) => admitted)).toEqual(clients.map(() => true))
})

/** Clock errors while clients have used their buckets; afterwards, the clock is right. */
const errors = [
  ["was ahead by a day", dayMillis],
  ["was ahead by a year", 365 * dayMillis],
  ["is set back by a day", 0],
] as const

const lockoutTests = (on: StoreTests): void => {
  const { advance, describe, test } = on
  for (const name of buckets) {
    const mixed = { ...policies, [name]: five }
    describe(`the bucket of ${name}`, () => {
      test.each(errors)(
        "is used again by many clients as soon as they are told, after the clock %s",
        function* ([, by]) {
          const known = ["1", "2", "3", "4"].map((id) => client(id, id))
          const many = [...known, ...["5", "6", "7", "8"].map(stranger)]
          yield* advance(by)
          yield* Effect.forEach(many, (one) => take(one, mixed))
          yield* advance(by === 0 ? -dayMillis : -by)
          yield* takeAsTold(on, many, mixed)
          yield* takeAsTold(on, many, mixed)
        },
      )
    })
  }

  test("lets others at an address use it again after its clock was ahead", function* () {
    yield* advance(dayMillis)
    yield* take(client("1", "a"))
    yield* advance(-dayMillis)
    for (const one of [client("1", "b"), stranger("1"), client("2", "a")]) {
      yield* takeAsTold(on, [one], policies)
    }
  })
}

type ClockStep =
  | { readonly _tag: "Take"; readonly clients: ReadonlyArray<LimitedClient> }
  /** Elapsed time. */
  | { readonly _tag: "Pass"; readonly millis: number }
  /** The clock is set, while no time passes. */
  | { readonly _tag: "Set"; readonly millis: number }

const clockClients = [
  stranger("1"),
  client("1", "a"),
  client("2", "a"),
  client("1", "b"),
  client("3", "c"),
]

const clockSteps: fc.Arbitrary<ReadonlyArray<ClockStep>> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc
        .array(fc.constantFrom(...clockClients), { minLength: 1, maxLength: 4 })
        .map((chosen): ClockStep => ({ _tag: "Take", clients: chosen })),
    },
    {
      weight: 2,
      arbitrary: fc
        .integer({ min: 1, max: 40 })
        .map((hundreds): ClockStep => ({ _tag: "Pass", millis: hundreds * 100_000 })),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(-dayMillis, dayMillis, -3_600_000, 3_600_000, -100_000, 100_000)
        .map((millis): ClockStep => ({ _tag: "Set", millis })),
    },
  ),
  { maxLength: 40, size: "+1" },
)

const namesOf = ({ address, keyId }: LimitedClient) => [
  ["address", address] as const,
  ...(keyId === undefined ? [] : [["key", keyId] as const, ["burst", keyId] as const]),
]

/** Tracks the maximum tokens in buckets, by elapsed time. */
const ledger = () => {
  const tokens = new Map<string, { left: number; readonly policy: BucketPolicy }>()
  return {
    pass: (millis: number) => {
      for (const one of tokens.values()) {
        const gained = (millis * 1000) / one.policy.increment
        one.left = Math.min(one.policy.capacity, one.left + gained)
      }
    },
    // A clock set forward may fill buckets. One set back gives nobody a token.
    set: (millis: number) => {
      if (millis > 0) tokens.clear()
    },
    spend: (one: LimitedClient) => {
      for (const [name, id] of namesOf(one)) {
        const policy = modelPolicies[name]
        const bucket = tokens.get(`${name} ${id}`) ?? { left: policy.capacity, policy }
        tokens.set(`${name} ${id}`, bucket)
        expect(bucket.left, `${name} ${id}`).toBeGreaterThan(1 - 1e-6)
        bucket.left -= 1
      }
    },
  }
}

export const clockTests = (on: StoreTests): void => {
  lockoutTests(on)
  on.property(
    "never admits more than buckets hold nor longer refuses than it says, however its clock is set",
    clockSteps,
    Effect.fnUntraced(function* (sequence) {
      const most = ledger()
      for (const step of sequence) {
        if (step._tag === "Take") {
          const taken = yield* takeAll(step.clients, modelPolicies)
          const admitted = step.clients.filter((_, index) => taken[index]?.admitted)
          for (const one of admitted) most.spend(one)
        } else {
          yield* on.advance(step.millis)
          if (step._tag === "Pass") most.pass(step.millis)
          else most.set(step.millis)
        }
      }
      for (const one of clockClients) yield* takeAsTold(on, [one], modelPolicies)
    }),
  )
}
