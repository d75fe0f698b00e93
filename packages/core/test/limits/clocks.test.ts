/** Limits while the wall clock is set forward and back, and the store fails now and then. */

import { expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { StoreUnavailable } from "../../src/base/errors.ts"
import * as Setting from "../../src/base/setting.ts"
import { currentUnixMillis, toMicros } from "../../src/base/time.ts"
import { ApiKeyId } from "../../src/base/values.ts"
import { type LimitedClient, RateLimitStore, makeBucketTable } from "../../src/limits/buckets.ts"
import { RateLimiter, rateLimiterOptions as limiterOptions } from "../../src/limits/rate-limiter.ts"

const day = 86_400_000

const settings = Setting.parse(limiterOptions, {
  perAddress: { limit: 8, window: "80 seconds", capacity: 6 },
  perKey: { limit: 5, window: "100 seconds" },
  burst: { limit: 3, window: "12 seconds" },
  suspension: { refusals: 4, within: "1 minute", duration: "2 minutes" },
  onStoreFailure: "local",
})

/** How much the buckets hold, and in how many milliseconds a token comes back. */
const limits = {
  address: { capacity: 6, tokenMillis: 10_000 },
  key: { capacity: 5, tokenMillis: 20_000 },
  burst: { capacity: 3, tokenMillis: 4000 },
} as const

const clients: ReadonlyArray<LimitedClient> = [
  { address: "1", keyId: undefined },
  { address: "1", keyId: ApiKeyId("a") },
  { address: "2", keyId: ApiKeyId("a") },
  { address: "1", keyId: ApiKeyId("b") },
  { address: "3", keyId: ApiKeyId("c") },
]

/** Returns a store that follows the wall clock, as a database does, and can be down. */
const wallStore = () => {
  const table = makeBucketTable()
  const state = { isDown: false }
  const layer = Layer.succeed(RateLimitStore, {
    ping: Effect.void,
    take: (client, policies) =>
      Effect.flatMap(currentUnixMillis, (unix) =>
        state.isDown
          ? Effect.fail(new StoreUnavailable({ cause: "down" }))
          : Effect.succeed(table.take(client, policies, toMicros(unix))),
      ),
  })
  return { state, layer }
}

/** Tracks the most tokens each bucket can have. */
const ledger = () => {
  const tokens = new Map<string, number>()
  const namesOf = ({ address, keyId }: LimitedClient) => [
    ["address", address] as const,
    ...(keyId === undefined ? [] : [["key", keyId] as const, ["burst", keyId] as const]),
  ]
  return {
    pass: (millis: number) => {
      for (const name of ["address", "key", "burst"] as const) {
        const { capacity, tokenMillis } = limits[name]
        for (const [id, left] of tokens) {
          if (!id.startsWith(name)) continue
          tokens.set(id, Math.min(capacity, left + millis / tokenMillis))
        }
      }
    },
    fill: () => tokens.clear(),
    spend: (client: LimitedClient) => {
      for (const [name, id] of namesOf(client)) {
        const left = tokens.get(`${name} ${id}`) ?? limits[name].capacity
        expect(left, `${name} ${id}`).toBeGreaterThan(1 - 1e-6)
        tokens.set(`${name} ${id}`, left - 1)
      }
    },
  }
}

type Step =
  | { readonly _tag: "Take"; readonly client: LimitedClient; readonly count: number }
  | { readonly _tag: "Pass"; readonly millis: number }
  | { readonly _tag: "Set"; readonly millis: number }
  | { readonly _tag: "Fail"; readonly isDown: boolean }

const sequences: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        _tag: fc.constant("Take" as const),
        client: fc.constantFrom(...clients),
        count: fc.integer({ min: 1, max: 6 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        _tag: fc.constant("Pass" as const),
        millis: fc.integer({ min: 1, max: 60_000 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        _tag: fc.constant("Set" as const),
        millis: fc.constantFrom(-day, day, -3_600_000, 3_600_000, -15_000, 15_000),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ _tag: fc.constant("Fail" as const), isDown: fc.boolean() }),
    },
  ),
  { maxLength: 60 },
)

/** A clock with settable wall time. Its monotonic time follows the test alone. */
const settableClock = Effect.gen(function* () {
  const testClock = yield* TestClock.testClockWith(Effect.succeed)
  let offset = 1_795_000_000_000
  const now = () => testClock.currentTimeMillisUnsafe() + offset
  const clock: Clock.Clock = {
    ...testClock,
    currentTimeMillisUnsafe: now,
    currentTimeMillis: Effect.sync(now),
  }
  return {
    clock,
    pass: (millis: number) => testClock.adjust(millis),
    set: (millis: number) => {
      offset += millis
    },
  }
})

// No refusal lasts longer than a suspension, and a token comes back sooner.
const longestSeconds = 120

/** Runs the steps, and then makes every client obey its refusals. */
const run = Effect.fnUntraced(function* (sequence: ReadonlyArray<Step>) {
  const { clock, pass, set } = yield* settableClock
  const { layer, state } = wallStore()
  const work = Effect.gen(function* () {
    const { take } = yield* RateLimiter
    const ofStore = ledger()
    const ofProcess = ledger()
    for (const step of sequence) {
      switch (step._tag) {
        case "Take":
          for (let count = 0; count < step.count; count++) {
            const { _tag } = yield* take(step.client)
            if (_tag === "Admitted") (state.isDown ? ofProcess : ofStore).spend(step.client)
          }
          break
        case "Pass":
          yield* pass(step.millis)
          ofStore.pass(step.millis)
          ofProcess.pass(step.millis)
          break
        case "Set":
          set(step.millis)
          // Only the store's buckets may be full then.
          if (step.millis > 0) ofStore.fill()
          break
        case "Fail":
          state.isDown = step.isDown
      }
    }
    state.isDown = false
    for (const client of clients) {
      // The first refusal may predate the clock's correction. The store's next answers are exact, for the address
      // and then for the key.
      let refusals = 0
      let decision = yield* take(client)
      while (decision._tag === "Refused") {
        refusals++
        expect(refusals).toBeLessThanOrEqual(3)
        expect(decision.retryAfter).toBeLessThanOrEqual(longestSeconds)
        yield* pass(decision.retryAfter * 1000)
        decision = yield* take(client)
      }
      expect(decision._tag).toBe("Admitted")
    }
  })
  yield* work.pipe(
    Effect.provide(Layer.provide(RateLimiter.layer(settings), layer)),
    Effect.provideService(Clock.Clock, clock),
  )
})

it.effect("limits hold, and refusals end as told, however the wall clock is set", () =>
  Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(sequences, (sequence) =>
        Effect.runPromise(Effect.provide(run(sequence), TestClock.layer())),
      ),
      { numRuns: 300 },
    ),
  ),
)
