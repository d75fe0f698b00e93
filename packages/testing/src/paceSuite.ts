/** How every `Outbox` takes down how webhooks fare, and leaves alone those that are held. */

import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fixture from "./fixtures.ts"
import {
  attempt,
  claim,
  claims,
  delivered,
  prepared,
  retry,
  settle,
  theClaim,
} from "./outboxSteps.ts"
import { type StoreHarness, testOn } from "./StoreHarness.ts"

const { event, p1 } = Fixture

/** Declares the suite. */
export const paceSuite = (name: string, harness: StoreHarness): void => {
  const test = testOn(harness)
  const { advance } = harness

  describe(`${name}: Outbox, webhooks that fail`, () => {
    test("are known by the attempts that have failed since one succeeded", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        yield* outbox.publish(event(p1))
        const failing: Array<number | undefined> = []
        for (const expected of [0, 1, 2]) {
          const one = yield* theClaim
          expect(one.webhook.failures).toBe(expected)
          failing.push(one.webhook.failingSince)
          yield* settle(one, retry(0))
        }
        expect(failing[0]).toBeUndefined()
        expect(failing[1]).toEqual(expect.any(Number))
        expect(failing[2]).toBe(failing[1])
        yield* settle(yield* theClaim, delivered)
        yield* outbox.publish(event(p1))
        const { webhook } = yield* theClaim
        expect([webhook.failures, webhook.failingSince]).toEqual([0, undefined])
      }))

    test("are left alone while they are held, and no others", () =>
      Effect.gen(function* () {
        const { outbox, webhooks } = yield* prepared(2)
        yield* outbox.publish(event(p1))
        const [one, other] = yield* claims()
        if (one === undefined || other === undefined) return yield* Effect.die("nothing claimed")
        yield* settle(one, retry(0, 60_000))
        yield* settle(other, delivered)
        yield* outbox.publish(event(p1))
        const free = webhooks.find(({ id }) => id !== one.webhook.webhookId)
        const claimed = yield* claims()
        expect(claimed.map(({ webhook }) => webhook.webhookId)).toEqual([free?.id])
        for (const again of claimed) yield* settle(again, delivered)
        const { nextDueMillis } = yield* claim()
        expect(nextDueMillis).toBeGreaterThan(50_000)
        expect(nextDueMillis).toBeLessThanOrEqual(60_000)
        yield* advance(60_000)
        expect(yield* claims()).toHaveLength(2)
      }))

    test("are held no longer once an attempt has succeeded", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        yield* outbox.publish(event(p1))
        yield* outbox.publish(event(p1))
        const [one, other] = yield* claims()
        if (one === undefined || other === undefined) return yield* Effect.die("nothing claimed")
        yield* settle(one, { _tag: "Failed", attempt, holdMillis: 60_000 })
        yield* settle(other, delivered)
        yield* outbox.publish(event(p1))
        expect(yield* claims()).toHaveLength(1)
      }))
  })
}
