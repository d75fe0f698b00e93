/** Deliveries are listed, replayed and found. */

import { expect } from "@effect/vitest"
import { newEventId } from "@tenure/core/internal"
import {
  type Attempt,
  type AttemptPosition,
  type AttemptResult,
  type Delivery,
  type DeliveryState,
  EventId,
  type Outbox,
  WebhookId,
  type WebhookRef,
  WebhookStore,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { event, context, idempotency, p1, p2 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { addWebhook, at, expectFailure, firstOf, idsOf, refOf } from "../steps.ts"
import {
  answered,
  attempt,
  attemptAll,
  claimedIds,
  claims,
  delivered,
  deliveriesOf,
  eventIdsOf,
  failed,
  prepared,
  preparedWebhook,
  publishMany,
  released,
  replayed,
  retry,
  selected,
  settle,
  settleAll,
  theClaim,
  timeout,
} from "./steps.ts"

/** A webhook with five deliveries: delivered, failed, waiting, delivered and failed. */
const fiveOn = ({ advance }: StoreTests) =>
  Effect.gen(function* () {
    const { outbox, ref, webhook } = yield* preparedWebhook
    yield* advance(1000)
    const published = Array.from({ length: 5 }, (_, index) => ({ ...event(p1), at: index }))
    yield* Effect.forEach(published, (one) => outbox.publish(one))
    // The last one is the first and succeeds: a failing webhook gets one delivery at a time.
    const claimed = (yield* claims()).toReversed()
    yield* settleAll(claimed, [failed, delivered, released, failed, delivered])
    const ids = idsOf(published)
    /** Lists deliveries by their events' numbers. */
    const listed = (page: Parameters<typeof deliveriesOf>[1]) =>
      Effect.map(deliveriesOf(webhook, page), (all) =>
        all.map(({ eventId }) => ids.indexOf(eventId)),
      )
    return { outbox, webhook, ref, ids, listed }
  })

const listTests = (on: StoreTests): void => {
  const { test } = on.testsAfter(fiveOn(on))

  test("are listed newest first, page by page, also after their webhook was removed", function* (world) {
    const { ids, listed, webhook } = world
    expect(yield* listed({ limit: 10 })).toEqual([4, 3, 2, 1, 0])
    expect(yield* deliveriesOf(webhook, { limit: 2 })).toMatchObject([
      { type: "test.happened", webhookId: webhook.id, attempts: [timeout] },
      { attempts: [answered(200)] },
    ])
    expect(yield* listed({ olderThan: ids[3], limit: 2 })).toEqual([2, 1])
    expect(yield* listed({ olderThan: EventId(crypto.randomUUID()) })).toEqual([])
    expect(yield* deliveriesOf({ ...webhook, projectId: p2 })).toEqual([])
    yield* WebhookStore.use((store) => store.remove(p1, webhook.id, context))
    expect(yield* listed({ limit: 10 })).toEqual([4, 3, 2, 1, 0])
  })

  test("are listed by state, newest first", function* ({ ids, listed }) {
    const expected: ReadonlyArray<readonly [DeliveryState, ReadonlyArray<number>]> = [
      ["delivered", [3, 0]],
      ["failed", [4, 1]],
      ["waiting", [2]],
      ["cancelled", []],
    ]
    for (const [state, found] of expected) expect(yield* listed({ state })).toEqual(found)
    expect(yield* listed({ state: "failed", olderThan: ids[4], limit: 1 })).toEqual([1])
  })
}

const replayTests = (on: StoreTests): void => {
  const { advance, test } = on
  const five = fiveOn(on)

  test("can be replayed one by one after they have ended, with a new count of attempts", function* () {
    const { ids, outbox, ref, webhook } = yield* five
    yield* claims()
    const replay = (index: number) => outbox.replay(ref, at(ids, index))
    expect([yield* replay(1), yield* replay(2), yield* replay(3)]).toEqual([1, 0, 1])
    const again = yield* claims()
    expect(again.map((claim) => [ids.indexOf(claim.event.id), claim.attemptNumber])).toEqual([
      [1, 1],
      [3, 1],
    ])
    expect(yield* settleAll(again, delivered)).toEqual(["Settled", "Settled"])
    expect(yield* deliveriesOf(webhook)).toMatchObject([
      {},
      { attempts: [answered(200), answered(200)] },
      {},
      { state: "delivered", attempts: [timeout, answered(200)] },
      {},
    ])
  })

  test("can be replayed while they wait for their next attempt", function* () {
    const { outbox, ref, webhook } = yield* preparedWebhook
    const [one, other] = idsOf(yield* publishMany(2))
    yield* attemptAll(retry(60_000))
    expect(yield* claims()).toEqual([])
    expect(yield* replayed(ref)).toBe(0)
    const replay = outbox.replay(ref, one ?? EventId(""))
    expect([yield* replay, yield* replay]).toEqual([1, 0])
    const again = yield* theClaim
    expect(again).toMatchObject({ event: { id: one }, attemptNumber: 1 })
    expect(yield* replay).toBe(0)
    yield* settle(again, delivered)
    expect(yield* deliveriesOf(webhook)).toMatchObject([
      { eventId: other, state: "waiting", attempts: [attempt] },
      { eventId: one, state: "delivered", attempts: [attempt, answered(200)] },
    ])
  })

  test("that are due are not replayed, also while nobody has claimed since", function* () {
    const { outbox, ref, webhook } = yield* preparedWebhook
    const { id } = firstOf(yield* publishMany(1))
    yield* settle(yield* theClaim, retry(1000))
    yield* advance(2000)
    const due = yield* deliveriesOf(webhook)
    expect(yield* outbox.replay(ref, id)).toBe(0)
    expect(yield* deliveriesOf(webhook)).toEqual(due)
    expect((yield* theClaim).attemptNumber).toBe(2)
  })

  test("that failed since a given time can be replayed together, which wakes dispatchers", function* () {
    const { ids, outbox, ref } = yield* five
    yield* outbox.nextChange
    yield* claims()
    expect(yield* replayed(ref, ["failed"], { since: 2 })).toBe(1)
    yield* outbox.nextChange
    expect((yield* theClaim).event.id).toBe(ids[4])
    expect(yield* replayed(ref)).toBe(1)
    expect((yield* theClaim).event.id).toBe(ids[1])
  })

  test("that are replayed together come after all others, also when they are tried again", function* () {
    const { ids, outbox, ref } = yield* five
    expect(yield* replayed(ref)).toBe(2)
    const live = firstOf(yield* claims({ limit: 1 }))
    expect(live.event.id).toBe(ids[2])
    yield* settle(live, delivered)
    expect((yield* outbox.backlog(10)).dueForMillis).toBe(undefined)
    yield* settleAll(yield* claims({ limit: 1 }), retry(60_000))
    yield* advance(60_000)
    const published = yield* publishMany(1)
    const next = yield* claims({ limit: 1 })
    expect(eventIdsOf(next)).toEqual(idsOf(published))
    yield* settleAll(next, delivered)
    expect(yield* claimedIds).toEqual([ids[4], ids[1]])
  })

  test("are replayed one by one, each once with its idempotency key", function* () {
    const { ids, outbox, ref } = yield* five
    for (const id of ids) {
      const key = idempotency()
      const first = yield* outbox.replay(ref, id, key)
      expect(yield* outbox.replay(ref, id, key)).toEqual({
        _tag: "Replayed",
        answer: String(first),
      })
    }
  })

  test("are replayed once with an idempotency key", function* () {
    const { outbox, ref, webhook } = yield* five
    const key = idempotency()
    const unknown = { ...ref, webhookId: WebhookId(crypto.randomUUID()) }
    yield* expectFailure("WebhookNotFound", outbox.replayMany(unknown, selected(), key))
    const replay = outbox.replayMany(ref, selected(), key)
    expect(yield* replay).toEqual({ replayed: 2, next: undefined })
    const again = { ...event(p1), at: 9 }
    yield* outbox.publish(again)
    yield* attemptAll(failed)
    for (const _ of ["second", "third"]) {
      expect(yield* replay).toEqual({ _tag: "Replayed", answer: "2" })
    }
    expect(yield* deliveriesOf(webhook)).not.toContainEqual(
      expect.objectContaining({ eventId: again.id, state: "waiting" }),
    )
  })
}

export const deliveriesTests = (on: StoreTests): void => {
  on.describe("deliveries", () => {
    listTests(on)
    replayTests(on)
  })
}

/** An event with a delivery in each state. */
const inEachState = Effect.gen(function* () {
  const { outbox, webhooks } = yield* prepared(4)
  const published = { ...event(p1), at: 5678 }
  yield* outbox.publish(published)
  const settlements = [delivered, failed, retry(60_000), retry(60_000)]
  for (const claim of yield* claims()) {
    const index = webhooks.findIndex(({ id }) => id === claim.webhook.webhookId)
    yield* settle(claim, at(settlements, index))
  }
  yield* WebhookStore.use((store) => store.remove(p1, at(webhooks, 3).id, context))
  return { outbox, published, webhooks }
})

export const findingTests = ({ describe, test }: StoreTests): void => {
  describe("find", () => {
    test("returns an event with its deliveries in all states, as they are listed", function* () {
      const { outbox, published, webhooks } = yield* inEachState
      yield* outbox.publish(event(p1))
      const { deliveries, ...found } = yield* outbox.find(p1, published.id)
      expect(found).toEqual(published)
      const listed = (yield* Effect.forEach(webhooks, (one) => deliveriesOf(one)))
        .flat()
        .filter(({ eventId }) => eventId === published.id)
      expect(deliveries).toEqual(expect.arrayContaining(listed))
      expect(listed.map(({ state }) => state)).toEqual([
        "delivered",
        "failed",
        "waiting",
        "cancelled",
      ])
      expect(deliveries).toHaveLength(4)
    })

    test("returns the deliveries in the order of the list of webhooks", function* () {
      const { outbox, webhooks } = yield* prepared(12)
      const published = firstOf(yield* publishMany(1))
      const listed = webhooks.map(({ id }) => id)
      const order = Effect.map(outbox.find(p1, published.id), ({ deliveries }) =>
        deliveries.map(({ webhookId }) => webhookId),
      )
      expect(yield* order).toEqual(listed)
      // Whatever their state.
      const outcomes: Readonly<Record<number, AttemptResult>> = {
        1: delivered,
        4: failed,
        7: retry(60_000),
      }
      for (const claim of yield* claims()) {
        const outcome = outcomes[listed.indexOf(claim.webhook.webhookId)]
        if (outcome !== undefined) yield* settle(claim, outcome)
      }
      for (const id of listed.slice(2, 4)) {
        yield* WebhookStore.use((store) => store.remove(p1, id, context))
      }
      yield* outbox.replay(refOf(at(webhooks, 1)), published.id)
      expect(yield* order).toEqual(listed)
    })

    test("returns all attempts, also those before a replay", function* () {
      const { outbox, published, webhooks } = yield* inEachState
      for (const one of webhooks.slice(0, 2)) yield* outbox.replay(refOf(one), published.id)
      const found = Effect.map(outbox.find(p1, published.id), ({ deliveries }) =>
        deliveries.map(({ attempts, state }) => `${state} after ${attempts.length}`).toSorted(),
      )
      const others = ["cancelled after 1", "waiting after 1"]
      expect(yield* found).toEqual([...others, "waiting after 1", "waiting after 1"])
      yield* attemptAll(delivered)
      expect(yield* found).toEqual([...others, "delivered after 2", "delivered after 2"].toSorted())
    })

    test("returns an event that no webhook receives, and one that a single webhook does", function* () {
      const { outbox } = yield* prepared(0)
      const published = firstOf(yield* publishMany(1))
      expect(yield* outbox.find(p1, published.id)).toEqual({ ...published, deliveries: [] })
      const [webhook] = [yield* addWebhook(), yield* addWebhook()]
      const single = event(p1)
      yield* outbox.publishTo(single, webhook.id)
      const { deliveries } = yield* outbox.find(p1, single.id)
      expect(deliveries.map(({ webhookId }) => webhookId)).toEqual([webhook.id])
    })

    test("fails for an unknown event and through another project", function* () {
      const { outbox } = yield* prepared(1)
      const { id } = firstOf(yield* publishMany(1))
      const foreign = yield* Effect.flip(outbox.find(p2, id))
      expect(foreign).toMatchObject({ _tag: "EventNotFound", eventId: id })
      yield* expectFailure("EventNotFound", outbox.find(p1, EventId(crypto.randomUUID())))
    })
  })
}

/** A step. An index is taken modulo the number of candidates. */
type Step =
  /** Publishes events. Their ids tell times so many milliseconds after one another. */
  | { readonly publish: ReadonlyArray<number> }
  /** Settles what is due, all at once. Each element says how one ends. */
  | { readonly settle: ReadonlyArray<"alike" | "differently" | "fails" | "released"> }
  | { readonly replay: number }
  /** Replays all that were delivered, from this event on. */
  | { readonly replayAll: true }

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      publish: fc.array(fc.constantFrom(0, 1, 1023, 3000), { maxLength: 12 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      settle: fc.array(
        fc.oneof(
          { weight: 5, arbitrary: fc.constant("alike" as const) },
          fc.constantFrom("differently" as const, "fails" as const, "released" as const),
        ),
        { minLength: 1, maxLength: 12, size: "max" },
      ),
    }),
  },
  { weight: 3, arbitrary: fc.record({ replay: fc.nat(50) }) },
  { weight: 1, arbitrary: fc.constant({ replayAll: true } as const) },
)

