/** Webhooks whose attempts fail. */

import { expect } from "@effect/vitest"
import type { Claim } from "@tenure/core/Outbox"
import * as Effect from "effect/Effect"
import { event, p1 } from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import {
  attempt,
  claim,
  claims,
  delivered,
  firstOf,
  leaseMillis,
  prepared,
  publishMany,
  retry,
  settle,
  theClaim,
  twoClaims,
} from "./steps.ts"

const day = 86_400_000

/** Declares the tests. */
export const failingTests = ({ advance, describe, test }: StoreTests): void => {
  describe("a failing webhook", () => {
    test("counts the failed attempts since the last success", () =>
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

    test.each([
      ["a retry", retry(0, 60_000)],
      ["a failure", { _tag: "Failed", attempt, holdMillis: 60_000 }],
    ] as const)("is not claimed while %s holds it, and holds up no other", ([, holding]) =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(2)
        yield* outbox.publish(event(p1))
        const { one: held, other } = yield* twoClaims
        yield* settle(held, holding)
        yield* settle(other, delivered)
        yield* outbox.publish(event(p1))
        const next = yield* theClaim
        expect(next.webhook.webhookId).toBe(other.webhook.webhookId)
        yield* settle(next, delivered)
        const { nextDueMillis } = yield* claim()
        expect(nextDueMillis).toBeGreaterThan(50_000)
        expect(nextDueMillis).toBeLessThanOrEqual(60_000)
        yield* advance(60_000)
        expect((yield* theClaim).webhook.webhookId).toBe(held.webhook.webhookId)
      }),
    )

    test("leaves room for others: a claim takes only so many deliveries of failing webhooks", () =>
      Effect.gen(function* () {
        const { webhooks } = yield* prepared(6)
        yield* publishMany(1)
        yield* Effect.forEach(yield* claims(4), (one) => settle(one, retry(0)))
        const failures = (all: ReadonlyArray<Claim>) =>
          all.map(({ webhook }) => webhook.failures).toSorted()
        const take = (failing: number) => claims(100, 100, 1000, failing)
        expect(failures(yield* take(0))).toEqual([0, 0])
        expect(yield* take(0)).toEqual([])
        const first = yield* take(3)
        expect(failures(first)).toEqual([1, 1, 1])
        const rest = yield* take(3)
        expect(failures(rest)).toEqual([1])
        const failing = [...first, ...rest].map(({ webhook }) => webhook.webhookId)
        expect(new Set(failing).size).toBe(4)
        yield* settle(yield* firstOf(first), delivered)
        yield* settle(yield* firstOf(rest), retry(0))
        yield* publishMany(1)
        expect(failures(yield* take(0))).toEqual([0, 0, 0])
        expect(webhooks).toHaveLength(6)
      }))

    test("is tried again in time after it failed while the clock was ahead", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        yield* outbox.publish(event(p1))
        yield* advance(day)
        yield* settle(yield* theClaim, retry(5000, 5000))
        yield* advance(-day)
        yield* advance(5000)
        yield* settle(yield* theClaim, delivered)
        yield* outbox.publish(event(p1))
        yield* theClaim
      }))

    test("is held no longer by a failure from when the clock was ahead", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        yield* outbox.publish(event(p1))
        yield* advance(day)
        yield* settle(yield* theClaim, { _tag: "Failed", attempt, holdMillis: 5000 })
        yield* advance(-day)
        yield* outbox.publish(event(p1))
        yield* advance(5000)
        yield* settle(yield* theClaim, { _tag: "Failed", attempt, holdMillis: 60_000 })
        yield* outbox.publish(event(p1))
        expect(yield* claims()).toEqual([])
        yield* advance(60_000)
        yield* theClaim
      }))

    test("is claimed again in time when a lease ends that began while the clock was ahead", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        yield* outbox.publish(event(p1))
        yield* advance(day)
        yield* theClaim
        yield* advance(-day)
        expect(yield* claims()).toEqual([])
        yield* advance(leaseMillis)
        yield* theClaim
      }))

    test("is no longer held after a successful attempt", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        yield* publishMany(2)
        const { one, other } = yield* twoClaims
        yield* settle(one, { _tag: "Failed", attempt, holdMillis: 60_000 })
        yield* settle(other, delivered)
        yield* outbox.publish(event(p1))
        expect(yield* claims()).toHaveLength(1)
      }))
  })
}
