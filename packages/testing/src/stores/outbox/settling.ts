/** Dispatchers settle their claims, and webhooks that fail are held, announced and disabled. */

import { expect } from "@effect/vitest"
import { type AttemptResult, type FailingAnnouncement, WebhookStore } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { event, context, p1, p2 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { at, dayMillis, expectFailure, firstOf } from "../steps.ts"
import {
  answered,
  attempt,
  attemptAll,
  claim,
  claims,
  delivered,
  deliveriesOf,
  failed,
  failedFor,
  gone,
  leaseMillis,
  prepared,
  preparedWebhook,
  publishMany,
  released,
  replayed,
  retry,
  selected,
  settle,
  settleAll,
  statesOf,
  theClaim,
  timeout,
  twoClaims,
  webhookIdsOf,
} from "./steps.ts"

export const settlingTests = ({ advance, describe, test }: StoreTests): void => {
  describe("settle", () => {
    test("ends a successful delivery", function* () {
      const { webhook } = yield* preparedWebhook
      const [published] = yield* publishMany(1)
      const one = yield* theClaim
      expect(yield* settle(one, delivered)).toBe("Settled")
      expect(yield* settle(one, delivered)).toBe("Lapsed")
      yield* advance(10 * leaseMillis)
      expect(yield* claims()).toEqual([])
      expect(yield* deliveriesOf(webhook)).toMatchObject([
        {
          eventId: published?.id,
          webhookId: webhook.id,
          state: "delivered",
          attempts: [answered(200)],
        },
      ])
    })

    test("delays a retry, and counts attempts", function* () {
      const { webhook } = yield* preparedWebhook
      yield* publishMany(1)
      expect(yield* settle(yield* theClaim, retry(60_000))).toBe("Settled")
      yield* advance(58_000)
      expect(yield* claims()).toEqual([])
      yield* advance(2000)
      const second = yield* theClaim
      expect(second.attemptNumber).toBe(2)
      yield* settle(second, failed)
      yield* advance(100 * leaseMillis)
      expect(yield* claims()).toEqual([])
      expect(yield* deliveriesOf(webhook)).toMatchObject([
        { state: "failed", attempts: [attempt, timeout] },
      ])
    })

    test("makes a released delivery claimable again, without an attempt", function* () {
      const { webhook } = yield* preparedWebhook
      yield* publishMany(1)
      expect(yield* settle(yield* theClaim, released)).toBe("Settled")
      expect((yield* theClaim).attemptNumber).toBe(1)
      expect(yield* deliveriesOf(webhook)).toMatchObject([{ state: "waiting", attempts: [] }])
    })

    test("disables a webhook that is gone, and announces it once: its deliveries fail and stay visible", function* () {
      const { webhooks } = yield* prepared(2)
      const webhook = firstOf(webhooks)
      yield* publishMany(3)
      const claimed = yield* claims({ limit: 4 })
      const own = claimed.filter((one) => one.webhook.webhookId === webhook.id)
      expect(yield* settleAll(own, [gone(), gone()])).toEqual(["WebhookDisabled", "Settled"])
      yield* publishMany(1)
      const rest = yield* claims()
      // The third event, the announcement, and the event after it.
      expect(rest.map((one) => JSON.parse(one.event.body).type)).toEqual([
        "test.happened",
        "webhook.disabled",
        "test.happened",
      ])
      expect(webhookIdsOf(rest)).not.toContain(webhook.id)
      expect(yield* statesOf(webhook)).toEqual(["failed", "failed", "failed"])
      const listed = yield* WebhookStore.use((store) => store.list(p1))
      expect(listed.map(({ disabled }) => disabled !== undefined)).toEqual([true, false])
    })

    test("changes nothing with a claim whose lease has ended", function* () {
      const { webhooks } = yield* prepared(2)
      yield* publishMany(1)
      const [one, other] = yield* twoClaims
      yield* settle(other, delivered)
      yield* advance(leaseMillis)
      for (const late of [gone(), failed, retry(60_000, 60_000)]) {
        expect(yield* settle(one, late)).toBe("Lapsed")
      }
      expect(yield* theClaim).toMatchObject({
        event: one.event,
        webhook: { webhookId: one.webhook.webhookId, failures: 0 },
      })
      expect(yield* WebhookStore.use((store) => store.list(p1))).toMatchObject(webhooks)
    })
  })
}

/** Announces that a webhook has been failing for a share of `disableAfter`, with a new event. */
const failingFor = (
  percent: FailingAnnouncement["percent"],
  failingSince: number,
): FailingAnnouncement => ({ percent, failingSince, event: event(p1, `failing.${percent}`) })

export const failingTests = ({ advance, describe, test }: StoreTests): void => {
  describe("a failing webhook", () => {
    test("is announced once for each share of a run of failures, before it is disabled", function* () {
      const { webhooks } = yield* prepared(2)
      const [own, other] = [at(webhooks, 0).id, at(webhooks, 1).id]
      const told: Array<unknown> = []
      // Delivers everything to the other webhook, and settles the failing one's only claim.
      const settleOwn = Effect.fnUntraced(function* (settlement: (since: number) => AttemptResult) {
        const all = yield* claims()
        for (const one of all) {
          if (one.webhook.webhookId !== other) continue
          told.push(JSON.parse(one.event.body).type)
          yield* settle(one, delivered)
        }
        const owned = all.filter(({ webhook }) => webhook.webhookId === own)
        expect(owned.length).toBeLessThan(2)
        return yield* Effect.forEach(owned, (one) =>
          settle(one, settlement(one.webhook.failingSince ?? NaN)),
        )
      })
      const fail = settleOwn(() => retry(0))
      const failFor = (percent: 50 | 90) =>
        settleOwn((since) => retry(0, 0, failingFor(percent, since)))
      yield* publishMany(1)
      expect(yield* fail).toEqual(["Settled"])
      expect(yield* failFor(50)).toEqual(["WebhookFailing"])
      expect(yield* failFor(50)).toEqual(["Settled"])
      expect(yield* failFor(90)).toEqual(["WebhookFailing"])
      expect(yield* failFor(50)).toEqual(["Settled"])
      expect(yield* settleOwn((since) => gone(failingFor(100, since)))).toEqual(["WebhookDisabled"])
      expect(yield* fail).toEqual([])
      const run = ["failing.50", "failing.90", "failing.100", "webhook.disabled"]
      expect(told).toEqual(["test.happened", ...run])
      yield* WebhookStore.use((store) => store.enable(p1, own, context))
      yield* publishMany(1)
      expect(yield* fail).toEqual(["Settled"])
      expect(yield* failFor(90)).toEqual(["WebhookFailing"])
      expect(yield* settleOwn(() => delivered)).toEqual(["Settled"])
      yield* publishMany(1)
      expect(yield* fail).toEqual(["Settled"])
      expect(yield* failFor(50)).toEqual(["WebhookFailing"])
    })

    test("is neither announced nor disabled for a run of failures that is over", function* () {
      const { store, webhook } = yield* preparedWebhook
      yield* publishMany(3)
      const all = yield* claims()
      const since = Effect.map(store.find(p1, webhook.id), ({ failingSince = NaN }) => failingSince)
      yield* settle(at(all, 0), retry(60_000))
      const failingSince = yield* since
      yield* settle(at(all, 1), delivered)
      yield* advance(1000)
      yield* publishMany(1)
      yield* settle(yield* theClaim, retry(60_000))
      expect(yield* since).not.toBe(failingSince)
      expect(yield* settle(at(all, 2), gone(failingFor(100, failingSince)))).toBe("Settled")
      expect((yield* store.find(p1, webhook.id)).disabled).toBeUndefined()
    })

    test.each([
      ["a retry", retry(0, 60_000)],
      ["a failure", failedFor(60_000)],
    ] as const)("is not claimed while %s holds it, and holds up no other", function* ([, holding]) {
      yield* prepared(2)
      yield* publishMany(1)
      const [held, other] = yield* twoClaims
      yield* settleAll([held, other], [holding, delivered])
      yield* publishMany(1)
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
      yield* prepared(6)
      yield* publishMany(1)
      yield* settleAll(yield* claims({ limit: 4 }), retry(0))
      const failures = (all: Effect.Success<ReturnType<typeof claims>>) =>
        all.map(({ webhook }) => webhook.failures).toSorted()
      expect(failures(yield* claims({ failing: 0 }))).toEqual([0, 0])
      expect(yield* claims({ failing: 0 })).toEqual([])
      const first = yield* claims({ failing: 3 })
      expect(failures(first)).toEqual([1, 1, 1])
      const rest = yield* claims({ failing: 3 })
      expect(failures(rest)).toEqual([1])
      expect(new Set(webhookIdsOf([...first, ...rest])).size).toBe(4)
      yield* settle(firstOf(first), delivered)
      yield* settle(firstOf(rest), retry(0))
      yield* publishMany(1)
      expect(failures(yield* claims({ failing: 0 }))).toEqual([0, 0, 0])
    })

    test("is tried again in time after it failed while the clock was ahead", function* () {
      yield* prepared(1)
      yield* publishMany(1)
      yield* advance(dayMillis)
      yield* settle(yield* theClaim, retry(5000, 5000))
      yield* advance(-dayMillis)
      yield* advance(5000)
      yield* settle(yield* theClaim, delivered)
      yield* publishMany(1)
      yield* theClaim
    })

    test("is held no longer by a failure from when the clock was ahead", function* () {
      yield* prepared(1)
      yield* publishMany(1)
      yield* advance(dayMillis)
      yield* settle(yield* theClaim, failedFor(5000))
      yield* advance(-dayMillis)
      yield* publishMany(1)
      yield* advance(5000)
      yield* settle(yield* theClaim, failedFor(60_000))
      yield* publishMany(1)
      expect(yield* claims()).toEqual([])
      yield* advance(60_000)
      yield* theClaim
    })

    test("is claimed again in time when a lease ends that began while the clock was ahead", function* () {
      yield* prepared(1)
      yield* publishMany(1)
      yield* advance(dayMillis)
      yield* theClaim
      yield* advance(-dayMillis)
      expect(yield* claims()).toEqual([])
      yield* advance(leaseMillis)
      yield* theClaim
    })

    test("is no longer held after a successful attempt", function* () {
      yield* prepared(1)
      yield* publishMany(2)
      yield* settleAll(yield* twoClaims, [failedFor(60_000), delivered])
      yield* publishMany(1)
      expect(yield* claims()).toHaveLength(1)
    })
  })
}

/** Disables a webhook while another of its deliveries is claimed. */
const disabled = Effect.gen(function* () {
  const world = yield* preparedWebhook
  yield* publishMany(2)
  const [one, other] = yield* twoClaims
  yield* settle(one, gone())
  return { ...world, other }
})

export const disabledTests = ({ advance, describe, test }: StoreTests): void => {
  describe("a disabled webhook", () => {
    test.each([
      ["delivered", delivered],
      ["failed", retry(1000)],
      ["failed", released],
      ["failed when its lease ends", undefined],
    ] as const)("ends an earlier claim as %s", function* ([name, settlement]) {
      const { other, webhook } = yield* disabled
      if (settlement !== undefined) expect(yield* settle(other, settlement)).toBe("Settled")
      yield* advance(10 * leaseMillis)
      expect(yield* claims()).toEqual([])
      const state = name === "delivered" ? name : "failed"
      expect(yield* statesOf(webhook)).toEqual([state, "failed"])
    })

    test("accepts no events by publishTo, and no replays, until it is enabled", function* () {
      const { outbox, ref, store, webhook } = yield* disabled
      const refused: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        outbox.publishTo(event(p1), webhook.id),
        outbox.replayMany(ref, selected()),
      ]
      for (const one of refused) {
        const error = yield* Effect.flip(one)
        expect(error).toMatchObject({ _tag: "WebhookDisabled", webhookId: webhook.id })
      }
      yield* advance(leaseMillis)
      yield* claims()
      yield* expectFailure("WebhookNotFound", store.enable(p2, webhook.id, context))
      yield* store.enable(p1, webhook.id, context)
      expect((yield* store.find(p1, webhook.id)).disabled).toBeUndefined()
      expect(yield* replayed(ref)).toBe(2)
      yield* publishMany(1)
      expect(yield* attemptAll(retry(60_000))).toEqual(["Settled", "Settled", "Settled"])
      expect(yield* statesOf(webhook)).toEqual(["waiting", "waiting", "waiting"])
    })
  })
}
