/** Dispatchers wait for new deliveries. */

import { expect } from "@effect/vitest"
import { MembershipStore } from "@tenure/core/MembershipStore"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { change, event, in2027, p1, u1 } from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import { prepared, released, settle, theClaim } from "./steps.ts"

/** Declares the tests. */
export const changesTests = ({ describe, test }: StoreTests): void => {
  describe("changes", () => {
    test("waits for a publication", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        const waiting = yield* Effect.forkChild(outbox.nextChange, { startImmediately: true })
        expect(waiting.pollUnsafe()).toBeUndefined()
        yield* outbox.publish(event(p1))
        yield* Fiber.join(waiting)
      }))

    test("returns immediately after an earlier publication", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        yield* outbox.publish(event(p1))
        yield* outbox.nextChange
      }))

    test("returns when a change of a membership is published", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        const waiting = yield* Effect.forkChild(outbox.nextChange, { startImmediately: true })
        const memberships = yield* MembershipStore
        yield* memberships.grant({ ...change(p1), userId: u1, endDate: in2027 })
        yield* Fiber.join(waiting)
      }))

    test("returns when a claim is released", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        yield* outbox.publish(event(p1))
        yield* outbox.nextChange
        yield* settle(yield* theClaim, released)
        yield* outbox.nextChange
      }))
  })
}
