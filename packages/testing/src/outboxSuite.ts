/** What every `Outbox` has to do. */

import { describe, expect } from "@effect/vitest"
import { EventType } from "@tenure/core/Event"
import { ProjectId } from "@tenure/core/Project"
import { WebhookId } from "@tenure/core/Webhook"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Fixture from "./fixtures.ts"
import {
  answered,
  attempt,
  byId,
  byWebhook,
  claim,
  claims,
  delivered,
  failed,
  gone,
  leaseMillis,
  prepared,
  retry,
  settle,
  statesOf,
  theClaim,
  timeout,
} from "./outboxSteps.ts"
import { type StoreHarness, testOn } from "./StoreHarness.ts"

const { event, p1, p2 } = Fixture

/** Declares the suite. */
export const outboxSuite = (name: string, harness: StoreHarness): void => {
  const test = testOn(harness)
  const { advance } = harness

  describe(`${name}: Outbox`, () => {
    describe("publish", () => {
      test("makes a delivery for each webhook of the project, with all that is sent", () =>
        Effect.gen(function* () {
          const { outbox, webhooks } = yield* prepared(2)
          yield* (yield* WebhookStore).add(Fixture.webhook(p2), 50)
          const published = event(p1)
          yield* outbox.publish(published)
          const claimed = yield* claims()
          expect(claimed.map(({ lease: _, ...rest }) => rest).toSorted(byWebhook)).toEqual(
            webhooks.toSorted(byId).map(({ id, secret, url }) => ({
              event: { id: published.id, body: published.body },
              webhook: {
                projectId: p1,
                webhookId: id,
                url,
                secrets: [secret],
                signingKey: undefined,
                failures: 0,
                failingSince: undefined,
              },
              attempt: 1,
            })),
          )
        }))

      test("fails for a project that does not exist", () =>
        Effect.gen(function* () {
          const { outbox } = yield* prepared(1)
          const error = yield* Effect.flip(outbox.publish(event(ProjectId("nowhere"))))
          expect(error._tag).toBe("ProjectNotFound")
        }))

      test("concerns webhooks that are there, not those that come later", () =>
        Effect.gen(function* () {
          const { outbox } = yield* prepared(0)
          yield* outbox.publish(event(p1))
          yield* (yield* WebhookStore).add(Fixture.webhook(p1), 50)
          expect(yield* claims()).toEqual([])
        }))

      test("makes deliveries for webhooks that get events of its type alone", () =>
        Effect.gen(function* () {
          const { outbox } = yield* prepared(0)
          const store = yield* WebhookStore
          const some = [EventType("payment.completed"), EventType("test.happened")]
          const wanting = [undefined, some, [EventType("test")], []].map((eventTypes) => ({
            ...Fixture.webhook(p1),
            eventTypes,
          }))
          yield* Effect.forEach(wanting, (webhook) => store.add(webhook, 50))
          yield* outbox.publish(event(p1, "test.happened"))
          const urls = (yield* claims()).map(({ webhook }) => webhook.url)
          expect(new Set(urls)).toEqual(new Set(wanting.slice(0, 2).map(({ url }) => url)))
          expect(urls).toHaveLength(2)
        }))

      test("can be to one webhook alone, of the event's project", () =>
        Effect.gen(function* () {
          const { outbox, webhooks } = yield* prepared(2)
          const id = webhooks[1]?.id ?? WebhookId("")
          yield* outbox.publishTo(event(p1), id)
          expect((yield* claims()).map(({ webhook }) => webhook.webhookId)).toEqual([id])
          const foreign = yield* Effect.flip(outbox.publishTo(event(p2), id))
          const unknown = WebhookId(crypto.randomUUID())
          const missing = yield* Effect.flip(outbox.publishTo(event(p1), unknown))
          expect([foreign._tag, missing._tag]).toEqual(["WebhookNotFound", "WebhookNotFound"])
        }))
    })

    describe("claim", () => {
      test("gives each delivery to one hand, however many ask at once", () =>
        Effect.gen(function* () {
          const { outbox } = yield* prepared(3)
          yield* Effect.forEach(Array.from({ length: 20 }), () => outbox.publish(event(p1)))
          const hands = yield* Effect.all(
            Array.from({ length: 10 }, () => claims(7)),
            { concurrency: "unbounded" },
          )
          const all = [...hands.flat(), ...(yield* claims())]
          const distinct = new Set(all.map((one) => `${one.event.id} ${one.webhook.webhookId}`))
          expect([all.length, distinct.size]).toEqual([60, 60])
          expect(new Set(all.map(({ lease }) => lease)).size).toBe(60)
        }))

      test("gives no more than asked for, in all and of each webhook", () =>
        Effect.gen(function* () {
          const { outbox } = yield* prepared(2)
          yield* Effect.forEach(Array.from({ length: 10 }), () => outbox.publish(event(p1)))
          expect(yield* claims(3)).toHaveLength(3)
          const first = yield* claims(100, 4)
          // Three are out already, two of one webhook and one of the other.
          expect(first).toHaveLength(5)
          expect(yield* claims(100, 4)).toHaveLength(0)
          yield* settle(first[0] ?? (yield* Effect.die("nothing claimed")), delivered)
          expect(yield* claims(100, 4)).toHaveLength(1)
        }))

      test("gives no more of a webhook than asked for, however many ask at once", () =>
        Effect.gen(function* () {
          const { outbox } = yield* prepared(2)
          yield* Effect.forEach(Array.from({ length: 20 }), () => outbox.publish(event(p1)))
          const hands = yield* Effect.all(
            Array.from({ length: 10 }, () => claims(100, 4)),
            { concurrency: "unbounded" },
          )
          expect(hands.flat()).toHaveLength(8)
        }))

      test("lets webhooks take turns, so that a backlog holds up no other", () =>
        Effect.gen(function* () {
          const { outbox, webhooks } = yield* prepared(2)
          const [slow, other] = webhooks
          if (slow === undefined || other === undefined) return yield* Effect.die("no webhooks")
          yield* Effect.forEach(Array.from({ length: 50 }), () =>
            outbox.publishTo(event(p1), slow.id),
          )
          yield* outbox.publishTo(event(p1), other.id)
          const turns = (yield* claims(2)).map(({ webhook }) => webhook.webhookId)
          expect(new Set(turns)).toEqual(new Set([slow.id, other.id]))
        }))

      test("serves a webhook's events in the order of their publication", () =>
        Effect.gen(function* () {
          const { outbox } = yield* prepared(1)
          const published = Array.from({ length: 5 }, () => event(p1))
          yield* Effect.forEach(published, outbox.publish)
          const ids = (yield* claims()).map((one) => one.event.id)
          expect(ids).toEqual(published.map(({ id }) => id))
        }))

      test("is void after its lease: the delivery is claimed anew, and only that claim settles", () =>
        Effect.gen(function* () {
          const { outbox, webhooks } = yield* prepared(1)
          yield* outbox.publish(event(p1))
          const first = yield* theClaim
          yield* advance(leaseMillis - 1000)
          expect(yield* claims()).toEqual([])
          yield* advance(1000)
          expect(yield* settle(first, delivered)).toBe(false)
          const second = yield* theClaim
          expect(second.event).toEqual(first.event)
          expect(second.attempt).toBe(2)
          expect(yield* settle(first, delivered)).toBe(false)
          expect(yield* settle(second, delivered)).toBe(true)
          expect(yield* statesOf(webhooks[0] ?? { id: WebhookId("") })).toEqual(["delivered"])
        }))

      test("tells how long there is nothing to claim", () =>
        Effect.gen(function* () {
          const { outbox } = yield* prepared(1)
          expect((yield* claim()).nextDueMillis).toBeUndefined()
          yield* outbox.publish(event(p1))
          const one = yield* theClaim
          expect((yield* claim()).nextDueMillis).toBeGreaterThan(leaseMillis - 5000)
          expect((yield* claim()).nextDueMillis).toBeLessThanOrEqual(leaseMillis)
          yield* settle(one, retry(10_000))
          expect((yield* claim()).nextDueMillis).toBeGreaterThan(5000)
          expect((yield* claim()).nextDueMillis).toBeLessThanOrEqual(10_000)
        }))
    })

    describe("settle", () => {
      test("ends a delivery that was made", () =>
        Effect.gen(function* () {
          const { outbox, webhooks } = yield* prepared(1)
          const published = event(p1)
          yield* outbox.publish(published)
          const one = yield* theClaim
          expect(yield* settle(one, delivered)).toBe(true)
          expect(yield* settle(one, delivered)).toBe(false)
          yield* advance(10 * leaseMillis)
          expect(yield* claims()).toEqual([])
          const id = webhooks[0]?.id ?? WebhookId("")
          const [delivery] = yield* outbox.deliveries(
            { projectId: p1, webhookId: id },
            { limit: 1 },
          )
          expect(delivery).toMatchObject({
            eventId: published.id,
            webhookId: id,
            state: "delivered",
            attempts: [answered(200)],
          })
        }))

      test("lets a retry wait for its delay, and counts attempts", () =>
        Effect.gen(function* () {
          const { outbox, webhooks } = yield* prepared(1)
          yield* outbox.publish(event(p1))
          expect(yield* settle(yield* theClaim, retry(60_000))).toBe(true)
          yield* advance(58_000)
          expect(yield* claims()).toEqual([])
          yield* advance(2000)
          const second = yield* theClaim
          expect(second.attempt).toBe(2)
          yield* settle(second, failed)
          yield* advance(100 * leaseMillis)
          expect(yield* claims()).toEqual([])
          const id = webhooks[0]?.id ?? WebhookId("")
          const [delivery] = yield* outbox.deliveries(
            { projectId: p1, webhookId: id },
            { limit: 1 },
          )
          expect(delivery).toMatchObject({ state: "failed", attempts: [attempt, timeout] })
        }))

      test("gives a released claim back at once, as if it had not been", () =>
        Effect.gen(function* () {
          const { outbox, webhooks } = yield* prepared(1)
          yield* outbox.publish(event(p1))
          expect(yield* settle(yield* theClaim, { _tag: "Released" })).toBe(true)
          expect((yield* theClaim).attempt).toBe(1)
          const id = webhooks[0]?.id ?? WebhookId("")
          const [delivery] = yield* outbox.deliveries(
            { projectId: p1, webhookId: id },
            { limit: 1 },
          )
          expect(delivery).toMatchObject({ state: "waiting", attempts: [] })
        }))

      test("disables a webhook that is gone: nothing is sent any more, and all stays visible", () =>
        Effect.gen(function* () {
          const { outbox, webhooks } = yield* prepared(2)
          yield* outbox.publish(event(p1))
          yield* outbox.publish(event(p1))
          const id = webhooks[0]?.id
          const one = (yield* claims(2)).find(({ webhook }) => webhook.webhookId === id)
          expect(yield* settle(one ?? (yield* Effect.die("nothing claimed")), gone)).toBe(true)
          yield* outbox.publish(event(p1))
          const rest = yield* claims()
          // Two events, and the announcement between them.
          expect(rest.map((again) => JSON.parse(again.event.body).type)).toEqual([
            "test.happened",
            "webhook.disabled",
            "test.happened",
          ])
          expect(rest.every(({ webhook }) => webhook.webhookId !== id)).toBe(true)
          expect(yield* statesOf(webhooks[0] ?? { id: WebhookId("") })).toEqual([
            "failed",
            "failed",
          ])
          const listed = yield* (yield* WebhookStore).list(p1)
          expect(listed.map(({ disabledAt }) => disabledAt !== undefined)).toEqual([true, false])
        }))
    })

    describe("a webhook that has been disabled", () => {
      /** A webhook that is disabled while another of its deliveries is claimed. */
      const disabled = Effect.gen(function* () {
        const { outbox, webhooks } = yield* prepared(1)
        const [webhook] = webhooks
        yield* outbox.publish(event(p1))
        yield* outbox.publish(event(p1))
        const [one, other] = yield* claims()
        if (webhook === undefined || one === undefined || other === undefined) {
          return yield* Effect.die("nothing claimed")
        }
        yield* settle(one, gone)
        return { outbox, webhook, other }
      })

      test("gets nothing that is published to it alone", () =>
        Effect.gen(function* () {
          const { outbox, webhook } = yield* disabled
          const error = yield* Effect.flip(outbox.publishTo(event(p1), webhook.id))
          expect(error).toMatchObject({ _tag: "WebhookDisabled", webhookId: webhook.id })
        }))

      test.each([
        ["delivered", delivered],
        ["failed", retry(1000)],
        ["failed", { _tag: "Released" }],
      ] as const)("and a claim from before ends %s", ([state, settlement]) =>
        Effect.gen(function* () {
          const { other, webhook } = yield* disabled
          expect(yield* settle(other, settlement)).toBe(true)
          yield* advance(10 * leaseMillis)
          expect(yield* claims()).toEqual([])
          expect(yield* statesOf(webhook)).toEqual([state, "failed"])
        }),
      )

      test("and a claim whose lease passes ends failed", () =>
        Effect.gen(function* () {
          const { webhook } = yield* disabled
          yield* advance(leaseMillis)
          expect(yield* claims()).toEqual([])
          expect(yield* statesOf(webhook)).toEqual(["failed", "failed"])
        }))
    })

    describe("changes", () => {
      test("wait for a publication", () =>
        Effect.gen(function* () {
          const { outbox } = yield* prepared(1)
          const waiting = yield* Effect.forkChild(outbox.changes, { startImmediately: true })
          expect(waiting.pollUnsafe()).toBeUndefined()
          yield* outbox.publish(event(p1))
          yield* Fiber.join(waiting)
        }))

      test("remember one that came before", () =>
        Effect.gen(function* () {
          const { outbox } = yield* prepared(1)
          yield* outbox.publish(event(p1))
          yield* outbox.changes
        }))

      test("tell of a claim that was released", () =>
        Effect.gen(function* () {
          const { outbox } = yield* prepared(1)
          yield* outbox.publish(event(p1))
          yield* outbox.changes
          yield* settle(yield* theClaim, { _tag: "Released" })
          yield* outbox.changes
        }))
    })

    test("lists deliveries newest first, no more than asked for", () =>
      Effect.gen(function* () {
        const { outbox, webhooks } = yield* prepared(1)
        const published = Array.from({ length: 3 }, () => event(p1))
        yield* Effect.forEach(published, outbox.publish)
        const [first] = yield* claims(1)
        yield* settle(first ?? (yield* Effect.die("nothing claimed")), delivered)
        const id = webhooks[0]?.id ?? WebhookId("")
        const ids = (limit: number) =>
          Effect.map(outbox.deliveries({ projectId: p1, webhookId: id }, { limit }), (all) =>
            all.map(({ eventId }) => eventId),
          )
        const newestFirst = published.map((one) => one.id).toReversed()
        expect(yield* ids(10)).toEqual(newestFirst)
        expect(yield* ids(2)).toEqual(newestFirst.slice(0, 2))
      }))
  })
}
