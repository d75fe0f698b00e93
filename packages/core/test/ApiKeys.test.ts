import { describe, expect, it } from "@effect/vitest"
import { ApiKeys, type Options } from "@tenure/core/ApiKeys"
import { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { ProjectId } from "@tenure/core/Project"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"

/** A store of keys that counts how often it is asked, and can be held back with its answer. */
const watched = () => {
  const state = { asked: 0, answered: Latch.makeUnsafe(true) }
  const layer = Layer.provideMerge(
    Layer.effect(
      ApiKeyStore,
      Effect.map(ApiKeyStore, (store) => ({
        ...store,
        find: (one) => {
          state.asked++
          return Effect.tap(store.find(one), () => state.answered.await)
        },
      })),
    ),
    memory(),
  )
  return { state, layer }
}

const withKeys = <A, E>(
  test: (
    keys: ApiKeys["Service"],
    state: ReturnType<typeof watched>["state"],
  ) => Effect.Effect<A, E, ApiKeyStore>,
  options?: Options,
) => {
  const { layer, state } = watched()
  return Effect.gen(function* () {
    yield* (yield* MembershipStore).createProject(ProjectId("p1"))
    return yield* test(yield* ApiKeys, state)
  }).pipe(Effect.provide(Layer.provideMerge(ApiKeys.layer(options), layer)))
}

const issue = { projects: ["p1"], token: "a token" }

describe("whose a token is", () => {
  it.effect("is asked of the store once in ten seconds", () =>
    withKeys((keys, state) =>
      Effect.gen(function* () {
        const { id } = yield* keys.issue(issue)
        for (let second = 0; second < 10; second++) {
          expect((yield* keys.authenticate("a token"))?.id).toBe(id)
          expect(yield* keys.authenticate("nobody's")).toBeUndefined()
          yield* TestClock.adjust("1 second")
        }
        expect(state.asked).toBe(2)
        yield* keys.authenticate("a token")
        expect(state.asked).toBe(3)
      }),
    ),
  )

  it.effect("is asked each time if it is to be so", () =>
    withKeys(
      (keys, state) =>
        Effect.gen(function* () {
          yield* keys.authenticate("a token")
          yield* keys.authenticate("a token")
          expect(state.asked).toBe(2)
        }),
      { keyCacheLife: 0 },
    ),
  )

  it.effect("is known at once where a key was issued or revoked", () =>
    withKeys((keys) =>
      Effect.gen(function* () {
        expect(yield* keys.authenticate("a token")).toBeUndefined()
        const { id } = yield* keys.issue(issue)
        expect((yield* keys.authenticate("a token"))?.id).toBe(id)
        yield* keys.revoke(id)
        expect(yield* keys.authenticate("a token")).toBeUndefined()
      }),
    ),
  )

  it.effect("is known ten seconds after another process has revoked a key", () =>
    withKeys((keys) =>
      Effect.gen(function* () {
        const { id } = yield* keys.issue(issue)
        yield* keys.authenticate("a token")
        yield* (yield* ApiKeyStore).revoke(id, 0)
        expect((yield* keys.authenticate("a token"))?.id).toBe(id)
        yield* TestClock.adjust("10 seconds")
        expect(yield* keys.authenticate("a token")).toBeUndefined()
      }),
    ),
  )

  it.effect("is not remembered from before a revocation that overtook the answer", () =>
    withKeys((keys, state) =>
      Effect.gen(function* () {
        const { id } = yield* keys.issue(issue)
        yield* state.answered.close
        const asking = yield* Effect.forkChild(keys.authenticate("a token"), {
          startImmediately: true,
        })
        yield* keys.revoke(id)
        yield* state.answered.open
        yield* Fiber.join(asking)
        expect(yield* keys.authenticate("a token")).toBeUndefined()
      }),
    ),
  )

  it.effect("is asked anew after the clock was set back", () =>
    withKeys((keys, state) =>
      Effect.gen(function* () {
        yield* TestClock.setTime(1_000_000)
        yield* keys.issue(issue)
        yield* keys.authenticate("a token")
        yield* TestClock.setTime(0)
        yield* keys.authenticate("a token")
        expect(state.asked).toBe(2)
      }),
    ),
  )

  it.effect("is not forgotten for all the tokens that somebody guesses", () =>
    withKeys((keys, state) =>
      Effect.gen(function* () {
        yield* keys.issue(issue)
        yield* keys.authenticate("a token")
        for (let guess = 0; guess < 10_001; guess++) yield* keys.authenticate(`guess-${guess}`)
        const before = state.asked
        yield* keys.authenticate("a token")
        yield* keys.authenticate("guess-10000")
        expect(state.asked).toBe(before)
        yield* keys.authenticate("guess-0")
        expect(state.asked).toBe(before + 1)
      }),
    ),
  )

  it.effect("is forgotten of the key that was looked up longest ago, beyond 10,000", () =>
    withKeys((keys, state) =>
      Effect.gen(function* () {
        for (let count = 0; count < 10_001; count++) {
          yield* keys.issue({ projects: ["p1"], token: `t${count}` })
          yield* keys.authenticate(`t${count}`)
        }
        const before = state.asked
        yield* keys.authenticate("t10000")
        expect(state.asked).toBe(before)
        yield* keys.authenticate("t0")
        expect(state.asked).toBe(before + 1)
      }),
    ),
  )
})
