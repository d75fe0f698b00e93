/** Events become deliveries. */

import { expect } from "@effect/vitest"
import { type Event, EventType } from "@tenure/core/Event"
import { isReplayed } from "@tenure/core/Once"
import type { Claim } from "@tenure/core/Outbox"
import { ProjectId } from "@tenure/core/Project"
import { type StoredWebhook, WebhookId } from "@tenure/core/Webhook"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fixture from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import { claims, prepared, preparedWebhook } from "./steps.ts"

const { event, p1, p2 } = Fixture

/** The webhook of a claim that follows no attempt, with the bounds of `claims`. */
const claimedWebhook = ({ id, secret, url }: StoredWebhook): Claim["webhook"] => ({
  projectId: p1,
  webhookId: id,
  url,
  secrets: [secret],
  signingKey: undefined,
  failures: 0,
  failingSince: undefined,
  concurrency: 100,
})

/** Declares the tests. */
export const publishingTests = ({ describe, test }: StoreTests): void => {
  describe("publish", () => {
    test("creates a delivery for each webhook of the project, with everything to send", () =>
      Effect.gen(function* () {
        const { outbox, webhooks } = yield* prepared(2)
        yield* (yield* WebhookStore).add(Fixture.webhook(p2), 50, Fixture.occasion)
        const published = event(p1)
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
      }))

    test("stores bodies unchanged", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        const body = JSON.stringify({ z: '\u0000 "\\ é 日本 \u{1f4a9}', a: 1e21, "": [null] })
        yield* outbox.publish({ ...event(p1), body: `${body} ` })
        expect((yield* claims()).map((one) => one.event.body)).toEqual([`${body} `])
      }))

    test("signs with the secrets that a webhook has when the delivery is claimed", () =>
      Effect.gen(function* () {
        const { outbox, webhook } = yield* preparedWebhook
        const { secret } = Fixture.webhook(p1)
        yield* outbox.publish(event(p1))
        const previousUntil = (yield* Clock.currentTimeMillis) + 60_000
        const rotation = { secret, previousUntil }
        yield* (yield* WebhookStore).rotateSecret(p1, webhook.id, rotation, Fixture.occasion)
        const secrets = (yield* claims()).map((one) => one.webhook.secrets)
        expect(secrets).toEqual([[secret, webhook.secret]])
      }))

    test("fails if the project does not exist", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        const error = yield* Effect.flip(outbox.publish(event(ProjectId("nowhere"))))
        expect(error._tag).toBe("ProjectNotFound")
      }))

    test("publishes an event with an idempotency key once", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        const key = Fixture.once()
        const events = Array.from({ length: 8 }, () => event(p1))
        const results = yield* Effect.forEach(events, (one) => outbox.publish(one, key), {
          concurrency: "unbounded",
        })
        const delivered = (yield* claims()).map((one) => one.event.id)
        expect(delivered).toHaveLength(1)
        const replays = results.filter(isReplayed)
        expect(replays).toHaveLength(7)
        for (const { answer } of replays) expect([answer]).toEqual(delivered)
        const other = { ...key, fingerprint: "another" }
        const error = yield* Effect.flip(outbox.publish(event(p1), other))
        expect(error._tag).toBe("IdempotencyMismatch")
        const nowhere = event(ProjectId("nowhere"))
        const failed = Fixture.once()
        yield* Effect.flip(outbox.publish(nowhere, failed))
        expect(yield* outbox.publish(event(p1), failed)).toBeUndefined()
      }))

    test("publishes to one webhook with an idempotency key once", () =>
      Effect.gen(function* () {
        const { outbox, webhook } = yield* preparedWebhook
        const key = Fixture.once()
        yield* Effect.flip(outbox.publishTo(event(p1), WebhookId(crypto.randomUUID()), key))
        const events = Array.from({ length: 4 }, () => event(p1))
        const publish = (one: Event) => outbox.publishTo(one, webhook.id, key)
        const results = yield* Effect.forEach(events, publish, { concurrency: "unbounded" })
        const delivered = (yield* claims()).map((one) => one.event.id)
        expect(delivered).toHaveLength(1)
        const [id] = delivered
        const replays = results.filter(isReplayed)
        expect(replays.map(({ answer }) => answer)).toEqual([id, id, id])
      }))

    test("creates no delivery for webhooks that are added later", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(0)
        yield* outbox.publish(event(p1))
        yield* (yield* WebhookStore).add(Fixture.webhook(p1), 50, Fixture.occasion)
        expect(yield* claims()).toEqual([])
      }))

    test("respects the event types of a webhook", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(0)
        const store = yield* WebhookStore
        const some = [EventType("payment.completed"), EventType("test.happened")]
        const webhooks = [undefined, some, [EventType("test")], []].map((eventTypes) => ({
          ...Fixture.webhook(p1),
          eventTypes,
        }))
        yield* Effect.forEach(webhooks, (webhook) => store.add(webhook, 50, Fixture.occasion))
        yield* outbox.publish(event(p1, "test.happened"))
        const urls = (yield* claims()).map(({ webhook }) => webhook.url)
        expect(new Set(urls)).toEqual(new Set(webhooks.slice(0, 2).map(({ url }) => url)))
        expect(urls).toHaveLength(2)
      }))

    test("publishTo creates one delivery of any type, for a webhook of the event's project", () =>
      Effect.gen(function* () {
        const { outbox } = yield* prepared(1)
        const webhook = { ...Fixture.webhook(p1), eventTypes: [] }
        yield* (yield* WebhookStore).add(webhook, 50, Fixture.occasion)
        yield* outbox.publishTo(event(p1), webhook.id)
        expect((yield* claims()).map((one) => one.webhook.webhookId)).toEqual([webhook.id])
        const foreign = yield* Effect.flip(outbox.publishTo(event(p2), webhook.id))
        const unknown = WebhookId(crypto.randomUUID())
        const missing = yield* Effect.flip(outbox.publishTo(event(p1), unknown))
        expect([foreign._tag, missing._tag]).toEqual(["WebhookNotFound", "WebhookNotFound"])
      }))
  })
}
