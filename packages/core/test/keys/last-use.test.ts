import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { hostOrigin } from "../../src/base/change-context.ts"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { faultsLayer } from "../../src/base/faults.ts"
import { type ApiKeyId, ProjectId } from "../../src/base/values.ts"
import { digestToken } from "../../src/keys/api-key.ts"
import { ApiKeys } from "../../src/keys/api-keys.ts"
import { ApiKeyStore } from "../../src/keys/store.ts"
import { MembershipStore } from "../../src/memberships/store.ts"

/** Keys on a store that records its writes of last uses, holds them back, or fails. */
const withKeys = <A, E>(
  test: (
    keys: ApiKeys["Service"],
    state: ReturnType<typeof makeState>,
  ) => Effect.Effect<A, E, ApiKeyStore>,
) => {
  const state = makeState()
  const store = Layer.effect(
    ApiKeyStore,
    Effect.map(ApiKeyStore, (right) => ({
      ...right,
      touch: (uses) => {
        state.writes.push(uses)
        return state.isDown
          ? Effect.fail(new StoreUnavailable({ cause: "away" }))
          : Effect.andThen(state.gate.await, right.touch(uses))
      },
    })),
  ).pipe(Layer.provideMerge(memory()))
  const layer = ApiKeys.layer().pipe(
    Layer.provideMerge(store),
    Layer.provide(faultsLayer({ onError: ({ message }) => state.faults.push(message) })),
  )
  return Effect.gen(function* () {
    yield* (yield* MembershipStore).createProject(ProjectId("p1"), { origin: hostOrigin, at: 0 })
    return yield* test(yield* ApiKeys, state)
  }).pipe(Effect.provide(layer))
}

const makeState = () => ({
  writes: Array<ReadonlyMap<ApiKeyId, number>>(),
  faults: Array<string>(),
  gate: Latch.makeUnsafe(true),
  isDown: false,
})

const issue = (keys: ApiKeys["Service"], token: string) => keys.issue({ projects: ["p1"], token })

const lastUseOf = (token: string) =>
  ApiKeyStore.use((store) => Effect.map(store.find(digestToken(token)), (key) => key?.lastUsedAt))

describe("the last use of a key", () => {
  it.effect("is recorded at once, and about once a minute however many requests there are", () =>
    withKeys((keys, { writes }) =>
      Effect.gen(function* () {
        const { id } = yield* issue(keys, "a token")
        expect(yield* lastUseOf("a token")).toBeUndefined()
        for (let second = 0; second < 180; second++) {
          for (let count = 0; count < 5; count++) yield* keys.authenticate("a token")
          yield* TestClock.adjust("1 second")
        }
        expect(writes).toEqual([0, 60_000, 120_000].map((at) => new Map([[id, at]])))
        expect(yield* keys.list()).toMatchObject([{ id, lastUsedAt: 120_000 }])
      }),
    ),
  )

  it.effect("is recorded for many keys in one write a second", () =>
    withKeys((keys, { writes }) =>
      Effect.gen(function* () {
        const tokens = Array.from({ length: 20 }, (_, index) => `token ${index}`)
        yield* Effect.forEach(tokens, (token) => issue(keys, token))
        yield* Effect.forEach(tokens, keys.authenticate)
        yield* TestClock.adjust("1 second")
        yield* Effect.forEach(tokens, keys.authenticate)
        yield* TestClock.adjust("10 seconds")
        expect(writes.length).toBeLessThanOrEqual(2)
        expect(writes.reduce((total, { size }) => total + size, 0)).toBe(20)
      }),
    ),
  )

  it.effect("does not delay requests, and waits for one write at a time", () =>
    withKeys((keys, { gate, writes }) =>
      Effect.gen(function* () {
        yield* gate.close
        const { id } = yield* issue(keys, "a token")
        yield* issue(keys, "another")
        for (const token of ["a token", "another"]) {
          expect(yield* keys.authenticate(token)).toBeDefined()
          yield* TestClock.adjust("5 minutes")
        }
        expect(writes).toEqual([new Map([[id, 0]])])
        yield* gate.open
        yield* TestClock.adjust("1 second")
        expect(yield* lastUseOf("a token")).toBe(0)
        expect(yield* lastUseOf("another")).toBe(300_000)
      }),
    ),
  )

  it.effect("is recorded when the store is back, whose outage is reported once", () =>
    withKeys((keys, state) =>
      Effect.gen(function* () {
        yield* issue(keys, "a token")
        state.isDown = true
        for (let round = 0; round < 3; round++) {
          expect(yield* keys.authenticate("a token")).toBeDefined()
          yield* TestClock.adjust("10 seconds")
        }
        expect(state.writes.length).toBe(3)
        expect(state.faults).toEqual(["The last use of API keys cannot be recorded"])
        state.isDown = false
        yield* keys.authenticate("a token")
        yield* TestClock.adjust("1 second")
        expect(yield* lastUseOf("a token")).toBe(30_000)
      }),
    ),
  )

  it.effect("is not recorded for guessed tokens, and for revoked and expired keys", () =>
    withKeys((keys, { writes }) =>
      Effect.gen(function* () {
        const { id } = yield* issue(keys, "revoked")
        yield* keys.revoke(id)
        yield* keys.issue({ projects: ["p1"], token: "expired", expiresAt: new Date(1000) })
        yield* TestClock.adjust("1 second")
        for (const token of ["revoked", "expired", "a guess"]) yield* keys.authenticate(token)
        yield* TestClock.adjust("1 minute")
        expect(writes).toEqual([])
      }),
    ),
  )
})
