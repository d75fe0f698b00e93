/** What every `Outbox` has to show of deliveries, and how it begins them anew. */

import { describe, expect } from "@effect/vitest"
import { EventId } from "@tenure/core/Event"
import type { DeliveryState } from "@tenure/core/Outbox"
import type { WebhookId } from "@tenure/core/Webhook"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import * as Fixture from "./fixtures.ts"
import {
  answered,
  claims,
  delivered,
  failed,
  gone,
  prepared,
  retry,
  settle,
  theClaim,
  timeout,
} from "./outboxSteps.ts"
import { type StoreHarness, testOn } from "./StoreHarness.ts"

const { event, p1, p2 } = Fixture

/** Declares the suite. */
export const replaySuite = (name: string, harness: StoreHarness): void => {
  const test = testOn(harness)
  const { advance } = harness

  /** A webhook with five deliveries: delivered, failed, waiting, delivered and failed. */
  const five = Effect.gen(function* () {
    const { outbox, webhooks } = yield* prepared(1)
    const webhookId = webhooks[0]?.id ?? (yield* Effect.die("no webhook"))
    yield* advance(1000)
    const published = Array.from({ length: 5 }, (_, at) => ({ ...event(p1), at }))
    yield* Effect.forEach(published, outbox.publish)
    const ends = [delivered, failed, undefined, delivered, failed]
    for (const [index, claim] of (yield* claims()).entries()) {
      const end = ends[index]
      yield* settle(claim, end ?? { _tag: "Released" })
    }
    return { outbox, webhook: { projectId: p1, webhookId }, ids: published.map(({ id }) => id) }
  })

  describe(`${name}: Outbox, deliveries`, () => {
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
      }))

    test("are listed with type and attempts, page by page", () =>
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

    test("of a webhook are nothing to other projects", () =>
      Effect.gen(function* () {
        const { outbox, webhook } = yield* five
        const foreign = { ...webhook, projectId: p2 }
        expect(yield* outbox.deliveries(foreign, { limit: 10 })).toEqual([])
        const since = { _tag: "FailedSince", at: 0 } as const
        const error = yield* Effect.flip(outbox.replay(foreign, since))
        expect(error._tag).toBe("WebhookNotFound")
      }))

    test("are replayed one by one, if they have ended, with attempts counted anew", () =>
      Effect.gen(function* () {
        const { ids, outbox, webhook } = yield* five
        yield* claims()
        const replay = (index: number) =>
          outbox.replay(webhook, { _tag: "One", eventId: ids[index] ?? EventId("") })
        expect([yield* replay(1), yield* replay(2), yield* replay(3)]).toEqual([1, 0, 1])
        const again = yield* claims()
        expect(again.map((claim) => ids.indexOf(claim.event.id))).toEqual([1, 3])
        expect(again.map((claim) => claim.attempt)).toEqual([1, 1])
        for (const claim of again) expect(yield* settle(claim, delivered)).toBe(true)
        const [three, , one] = yield* outbox.deliveries(webhook, { olderThan: ids[4], limit: 3 })
        expect(three?.attempts).toEqual([answered(200), answered(200)])
        expect(one).toMatchObject({ state: "delivered", attempts: [timeout, answered(200)] })
        expect(yield* outbox.deliveries(webhook, { limit: 10 })).toHaveLength(5)
      }))

    test("that have failed since a time are replayed together", () =>
      Effect.gen(function* () {
        const { ids, outbox, webhook } = yield* five
        yield* claims()
        expect(yield* outbox.replay(webhook, { _tag: "FailedSince", at: 2 })).toBe(1)
        expect((yield* theClaim).event.id).toBe(ids[4])
        expect(yield* outbox.replay(webhook, { _tag: "FailedSince", at: 0 })).toBe(1)
        expect((yield* theClaim).event.id).toBe(ids[1])
      }))

    test("tell of themselves when they are replayed", () =>
      Effect.gen(function* () {
        const { outbox, webhook } = yield* five
        yield* outbox.changes
        yield* claims()
        yield* outbox.replay(webhook, { _tag: "FailedSince", at: 0 })
        yield* outbox.changes
        expect(yield* claims()).toHaveLength(2)
      }))

    test("of a disabled webhook are replayed once it is enabled", () =>
      Effect.gen(function* () {
        const { outbox, webhooks } = yield* prepared(1)
        const webhookId: WebhookId = webhooks[0]?.id ?? (yield* Effect.die("no webhook"))
        const webhook = { projectId: p1, webhookId }
        yield* outbox.publish(event(p1))
        yield* outbox.publish(event(p1))
        const [one] = yield* claims(1)
        yield* settle(one ?? (yield* Effect.die("nothing claimed")), gone)
        const since = { _tag: "FailedSince", at: 0 } as const
        const error = yield* Effect.flip(outbox.replay(webhook, since))
        expect(error).toMatchObject({ _tag: "WebhookDisabled", webhookId })
        const store = yield* WebhookStore
        expect((yield* Effect.flip(store.enable(p2, webhookId)))._tag).toBe("WebhookNotFound")
        yield* store.enable(p1, webhookId)
        expect((yield* store.list(p1))[0]?.disabledAt).toBeUndefined()
        expect(yield* outbox.replay(webhook, since)).toBe(2)
        yield* outbox.publish(event(p1))
        const all = yield* claims()
        expect(all).toHaveLength(3)
        for (const claim of all) {
          expect(yield* settle(claim, retry(60_000))).toBe(true)
        }
        const waiting = yield* outbox.deliveries(webhook, { state: "waiting", limit: 10 })
        expect(waiting).toHaveLength(3)
      }))
  })
}
