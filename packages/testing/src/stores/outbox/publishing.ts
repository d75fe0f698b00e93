/** Events become deliveries. */

import { expect } from "@effect/vitest"
import { isReplayedResponse } from "@tenure/core/internal"
import {
  type Claim,
  type Event,
  EventType,
  MembershipStore,
  ProjectId,
  type StoredWebhook,
  WebhookId,
  WebhookStore,
} from "@tenure/core/store"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Fixture from "../../support/fixtures.ts"
import { change, event, in2027, p1, u1 } from "../../support/fixtures.ts"
import { HostTransaction, type StoreTests, undone } from "../declare.ts"
import {
  claims,
  deliveriesOf,
  prepared,
  preparedWebhook,
  released,
  settle,
  theClaim,
} from "./steps.ts"

const { event: publishingEvent, p1: publishingP1, p2 } = Fixture

/** The webhook in a claim before any attempt, with the limits from `claims`. */
const claimedWebhook = ({ id, secret, url }: StoredWebhook): Claim["webhook"] => ({
  projectId: publishingP1,
  webhookId: id,
  url,
  secrets: [secret],
  signingKey: undefined,
  headers: undefined,
  failures: 0,
  failingSince: undefined,
  concurrency: 100,
})

/** Declares the tests. */
export const publishingTests = ({ describe, test }: StoreTests): void => {
  describe("publish", () => {
    test("creates a delivery for each webhook of the project, with everything to send", function* () {
      const { outbox, webhooks } = yield* prepared(2)
      yield* (yield* WebhookStore).add(Fixture.makeWebhook(p2), 50, Fixture.occasion)
      const published = publishingEvent(publishingP1)
      yield* outbox.publish(published)
      const claimed = yield* claims()
      expect(new Set(claimed.map(({ webhook }) => webhook))).toEqual(
        new Set(webhooks.map(claimedWebhook)),
      )
      expect(claimed).toHaveLength(2)
      for (const one of claimed) {
        expect(one.event).toEqual({ id: published.id, body: published.body })
        expect(one.attemptNumber).toBe(1)
      }
    })

    test("stores bodies unchanged", function* () {
      const { outbox } = yield* prepared(1)
      const body = JSON.stringify({ z: '\u0000 "\\ é 日本 \u{1f4a9}', a: 1e21, "": [null] })
      yield* outbox.publish({ ...publishingEvent(publishingP1), body: `${body} ` })
      expect((yield* claims()).map((one) => one.event.body)).toEqual([`${body} `])
    })

    test("signs with the secrets that a webhook has when the delivery is claimed", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      const { secret } = Fixture.makeWebhook(publishingP1)
      yield* outbox.publish(publishingEvent(publishingP1))
      const previousUntil = (yield* Clock.currentTimeMillis) + 60_000
      const rotation = { secret, previousUntil }
      yield* (yield* WebhookStore).rotateSecret(
        publishingP1,
        webhook.id,
        rotation,
        Fixture.occasion,
      )
      const secrets = (yield* claims()).map((one) => one.webhook.secrets)
      expect(secrets).toEqual([[secret, webhook.secret]])
    })

    test("fails if the project does not exist", function* () {
      const { outbox } = yield* prepared(1)
      const error = yield* Effect.flip(outbox.publish(publishingEvent(ProjectId("nowhere"))))
      expect(error._tag).toBe("ProjectNotFound")
    })

    test("publishes an event with an idempotency key once", function* () {
      const { outbox } = yield* prepared(1)
      const key = Fixture.once()
      const events = Array.from({ length: 8 }, () => publishingEvent(publishingP1))
      const results = yield* Effect.forEach(events, (one) => outbox.publish(one, key), {
        concurrency: "unbounded",
      })
      const delivered = (yield* claims()).map((one) => one.event.id)
      expect(delivered).toHaveLength(1)
      const replays = results.filter(isReplayedResponse)
      expect(replays).toHaveLength(7)
      for (const { answer } of replays) expect([answer]).toEqual(delivered)
      const other = { ...key, fingerprint: "another" }
      const error = yield* Effect.flip(outbox.publish(publishingEvent(publishingP1), other))
      expect(error._tag).toBe("IdempotencyMismatch")
      const nowhere = publishingEvent(ProjectId("nowhere"))
      const failed = Fixture.once()
      yield* Effect.flip(outbox.publish(nowhere, failed))
      expect(yield* outbox.publish(publishingEvent(publishingP1), failed)).toBeUndefined()
    })

    test("publishes to one webhook with an idempotency key once", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      const key = Fixture.once()
      yield* Effect.flip(
        outbox.publishTo(publishingEvent(publishingP1), WebhookId(crypto.randomUUID()), key),
      )
      const events = Array.from({ length: 4 }, () => publishingEvent(publishingP1))
      const publish = (one: Event) => outbox.publishTo(one, webhook.id, key)
      const results = yield* Effect.forEach(events, publish, { concurrency: "unbounded" })
      const delivered = (yield* claims()).map((one) => one.event.id)
      expect(delivered).toHaveLength(1)
      const [id] = delivered
      const replays = results.filter(isReplayedResponse)
      expect(replays.map(({ answer }) => answer)).toEqual([id, id, id])
    })

    test("creates no delivery for webhooks that are added later", function* () {
      const { outbox } = yield* prepared(0)
      yield* outbox.publish(publishingEvent(publishingP1))
      yield* (yield* WebhookStore).add(Fixture.makeWebhook(publishingP1), 50, Fixture.occasion)
      expect(yield* claims()).toEqual([])
    })

    test("respects the event types of a webhook", function* () {
      const { outbox } = yield* prepared(0)
      const store = yield* WebhookStore
      const some = [EventType("payment.completed"), EventType("test.happened")]
      const webhooks = [undefined, some, [EventType("test")], []].map((eventTypes) => ({
        ...Fixture.makeWebhook(publishingP1),
        eventTypes,
      }))
      yield* Effect.forEach(webhooks, (webhook) => store.add(webhook, 50, Fixture.occasion))
      yield* outbox.publish(publishingEvent(publishingP1, "test.happened"))
      const urls = (yield* claims()).map(({ webhook }) => webhook.url)
      expect(new Set(urls)).toEqual(new Set(webhooks.slice(0, 2).map(({ url }) => url)))
      expect(urls).toHaveLength(2)
    })

    test("publishTo creates one delivery of any type, for a webhook of the event's project", function* () {
      const { outbox } = yield* prepared(1)
      const webhook = { ...Fixture.makeWebhook(publishingP1), eventTypes: [] }
      yield* (yield* WebhookStore).add(webhook, 50, Fixture.occasion)
      yield* outbox.publishTo(publishingEvent(publishingP1), webhook.id)
      expect((yield* claims()).map((one) => one.webhook.webhookId)).toEqual([webhook.id])
      const foreign = yield* Effect.flip(outbox.publishTo(publishingEvent(p2), webhook.id))
      const unknown = WebhookId(crypto.randomUUID())
      const missing = yield* Effect.flip(outbox.publishTo(publishingEvent(publishingP1), unknown))
      expect([foreign._tag, missing._tag]).toEqual(["WebhookNotFound", "WebhookNotFound"])
    })
  })
}

