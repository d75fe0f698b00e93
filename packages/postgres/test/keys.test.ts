/** API key look-ups, which share statements. */

import { expect } from "@effect/vitest"
import { digestToken } from "@tenure/core/internal"
import { ApiKeyStore } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { duringSteps, sql, testsOn, waitingOn } from "./harness.ts"

const schema = "keys"
const test = testsOn(schema)
const { apiKey, context, p1, p2 } = Fixture

const find = (token: string) => ApiKeyStore.use((store) => store.find(digestToken(token)))
const together = { concurrency: "unbounded" } as const

test("look-ups at the same time find keys among thousands of guesses", function* () {
  const store = yield* ApiKeyStore
  const keys = [apiKey("first", p1), apiKey("second", p2)]
  yield* Effect.forEach(keys, (key) => store.add(key, context))
  const guesses = Array.from({ length: 3000 }, (_, index) => `guess ${index}`)
  const tokens = ["first", ...guesses, "second", "first"]
  const found = yield* Effect.forEach(tokens, find, together)
  expect([found[0], ...found.slice(-2)]).toEqual([keys[0], keys[1], keys[0]])
  expect(found.filter((key) => key !== undefined)).toHaveLength(3)
})

test("a look-up is answered if others in its statement are given up", function* () {
  const key = apiKey("first", p1)
  yield* (yield* ApiKeyStore).add(key, context)
  const found = yield* duringSteps(
    sql(`LOCK TABLE ${schema}.api_keys IN ACCESS EXCLUSIVE MODE`),
    function* () {
      const givenUp = yield* Effect.forkChild(Effect.forEach(["first", "guess"], find, together))
      const waiting = yield* Effect.forkDetach(find("first"))
      yield* waitingOn(schema)
      yield* Fiber.interrupt(givenUp)
      return waiting
    },
  )
  expect(yield* Fiber.join(found)).toEqual(key)
})