/** What is known about a delivery. */
interface Known {
  readonly id: EventId
  state: Delivery["state"]
  attempts: ReadonlyArray<Attempt>
}

/** Reads a list page by page. */
const walk = Effect.fnUntraced(function* <Place>(
  read: (place: Place | undefined) => Effect.Effect<ReadonlyArray<Delivery>, unknown>,
  placeOf: (last: Delivery) => Place,
) {
  const all: Array<Delivery> = []
  let place: Place | undefined
  for (;;) {
    const page = yield* read(place)
    const last = page.at(-1)
    if (last === undefined) return all
    all.push(...page)
    place = placeOf(last)
  }
})

const shown = ({ attempts, eventId, state }: Delivery): Known => ({ id: eventId, state, attempts })

const attemptPlace = ({ attemptedAt = 0, eventId }: Delivery): AttemptPosition => ({
  attemptedAt,
  eventId,
})

/** The latest attempt first and, with the same time, the greatest event id. */
const byAttempt = (one: Delivery, other: Delivery): number =>
  (other.attemptedAt ?? 0) - (one.attemptedAt ?? 0) || (one.eventId < other.eventId ? 1 : -1)

/** Checks all lists that show a webhook's deliveries. */
const expectLists = Effect.fnUntraced(function* (
  outbox: Outbox["Service"],
  ref: WebhookRef,
  known: ReadonlyArray<Known>,
) {
  const newest = known.toReversed()
  for (const state of [undefined, "delivered", "failed"] as const) {
    const expected = newest.filter((one) => state === undefined || one.state === state)
    const listed = yield* walk(
      (olderThan: EventId | undefined) => outbox.deliveries(ref, { state, olderThan, limit: 3 }),
      ({ eventId }) => eventId,
    )
    expect(listed.map(shown)).toEqual(expected)
    const attempted = yield* walk(
      (before: AttemptPosition | undefined) => outbox.attempted(ref, { state, before, limit: 3 }),
      attemptPlace,
    )
    expect(attempted).toEqual(
      listed.filter(({ attempts }) => attempts.length > 0).toSorted(byAttempt),
    )
  }
  const latest = (yield* outbox.progress(ref.projectId, [ref.webhookId])).get(ref.webhookId)
  const attempted = yield* outbox.attempted(ref, { limit: 100 })
  const ofLatest = attempted.filter(({ attemptedAt }) => attemptedAt === attempted[0]?.attemptedAt)
  if (attempted.length === 0) expect(latest?.latestAttempt).toBeUndefined()
  else
    expect(ofLatest.map(({ attempts }) => attempts.at(-1)?.at)).toContain(latest?.latestAttempt?.at)
  for (const { id, ...one } of known.slice(0, 3)) {
    const { deliveries } = yield* outbox.find(p1, id)
    expect(deliveries).toMatchObject([one])
  }
})