/** Dispatchers wait for new deliveries. */

/** Declares the tests. */
export const changesTests = ({ describe, test }: StoreTests): void => {
  describe("changes", () => {
    test("waits for a publication", function* () {
      const { outbox } = yield* prepared(1)
      const waiting = yield* Effect.forkChild(outbox.nextChange, { startImmediately: true })
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* outbox.publish(event(p1))
      yield* Fiber.join(waiting)
    })

    test("returns immediately after an earlier publication", function* () {
      const { outbox } = yield* prepared(1)
      yield* outbox.publish(event(p1))
      yield* outbox.nextChange
    })

    test("returns when a change of a membership is published", function* () {
      const { outbox } = yield* prepared(1)
      const waiting = yield* Effect.forkChild(outbox.nextChange, { startImmediately: true })
      const memberships = yield* MembershipStore
      yield* memberships.grant({ ...change(p1), userId: u1, endDate: in2027 })
      yield* Fiber.join(waiting)
    })

    test("returns when a claim is released", function* () {
      const { outbox } = yield* prepared(1)
      yield* outbox.publish(event(p1))
      yield* outbox.nextChange
      yield* settle(yield* theClaim, released)
      yield* outbox.nextChange
    })
  })
}

/** Events in the host's transactions. */

/** Declares the tests. */
export const transactionTests = ({ transactional }: StoreTests): void => {
  transactional("publishes nothing in a transaction of the host that fails", function* () {
    const { outbox, webhook } = yield* preparedWebhook
    const { run } = yield* HostTransaction
    yield* undone(outbox.publish(event(p1)))
    yield* undone(outbox.publishTo(event(p1), webhook.id))
    const published = event(p1)
    yield* run(outbox.publish(published))
    expect((yield* theClaim).event.id).toBe(published.id)
    expect(yield* deliveriesOf(webhook)).toHaveLength(1)
  })
}
