/** Events are found with their deliveries. */

import { expect } from "@effect/vitest"
import { EventId } from "@tenure/core/Event"
import type { Settlement } from "@tenure/core/Outbox"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import { event, p1, p2, occasion } from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import { claims, delivered, deliveriesOf, failed, prepared, retry, settle } from "./steps.ts"

/** An event with a delivery in each state. */
const inEachState = Effect.gen(function* () {
  const { outbox, webhooks } = yield* prepared(4)
  const published = { ...event(p1), at: 5678 }
  yield* outbox.publish(published)
  const settlements: ReadonlyArray<Settlement> = [delivered, failed, retry(60_000), retry(60_000)]
  for (const claim of yield* claims()) {
    const index = webhooks.findIndex(({ id }) => id === claim.webhook.webhookId)
    yield* settle(claim, settlements[index] ?? delivered)
  }
  for (const { id } of webhooks.slice(3)) yield* (yield* WebhookStore).remove(p1, id, occasion)
  return { outbox, published, webhooks }
})

/** Declares the tests. */
export const findingTests = ({ describe, test }: StoreTests): void => {
  describe("find", () => {
    test("returns an event with its deliveries in all states, as they are listed", () =>
      Effect.gen(function* () {
        const { outbox, published, webhooks } = yield* inEachState
        yield* outbox.publish(event(p1))
        const { deliveries, ...found } = yield* outbox.find(p1, published.id)
        expect(found).toEqual(published)
        expect(deliveries).toHaveLength(4)
        const states: Array<string | undefined> = []
        for (const { id } of webhooks) {
          const delivery = deliveries.find(({ webhookId }) => webhookId === id)
          const listed = (yield* deliveriesOf({ id })).find(
            ({ eventId }) => eventId === published.id,
          )
          expect(delivery).toEqual(listed)
          states.push(delivery?.state)
        }
        expect(states).toEqual(["delivered", "failed", "waiting", "cancelled"])
      }))

    test("returns the deliveries in the order of the list of webhooks", () =>
      Effect.gen(function* () {
        const { outbox, webhooks } = yield* prepared(12)
        const store = yield* WebhookStore
        const published = event(p1)
        yield* outbox.publish(published)
        const listed = webhooks.map(({ id }) => id)
        const order = Effect.map(outbox.find(p1, published.id), ({ deliveries }) =>
          deliveries.map(({ webhookId }) => webhookId),
        )
        expect(yield* order).toEqual(listed)
        // Whatever has become of them.
        const outcomes = new Map([
          [listed[1], delivered],
          [listed[4], failed],
          [listed[7], retry(60_000)],
        ])
        for (const claim of yield* claims()) {
          const outcome = outcomes.get(claim.webhook.webhookId)
          if (outcome !== undefined) yield* settle(claim, outcome)
        }
        for (const { id } of webhooks.slice(2, 4)) yield* store.remove(p1, id, occasion)
        for (const webhookId of listed.slice(1, 2)) {
          const one = { _tag: "One", eventId: published.id } as const
          yield* outbox.replay({ projectId: p1, webhookId }, one)
        }
        expect(yield* order).toEqual(listed)
      }))

    test("returns all attempts, also those before a replay", () =>
      Effect.gen(function* () {
        const { outbox, published, webhooks } = yield* inEachState
        for (const { id: webhookId } of webhooks.slice(0, 2)) {
          const one = { _tag: "One", eventId: published.id } as const
          yield* outbox.replay({ projectId: p1, webhookId }, one)
        }
        const replayed = yield* outbox.find(p1, published.id)
        const states = replayed.deliveries.map(({ state }) => state)
        expect(states.filter((state) => state === "waiting")).toHaveLength(3)
        yield* Effect.forEach(yield* claims(), (claim) => settle(claim, delivered))
        const { deliveries } = yield* outbox.find(p1, published.id)
        const attempts = deliveries.map((delivery) => [delivery.state, delivery.attempts.length])
        expect(attempts.toSorted()).toEqual([
          ["cancelled", 1],
          ["delivered", 2],
          ["delivered", 2],
          ["waiting", 1],
        ])
      }))

    test("returns an event that no webhook receives, and one that a single webhook does", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(0)
        const published = event(p1)
        yield* outbox.publish(published)
        expect(yield* outbox.find(p1, published.id)).toEqual({ ...published, deliveries: [] })
        const { webhooks } = yield* prepared(2)
        const single = event(p1)
        for (const { id } of webhooks.slice(0, 1)) yield* outbox.publishTo(single, id)
        const { deliveries } = yield* outbox.find(p1, single.id)
        expect(deliveries.map(({ webhookId }) => webhookId)).toEqual([webhooks[0]?.id])
      }))

    test("returns the body of an event unchanged", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        const body = `${JSON.stringify({ z: '\u0000 "\\ é 日本 \u{1f4a9}', a: 1e21, "": [null] })} `
        const published = { ...event(p1), body }
        yield* outbox.publish(published)
        expect((yield* outbox.find(p1, published.id)).body).toBe(body)
      }))

    test("fails for an unknown event and through another project", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        const published = event(p1)
        yield* outbox.publish(published)
        const foreign = yield* Effect.flip(outbox.find(p2, published.id))
        expect(foreign).toMatchObject({ _tag: "EventNotFound", eventId: published.id })
        const unknown = yield* Effect.flip(outbox.find(p1, EventId(crypto.randomUUID())))
        expect(unknown._tag).toBe("EventNotFound")
      }))
  })
}
