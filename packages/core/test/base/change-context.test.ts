import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { readIdempotencyKey, repeatUntilMade } from "../../src/base/change-context.ts"
import { test } from "../support/test.ts"

// `operation.test.ts` tests a request's fingerprint.
test("the fingerprint of a call depends on its idempotency key", function* () {
  const fingerprintOf = (key: string, secret: string) =>
    Effect.map(
      readIdempotencyKey(key, undefined, "update", { headers: { "x-key": secret } }),
      ({ fingerprint }) => fingerprint,
    )
  const first = yield* fingerprintOf("a", "secret")
  expect(yield* fingerprintOf("a", "secret")).toBe(first)
  expect(yield* fingerprintOf("a", "other")).not.toBe(first)
  expect(yield* fingerprintOf("b", "secret")).not.toBe(first)
})

describe("a change that rests on what it has read", () => {
  const failingFirst = Effect.fnUntraced(function* (conflicts: number) {
    let attempts = 0
    const attempt = Effect.sync(() => (++attempts > conflicts ? attempts : undefined))
    const made = yield* Effect.forkChild(repeatUntilMade("The membership", attempt))
    yield* TestClock.adjust("20 seconds")
    return yield* Fiber.join(made)
  })

  test("is made again while others are faster, and gives way after twenty attempts", function* () {
    expect(yield* failingFirst(0)).toBe(1)
    expect(yield* failingFirst(19)).toBe(20)
    expect(yield* Effect.flip(failingFirst(20))).toMatchObject({
      _tag: "StoreUnavailable",
      message: "The membership was changed too often meanwhile.",
    })
  })
})