export const listsTests = ({ property }: StoreTests): void => {
  property(
    "lists what became of deliveries, whichever were settled together or replayed",
    fc.array(steps, { minLength: 4, maxLength: 12, size: "max" }),
    Effect.fnUntraced(function* (all) {
      const { outbox, ref } = yield* preparedWebhook
      const known: Array<Known> = []
      let time = Date.UTC(2026, 0)
      let count = 0

      /** Ends an attempt that no other equals. */
      const resultOf = (
        how: "alike" | "differently" | "fails",
      ): Exclude<AttemptResult, { readonly _tag: "Released" }> => {
        count++
        const body = how === "alike" ? "ok" : `response ${count}`
        const made: Attempt = {
          at: count,
          durationMillis: count / 3,
          result: { _tag: "Answered", status: how === "fails" ? 400 : 200, body },
        }
        return how === "fails"
          ? { _tag: "Failed", attempt: made, holdMillis: 0 }
          : { _tag: "Delivered", attempt: made }
      }

      const settleTogether = Effect.fnUntraced(function* (
        hows: ReadonlyArray<"alike" | "differently" | "fails" | "released">,
      ) {
        const claimed = yield* claims()
        const settling = claimed.map((claim, index) => {
          const how = hows[index] ?? "released"
          if (how === "released") return settle(claim, released)
          const result = resultOf(how)
          const one = at(
            known,
            known.findIndex(({ id }) => id === claim.event.id),
          )
          one.state = how === "fails" ? "failed" : "delivered"
          one.attempts = [...one.attempts, result.attempt]
          return settle(claim, result)
        })
        const settled = yield* Effect.all(settling, { concurrency: "unbounded" })
        for (const one of settled) expect(one).toBe("Settled")
      })

      for (const step of all) {
        if ("publish" in step) {
          for (const later of step.publish) {
            time += later
            const id = newEventId(crypto, time)
            yield* outbox.publish({ ...event(p1), id })
            known.push({ id, state: "waiting", attempts: [] })
          }
        } else if ("settle" in step) {
          yield* settleTogether(step.settle)
        } else if ("replayAll" in step) {
          const ended = known.filter(({ state }) => state === "delivered")
          expect(yield* replayed(ref, ["delivered"])).toBe(ended.length)
          for (const one of ended) one.state = "waiting"
        } else if (known.length > 0) {
          const one = at(known, step.replay % known.length)
          expect(yield* outbox.replay(ref, one.id)).toBe(one.state === "waiting" ? 0 : 1)
          one.state = "waiting"
        }
      }
      yield* expectLists(outbox, ref, known)
    }),
  )
}
