/** Time with effects: all effects in `it.effect` follow its `TestClock`, including Tenure. */

import { describe, expect, it } from "@effect/vitest"
import type { TenureOptions } from "@tenure/core"
import { Events, Memberships, RateLimiter, Webhooks, tenureLayer } from "@tenure/core/effect"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { isMember } from "../src/effects.ts"
import { recording } from "./recording.ts"

const projectId = "club"
const member = { projectId, userId: "1" }

const TenureTest = (options: TenureOptions = {}) =>
  // Otherwise Tenure looks for ends twice in each second from 1970 on.
  tenureLayer({ expiry: false, ...options }).pipe(Layer.provide(memory()))

describe("on the test clock", () => {
  it.effect("a membership expires", () =>
    Effect.gen(function* () {
      const { createProject, grant } = yield* Memberships
      yield* TestClock.setTime(Date.parse("2030-01-01T00:00:00.000Z"))
      yield* createProject(projectId)
      yield* grant({ ...member, endDate: "2030-01-31T00:00:00.000Z" })
      yield* TestClock.adjust("29 days")
      expect(yield* isMember(member)).toBe(true)
      yield* TestClock.adjust("1 day")
      expect(yield* isMember(member)).toBe(false)
    }).pipe(Effect.provide(TenureTest())),
  )

  it.effect("a limit comes back after its window", () =>
    Effect.gen(function* () {
      const { take } = yield* RateLimiter
      const next = Effect.map(
        take({ address: "203.0.113.1", keyId: undefined }),
        ({ _tag }) => _tag,
      )
      expect([yield* next, yield* next]).toEqual(["Admitted", "Refused"])
      yield* TestClock.adjust("1 minute")
      expect(yield* next).toBe("Admitted")
    }).pipe(
      Effect.provide(TenureTest({ rateLimits: { perAddress: { limit: 1, window: "1 minute" } } })),
    ),
  )

  it.effect("a webhook that fails is tried again after four to six seconds", () => {
    const { sent, transport } = recording(500)
    return Effect.gen(function* () {
      const { createProject } = yield* Memberships
      const { create } = yield* Webhooks
      const { publish } = yield* Events
      yield* createProject(projectId)
      yield* create({ projectId, url: "https://receiver.example/" })
      yield* publish({ projectId, type: "payment.completed", data: { amount: 5 } })
      yield* TestClock.adjust("3900 millis")
      expect(sent).toHaveLength(1)
      yield* TestClock.adjust("2200 millis")
      expect(sent).toHaveLength(2)
    }).pipe(Effect.provide(TenureTest({ transport })))
  })
})
