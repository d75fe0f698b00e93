/** Deliveries are listed and replayed. */

import { expect } from "@effect/vitest"
import { EventId } from "@tenure/core/Event"
import type { DeliveryState } from "@tenure/core/Outbox"
import { WebhookId } from "@tenure/core/Webhook"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import { event, once, p1, p2, occasion } from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import {
  answered,
  attempt,
  claims,
  delivered,
  deliveriesOf,
  failed,
  firstOf,
  preparedWebhook,
  publishMany,
  released,
  retry,
  settle,
  theClaim,
  timeout,
} from "./steps.ts"

/** A webhook with five deliveries: delivered, failed, waiting, delivered and failed. */
const fiveOn = ({ advance }: StoreTests) =>
  Effect.gen(function* () {
    const { outbox, webhook } = yield* preparedWebhook
    yield* advance(1000)
    const published = Array.from({ length: 5 }, (_, at) => ({ ...event(p1), at }))
    yield* Effect.forEach(published, (one) => outbox.publish(one))
    const settlements = [delivered, failed, released, delivered, failed]
    // The last is the first, which succeeds: a webhook that fails gets one delivery at a time.
    for (const [index, claim] of [...(yield* claims()).entries()].toReversed()) {
      yield* settle(claim, settlements[index] ?? released)
    }
    return {
      outbox,
      webhook: { projectId: p1, webhookId: webhook.id },
      ids: published.map(({ id }) => id),
    }
  })

const listTests = (on: StoreTests): void => {
  const { test } = on
  const five = fiveOn(on)

  test("are listed newest first, up to the limit", () =>
    Effect.gen(function* () {
      const { webhook } = yield* preparedWebhook
      const published = yield* publishMany(3)
      yield* settle(yield* firstOf(yield* claims(1)), delivered)
      const newestFirst = published.map(({ id }) => id).toReversed()
      const ids = (limit: number) =>
        Effect.map(deliveriesOf(webhook, limit), (all) => all.map(({ eventId }) => eventId))
      expect(yield* ids(10)).toEqual(newestFirst)
      expect(yield* ids(2)).toEqual(newestFirst.slice(0, 2))
    }))

  test("are listed by state, newest first", () =>
    Effect.gen(function* () {
      const { ids, outbox, webhook } = yield* five
      const listed = (state?: DeliveryState) =>
        Effect.map(outbox.deliveries(webhook, { state, limit: 10 }), (all) =>
          all.map(({ eventId }) => ids.indexOf(eventId)),
        )
      expect(yield* listed()).toEqual([4, 3, 2, 1, 0])
      expect(yield* listed("delivered")).toEqual([3, 0])
      expect(yield* listed("failed")).toEqual([4, 1])
      expect(yield* listed("waiting")).toEqual([2])
      expect(yield* listed("cancelled")).toEqual([])
      const page = { state: "failed", olderThan: ids[4], limit: 1 } as const
      const older = yield* outbox.deliveries(webhook, page)
      expect(older.map(({ eventId }) => eventId)).toEqual([ids[1]])
    }))

  test("are listed also after their webhook was removed", () =>
    Effect.gen(function* () {
      const { ids, outbox, webhook } = yield* five
      yield* (yield* WebhookStore).remove(p1, webhook.webhookId, occasion)
      const listed = yield* outbox.deliveries(webhook, { limit: 10 })
      expect(listed.map(({ eventId }) => eventId)).toEqual(ids.toReversed())
    }))

  test("are listed with their type and attempts, page by page", () =>
    Effect.gen(function* () {
      const { ids, outbox, webhook } = yield* five
      const first = yield* outbox.deliveries(webhook, { limit: 2 })
      expect(first).toMatchObject([
        { type: "test.happened", webhookId: webhook.webhookId, attempts: [timeout] },
        { attempts: [answered(200)] },
      ])
      const next = yield* outbox.deliveries(webhook, { olderThan: ids[3], limit: 2 })
      expect(next.map(({ eventId }) => eventId)).toEqual([ids[2], ids[1]])
      const unknown = EventId(crypto.randomUUID())
      expect(yield* outbox.deliveries(webhook, { olderThan: unknown, limit: 2 })).toEqual([])
    }))
}

