/** Stores whose clock is ahead for a while, or is set back. */

import { expect } from "@effect/vitest"
import { waitMicros } from "@tenure/core/internal"
import type { BucketPolicies, BucketPolicy, LimitedClient, TakeResult } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import type { StoreTests } from "./declare.ts"
import { client, five, modelPolicies, policies, stranger, take, takeAll } from "./rate-limits.ts"
import { dayMillis } from "./steps.ts"

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

type Step =
  | { readonly _tag: "Take"; readonly clients: ReadonlyArray<LimitedClient> }
  /** Elapsed time. */
  | { readonly _tag: "Pass"; readonly millis: number }
  /** The clock is set, while no time passes. */
  | { readonly _tag: "Set"; readonly millis: number }

const clients = [
  stranger("1"),
  client("1", "a"),
  client("2", "a"),
  client("1", "b"),
  client("3", "c"),
]

const steps: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc
        .array(fc.constantFrom(...clients), { minLength: 1, maxLength: 4 })
        .map((chosen): Step => ({ _tag: "Take", clients: chosen })),
    },
    {
      weight: 2,
      arbitrary: fc
        .integer({ min: 1, max: 40 })
        .map((hundreds): Step => ({ _tag: "Pass", millis: hundreds * 100_000 })),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(-dayMillis, dayMillis, -3_600_000, 3_600_000, -100_000, 100_000)
        .map((millis): Step => ({ _tag: "Set", millis })),
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

/** Declares the tests. */
export const clockTests = (on: StoreTests): void => {
  lockoutTests(on)
  on.property(
    "never admits more than buckets hold nor longer refuses than it says, however its clock is set",
    steps,
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
      for (const one of clients) yield* takeAsTold(on, [one], modelPolicies)
    }),
  )
}
