import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { readIdempotencyKey, repeatUntilMade } from "../../src/base/change-context.ts"
import { performWithIdempotency } from "../../src/http/operation.ts"
import type { ApiRequest } from "../../src/http/request.ts"
import { anonymous } from "../../src/keys/identity.ts"

const params = {
  project_id: "",
  user_id: "",
  webhook_id: "",
  event_id: "",
  key_id: "",
  bulk_extension_id: "",
}

const ofRequest = Effect.fnUntraced(function* (key: string, secret: string) {
  const request: ApiRequest = {
    method: "PATCH",
    path: "/v2/projects/p1/integrations/webhooks/w1",
    headers: { "idempotency-key": key },
    body: { _tag: "Parsed", value: { headers: { "x-key": secret } } },
    remoteAddress: undefined,
  }
  let fingerprint: string | undefined
  yield* performWithIdempotency(
    { request, requestId: "r1", principal: anonymous, params },
    (call) => {
      fingerprint = call.once?.fingerprint
      return Effect.succeed({ message: "Done.", data: null })
    },
  )
  return fingerprint
})

const ofCall = (key: string, secret: string) =>
  Effect.map(
    readIdempotencyKey(key, undefined, "update", { headers: { "x-key": secret } }),
    ({ fingerprint }) => fingerprint,
  )

it.effect.each([
  ["request", ofRequest],
  ["call", ofCall],
] as const)("the fingerprint of a %s depends on its idempotency key", ([, fingerprintOf]) =>
  Effect.gen(function* () {
    const first = yield* fingerprintOf("a", "secret")
    expect(yield* fingerprintOf("a", "secret")).toBe(first)
    expect(yield* fingerprintOf("a", "other")).not.toBe(first)
    expect(yield* fingerprintOf("b", "secret")).not.toBe(first)
  }),
)

describe("a change that rests on what it has read", () => {
  const failingFirst = (conflicts: number) => {
    let attempts = 0
    const attempt = Effect.sync(() => (++attempts > conflicts ? attempts : undefined))
    return Effect.gen(function* () {
      const made = yield* Effect.forkChild(repeatUntilMade("The membership", attempt))
      yield* TestClock.adjust("20 seconds")
      return yield* Fiber.join(made)
    })
  }

  it.effect("is made again while others are faster", () =>
    Effect.gen(function* () {
      expect(yield* failingFirst(0)).toBe(1)
      expect(yield* failingFirst(19)).toBe(20)
    }),
  )

  it.effect("gives way after twenty attempts", () =>
    Effect.gen(function* () {
      expect(yield* Effect.flip(failingFirst(20))).toMatchObject({
        _tag: "StoreUnavailable",
        message: "The membership was changed too often meanwhile.",
      })
    }),
  )
})
