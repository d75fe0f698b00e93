/** What is left to deliver is counted. */

import { expect } from "@effect/vitest"
import { Outbox } from "@tenure/core/Outbox"
import type { StoredWebhook } from "@tenure/core/Webhook"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import { event, occasion, p1, p2, webhook } from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import {
  answered,
  claims,
  delivered,
  failed,
  firstOf,
  leaseMillis,
  prepared,
  preparedWebhook,
  publishMany,
  released,
  retry,
  settle,
  theClaim,
} from "./steps.ts"

const hour = 3_600_000

/** Disables webhooks: the attempt to deliver something to each is answered that it is gone. */
const disable = Effect.fnUntraced(function* (webhooks: ReadonlyArray<StoredWebhook>) {
  const outbox = yield* Outbox
  for (const { id, projectId } of webhooks) yield* outbox.publishTo(event(projectId), id)
  for (const claim of yield* claims()) {
    const announcement = event(claim.webhook.projectId, "webhook.disabled")
    yield* settle(claim, { _tag: "Disabled", attempt: answered(410), announcement })
  }
})

const countingTests = ({ advance, describe, test }: StoreTests): void => {
  describe("the backlog", () => {
    test("is empty if there was nothing to deliver", () =>
      Effect.gen(function* () {
        const { outbox } = yield* preparedWebhook
        expect(yield* outbox.backlog(10)).toEqual({
          waiting: 0,
          dueForMillis: undefined,
          failedDeliveries: 0,
          disabledWebhooks: 0,
        })
      }))

    test("has the deliveries that have not ended", () =>
      Effect.gen(function* () {
        const { outbox } = yield* preparedWebhook
        yield* publishMany(5)
        expect((yield* outbox.backlog(10)).waiting).toBe(5)
        const settlements = [delivered, failed, retry(hour), released]
        const claimed = yield* claims()
        expect((yield* outbox.backlog(10)).waiting).toBe(5)
        for (const [index, settlement] of settlements.entries()) {
          for (const claim of claimed.slice(index, index + 1)) yield* settle(claim, settlement)
        }
        expect((yield* outbox.backlog(10)).waiting).toBe(3)
      }))

    test("has none of a webhook that was removed", () =>
      Effect.gen(function* () {
        const { outbox, webhooks } = yield* prepared(2)
        yield* publishMany(2)
        yield* advance(hour)
        const store = yield* WebhookStore
        for (const { id } of webhooks.slice(1)) yield* store.remove(p1, id, occasion)
        expect((yield* outbox.backlog(10)).waiting).toBe(2)
        for (const claim of yield* claims()) yield* settle(claim, retry(hour))
        for (const { id } of webhooks.slice(0, 1)) yield* store.remove(p1, id, occasion)
        yield* advance(3 * hour)
        expect(yield* outbox.backlog(10)).toMatchObject({ waiting: 0, dueForMillis: undefined })
      }))

    test("has those of all webhooks but the removed ones, before they are claimed", () =>
      Effect.gen(function* () {
        const { outbox, webhooks } = yield* prepared(2)
        const store = yield* WebhookStore
        const [one, other] = webhooks
        if (one === undefined || other === undefined) return yield* Effect.die("no webhooks")
        yield* outbox.publishTo(event(p1), one.id)
        yield* advance(2 * hour)
        yield* outbox.publishTo(event(p1), other.id)
        yield* advance(hour)
        yield* store.remove(p1, one.id, occasion)
        const { dueForMillis, waiting } = yield* outbox.backlog(10)
        expect(waiting).toBe(1)
        expect(dueForMillis).toBeGreaterThanOrEqual(hour)
        expect(dueForMillis).toBeLessThan(2 * hour)
      }))

    test("has the deliveries that were given up, until they are sent again", () =>
      Effect.gen(function* () {
        const { outbox, webhooks } = yield* prepared(2)
        yield* publishMany(2)
        for (const claim of yield* claims()) yield* settle(claim, failed)
        expect((yield* outbox.backlog(10)).failedDeliveries).toBe(4)
        const { id } = yield* firstOf(webhooks)
        yield* outbox.replay({ projectId: p1, webhookId: id }, { _tag: "FailedSince", at: 0 })
        expect((yield* outbox.backlog(10)).failedDeliveries).toBe(2)
        yield* settle(yield* theClaim, delivered)
        yield* settle(yield* theClaim, failed)
        expect((yield* outbox.backlog(10)).failedDeliveries).toBe(3)
        yield* (yield* WebhookStore).remove(p1, id, occasion)
        expect((yield* outbox.backlog(10)).failedDeliveries).toBe(2)
      }))

    test("has the webhooks that are disabled, in all projects", () =>
      Effect.gen(function* () {
        const { outbox, webhooks } = yield* prepared(1)
        const store = yield* WebhookStore
        const other = webhook(p2)
        yield* store.add(other, 10, occasion)
        yield* disable([...webhooks, other])
        expect((yield* outbox.backlog(10)).disabledWebhooks).toBe(2)
        yield* store.enable(p2, other.id, occasion)
        expect((yield* outbox.backlog(10)).disabledWebhooks).toBe(1)
      }))

    test("is counted no further than asked", () =>
      Effect.gen(function* () {
        const { outbox, webhooks } = yield* prepared(4)
        yield* disable(webhooks.slice(1))
        yield* publishMany(3)
        for (const claim of yield* claims()) yield* settle(claim, failed)
        yield* publishMany(3)
        expect(yield* outbox.backlog(2)).toMatchObject({
          waiting: 2,
          failedDeliveries: 2,
          disabledWebhooks: 2,
        })
      }))
  })
}

const dueTests = ({ advance, describe, test }: StoreTests): void => {
  describe("the oldest delivery that is due", () => {
    test("is found among those of all webhooks", () =>
      Effect.gen(function* () {
        const { outbox, webhooks } = yield* prepared(3)
        for (const { id } of webhooks) {
          yield* outbox.publishTo(event(p1), id)
          yield* advance(hour)
        }
        const { dueForMillis } = yield* outbox.backlog(10)
        expect(dueForMillis).toBeGreaterThanOrEqual(3 * hour)
        expect(dueForMillis).toBeLessThan(4 * hour)
      }))

    test("is not one that is claimed or due later, before that time", () =>
      Effect.gen(function* () {
        const { outbox } = yield* preparedWebhook
        yield* publishMany(1)
        yield* advance(hour)
        const claim = yield* theClaim
        expect((yield* outbox.backlog(10)).dueForMillis).toBeUndefined()
        yield* settle(claim, retry(hour))
        expect((yield* outbox.backlog(10)).dueForMillis).toBeUndefined()
        yield* advance(3 * hour)
        const { dueForMillis } = yield* outbox.backlog(10)
        expect(dueForMillis).toBeGreaterThanOrEqual(2 * hour)
        expect(dueForMillis).toBeLessThan(3 * hour)
      }))

    test("may be one whose lease has expired", () =>
      Effect.gen(function* () {
        const { outbox } = yield* preparedWebhook
        yield* publishMany(1)
        yield* claims()
        yield* advance(leaseMillis + hour)
        expect((yield* outbox.backlog(10)).dueForMillis).toBeGreaterThanOrEqual(hour)
      }))
  })
}

/** Declares the tests. */
export const backlogTests = (on: StoreTests): void => {
  countingTests(on)
  dueTests(on)
}
