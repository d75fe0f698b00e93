/** Many events are sent again. */

import { expect } from "@effect/vitest"
import { makeEvent } from "@tenure/core/internal"
import { type Claim, type EventId, EventType, WebhookId, WebhookStore } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { event, occasion, p1, p2 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { addWebhook, at, expectFailure, firstOf, idsOf, refOf, times } from "../steps.ts"
import {
  answered,
  attemptAll,
  claims,
  delivered,
  deliveriesOf,
  eventIdsOf,
  failed,
  gone,
  prepared,
  preparedWebhook,
  publishMany,
  released,
  replayed,
  retry,
  selected,
  settle,
  settleAll,
} from "./steps.ts"

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

const steps = fc.oneof(
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
    fc.array(steps, { minLength: 10, maxLength: 30 }),
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

/** Declares the tests. */
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
      yield* store.enable(p1, one.id, occasion)
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
