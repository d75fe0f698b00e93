/** Settling claimed deliveries. */

import { expect } from "@effect/vitest"
import { type AttemptResult, type Claim, WebhookStore } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { event, occasion, p1, p2 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import {
  answered,
  attempt,
  claim,
  claims,
  delivered,
  deliveriesOf,
  failed,
  failingFor,
  firstOf,
  gone,
  leaseMillis,
  prepared,
  preparedWebhook,
  publishMany,
  released,
  replayFailed,
  retry,
  selected,
  settle,
  statesOf,
  theClaim,
  timeout,
  twoClaims,
} from "./steps.ts"

/** Declares the tests. */
export const settlingTests = ({ advance, describe, test }: StoreTests): void => {
  describe("settle", () => {
    test("ends a successful delivery", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      const published = event(p1)
      yield* outbox.publish(published)
      const one = yield* theClaim
      expect(yield* settle(one, delivered)).toBe("Settled")
      expect(yield* settle(one, delivered)).toBe("Lapsed")
      yield* advance(10 * leaseMillis)
      expect(yield* claims()).toEqual([])
      expect(yield* firstOf(yield* deliveriesOf(webhook))).toMatchObject({
        eventId: published.id,
        webhookId: webhook.id,
        state: "delivered",
        attempts: [answered(200)],
      })
    })

    test("delays a retry, and counts attempts", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      yield* outbox.publish(event(p1))
      expect(yield* settle(yield* theClaim, retry(60_000))).toBe("Settled")
      yield* advance(58_000)
      expect(yield* claims()).toEqual([])
      yield* advance(2000)
      const second = yield* theClaim
      expect(second.attemptNumber).toBe(2)
      yield* settle(second, failed)
      yield* advance(100 * leaseMillis)
      expect(yield* claims()).toEqual([])
      expect(yield* firstOf(yield* deliveriesOf(webhook))).toMatchObject({
        state: "failed",
        attempts: [attempt, timeout],
      })
    })

    test("makes a released delivery claimable again, without an attempt", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      yield* outbox.publish(event(p1))
      expect(yield* settle(yield* theClaim, released)).toBe("Settled")
      expect((yield* theClaim).attemptNumber).toBe(1)
      expect(yield* firstOf(yield* deliveriesOf(webhook))).toMatchObject({
        state: "waiting",
        attempts: [],
      })
    })

    test("disables a webhook that is gone: its deliveries fail and stay visible", function* () {
      const { outbox, webhooks } = yield* prepared(2)
      const webhook = yield* firstOf(webhooks)
      yield* publishMany(2)
      const own = (yield* claims(2)).filter((one) => one.webhook.webhookId === webhook.id)
      expect(yield* settle(yield* firstOf(own), gone())).toBe("WebhookDisabled")
      yield* outbox.publish(event(p1))
      const rest = yield* claims()
      // Two events, and the announcement between them.
      expect(rest.map((one) => JSON.parse(one.event.body).type)).toEqual([
        "test.happened",
        "webhook.disabled",
        "test.happened",
      ])
      expect(rest.every((one) => one.webhook.webhookId !== webhook.id)).toBe(true)
      expect(yield* statesOf(webhook)).toEqual(["failed", "failed"])
      const listed = yield* (yield* WebhookStore).list(p1)
      expect(listed.map(({ disabled }) => disabled !== undefined)).toEqual([true, false])
    })

    test("announces once that a webhook is gone", function* () {
      const { webhooks } = yield* prepared(2)
      const webhook = yield* firstOf(webhooks)
      yield* publishMany(2)
      const own = (yield* claims()).filter((one) => one.webhook.webhookId === webhook.id)
      expect(yield* Effect.forEach(own, (one) => settle(one, gone()))).toEqual([
        "WebhookDisabled",
        "Settled",
      ])
      const types = (yield* claims()).map((one) => JSON.parse(one.event.body).type)
      expect(types).toEqual(["webhook.disabled"])
    })

    test("changes nothing with a claim whose lease has ended", function* () {
      const { outbox, webhooks } = yield* prepared(2)
      yield* outbox.publish(event(p1))
      const { one, other } = yield* twoClaims
      yield* settle(other, delivered)
      yield* advance(leaseMillis)
      for (const late of [gone(), failed, retry(60_000, 60_000)]) {
        expect(yield* settle(one, late)).toBe("Lapsed")
      }
      const again = yield* theClaim
      expect(again.event).toEqual(one.event)
      expect([again.webhook.webhookId, again.webhook.failures]).toEqual([one.webhook.webhookId, 0])
      expect(yield* (yield* WebhookStore).list(p1)).toMatchObject(webhooks)
    })
  })
}

/** Failing webhooks. */

const day = 86_400_000

