/** The order of a member's deliveries to an ordered webhook. */

import { expect } from "@effect/vitest"
import { type Claim, type EventId, Outbox } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { event, occasion, p1 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { addWebhook, firstOf, hour, idsOf } from "../steps.ts"
import {
  claim,
  claimedIds,
  claims,
  delivered,
  eventIdsOf,
  failed,
  gone,
  hoursToNext,
  preparedWith,
  released,
  retry,
  selected,
  settle,
  settleAll,
  statesOf,
  updateWebhook,
  webhookIdsOf,
} from "./steps.ts"

/** Prepares an outbox and a project with one ordered webhook. */
const preparedOrdered = preparedWith({ ordered: true })

/** Publishes events about users, and returns their ids in this order. */
const publishOf = Effect.fnUntraced(function* (...userIds: ReadonlyArray<string>) {
  const outbox = yield* Outbox
  const events = userIds.map((userId) => event(p1, undefined, userId))
  yield* Effect.forEach(events, (one) => outbox.publish(one))
  return idsOf(events)
})

/** Which deliveries are claimed. The property has them retried, given up, replayed, and their leases end. */
const turnTests = ({ advance, testsAfter }: StoreTests): void => {
  const { test } = testsAfter(preparedOrdered)
  test("returns a member's deliveries one after another, and those of others beside them", function* (world) {
    const { outbox } = world
    const [first, second, third] = yield* publishOf("ada", "ada", "ada")
    const [other] = yield* publishOf("bob")
    const general = event(p1)
    yield* outbox.publish(general)
    const all = yield* claims()
    expect(eventIdsOf(all)).toEqual([first, other, general.id])
    expect(yield* claims()).toEqual([])
    yield* settle(firstOf(all), delivered)
    const next = yield* claims()
    expect(eventIdsOf(next)).toEqual([second])
    yield* settleAll(next, delivered)
    expect(yield* claimedIds).toEqual([third])
  })

  test("returns a delivery that waited for its turn before those that were published later", function* (world) {
    const { outbox } = world
    const [first, second] = yield* publishOf("ada", "ada")
    const one = firstOf(yield* claims())
    expect(yield* claims()).toEqual([])
    yield* advance(1000)
    const [other] = yield* publishOf("bob")
    yield* advance(1000)
    yield* settle(one, delivered)
    // It has been due since it was published.
    expect((yield* outbox.backlog(100)).dueForMillis).toBeGreaterThanOrEqual(2000)
    const next = eventIdsOf(yield* claims({ limit: 1 }))
    expect([one.event.id, ...next, ...(yield* claimedIds)]).toEqual([first, second, other])
  })

  test("follows a change of the webhook for events that are published from then on", function* (world) {
    const { webhook } = world
    yield* updateWebhook(webhook, {}, { ordered: false })
    const before = yield* publishOf("ada", "ada")
    yield* updateWebhook(webhook, { ordered: false }, { ordered: true })
    const [third, fourth] = yield* publishOf("ada", "ada")
    const all = yield* claims()
    expect(eventIdsOf(all)).toEqual([...before, third])
    yield* updateWebhook(webhook, { ordered: true }, { ordered: false })
    const after = yield* publishOf("ada", "ada")
    expect(yield* claimedIds).toEqual(after)
    yield* settleAll(all, delivered)
    expect(yield* claimedIds).toEqual([fourth])
  })

  test("does not order deliveries to other webhooks", function* ({ store, webhook }) {
    const other = yield* addWebhook()
    yield* publishOf("ada", "ada", "ada")
    const claimed = webhookIdsOf(yield* claims())
    expect(claimed.toSorted()).toEqual([webhook.id, other.id, other.id, other.id].toSorted())
    expect(yield* store.find(p1, webhook.id)).toMatchObject({ ordered: true })
    expect(yield* store.find(p1, other.id)).toMatchObject({ ordered: false })
  })
}

/** Deliveries become this while they wait for their turn. */
const waitingTests = ({ testsAfter }: StoreTests): void => {
  const { test } = testsAfter(preparedOrdered)
  test("has dispatchers look for the next one once the one before has ended, and not earlier", function* (world) {
    const { outbox } = world
    yield* publishOf("ada", "ada")
    const one = firstOf(yield* claims())
    expect((yield* claim()).nextDueMillis).not.toBe(0)
    yield* outbox.nextChange
    yield* settle(one, delivered)
    expect(yield* outbox.nextChange).toEqual({ _tag: "Due" })
  })

  test("says when the next attempt of those whose turn has come is due, also before another claim", function* (world) {
    const { webhook } = world
    yield* publishOf("ada")
    const one = firstOf(yield* claims())
    yield* publishOf("ada")
    expect(yield* hoursToNext(webhook)).toBeNaN()
    yield* settle(one, retry(2 * hour, hour))
    expect(yield* hoursToNext(webhook)).toBeCloseTo(2, 1)
    yield* publishOf("bob")
    expect(yield* hoursToNext(webhook)).toBeCloseTo(1, 1)
  })

  test("counts them as waiting, and ends them with their webhook", function* (world) {
    const { outbox, store, webhook } = world
    yield* publishOf("ada", "ada", "ada")
    const one = firstOf(yield* claims())
    yield* claims()
    expect(yield* statesOf(webhook)).toEqual(["waiting", "waiting", "waiting"])
    expect(yield* outbox.backlog(100)).toMatchObject({ waiting: 3, dueForMillis: undefined })
    yield* settle(one, gone())
    expect(yield* statesOf(webhook)).toEqual(["failed", "failed", "failed"])
    yield* store.enable(p1, webhook.id, occasion)
    yield* publishOf("ada", "ada")
    yield* claims()
    yield* claims()
    yield* store.remove(p1, webhook.id, occasion)
    yield* claims()
    expect((yield* statesOf(webhook)).slice(0, 2)).toEqual(["cancelled", "cancelled"])
    expect(yield* outbox.backlog(100)).toMatchObject({ waiting: 0 })
  })
}

const outcomes = [delivered, failed, released, retry(0), retry(20_000)]

const steps = fc.oneof(
  { weight: 3, arbitrary: fc.record({ publish: fc.constantFrom("ada", "bob") }) },
  { weight: 3, arbitrary: fc.record({ claim: fc.integer({ min: 1, max: 3 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({ settle: fc.nat({ max: 9 }), outcome: fc.constantFrom(...outcomes) }),
  },
  { weight: 1, arbitrary: fc.constant({ advance: 40_000 }) },
  { weight: 1, arbitrary: fc.record({ replay: fc.nat({ max: 9 }) }) },
  { weight: 1, arbitrary: fc.constant({ replayAll: true }) },
)

/** A delivery as a dispatcher knows it. */
interface Known {
  readonly userId: string
  readonly id: EventId
  isOpen: boolean
  /** The claim, until it is settled or its lease expires. */
  claim: Claim | undefined
}

/** Expects that no earlier delivery of the member is open, and that none is claimed. */
const expectTurn = (all: ReadonlyArray<Known>, one: Known): void => {
  const open = all.filter(({ isOpen, userId }) => isOpen && userId === one.userId)
  expect(open.indexOf(one)).toBe(0)
  expect(open.filter((other) => other.claim !== undefined)).toEqual([])
}

const orderProperty = ({ advance, property }: StoreTests): void =>
  property(
    "never returns a member's delivery before the earlier ones have ended",
    fc.array(steps, { minLength: 10, maxLength: 40 }),
    Effect.fnUntraced(function* (all) {
      const { outbox, ref } = yield* preparedOrdered
      const known: Array<Known> = []

      const take = Effect.fnUntraced(function* (limit: number) {
        const taken = yield* claims({ limit })
        for (const one of taken) {
          const delivery = known.find(({ id }) => id === one.event.id)
          if (delivery === undefined) return yield* Effect.die("an unknown event")
          expectTurn(known, delivery)
          delivery.claim = one
        }
        return taken.length
      })

      const pass = Effect.fnUntraced(function* (millis: number) {
        yield* advance(millis)
        for (const one of known) one.claim = undefined
      })

      const end = Effect.fnUntraced(function* (one: Known, outcome: (typeof outcomes)[number]) {
        if (one.claim === undefined) return
        expect(yield* settle(one.claim, outcome)).toBe("Settled")
        one.claim = undefined
        one.isOpen = outcome !== delivered && outcome !== failed
      })

      for (const step of all) {
        if ("publish" in step) {
          const userId = step.publish
          const [id] = yield* publishOf(userId)
          if (id !== undefined) known.push({ userId, id, isOpen: true, claim: undefined })
        } else if ("claim" in step) {
          yield* take(step.claim)
        } else if ("advance" in step) {
          yield* pass(step.advance)
        } else if ("settle" in step) {
          const claimed = known.filter((one) => one.claim !== undefined)
          const one = claimed[step.settle % Math.max(1, claimed.length)]
          if (one !== undefined) yield* end(one, step.outcome)
        } else if ("replayAll" in step) {
          yield* outbox.replayMany(ref, selected(["failed", "delivered"]))
          for (const one of known) one.isOpen = true
        } else {
          const one = known[step.replay % Math.max(1, known.length)]
          if (one === undefined) continue
          yield* outbox.replay(ref, one.id)
          one.isOpen = true
        }
      }
      // Nothing is left behind.
      yield* pass(40_000)
      while (known.some(({ isOpen }) => isOpen)) {
        expect(yield* take(100)).toBeGreaterThan(0)
        yield* Effect.forEach(known, (one) => end(one, delivered))
      }
    }),
  )

/** Declares the tests. */
export const orderingTests = (on: StoreTests): void => {
  on.describe("an ordered webhook", () => {
    turnTests(on)
    waitingTests(on)
    orderProperty(on)
  })
}
