/** Many events are sent again. */

import { expect } from "@effect/vitest"
import { isReplayedResponse, makeEvent } from "@tenure/core/internal"
import {
  type Claim,
  type Event,
  type EventId,
  EventType,
  Outbox,
  type ReplaySelection,
  WebhookId,
  WebhookStore,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { event, makeWebhook, occasion, p1, p2 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import {
  claims,
  delivered,
  deliveriesOf,
  failed,
  firstOf,
  answered,
  prepared,
  preparedWebhook,
  publishMany,
  released,
  retry,
  selected,
  settle,
} from "./steps.ts"

/** Adds a webhook that has missed everything before. */
const late = Effect.gen(function* () {
  const webhook = makeWebhook(p1)
  yield* (yield* WebhookStore).add(webhook, 100, occasion)
  return { projectId: p1, webhookId: webhook.id }
})

const idsOf = (events: ReadonlyArray<Pick<Event, "id">>): ReadonlyArray<EventId> =>
  events.map(({ id }) => id)

/** Claims all that is due, and returns the claims for a webhook, in their order. */
const claimedFor = Effect.fnUntraced(function* (webhookId: WebhookId) {
  const all = yield* claims()
  return all.filter(({ webhook }) => webhook.webhookId === webhookId)
})

/** Replays, and returns how many are sent. */
const replayed = Effect.fnUntraced(function* (
  webhook: { readonly projectId: typeof p1; readonly webhookId: WebhookId },
  kinds: ReplaySelection["kinds"],
  more?: Partial<ReplaySelection>,
) {
  const page = yield* (yield* Outbox).replayMany(webhook, selected(kinds, more))
  return isReplayedResponse(page) ? undefined : page.replayed
})

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
      yield* preparedWebhook
      const missed = new Set(idsOf(yield* publishMany(20)))
      for (const one of yield* claims()) yield* settle(one, delivered)
      const webhook = yield* late
      yield* replayed(webhook, ["missed"])
      // Which other events are due, and which are tried again later.
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
          const found = yield* claims(step.claim)
          const own = found.filter((one) => one.webhook.webhookId === webhook.webhookId)
          for (const { event: one } of own) due.delete(one.id)
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
      const { outbox } = yield* preparedWebhook
      yield* outbox.publish(event(p2))
      const published = yield* publishMany(3)
      const webhook = yield* late
      const own = yield* publishMany(1)
      expect(yield* replayed(webhook, ["failed", "delivered"])).toBe(0)
      expect(yield* replayed(webhook, ["missed"])).toBe(3)
      expect(yield* replayed(webhook, ["missed", "failed", "delivered"])).toBe(0)
      const all = yield* claimedFor(webhook.webhookId)
      expect(idsOf(all.map((one) => one.event))).toEqual(idsOf([...own, ...published]))
      expect(all.map(({ attemptNumber }) => attemptNumber)).toEqual([1, 1, 1, 1])
      expect(yield* replayed(webhook, ["missed", "failed", "delivered"])).toBe(0)
      for (const one of all) expect(yield* settle(one, delivered)).toBe("Settled")
      expect(yield* replayed(webhook, ["missed", "failed"])).toBe(0)
    })

    test("sends what was failed or delivered before what was missed, and what waits not at all", function* () {
      const { outbox } = yield* preparedWebhook
      const [before] = yield* publishMany(1)
      const webhook = yield* late
      const three = yield* publishMany(3)
      const outcomes = [delivered, failed, retry(60_000)]
      for (const [index, one] of (yield* claimedFor(webhook.webhookId)).entries()) {
        yield* settle(one, outcomes[index] ?? delivered)
      }
      expect(yield* replayed(webhook, ["missed", "failed", "delivered"])).toBe(3)
      // One at a time, because the last attempt has failed.
      const claimed: Array<EventId> = []
      for (let n = 0; n < 3; n++) {
        for (const one of yield* claimedFor(webhook.webhookId)) {
          claimed.push(one.event.id)
          yield* settle(one, delivered)
        }
      }
      const expected = [three[0], three[1], before].map((one) => one?.id)
      expect(claimed).toEqual(expected)
      const listed = yield* outbox.deliveries(webhook, { limit: 10 })
      expect(listed).toHaveLength(4)
      expect(listed.map(({ state }) => state).toSorted()).toEqual([
        "delivered",
        "delivered",
        "delivered",
        "waiting",
      ])
    })

    test("sends only types that the webhook takes, or those that are asked for", function* () {
      const { outbox } = yield* preparedWebhook
      const [own, other] = [event(p1, "own.happened"), event(p1, "other.happened")]
      for (const one of [own, other]) yield* outbox.publish(one)
      const added = { ...makeWebhook(p1), eventTypes: [EventType("own.happened")] }
      yield* (yield* WebhookStore).add(added, 100, occasion)
      const webhook = { projectId: p1, webhookId: added.id }
      expect(yield* replayed(webhook, ["missed"])).toBe(1)
      const types = [EventType("other.happened"), EventType("third.happened")]
      expect(yield* replayed(webhook, ["missed"], { types })).toBe(1)
      const claimed = yield* claimedFor(added.id)
      expect(idsOf(claimed.map((one) => one.event))).toEqual([own.id, other.id])
    })

    test("sends no event that was for another webhook only", function* () {
      const { outbox, webhooks } = yield* prepared(2)
      const [one, other] = webhooks
      if (one === undefined || other === undefined) return yield* Effect.die("no webhooks")
      yield* outbox.publishTo(event(p1, "webhook.ping"), other.id)
      yield* outbox.publishTo(event(p1), one.id)
      const data = { project_id: p1, webhook_id: one.id }
      const announcement = makeEvent({ ...event(p1, "webhook.disabled"), data })
      const claim = (yield* claims()).find(({ webhook }) => webhook.webhookId === one.id)
      if (claim !== undefined)
        yield* settle(claim, { _tag: "Disabled", attempt: answered(410), announcement })
      yield* (yield* WebhookStore).enable(p1, one.id, occasion)
      expect(yield* replayed({ projectId: p1, webhookId: one.id }, ["missed"])).toBe(0)
    })

    test("sends no ping, whatever became of it", function* () {
      const { outbox, webhooks } = yield* prepared(1)
      const [own] = webhooks
      if (own === undefined) return yield* Effect.die("no webhook")
      for (const outcome of [delivered, failed]) {
        yield* outbox.publishTo(event(p1, "webhook.ping"), own.id)
        for (const one of yield* claims()) yield* settle(one, outcome)
      }
      const webhook = { projectId: p1, webhookId: own.id }
      const types = [EventType("webhook.ping")]
      for (const more of [{}, { types }])
        expect(yield* replayed(webhook, ["missed", "failed", "delivered"], more)).toBe(0)
    })

    test("sends events since a time, and from a position to another", function* () {
      const { outbox } = yield* preparedWebhook
      const published = Array.from({ length: 5 }, (_, at) => ({ ...event(p1), at }))
      for (const one of published) yield* outbox.publish(one)
      const [first, , , until] = idsOf(published)
      if (first === undefined || until === undefined) return yield* Effect.die("no events")
      const webhook = yield* late
      const position = { after: first, until }
      const dry = { isDryRun: true }
      expect(yield* replayed(webhook, ["missed"], { since: 3, ...dry })).toBe(2)
      expect(yield* replayed(webhook, ["missed"], { position, ...dry })).toBe(3)
      expect(yield* replayed(webhook, ["missed"], { position, since: 2 })).toBe(2)
      expect(yield* replayed(webhook, ["missed"])).toBe(3)
      const foreign = event(p2)
      yield* outbox.publish(foreign)
      for (const after of [foreign.id, event(p1).id]) {
        const more = selected(["missed"], { position: { after, until } })
        const error = yield* Effect.flip(outbox.replayMany(webhook, more))
        expect(error._tag).toBe("EventNotFound")
      }
    })

    test("changes nothing if it is a dry run", function* () {
      yield* preparedWebhook
      yield* publishMany(3)
      const webhook = yield* late
      expect(yield* replayed(webhook, ["missed"], { isDryRun: true })).toBe(3)
      expect(yield* deliveriesOf({ id: webhook.webhookId })).toEqual([])
      expect(yield* replayed(webhook, ["missed"])).toBe(3)
    })

    test("makes one delivery of each event, if there are several at the same time", function* () {
      yield* preparedWebhook
      yield* publishMany(20)
      const webhook = yield* late
      const all = Array.from({ length: 5 }, () => replayed(webhook, ["missed", "failed"]))
      const counts = yield* Effect.all(all, { concurrency: "unbounded" })
      expect(counts.reduce<number>((sum, count) => sum + (count ?? NaN), 0)).toBe(20)
      expect(yield* deliveriesOf({ id: webhook.webhookId })).toHaveLength(20)
    })

    test("fails for a webhook that is unknown, of another project, or disabled", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      const ref = { projectId: p1, webhookId: webhook.id }
      const tags = (one: typeof ref) =>
        Effect.map(Effect.flip(outbox.replayMany(one, selected())), ({ _tag }) => _tag)
      expect(yield* tags({ ...ref, projectId: p2 })).toBe("WebhookNotFound")
      expect(yield* tags({ ...ref, webhookId: WebhookId(crypto.randomUUID()) })).toBe(
        "WebhookNotFound",
      )
      yield* publishMany(1)
      yield* settle(yield* firstOf(yield* claims()), {
        _tag: "Disabled",
        attempt: answered(410),
        announcement: event(p1, "webhook.disabled"),
      })
      expect(yield* tags(ref)).toBe("WebhookDisabled")
    })
  })
}
