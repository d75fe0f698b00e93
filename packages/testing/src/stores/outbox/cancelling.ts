/** Cancelling what waits for a webhook. */

import { expect } from "@effect/vitest"
import { makeEvent } from "@tenure/core/internal"
import {
  type CancelSelection,
  EventType,
  MembershipStore,
  Outbox,
  WebhookStore,
  cancelledChanges,
  replayedResponse,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { context, event, idempotency, p1, p2 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { addWebhook, at, expectFailure, firstOf, idsOf } from "../steps.ts"
import {
  attemptAll,
  claimedIds,
  claims,
  delivered,
  deliveriesOf,
  eventIdsOf,
  preparedWebhook,
  preparedWith,
  publishMany,
  replayed,
  retry,
  selected,
  settle,
  settleAll,
} from "./steps.ts"

const everything: CancelSelection = {
  since: undefined,
  until: undefined,
  types: undefined,
  userId: undefined,
  isDryRun: false,
}

/** Publishes an event at a time, about a user. */
const publishAt = (when: number, type: string, userId: string) =>
  Outbox.use((outbox) => {
    const { id } = event(p1)
    const data = { project_id: p1, user_id: userId }
    const one = makeEvent({ id, projectId: p1, type: EventType(type), at: when, data })
    return Effect.as(outbox.publish(one), id)
  })

const statesOf = (webhook: Parameters<typeof deliveriesOf>[0]) =>
  Effect.map(deliveriesOf(webhook), (all) => all.map(({ state }) => state).toReversed())

const selectingTests = (on: StoreTests): void => {
  const { advance } = on
  const { test } = on.testsAfter(preparedWebhook)

  test("ends deliveries that wait for their first or next attempt, and no others", function* (world) {
    const { outbox, ref, webhook } = world
    yield* publishMany(4)
    yield* settleAll(yield* claims({ limit: 1 }), delivered)
    yield* settleAll(yield* claims({ limit: 1 }), retry(60_000))
    const flying = yield* claims({ limit: 1 })
    const dry = outbox.cancel(ref, { ...everything, isDryRun: true }, context)
    expect(yield* dry).toBe(2)
    expect(yield* statesOf(webhook)).toEqual(["delivered", "waiting", "waiting", "waiting"])
    expect(yield* outbox.cancel(ref, everything, context)).toBe(2)
    expect(yield* outbox.cancel(ref, everything, context)).toBe(0)
    const after = ["delivered", "cancelled", "waiting", "cancelled"]
    expect(yield* statesOf(webhook)).toEqual(after)
    expect(yield* settleAll(flying, delivered)).toEqual(["Settled"])
    yield* advance(120_000)
    expect(yield* claims()).toEqual([])
    expect(yield* statesOf(webhook)).toEqual(after.with(2, "delivered"))
    const [, cancelled] = yield* deliveriesOf(webhook, { state: "cancelled" })
    expect(cancelled?.attempts).toHaveLength(1)
    expect((yield* outbox.backlog(10)).waiting).toBe(0)
  })

  test("leaves the webhook's latest attempt", function* ({ outbox, ref, webhook }) {
    yield* publishMany(1)
    const [failing] = yield* claims()
    yield* settleAll(failing === undefined ? [] : [failing], retry(60_000))
    const progress = Effect.map(outbox.progress(p1, [webhook.id]), (all) => all.get(webhook.id))
    const before = yield* progress
    expect(before).toMatchObject({ waiting: 1, latestAttempt: { eventId: failing?.event.id } })
    expect(yield* outbox.cancel(ref, everything, context)).toBe(1)
    expect(yield* progress).toMatchObject({ waiting: 0, latestAttempt: before?.latestAttempt })
  })

  test("selects by type, time and user, which must all match", function* ({
    outbox,
    ref,
    webhook,
  }) {
    const published = [
      yield* publishAt(1000, "a.one", "1"),
      yield* publishAt(2000, "a.one", "2"),
      yield* publishAt(3000, "b.two", "1"),
      yield* publishAt(4000, "b.two", '"quoted" and \\'),
    ]
    const counted = (selection: Partial<CancelSelection>) =>
      outbox.cancel(ref, { ...everything, ...selection, isDryRun: true }, context)
    const counts = yield* Effect.all([
      counted({}),
      counted({ since: 2000 }),
      counted({ until: 2000 }),
      counted({ since: 2000, until: 4000 }),
      counted({ types: [EventType("a.one")] }),
      counted({ types: [EventType("a.one"), EventType("b.two")], since: 3000 }),
      counted({ userId: "1" }),
      counted({ userId: "1", until: 3000 }),
      counted({ userId: "2", types: [EventType("b.two")] }),
      counted({ userId: "nobody" }),
    ])
    expect(counts).toEqual([4, 3, 1, 2, 2, 2, 2, 1, 0, 0])
    yield* outbox.cancel(ref, { ...everything, userId: "1", since: 3000 }, context)
    expect(yield* claimedIds).toEqual([0, 1, 3].map((index) => at(published, index)))
    expect(yield* statesOf(webhook)).toEqual(["waiting", "waiting", "cancelled", "waiting"])
  })

  test("is for one webhook of the project", function* ({ outbox, ref }) {
    const other = yield* addWebhook()
    yield* publishMany(2)
    expect(yield* outbox.cancel(ref, everything, context)).toBe(2)
    expect((yield* claims()).map(({ webhook }) => webhook.webhookId)).toEqual([other.id, other.id])
    yield* expectFailure(
      "WebhookNotFound",
      outbox.cancel({ ...ref, projectId: p2 }, everything, context),
    )
    yield* WebhookStore.use((store) => store.remove(p1, ref.webhookId, context))
    yield* expectFailure("WebhookNotFound", outbox.cancel(ref, everything, context))
  })

  test("cancels thousands in one call, and leaves what is published afterwards", function* (world) {
    const { outbox, ref } = world
    yield* publishMany(2100)
    expect(yield* outbox.cancel(ref, everything, context)).toBe(2100)
    const [later] = idsOf(yield* publishMany(1))
    expect(yield* claimedIds).toEqual([later])
  })
}

const recordingTests = (on: StoreTests): void => {
  const { test } = on.testsAfter(preparedWebhook)

  test("is audited with the number of deliveries, if any was cancelled", function* ({
    outbox,
    ref,
  }) {
    const store = yield* MembershipStore
    const history = store.history(p1, { userId: undefined, limit: 10 })
    const before = (yield* history).length
    yield* outbox.cancel(ref, everything, context)
    yield* publishMany(3)
    yield* outbox.cancel(ref, { ...everything, isDryRun: true }, context)
    expect(yield* history).toHaveLength(before)
    yield* outbox.cancel(ref, everything, context)
    const [row, ...others] = yield* history
    expect(others).toHaveLength(before)
    expect(row).toMatchObject({
      action: "deliveries_cancelled",
      subject: ref.webhookId,
      changes: cancelledChanges(3),
    })
  })

  test("is made once with an idempotency key, also if more waits when it is repeated", function* (world) {
    const { outbox, ref, webhook } = world
    yield* publishMany(2)
    const once = { ...context, idempotency: idempotency() }
    expect(yield* outbox.cancel(ref, everything, once)).toBe(2)
    yield* publishMany(1)
    expect(yield* outbox.cancel(ref, everything, once)).toEqual(replayedResponse("2"))
    expect(yield* statesOf(webhook)).toEqual(["cancelled", "cancelled", "waiting"])
    const other = { ...once.idempotency, fingerprint: "another request" }
    yield* expectFailure(
      "IdempotencyMismatch",
      outbox.cancel(ref, everything, { ...context, idempotency: other }),
    )
    const none = { ...context, idempotency: idempotency() }
    yield* claims()
    expect(yield* outbox.cancel(ref, everything, none)).toBe(0)
    expect(yield* outbox.cancel(ref, everything, none)).toEqual(replayedResponse("0"))
  })

  test("is undone for one event by its replay, and by no replay of many", function* ({
    outbox,
    ref,
    webhook,
  }) {
    const [first, second] = idsOf(yield* publishMany(2))
    yield* outbox.cancel(ref, everything, context)
    expect(yield* replayed(ref)).toBe(0)
    const all = yield* outbox.replayMany(ref, selected(["missed", "failed", "delivered"]))
    expect(all).toMatchObject({ replayed: 0 })
    if (first === undefined) return
    expect(yield* outbox.replay(ref, first)).toBe(1)
    const again = yield* claims()
    expect(eventIdsOf(again)).toEqual([first])
    yield* settleAll(again, delivered)
    expect(yield* deliveriesOf(webhook)).toMatchObject([
      { eventId: second, state: "cancelled" },
      { eventId: first, state: "delivered" },
    ])
  })
}

const orderingTests = (on: StoreTests): void => {
  const { test } = on.testsAfter(preparedWith({ ordered: true }))

  test("has an ordered webhook go on with the next of each user", function* ({ outbox, ref }) {
    const ids = [
      yield* publishAt(1000, "a.one", "ada"),
      yield* publishAt(2000, "a.one", "ada"),
      yield* publishAt(3000, "a.one", "ada"),
      yield* publishAt(1000, "a.one", "bob"),
      yield* publishAt(3000, "a.one", "bob"),
    ]
    const flying = yield* claims()
    expect(eventIdsOf(flying)).toEqual([ids[0], ids[3]])
    expect(yield* claims()).toEqual([])
    // Ada's first is in flight, and her second waits for it; Bob's first waits for its next attempt.
    yield* settle(at(flying, 1), retry(60_000))
    expect(yield* outbox.cancel(ref, { ...everything, until: 3000 }, context)).toBe(2)
    yield* settle(firstOf(flying), delivered)
    expect(new Set(yield* claimedIds)).toEqual(new Set([ids[2], ids[4]]))
  })

  test("leaves nothing blocked when all of a user's deliveries are cancelled", function* (world) {
    const { outbox, ref } = world
    for (const when of [1, 2, 3]) yield* publishAt(when, "a.one", "ada")
    const [flying] = yield* claims()
    yield* claims()
    expect(yield* outbox.cancel(ref, everything, context)).toBe(2)
    if (flying !== undefined) yield* settle(flying, delivered)
    expect(yield* claims()).toEqual([])
    const next = yield* publishAt(4, "a.one", "ada")
    expect(yield* claimedIds).toEqual([next])
  })

  test("does not hold up claims and settlements at the same time", function* ({ outbox, ref }) {
    for (let round = 0; round < 5; round++) {
      yield* publishMany(20)
      yield* publishAt(1, "a.one", "ada")
      const flying = yield* claims({ limit: 5 })
      const [cancelled] = yield* Effect.all(
        [
          outbox.cancel(ref, everything, context),
          attemptAll(delivered),
          ...flying.map((one) => settle(one, delivered)),
        ],
        { concurrency: "unbounded" },
      )
      expect(cancelled).toBeLessThanOrEqual(21)
      yield* attemptAll(delivered)
      expect((yield* outbox.backlog(100)).waiting).toBe(0)
    }
  })
}

export const cancellingTests = (on: StoreTests): void => {
  on.describe("a cancellation", () => {
    selectingTests(on)
    recordingTests(on)
    orderingTests(on)
  })
}
