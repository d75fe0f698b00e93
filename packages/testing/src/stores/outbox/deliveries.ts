/** Deliveries are listed and replayed. */

import { expect } from "@effect/vitest"
import {
  type AttemptResult,
  type DeliveryState,
  EventId,
  Outbox,
  type StoredWebhook,
  WebhookId,
  WebhookStore,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { event, occasion, once, p1, p2, makeWebhook } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import {
  answered,
  attempt,
  claims,
  delivered,
  deliveriesOf,
  failed,
  firstOf,
  leaseMillis,
  prepared,
  preparedWebhook,
  publishMany,
  released,
  replayFailed,
  retry,
  selected,
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
    // The last one is the first and succeeds: a failing webhook gets one delivery at a time.
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

  test("are listed newest first, up to the limit", function* () {
    const { webhook } = yield* preparedWebhook
    const published = yield* publishMany(3)
    yield* settle(yield* firstOf(yield* claims(1)), delivered)
    const newestFirst = published.map(({ id }) => id).toReversed()
    const ids = (limit: number) =>
      Effect.map(deliveriesOf(webhook, limit), (all) => all.map(({ eventId }) => eventId))
    expect(yield* ids(10)).toEqual(newestFirst)
    expect(yield* ids(2)).toEqual(newestFirst.slice(0, 2))
  })

  test("are listed by state, newest first", function* () {
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
  })

  test("are listed also after their webhook was removed", function* () {
    const { ids, outbox, webhook } = yield* five
    yield* (yield* WebhookStore).remove(p1, webhook.webhookId, occasion)
    const listed = yield* outbox.deliveries(webhook, { limit: 10 })
    expect(listed.map(({ eventId }) => eventId)).toEqual(ids.toReversed())
  })

  test("are listed with their type and attempts, page by page", function* () {
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
  })
}

const replayTests = (on: StoreTests): void => {
  const { advance, test } = on
  const five = fiveOn(on)

  test("are neither listed nor replayed through another project", function* () {
    const { outbox, webhook } = yield* five
    const foreign = { ...webhook, projectId: p2 }
    expect(yield* outbox.deliveries(foreign, { limit: 10 })).toEqual([])
    const error = yield* Effect.flip(outbox.replayMany(foreign, selected()))
    expect(error._tag).toBe("WebhookNotFound")
  })

  test("can be replayed one by one after they have ended, with a new count of attempts", function* () {
    const { ids, outbox, webhook } = yield* five
    yield* claims()
    const replay = (index: number) => outbox.replay(webhook, ids[index] ?? EventId(""))
    expect([yield* replay(1), yield* replay(2), yield* replay(3)]).toEqual([1, 0, 1])
    const again = yield* claims()
    expect(again.map((claim) => ids.indexOf(claim.event.id))).toEqual([1, 3])
    expect(again.map((claim) => claim.attemptNumber)).toEqual([1, 1])
    for (const claim of again) expect(yield* settle(claim, delivered)).toBe("Settled")
    const [three, , one] = yield* outbox.deliveries(webhook, { olderThan: ids[4], limit: 3 })
    expect(three?.attempts).toEqual([answered(200), answered(200)])
    expect(one).toMatchObject({ state: "delivered", attempts: [timeout, answered(200)] })
    expect(yield* outbox.deliveries(webhook, { limit: 10 })).toHaveLength(5)
  })

  test("can be replayed while they wait for their next attempt", function* () {
    const { outbox, webhook } = yield* preparedWebhook
    const ref = { projectId: p1, webhookId: webhook.id }
    const [waiting, other] = yield* publishMany(2)
    for (const one of yield* claims()) yield* settle(one, retry(60_000))
    expect(yield* claims()).toEqual([])
    expect(yield* replayFailed(ref)).toBe(0)
    const one = waiting?.id ?? EventId("")
    expect(yield* outbox.replay(ref, one)).toBe(1)
    expect(yield* outbox.replay(ref, one)).toBe(0)
    const again = yield* theClaim
    expect(again).toMatchObject({ event: { id: one }, attemptNumber: 1 })
    expect(yield* outbox.replay(ref, one)).toBe(0)
    yield* settle(again, delivered)
    expect(yield* outbox.deliveries(ref, { limit: 2 })).toMatchObject([
      { eventId: other?.id, state: "waiting", attempts: [attempt] },
      { eventId: one, state: "delivered", attempts: [attempt, answered(200)] },
    ])
  })

  test("that are due are not replayed, also while nobody has claimed since", function* () {
    const { outbox, webhook } = yield* preparedWebhook
    const { id } = yield* firstOf(yield* publishMany(1))
    const ref = { projectId: p1, webhookId: webhook.id }
    yield* settle(yield* theClaim, retry(1000))
    yield* advance(2000)
    const due = yield* deliveriesOf(webhook)
    expect(yield* outbox.replay(ref, id)).toBe(0)
    expect(yield* deliveriesOf(webhook)).toEqual(due)
    expect((yield* theClaim).attemptNumber).toBe(2)
  })

  test("that failed since a given time can be replayed together", function* () {
    const { ids, webhook } = yield* five
    yield* claims()
    expect(yield* replayFailed(webhook, 2)).toBe(1)
    expect((yield* theClaim).event.id).toBe(ids[4])
    expect(yield* replayFailed(webhook)).toBe(1)
    expect((yield* theClaim).event.id).toBe(ids[1])
  })

  test("that are replayed together come after all others, also when they are tried again", function* () {
    const { ids, outbox, webhook } = yield* five
    expect(yield* replayFailed(webhook)).toBe(2)
    const [live] = yield* claims(1)
    expect(live?.event.id).toBe(ids[2])
    if (live !== undefined) yield* settle(live, delivered)
    expect((yield* outbox.backlog(10)).dueForMillis).toBe(undefined)
    for (const claim of yield* claims(1)) yield* settle(claim, retry(60_000))
    yield* advance(60_000)
    const [published] = yield* publishMany(1)
    const [next] = yield* claims(1)
    expect(next?.event.id).toBe(published?.id)
    if (next !== undefined) yield* settle(next, delivered)
    expect((yield* claims()).map(({ event: { id } }) => ids.indexOf(id))).toEqual([4, 1])
  })

  test("are replayed once with an idempotency key", function* () {
    const { outbox, webhook } = yield* fiveOn(on)
    const key = once()
    const all = selected()
    const unknown = { ...webhook, webhookId: WebhookId(crypto.randomUUID()) }
    yield* Effect.flip(outbox.replayMany(unknown, all, key))
    expect(yield* outbox.replayMany(webhook, all, key)).toEqual({ replayed: 2, next: undefined })
    const again = { ...event(p1), at: 9 }
    yield* outbox.publish(again)
    for (const claim of yield* claims()) yield* settle(claim, failed)
    for (const _ of ["second", "third"]) {
      expect(yield* outbox.replayMany(webhook, all, key)).toEqual({
        _tag: "Replayed",
        answer: "2",
      })
    }
    expect(yield* deliveriesOf({ id: webhook.webhookId })).not.toContainEqual(
      expect.objectContaining({ eventId: again.id, state: "waiting" }),
    )
  })

  test("wake dispatchers when they are replayed", function* () {
    const { outbox, webhook } = yield* five
    yield* outbox.nextChange
    yield* claims()
    yield* replayFailed(webhook)
    yield* outbox.nextChange
    expect(yield* claims()).toHaveLength(2)
  })
}

/** Declares the tests. */
export const deliveriesTests = (on: StoreTests): void => {
  on.describe("deliveries", () => {
    listTests(on)
    replayTests(on)
  })
}

/** The backlog. */

const hour = 3_600_000

/** Disables webhooks: each receiver answers 410. */
const disable = Effect.fnUntraced(function* (webhooks: ReadonlyArray<StoredWebhook>) {
  const outbox = yield* Outbox
  for (const { id, projectId } of webhooks) yield* outbox.publishTo(event(projectId), id)
  for (const claim of yield* claims()) {
    const announcement = event(claim.webhook.projectId, "webhook.disabled")
    yield* settle(claim, { _tag: "Disabled", attempt: answered(410), announcement })
  }
})

/** Declares the tests. */
export const backlogTests = (on: StoreTests): void => {
  const { advance, describe, test } = on

  describe("the backlog", () => {
    test("is empty if there was nothing to deliver", function* () {
      const { outbox } = yield* preparedWebhook
      expect(yield* outbox.backlog(10)).toEqual({
        waiting: 0,
        dueForMillis: undefined,
        failedDeliveries: 0,
        disabledWebhooks: 0,
      })
    })

    test("has the deliveries that have not ended", function* () {
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
    })

    test("has none of a webhook that was removed", function* () {
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
    })

    test("has those of all webhooks but the removed ones, before they are claimed", function* () {
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
    })

    test("has the deliveries that were given up, until they are sent again", function* () {
      const { outbox, webhooks } = yield* prepared(2)
      yield* publishMany(2)
      for (const claim of yield* claims()) yield* settle(claim, failed)
      expect((yield* outbox.backlog(10)).failedDeliveries).toBe(4)
      const { id } = yield* firstOf(webhooks)
      yield* replayFailed({ projectId: p1, webhookId: id })
      expect((yield* outbox.backlog(10)).failedDeliveries).toBe(2)
      yield* settle(yield* theClaim, delivered)
      yield* settle(yield* theClaim, failed)
      expect((yield* outbox.backlog(10)).failedDeliveries).toBe(3)
      yield* (yield* WebhookStore).remove(p1, id, occasion)
      expect((yield* outbox.backlog(10)).failedDeliveries).toBe(2)
    })

    test("has the webhooks that are disabled, in all projects", function* () {
      const { outbox, webhooks } = yield* prepared(1)
      const store = yield* WebhookStore
      const other = makeWebhook(p2)
      yield* store.add(other, 10, occasion)
      yield* disable([...webhooks, other])
      expect((yield* outbox.backlog(10)).disabledWebhooks).toBe(2)
      yield* store.enable(p2, other.id, occasion)
      expect((yield* outbox.backlog(10)).disabledWebhooks).toBe(1)
    })

    test("is counted no further than asked", function* () {
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
    })
  })

  describe("the oldest delivery that is due", () => {
    test("is found among those of all webhooks", function* () {
      const { outbox, webhooks } = yield* prepared(3)
      for (const { id } of webhooks) {
        yield* outbox.publishTo(event(p1), id)
        yield* advance(hour)
      }
      const { dueForMillis } = yield* outbox.backlog(10)
      expect(dueForMillis).toBeGreaterThanOrEqual(3 * hour)
      expect(dueForMillis).toBeLessThan(4 * hour)
    })

    test("is not one that is claimed or due later, before that time", function* () {
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
    })

    test("is late if it waits for a dispatcher, but not while its webhook fails or is busy", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      const late = Effect.map(outbox.backlog(10), ({ lateForMillis }) => lateForMillis)
      expect(yield* late).toBeUndefined()
      yield* publishMany(20)
      yield* advance(hour)
      expect(yield* late).toBeGreaterThanOrEqual(hour)
      // Its concurrency at the beginning.
      const held = yield* claims(4, 4)
      expect(held).toHaveLength(4)
      expect((yield* outbox.backlog(10)).dueForMillis).toBeGreaterThanOrEqual(hour)
      expect(yield* late).toBeUndefined()
      for (const one of held.slice(1)) yield* settle(one, delivered)
      expect(yield* late).toBeGreaterThanOrEqual(hour)
      yield* settle(yield* firstOf(held), retry(2 * hour, 2 * hour))
      expect(yield* late).toBeUndefined()
      yield* advance(hour)
      expect(yield* late).toBeUndefined()
      yield* advance(2 * hour)
      // Nobody makes the attempt that may be made since its hold has ended.
      const lateFor = yield* late
      expect(lateFor).toBeGreaterThanOrEqual(hour)
      expect(lateFor).toBeLessThan(2 * hour)
      yield* claims(1)
      expect(yield* late).toBeUndefined()
      yield* (yield* WebhookStore).remove(p1, webhook.id, occasion)
      expect(yield* late).toBeUndefined()
    })

    test("may be one whose lease has expired", function* () {
      const { outbox } = yield* preparedWebhook
      yield* publishMany(1)
      yield* claims()
      yield* advance(leaseMillis + hour)
      expect((yield* outbox.backlog(10)).dueForMillis).toBeGreaterThanOrEqual(hour)
    })
  })
}