/** Declares the tests. */
export const failingTests = ({ advance, describe, test }: StoreTests): void => {
  describe("a failing webhook", () => {
    test("counts the failed attempts since the last success", function* () {
      const { outbox } = yield* prepared(1)
      yield* outbox.publish(event(p1))
      const failing: Array<number | undefined> = []
      for (const expected of [0, 1, 2]) {
        const one = yield* theClaim
        expect(one.webhook.failures).toBe(expected)
        failing.push(one.webhook.failingSince)
        yield* settle(one, retry(0))
      }
      expect(failing[0]).toBeUndefined()
      expect(failing[1]).toEqual(expect.any(Number))
      expect(failing[2]).toBe(failing[1])
      yield* settle(yield* theClaim, delivered)
      yield* outbox.publish(event(p1))
      const { webhook } = yield* theClaim
      expect([webhook.failures, webhook.failingSince]).toEqual([0, undefined])
    })

    test("is announced once for each share of a run of failures, before it is disabled", function* () {
      const { outbox, webhooks } = yield* prepared(2)
      const [own, other] = webhooks
      const store = yield* WebhookStore
      const told: Array<unknown> = []
      // Delivers everything to the other webhook, and settles the only claim of the failing one.
      const settleOwn = Effect.fnUntraced(function* (settlement: (since: number) => AttemptResult) {
        const all = yield* claims()
        for (const one of all) {
          if (one.webhook.webhookId !== other?.id) continue
          told.push(JSON.parse(one.event.body).type)
          yield* settle(one, delivered)
        }
        const owned = all.filter(({ webhook }) => webhook.webhookId === own?.id)
        expect(owned.length).toBeLessThan(2)
        return yield* Effect.forEach(owned, (one) =>
          settle(one, settlement(one.webhook.failingSince ?? NaN)),
        )
      })
      const fail = settleOwn(() => retry(0))
      const failFor = (percent: 50 | 90) =>
        settleOwn((since) => retry(0, 0, failingFor(percent, since)))
      yield* outbox.publish(event(p1))
      expect(yield* fail).toEqual(["Settled"])
      expect(yield* failFor(50)).toEqual(["WebhookFailing"])
      expect(yield* failFor(50)).toEqual(["Settled"])
      expect(yield* failFor(90)).toEqual(["WebhookFailing"])
      expect(yield* failFor(50)).toEqual(["Settled"])
      expect(yield* settleOwn((since) => gone(failingFor(100, since)))).toEqual(["WebhookDisabled"])
      expect(yield* fail).toEqual([])
      const run = ["failing.50", "failing.90", "failing.100", "webhook.disabled"]
      expect(told).toEqual(["test.happened", ...run])
      yield* store.enable(p1, (yield* firstOf(webhooks)).id, occasion)
      yield* outbox.publish(event(p1))
      expect(yield* fail).toEqual(["Settled"])
      expect(yield* failFor(90)).toEqual(["WebhookFailing"])
      expect(yield* settleOwn(() => delivered)).toEqual(["Settled"])
      yield* outbox.publish(event(p1))
      expect(yield* fail).toEqual(["Settled"])
      expect(yield* failFor(50)).toEqual(["WebhookFailing"])
    })

    test("is neither announced nor disabled for a run of failures that is over", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      yield* publishMany(3)
      const [first, second, third] = yield* claims()
      const store = yield* WebhookStore
      const since = Effect.map(store.find(p1, webhook.id), ({ failingSince = NaN }) => failingSince)
      if (first === undefined || second === undefined || third === undefined)
        return yield* Effect.die("fewer than three claims")
      yield* settle(first, retry(60_000))
      const failingSince = yield* since
      yield* settle(second, delivered)
      yield* advance(1000)
      yield* outbox.publish(event(p1))
      yield* settle(yield* theClaim, retry(60_000))
      expect(yield* since).not.toBe(failingSince)
      expect(yield* settle(third, gone(failingFor(100, failingSince)))).toBe("Settled")
      expect((yield* store.find(p1, webhook.id)).disabled).toBeUndefined()
    })

    test.each([
      ["a retry", retry(0, 60_000)],
      ["a failure", { _tag: "Failed", attempt, holdMillis: 60_000 }],
    ] as const)("is not claimed while %s holds it, and holds up no other", function* ([, holding]) {
      const { outbox } = yield* prepared(2)
      yield* outbox.publish(event(p1))
      const { one: held, other } = yield* twoClaims
      yield* settle(held, holding)
      yield* settle(other, delivered)
      yield* outbox.publish(event(p1))
      const next = yield* theClaim
      expect(next.webhook.webhookId).toBe(other.webhook.webhookId)
      yield* settle(next, delivered)
      const { nextDueMillis } = yield* claim()
      expect(nextDueMillis).toBeGreaterThan(50_000)
      expect(nextDueMillis).toBeLessThanOrEqual(60_000)
      yield* advance(60_000)
      expect((yield* theClaim).webhook.webhookId).toBe(held.webhook.webhookId)
    })

    test("leaves room for others: a claim takes only so many deliveries of failing webhooks", function* () {
      const { webhooks } = yield* prepared(6)
      yield* publishMany(1)
      yield* Effect.forEach(yield* claims(4), (one) => settle(one, retry(0)))
      const failures = (all: ReadonlyArray<Claim>) =>
        all.map(({ webhook }) => webhook.failures).toSorted()
      const take = (failing: number) => claims(100, 100, 1000, failing)
      expect(failures(yield* take(0))).toEqual([0, 0])
      expect(yield* take(0)).toEqual([])
      const first = yield* take(3)
      expect(failures(first)).toEqual([1, 1, 1])
      const rest = yield* take(3)
      expect(failures(rest)).toEqual([1])
      const failing = [...first, ...rest].map(({ webhook }) => webhook.webhookId)
      expect(new Set(failing).size).toBe(4)
      yield* settle(yield* firstOf(first), delivered)
      yield* settle(yield* firstOf(rest), retry(0))
      yield* publishMany(1)
      expect(failures(yield* take(0))).toEqual([0, 0, 0])
      expect(webhooks).toHaveLength(6)
    })

    test("is tried again in time after it failed while the clock was ahead", function* () {
      const { outbox } = yield* prepared(1)
      yield* outbox.publish(event(p1))
      yield* advance(day)
      yield* settle(yield* theClaim, retry(5000, 5000))
      yield* advance(-day)
      yield* advance(5000)
      yield* settle(yield* theClaim, delivered)
      yield* outbox.publish(event(p1))
      yield* theClaim
    })

    test("is held no longer by a failure from when the clock was ahead", function* () {
      const { outbox } = yield* prepared(1)
      yield* outbox.publish(event(p1))
      yield* advance(day)
      yield* settle(yield* theClaim, { _tag: "Failed", attempt, holdMillis: 5000 })
      yield* advance(-day)
      yield* outbox.publish(event(p1))
      yield* advance(5000)
      yield* settle(yield* theClaim, { _tag: "Failed", attempt, holdMillis: 60_000 })
      yield* outbox.publish(event(p1))
      expect(yield* claims()).toEqual([])
      yield* advance(60_000)
      yield* theClaim
    })

    test("is claimed again in time when a lease ends that began while the clock was ahead", function* () {
      const { outbox } = yield* prepared(1)
      yield* outbox.publish(event(p1))
      yield* advance(day)
      yield* theClaim
      yield* advance(-day)
      expect(yield* claims()).toEqual([])
      yield* advance(leaseMillis)
      yield* theClaim
    })

    test("is no longer held after a successful attempt", function* () {
      const { outbox } = yield* prepared(1)
      yield* publishMany(2)
      const { one, other } = yield* twoClaims
      yield* settle(one, { _tag: "Failed", attempt, holdMillis: 60_000 })
      yield* settle(other, delivered)
      yield* outbox.publish(event(p1))
      expect(yield* claims()).toHaveLength(1)
    })
  })
}

