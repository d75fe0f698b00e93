/** The order in which deliveries are claimed: a member's to an ordered webhook, and those that are sent again. */

import { expect } from "@effect/vitest"
import { makeEvent } from "@tenure/core/internal"
import {
  type Claim,
  type EventId,
  EventType,
  Outbox,
  WebhookId,
  WebhookStore,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { event, context, p1, p2 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { addWebhook, at, expectFailure, firstOf, hour, idsOf, refOf, times } from "../steps.ts"
import {
  answered,
  attemptAll,
  claim,
  claimedIds,
  claims,
  delivered,
  deliveriesOf,
  eventIdsOf,
  failed,
  gone,
  hoursToNext,
  prepared,
  preparedWebhook,
  preparedWith,
  publishMany,
  released,
  replayed,
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
    yield* store.enable(p1, webhook.id, context)
    yield* publishOf("ada", "ada")
    yield* claims()
    yield* claims()
    yield* store.remove(p1, webhook.id, context)
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

export const orderingTests = (on: StoreTests): void => {
  on.describe("an ordered webhook", () => {
    turnTests(on)
    waitingTests(on)
    orderProperty(on)
  })
}

/** A project with some events, and a webhook that has missed them. */
const missing = Effect.fnUntraced(function* (count: number) {
  const { outbox } = yield* preparedWebhook
  const published = yield* publishMany(count)
  const webhook = yield* addWebhook()
  return { outbox, published, webhook, ref: refOf(webhook) }
})

/** Claims all that is due, and returns the claims for a webhook, in their order. */
const claimedFor = (webhookId: WebhookId) =>
  Effect.map(claims(), (all) => all.filter(({ webhook }) => webhook.webhookId === webhookId))

const replaySteps = fc.oneof(
  { weight: 2, arbitrary: fc.constant("publish" as const) },
  { weight: 1, arbitrary: fc.constant("advance" as const) },
  { weight: 3, arbitrary: fc.record({ claim: fc.integer({ min: 1, max: 5 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({ settle: fc.constantFrom(delivered, retry(20_000), released) }),
  },
)

const overtakingProperty = ({ advance, property }: StoreTests): void =>
  property(
    "is claimed after all other events that are due, whatever the receiver does",
    fc.array(replaySteps, { minLength: 10, maxLength: 30 }),
    Effect.fnUntraced(function* (all) {
      const { published, ref } = yield* missing(20)
      const missed = new Set(idsOf(published))
      yield* attemptAll(delivered)
      yield* replayed(ref, ["missed"])
      // Some other events are due, and some are tried again later.
      const due = new Set<EventId>()
      const later = new Set<EventId>()
      let claimed: ReadonlyArray<Claim> = []
      for (const step of all) {
        if (step === "publish") {
          for (const { id } of yield* publishMany(1)) due.add(id)
        } else if (step === "advance") {
          // Leases expire, too.
          yield* advance(40_000)
          for (const id of later) due.add(id)
          for (const { event: one } of claimed) if (!missed.has(one.id)) due.add(one.id)
          later.clear()
          claimed = []
        } else if ("claim" in step) {
          const found = yield* claims({ limit: step.claim })
          const own = found.filter((one) => one.webhook.webhookId === ref.webhookId)
          for (const id of eventIdsOf(own)) due.delete(id)
          if (own.some(({ event: one }) => missed.has(one.id))) expect([...due]).toEqual([])
          for (const one of found) if (!own.includes(one)) yield* settle(one, delivered)
          claimed = [...claimed, ...own]
        } else {
          const [one, ...others] = claimed
          if (one === undefined) continue
          claimed = others
          yield* settle(one, step.settle)
          if (missed.has(one.event.id) || step.settle === delivered) continue
          const next = step.settle === released ? due : later
          next.add(one.event.id)
        }
      }
    }),
  )

export const replayingTests = (on: StoreTests): void => {
  const { describe, test } = on
  describe("a replay of many events", () => {
    overtakingProperty(on)

    test("sends what a webhook has missed, in the order of the log, and not twice", function* () {
      const { published, ref } = yield* missing(3)
      yield* publishMany(1, p2)
      const own = yield* publishMany(1)
      expect(yield* replayed(ref, ["failed", "delivered"])).toBe(0)
      expect(yield* replayed(ref, ["missed"])).toBe(3)
      expect(yield* replayed(ref, ["missed", "failed", "delivered"])).toBe(0)
      const all = yield* claimedFor(ref.webhookId)
      expect(eventIdsOf(all)).toEqual(idsOf([...own, ...published]))
      expect(all.map(({ attemptNumber }) => attemptNumber)).toEqual([1, 1, 1, 1])
      expect(yield* replayed(ref, ["missed", "failed", "delivered"])).toBe(0)
      expect(new Set(yield* settleAll(all, delivered))).toEqual(new Set(["Settled"]))
      expect(yield* replayed(ref, ["missed", "failed"])).toBe(0)
    })

    test("sends what was failed or delivered before what was missed, and what waits not at all", function* () {
      const { published, ref, webhook } = yield* missing(1)
      const three = yield* publishMany(3)
      yield* settleAll(yield* claimedFor(webhook.id), [delivered, failed, retry(60_000)])
      expect(yield* replayed(ref, ["missed", "failed", "delivered"])).toBe(3)
      // One at a time, because the last attempt has failed.
      const claimed: Array<EventId> = []
      for (let count = 0; count < 3; count++) {
        const all = yield* claimedFor(webhook.id)
        claimed.push(...eventIdsOf(all))
        yield* settleAll(all, delivered)
      }
      expect(claimed).toEqual(idsOf([...three.slice(0, 2), ...published]))
      const states = (yield* deliveriesOf(webhook)).map(({ state }) => state)
      expect(states.toSorted()).toEqual(["delivered", "delivered", "delivered", "waiting"])
    })

    test("sends only types that the webhook takes, or those that are asked for", function* () {
      const { outbox } = yield* preparedWebhook
      const [own, other] = [event(p1, "own.happened"), event(p1, "other.happened")]
      for (const one of [own, other]) yield* outbox.publish(one)
      const ref = refOf(yield* addWebhook(p1, { eventTypes: [EventType("own.happened")] }))
      expect(yield* replayed(ref, ["missed"])).toBe(1)
      const types = [EventType("other.happened"), EventType("third.happened")]
      expect(yield* replayed(ref, ["missed"], { types })).toBe(1)
      expect(eventIdsOf(yield* claimedFor(ref.webhookId))).toEqual([own.id, other.id])
    })

    test("sends neither what was for another webhook only, nor what was about itself", function* () {
      const { outbox, webhooks } = yield* prepared(2)
      const [one, other] = [at(webhooks, 0), at(webhooks, 1)]
      yield* outbox.publishTo(event(p1, "webhook.ping"), other.id)
      yield* outbox.publishTo(event(p1), one.id)
      const data = { project_id: p1, webhook_id: one.id }
      const announcement = makeEvent({ ...event(p1, "webhook.disabled"), data })
      const disabling = { _tag: "Disabled", attempt: answered(410), announcement } as const
      yield* settleAll(yield* claimedFor(one.id), disabling)
      const store = yield* WebhookStore
      yield* store.enable(p1, one.id, context)
      expect(yield* replayed(refOf(one), ["missed"])).toBe(0)
    })

    test("sends no ping, whatever became of it", function* () {
      const { outbox, ref } = yield* preparedWebhook
      for (const outcome of [delivered, failed]) {
        yield* outbox.publishTo(event(p1, "webhook.ping"), ref.webhookId)
        yield* attemptAll(outcome)
      }
      for (const more of [{}, { types: [EventType("webhook.ping")] }]) {
        expect(yield* replayed(ref, ["missed", "failed", "delivered"], more)).toBe(0)
      }
    })

    test("sends events since a time, and from a position to another, and none in a dry run", function* () {
      const { outbox } = yield* preparedWebhook
      const published = Array.from({ length: 5 }, (_, index) => ({ ...event(p1), at: index }))
      for (const one of published) yield* outbox.publish(one)
      const until = at(published, 3).id
      const webhook = yield* addWebhook()
      const ref = refOf(webhook)
      const position = { after: at(published, 0).id, until }
      const dry = { isDryRun: true }
      expect(yield* replayed(ref, ["missed"], { since: 3, ...dry })).toBe(2)
      expect(yield* replayed(ref, ["missed"], { position, ...dry })).toBe(3)
      expect(yield* deliveriesOf(webhook)).toEqual([])
      expect(yield* replayed(ref, ["missed"], { position, since: 2 })).toBe(2)
      expect(yield* replayed(ref, ["missed"])).toBe(3)
      const foreign = firstOf(yield* publishMany(1, p2))
      for (const after of [foreign.id, event(p1).id]) {
        const more = { position: { after, until } }
        yield* expectFailure("EventNotFound", replayed(ref, ["missed"], more))
      }
    })

    test("makes one delivery of each event, if there are several at the same time", function* () {
      const { ref, webhook } = yield* missing(20)
      const counts = yield* times(5, () => replayed(ref, ["missed", "failed"]))
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(20)
      expect(yield* deliveriesOf(webhook)).toHaveLength(20)
    })

    test("fails for a webhook that is unknown, of another project, or disabled", function* () {
      const { outbox, ref } = yield* preparedWebhook
      yield* expectFailure(
        "WebhookNotFound",
        outbox.replayMany({ ...ref, projectId: p2 }, selected()),
        outbox.replayMany({ ...ref, webhookId: WebhookId(crypto.randomUUID()) }, selected()),
      )
      yield* publishMany(1)
      yield* attemptAll(gone())
      yield* expectFailure("WebhookDisabled", outbox.replayMany(ref, selected()))
    })
  })
}
