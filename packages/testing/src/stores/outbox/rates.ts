/** The rate of a webhook: how many of its deliveries are claimed in a second. */

import { expect } from "@effect/vitest"
import { type StoredWebhook, webhookRatePolicy } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { event, occasion, p1 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { addWebhook, expectFailure, firstOf } from "../steps.ts"
import {
  claim,
  claims,
  delivered,
  preparedWith,
  publishMany,
  released,
  retry,
  selected,
  settle,
  theClaim,
  updateWebhook,
  webhookIdsOf,
} from "./steps.ts"

/** Prepares an outbox and a project with one webhook that has a rate: one attempt a second, unless given. */
const preparedRate = (more: Partial<StoredWebhook> = {}) => preparedWith({ rate: 1, ...more })

/** Declares the tests. */
export const rateTests = (on: StoreTests): void => {
  const { advance, test } = on

  on.describe("a webhook with a rate", () => {
    test("is claimed as often, and returns when the next delivery may be claimed", function* () {
      yield* preparedRate()
      yield* publishMany(3)
      for (const left of [2, 1, 0]) {
        const taken = yield* claim()
        expect([taken.claims.length, taken.keptBack]).toEqual([1, []])
        if (left === 0) return
        const waiting = yield* claim()
        expect([waiting.claims, waiting.keptBack]).toEqual([[], []])
        for (const { nextDueMillis = Infinity } of [taken, waiting]) {
          expect(nextDueMillis).toBeGreaterThan(0)
          expect(nextDueMillis).toBeLessThanOrEqual(1000)
        }
        yield* advance(waiting.nextDueMillis ?? 0)
      }
    })

    test("begins with the deliveries of a quarter of a second, and has no more after a pause", function* () {
      yield* preparedRate({ rate: 40 })
      yield* publishMany(25)
      const { capacity } = webhookRatePolicy(40)
      const first = yield* claim()
      expect([first.claims.length, first.nextDueMillis]).toEqual([capacity, 25])
      yield* advance(60_000)
      expect(yield* claims()).toHaveLength(capacity)
    })

    test("counts retries, replays and released deliveries, and prefetches none", function* () {
      const { outbox, ref, webhook } = yield* preparedRate()
      const { id } = firstOf(yield* publishMany(1))
      const again = Effect.gen(function* () {
        const early = yield* claim({ ahead: new Map([[webhook.id, 10]]) })
        expect(early.claims).toEqual([])
        yield* advance(early.nextDueMillis ?? 0)
        return yield* theClaim
      })
      yield* settle(yield* theClaim, retry(0))
      yield* settle(yield* again, released)
      yield* settle(yield* again, delivered)
      yield* outbox.replay(ref, id)
      yield* settle(yield* again, delivered)
      yield* outbox.replayMany(ref, selected(["delivered"]))
      expect((yield* again).event.id).toBe(id)
    })

    test("delays no other webhook of the project", function* () {
      const { webhook } = yield* preparedRate()
      const other = yield* addWebhook()
      yield* publishMany(5)
      const claimed = webhookIdsOf(yield* claims())
      const five = Array.from({ length: 5 }, () => other.id)
      expect(claimed.toSorted()).toEqual([webhook.id, ...five].toSorted())
    })

    test("follows a change of it from the next claim on", function* () {
      const { webhook } = yield* preparedRate({ rate: undefined })
      const set = (before: number | undefined, rate: number | undefined) =>
        updateWebhook(webhook, { rate: before }, { rate })
      yield* publishMany(30)
      expect(yield* claims({ limit: 3 })).toHaveLength(3)
      yield* set(undefined, 40)
      expect(yield* claims()).toHaveLength(10)
      yield* set(40, 1)
      expect(yield* claims()).toHaveLength(0)
      // The bucket is empty, whatever its size was.
      yield* advance(1000)
      expect(yield* claims()).toHaveLength(1)
      yield* set(1, undefined)
      expect(yield* claims()).toHaveLength(16)
      yield* expectFailure("WebhookConflict", set(1, 2))
    })

    test("makes nobody wait for a webhook that is held, disabled or without deliveries", function* () {
      const { store, webhook } = yield* preparedRate()
      yield* publishMany(1)
      expect((yield* claim()).nextDueMillis).toBeGreaterThan(1000)
      yield* publishMany(1)
      yield* updateWebhook(webhook, {}, { disabled: { at: 5, by: "request" } })
      const waiting = yield* claim()
      expect(waiting.claims).toEqual([])
      expect(waiting.nextDueMillis).toBeGreaterThan(1000)
      yield* store.enable(p1, webhook.id, occasion)
      yield* advance(1000)
      expect(yield* claims()).toHaveLength(1)
    })

    test("holds for an ordered webhook, which waits for a token once an event has ended", function* () {
      const { outbox } = yield* preparedRate({ ordered: true })
      for (const each of [1, 2]) yield* outbox.publish(event(p1, `test.happened${each}`, "ada"))
      const one = yield* theClaim
      expect(yield* claims()).toEqual([])
      yield* outbox.nextChange
      yield* settle(one, delivered)
      expect(yield* outbox.nextChange).toEqual({ _tag: "Due" })
      const early = yield* claim()
      expect(early.claims).toEqual([])
      yield* advance(early.nextDueMillis ?? 0)
      expect(yield* claims()).toHaveLength(1)
    })
  })
}