/** Disables a webhook while another of its deliveries is claimed. */
const disabled = Effect.gen(function* () {
  const { outbox, webhook } = yield* preparedWebhook
  yield* publishMany(2)
  const { one, other } = yield* twoClaims
  yield* settle(one, gone())
  return { outbox, webhook, other }
})

/** Declares the tests. */
export const disabledTests = ({ advance, describe, test }: StoreTests): void => {
  describe("a disabled webhook", () => {
    test("accepts no events by publishTo", function* () {
      const { outbox, webhook } = yield* disabled
      const error = yield* Effect.flip(outbox.publishTo(event(p1), webhook.id))
      expect(error).toMatchObject({ _tag: "WebhookDisabled", webhookId: webhook.id })
    })

    test.each([
      ["delivered", delivered],
      ["failed", retry(1000)],
      ["failed", released],
    ] as const)("ends an earlier claim as %s", function* ([state, settlement]) {
      const { other, webhook } = yield* disabled
      expect(yield* settle(other, settlement)).toBe("Settled")
      yield* advance(10 * leaseMillis)
      expect(yield* claims()).toEqual([])
      expect(yield* statesOf(webhook)).toEqual([state, "failed"])
    })

    test("ends an earlier claim as failed when its lease ends", function* () {
      const { webhook } = yield* disabled
      yield* advance(leaseMillis)
      expect(yield* claims()).toEqual([])
      expect(yield* statesOf(webhook)).toEqual(["failed", "failed"])
    })

    test("receives events and replays again after it is enabled", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      yield* publishMany(2)
      yield* settle(yield* firstOf(yield* claims(1)), gone())
      const target = { projectId: p1, webhookId: webhook.id }
      const error = yield* Effect.flip(outbox.replayMany(target, selected()))
      expect(error).toMatchObject({ _tag: "WebhookDisabled", webhookId: webhook.id })
      const store = yield* WebhookStore
      expect((yield* Effect.flip(store.enable(p2, webhook.id, occasion)))._tag).toBe(
        "WebhookNotFound",
      )
      yield* store.enable(p1, webhook.id, occasion)
      expect((yield* store.list(p1))[0]?.disabled).toBeUndefined()
      expect(yield* replayFailed(target)).toBe(2)
      yield* outbox.publish(event(p1))
      const all = yield* claims()
      expect(all).toHaveLength(3)
      for (const one of all) expect(yield* settle(one, retry(60_000))).toBe("Settled")
      expect(yield* outbox.deliveries(target, { state: "waiting", limit: 10 })).toHaveLength(3)
    })
  })
}