const replayTests = (on: StoreTests): void => {
  const { test } = on
  const five = fiveOn(on)

  test("are neither listed nor replayed through another project", () =>
    Effect.gen(function* () {
      const { outbox, webhook } = yield* five
      const foreign = { ...webhook, projectId: p2 }
      expect(yield* outbox.deliveries(foreign, { limit: 10 })).toEqual([])
      const since = { _tag: "FailedSince", at: 0 } as const
      const error = yield* Effect.flip(outbox.replay(foreign, since))
      expect(error._tag).toBe("WebhookNotFound")
    }))

  test("can be replayed one by one after they have ended, with a new count of attempts", () =>
    Effect.gen(function* () {
      const { ids, outbox, webhook } = yield* five
      yield* claims()
      const replay = (index: number) =>
        outbox.replay(webhook, { _tag: "One", eventId: ids[index] ?? EventId("") })
      expect([yield* replay(1), yield* replay(2), yield* replay(3)]).toEqual([1, 0, 1])
      const again = yield* claims()
      expect(again.map((claim) => ids.indexOf(claim.event.id))).toEqual([1, 3])
      expect(again.map((claim) => claim.attemptNumber)).toEqual([1, 1])
      for (const claim of again) expect(yield* settle(claim, delivered)).toBe("Settled")
      const [three, , one] = yield* outbox.deliveries(webhook, { olderThan: ids[4], limit: 3 })
      expect(three?.attempts).toEqual([answered(200), answered(200)])
      expect(one).toMatchObject({ state: "delivered", attempts: [timeout, answered(200)] })
      expect(yield* outbox.deliveries(webhook, { limit: 10 })).toHaveLength(5)
    }))

  test("can be replayed while they wait for their next attempt", () =>
    Effect.gen(function* () {
      const { outbox, webhook } = yield* preparedWebhook
      const ref = { projectId: p1, webhookId: webhook.id }
      const [waiting, other] = yield* publishMany(2)
      for (const one of yield* claims()) yield* settle(one, retry(60_000))
      expect(yield* claims()).toEqual([])
      expect(yield* outbox.replay(ref, { _tag: "FailedSince", at: 0 })).toBe(0)
      const one = { _tag: "One", eventId: waiting?.id ?? EventId("") } as const
      expect(yield* outbox.replay(ref, one)).toBe(1)
      expect(yield* outbox.replay(ref, one)).toBe(0)
      const again = yield* theClaim
      expect(again).toMatchObject({ event: { id: one.eventId }, attemptNumber: 1 })
      expect(yield* outbox.replay(ref, one)).toBe(0)
      yield* settle(again, delivered)
      expect(yield* outbox.deliveries(ref, { limit: 2 })).toMatchObject([
        { eventId: other?.id, state: "waiting", attempts: [attempt] },
        { eventId: one.eventId, state: "delivered", attempts: [attempt, answered(200)] },
      ])
    }))

  test("that failed since a given time can be replayed together", () =>
    Effect.gen(function* () {
      const { ids, outbox, webhook } = yield* five
      yield* claims()
      expect(yield* outbox.replay(webhook, { _tag: "FailedSince", at: 2 })).toBe(1)
      expect((yield* theClaim).event.id).toBe(ids[4])
      expect(yield* outbox.replay(webhook, { _tag: "FailedSince", at: 0 })).toBe(1)
      expect((yield* theClaim).event.id).toBe(ids[1])
    }))

  test("are replayed once with an idempotency key", () =>
    Effect.gen(function* () {
      const { outbox, webhook } = yield* fiveOn(on)
      const key = once()
      const all = { _tag: "FailedSince", at: 0 } as const
      const unknown = { ...webhook, webhookId: WebhookId(crypto.randomUUID()) }
      yield* Effect.flip(outbox.replay(unknown, all, key))
      expect(yield* outbox.replay(webhook, all, key)).toBe(2)
      const again = { ...event(p1), at: 9 }
      yield* outbox.publish(again)
      for (const claim of yield* claims()) yield* settle(claim, failed)
      for (const _ of ["second", "third"]) {
        expect(yield* outbox.replay(webhook, all, key)).toEqual({ _tag: "Replayed", answer: "2" })
      }
      expect(yield* deliveriesOf({ id: webhook.webhookId })).not.toContainEqual(
        expect.objectContaining({ eventId: again.id, state: "waiting" }),
      )
    }))

  test("wake dispatchers when they are replayed", () =>
    Effect.gen(function* () {
      const { outbox, webhook } = yield* five
      yield* outbox.nextChange
      yield* claims()
      yield* outbox.replay(webhook, { _tag: "FailedSince", at: 0 })
      yield* outbox.nextChange
      expect(yield* claims()).toHaveLength(2)
    }))
}

/** Declares the tests. */
export const deliveriesTests = (on: StoreTests): void => {
  on.describe("deliveries", () => {
    listTests(on)
    replayTests(on)
  })
}
