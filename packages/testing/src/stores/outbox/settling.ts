/** Dispatchers settle the deliveries that they have claimed. */

import { expect } from "@effect/vitest"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import { event, p1 } from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import {
  answered,
  attempt,
  claims,
  delivered,
  deliveriesOf,
  failed,
  firstOf,
  gone,
  leaseMillis,
  prepared,
  preparedWebhook,
  publishMany,
  released,
  retry,
  settle,
  statesOf,
  theClaim,
  timeout,
  twoClaims,
} from "./steps.ts"

/** Declares the tests. */
export const settlingTests = ({ advance, describe, test }: StoreTests): void => {
  describe("settle", () => {
    test("ends a successful delivery", () =>
      Effect.gen(function* () {
        const { outbox, webhook } = yield* preparedWebhook
        const published = event(p1)
        yield* outbox.publish(published)
        const one = yield* theClaim
        expect(yield* settle(one, delivered)).toBe("Settled")
        expect(yield* settle(one, delivered)).toBe("Lapsed")
        yield* advance(10 * leaseMillis)
        expect(yield* claims()).toEqual([])
        expect(yield* firstOf(yield* deliveriesOf(webhook))).toMatchObject({
          eventId: published.id,
          webhookId: webhook.id,
          state: "delivered",
          attempts: [answered(200)],
        })
      }))

    test("delays a retry, and counts attempts", () =>
      Effect.gen(function* () {
        const { outbox, webhook } = yield* preparedWebhook
        yield* outbox.publish(event(p1))
        expect(yield* settle(yield* theClaim, retry(60_000))).toBe("Settled")
        yield* advance(58_000)
        expect(yield* claims()).toEqual([])
        yield* advance(2000)
        const second = yield* theClaim
        expect(second.attemptNumber).toBe(2)
        yield* settle(second, failed)
        yield* advance(100 * leaseMillis)
        expect(yield* claims()).toEqual([])
        expect(yield* firstOf(yield* deliveriesOf(webhook))).toMatchObject({
          state: "failed",
          attempts: [attempt, timeout],
        })
      }))

    test("makes a released delivery claimable again, without an attempt", () =>
      Effect.gen(function* () {
        const { outbox, webhook } = yield* preparedWebhook
        yield* outbox.publish(event(p1))
        expect(yield* settle(yield* theClaim, released)).toBe("Settled")
        expect((yield* theClaim).attemptNumber).toBe(1)
        expect(yield* firstOf(yield* deliveriesOf(webhook))).toMatchObject({
          state: "waiting",
          attempts: [],
        })
      }))

    test("disables a webhook that is gone: its deliveries fail and stay visible", () =>
      Effect.gen(function* () {
        const { outbox, webhooks } = yield* prepared(2)
        const webhook = yield* firstOf(webhooks)
        yield* publishMany(2)
        const own = (yield* claims(2)).filter((one) => one.webhook.webhookId === webhook.id)
        expect(yield* settle(yield* firstOf(own), gone())).toBe("WebhookDisabled")
        yield* outbox.publish(event(p1))
        const rest = yield* claims()
        // Two events, and the announcement between them.
        expect(rest.map((one) => JSON.parse(one.event.body).type)).toEqual([
          "test.happened",
          "webhook.disabled",
          "test.happened",
        ])
        expect(rest.every((one) => one.webhook.webhookId !== webhook.id)).toBe(true)
        expect(yield* statesOf(webhook)).toEqual(["failed", "failed"])
        const listed = yield* (yield* WebhookStore).list(p1)
        expect(listed.map(({ disabledAt }) => disabledAt !== undefined)).toEqual([true, false])
      }))

    test("announces once that a webhook is gone", () =>
      Effect.gen(function* () {
        const { webhooks } = yield* prepared(2)
        const webhook = yield* firstOf(webhooks)
        yield* publishMany(2)
        const own = (yield* claims()).filter((one) => one.webhook.webhookId === webhook.id)
        expect(yield* Effect.forEach(own, (one) => settle(one, gone()))).toEqual([
          "WebhookDisabled",
          "Settled",
        ])
        const types = (yield* claims()).map((one) => JSON.parse(one.event.body).type)
        expect(types).toEqual(["webhook.disabled"])
      }))

    test("changes nothing with a claim whose lease has ended", () =>
      Effect.gen(function* () {
        const { outbox, webhooks } = yield* prepared(2)
        yield* outbox.publish(event(p1))
        const { one, other } = yield* twoClaims
        yield* settle(other, delivered)
        yield* advance(leaseMillis)
        for (const late of [gone(), failed, retry(60_000, 60_000)]) {
          expect(yield* settle(one, late)).toBe("Lapsed")
        }
        const again = yield* theClaim
        expect(again.event).toEqual(one.event)
        expect([again.webhook.webhookId, again.webhook.failures]).toEqual([
          one.webhook.webhookId,
          0,
        ])
        expect(yield* (yield* WebhookStore).list(p1)).toMatchObject(webhooks)
      }))
  })
}
