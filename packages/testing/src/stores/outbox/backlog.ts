/** The backlog: how many deliveries wait, and for how long the oldest one has been due. */

import { expect } from "@effect/vitest"
import { WebhookStore } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { event, context, p1, p2 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { addWebhook, at, firstOf, hour, refOf } from "../steps.ts"
import {
  attemptAll,
  claims,
  delivered,
  disable,
  failed,
  leaseMillis,
  prepared,
  preparedWebhook,
  preparedWith,
  publishMany,
  released,
  replayed,
  retry,
  settle,
  settleAll,
  theClaim,
} from "./steps.ts"

/** Expects a number of hours, and less than one more: the test takes some time, too. */
const expectHours = (millis: number | undefined, hours: number): void => {
  expect(millis).toBeGreaterThanOrEqual(hours * hour)
  expect(millis).toBeLessThan((hours + 1) * hour)
}

export const backlogTests = (on: StoreTests): void => {
  const { advance, describe, test } = on

  describe("the backlog", () => {
    test("has the deliveries that have not ended", function* () {
      const { outbox } = yield* preparedWebhook
      expect(yield* outbox.backlog(10)).toEqual({
        waiting: 0,
        dueForMillis: undefined,
        failedDeliveries: 0,
        disabledWebhooks: 0,
      })
      yield* publishMany(5)
      expect((yield* outbox.backlog(10)).waiting).toBe(5)
      const claimed = yield* claims()
      expect((yield* outbox.backlog(10)).waiting).toBe(5)
      yield* settleAll(claimed.slice(0, 4), [delivered, failed, retry(hour), released])
      expect((yield* outbox.backlog(10)).waiting).toBe(3)
    })

    test("has none of a webhook that was removed, before its deliveries are claimed or after", function* () {
      const { outbox, webhooks } = yield* prepared(2)
      const remove = (index: number) =>
        WebhookStore.use((store) => store.remove(p1, at(webhooks, index).id, context))
      yield* outbox.publishTo(event(p1), at(webhooks, 0).id)
      yield* advance(2 * hour)
      yield* outbox.publishTo(event(p1), at(webhooks, 1).id)
      yield* advance(hour)
      yield* remove(0)
      const { dueForMillis, waiting } = yield* outbox.backlog(10)
      expect(waiting).toBe(1)
      expectHours(dueForMillis, 1)
      yield* attemptAll(retry(hour))
      yield* remove(1)
      yield* advance(3 * hour)
      expect(yield* outbox.backlog(10)).toMatchObject({ waiting: 0, dueForMillis: undefined })
    })

    test("has the deliveries that were given up, until they are sent again", function* () {
      const { outbox, webhooks } = yield* prepared(2)
      const failures = Effect.map(outbox.backlog(10), ({ failedDeliveries }) => failedDeliveries)
      yield* publishMany(2)
      yield* attemptAll(failed)
      expect(yield* failures).toBe(4)
      const webhook = firstOf(webhooks)
      yield* replayed(refOf(webhook))
      expect(yield* failures).toBe(2)
      yield* settle(yield* theClaim, delivered)
      yield* settle(yield* theClaim, failed)
      expect(yield* failures).toBe(3)
      yield* WebhookStore.use((store) => store.remove(p1, webhook.id, context))
      expect(yield* failures).toBe(2)
    })

    test("has the webhooks that are disabled, in all projects", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      const other = yield* addWebhook(p2)
      yield* disable([webhook, other])
      expect((yield* outbox.backlog(10)).disabledWebhooks).toBe(2)
      yield* WebhookStore.use((store) => store.enable(p2, other.id, context))
      expect((yield* outbox.backlog(10)).disabledWebhooks).toBe(1)
    })

    test("is counted no further than asked", function* () {
      const { outbox, webhooks } = yield* prepared(4)
      yield* disable(webhooks.slice(1))
      yield* publishMany(3)
      yield* attemptAll(failed)
      yield* publishMany(3)
      expect(yield* outbox.backlog(2)).toMatchObject({
        waiting: 2,
        failedDeliveries: 2,
        disabledWebhooks: 2,
      })
    })
  })

  describe("the oldest delivery that is due", () => {
    test("is found among those of all webhooks", function* () {
      const { outbox, webhooks } = yield* prepared(3)
      for (const { id } of webhooks) {
        yield* outbox.publishTo(event(p1), id)
        yield* advance(hour)
      }
      expectHours((yield* outbox.backlog(10)).dueForMillis, 3)
    })

    test("is not one that is claimed or due later, before that time or the end of the lease", function* () {
      const { outbox } = yield* preparedWebhook
      const dueFor = Effect.map(outbox.backlog(10), ({ dueForMillis }) => dueForMillis)
      yield* publishMany(1)
      yield* advance(hour)
      const claim = yield* theClaim
      expect(yield* dueFor).toBeUndefined()
      yield* settle(claim, retry(hour))
      expect(yield* dueFor).toBeUndefined()
      yield* advance(3 * hour)
      expectHours(yield* dueFor, 2)
      yield* claims()
      yield* advance(leaseMillis + hour)
      expect(yield* dueFor).toBeGreaterThanOrEqual(hour)
    })

    test("is late if it waits for a dispatcher, but not while its webhook fails or is busy", function* () {
      const { outbox, store, webhook } = yield* preparedWebhook
      const late = Effect.map(outbox.backlog(10), ({ lateForMillis }) => lateForMillis)
      expect(yield* late).toBeUndefined()
      yield* publishMany(20)
      yield* advance(hour)
      expect(yield* late).toBeGreaterThanOrEqual(hour)
      // Its concurrency at the beginning.
      const held = yield* claims({ limit: 4, perWebhook: 4 })
      expect(held).toHaveLength(4)
      expect((yield* outbox.backlog(10)).dueForMillis).toBeGreaterThanOrEqual(hour)
      expect(yield* late).toBeUndefined()
      yield* settleAll(held.slice(1), delivered)
      expect(yield* late).toBeGreaterThanOrEqual(hour)
      yield* settle(firstOf(held), retry(2 * hour, 2 * hour))
      expect(yield* late).toBeUndefined()
      yield* advance(hour)
      expect(yield* late).toBeUndefined()
      yield* advance(2 * hour)
      // Nobody makes the attempt that may be made since its hold has ended.
      expectHours(yield* late, 1)
      yield* claims({ limit: 1 })
      expect(yield* late).toBeUndefined()
      yield* store.remove(p1, webhook.id, context)
      expect(yield* late).toBeUndefined()
    })

    test("is not late beside a claimed one of an ordered webhook", function* () {
      const { outbox } = yield* preparedWith({ ordered: true })
      for (const userId of ["ada", "bob"]) yield* outbox.publish(event(p1, undefined, userId))
      yield* advance(hour)
      const claimed = yield* claims({ limit: 1 })
      const { dueForMillis, lateForMillis } = yield* outbox.backlog(10)
      expect(dueForMillis).toBeGreaterThanOrEqual(hour)
      expect(lateForMillis).toBeUndefined()
      yield* settleAll(claimed, [delivered])
      expect((yield* outbox.backlog(10)).lateForMillis).toBeGreaterThanOrEqual(hour)
    })
  })
}