/** Events are found with their deliveries. */

/** An event with a delivery in each state. */
const inEachState = Effect.gen(function* () {
  const { outbox, webhooks } = yield* prepared(4)
  const published = { ...event(p1), at: 5678 }
  yield* outbox.publish(published)
  const settlements: ReadonlyArray<AttemptResult> = [
    delivered,
    failed,
    retry(60_000),
    retry(60_000),
  ]
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
    test("returns an event with its deliveries in all states, as they are listed", function* () {
      const { outbox, published, webhooks } = yield* inEachState
      yield* outbox.publish(event(p1))
      const { deliveries, ...found } = yield* outbox.find(p1, published.id)
      expect(found).toEqual(published)
      expect(deliveries).toHaveLength(4)
      const states: Array<string | undefined> = []
      for (const { id } of webhooks) {
        const delivery = deliveries.find(({ webhookId }) => webhookId === id)
        const listed = (yield* deliveriesOf({ id })).find(({ eventId }) => eventId === published.id)
        expect(delivery).toEqual(listed)
        states.push(delivery?.state)
      }
      expect(states).toEqual(["delivered", "failed", "waiting", "cancelled"])
    })

    test("returns the deliveries in the order of the list of webhooks", function* () {
      const { outbox, webhooks } = yield* prepared(12)
      const store = yield* WebhookStore
      const published = event(p1)
      yield* outbox.publish(published)
      const listed = webhooks.map(({ id }) => id)
      const order = Effect.map(outbox.find(p1, published.id), ({ deliveries }) =>
        deliveries.map(({ webhookId }) => webhookId),
      )
      expect(yield* order).toEqual(listed)
      // Whatever their state.
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
        yield* outbox.replay({ projectId: p1, webhookId }, published.id)
      }
      expect(yield* order).toEqual(listed)
    })

    test("returns all attempts, also those before a replay", function* () {
      const { outbox, published, webhooks } = yield* inEachState
      for (const { id: webhookId } of webhooks.slice(0, 2)) {
        yield* outbox.replay({ projectId: p1, webhookId }, published.id)
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
    })

    test("returns an event that no webhook receives, and one that a single webhook does", function* () {
      const { outbox } = yield* prepared(0)
      const published = event(p1)
      yield* outbox.publish(published)
      expect(yield* outbox.find(p1, published.id)).toEqual({ ...published, deliveries: [] })
      const { webhooks } = yield* prepared(2)
      const single = event(p1)
      for (const { id } of webhooks.slice(0, 1)) yield* outbox.publishTo(single, id)
      const { deliveries } = yield* outbox.find(p1, single.id)
      expect(deliveries.map(({ webhookId }) => webhookId)).toEqual([webhooks[0]?.id])
    })

    test("returns the body of an event unchanged", function* () {
      const { outbox } = yield* prepared(1)
      const body = `${JSON.stringify({ z: '\u0000 "\\ é 日本 \u{1f4a9}', a: 1e21, "": [null] })} `
      const published = { ...event(p1), body }
      yield* outbox.publish(published)
      expect((yield* outbox.find(p1, published.id)).body).toBe(body)
    })

    test("fails for an unknown event and through another project", function* () {
      const { outbox } = yield* prepared(1)
      const published = event(p1)
      yield* outbox.publish(published)
      const foreign = yield* Effect.flip(outbox.find(p2, published.id))
      expect(foreign).toMatchObject({ _tag: "EventNotFound", eventId: published.id })
      const unknown = yield* Effect.flip(outbox.find(p1, EventId(crypto.randomUUID())))
      expect(unknown._tag).toBe("EventNotFound")
    })
  })
}
