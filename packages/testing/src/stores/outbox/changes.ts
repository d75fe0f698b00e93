/** Dispatchers wait for new deliveries. */

import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { event, p1 } from "../../support/fixtures.ts"
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
