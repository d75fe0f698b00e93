/** Events are published: each becomes a delivery for every webhook that takes it, also in a host's transaction. */

import { expect } from "@effect/vitest"
import {
  type Claim,
  EventType,
  MembershipStore,
  ProjectId,
  type StoredWebhook,
  WebhookId,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { change, event, in2027, idempotency, p1, p2, u1 } from "../../support/fixtures.ts"
import { HostTransaction, type StoreTests, undone } from "../declare.ts"
import { addWebhook, answersToRepeated, expectFailure, firstOf } from "../steps.ts"
import {
  claimedIds,
  claims,
  deliveriesOf,
  prepared,
  preparedWebhook,
  publishMany,
  released,
  settle,
  theClaim,
  webhookIdsOf,
} from "./steps.ts"

/** The webhook in a claim before any attempt, with the limits from `claims`. */
const claimedWebhook = ({ id, secret, url }: StoredWebhook): Claim["webhook"] => ({
  projectId: p1,
  webhookId: id,
  url,
  secrets: [secret],
  signingKey: undefined,
  headers: undefined,
  failures: 0,
  failingSince: undefined,
  concurrency: 100,
})

export const publishingTests = ({ describe, test }: StoreTests): void => {
  describe("publish", () => {
    test("creates a delivery for each webhook of the project, with everything to send", function* () {
      const { webhooks } = yield* prepared(2)
      yield* addWebhook(p2)
      const { body, id } = firstOf(yield* publishMany(1))
      // None for one that is added later.
      yield* addWebhook()
      const claimed = yield* claims()
      expect(claimed).toHaveLength(2)
      expect(claimed.map(({ webhook }) => webhook)).toEqual(
        expect.arrayContaining(webhooks.map(claimedWebhook)),
      )
      for (const one of claimed) expect([one.event, one.attemptNumber]).toEqual([{ id, body }, 1])
    })

    test("stores bodies unchanged", function* () {
      const { outbox } = yield* prepared(1)
      const json = JSON.stringify({ z: '\u0000 "\\ é 日本 \u{1f4a9}', a: 1e21, "": [null] })
      const published = { ...event(p1), body: `${json} ` }
      yield* outbox.publish(published)
      expect((yield* theClaim).event.body).toBe(published.body)
      expect((yield* outbox.find(p1, published.id)).body).toBe(published.body)
    })

    test("publishes an event with an idempotency key once", function* () {
      const { outbox } = yield* prepared(1)
      const key = idempotency()
      const nowhere = event(ProjectId("nowhere"))
      yield* expectFailure("ProjectNotFound", outbox.publish(nowhere), outbox.publish(nowhere, key))
      const answers = yield* answersToRepeated(8, () => outbox.publish(event(p1), key))
      const { id } = (yield* theClaim).event
      expect(new Set(answers)).toEqual(new Set([id]))
      const other = { ...key, fingerprint: "another" }
      yield* expectFailure("IdempotencyMismatch", outbox.publish(event(p1), other))
    })

    test("publishes to one webhook with an idempotency key once", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      const key = idempotency()
      const unknown = WebhookId(crypto.randomUUID())
      yield* expectFailure("WebhookNotFound", outbox.publishTo(event(p1), unknown, key))
      const answers = yield* answersToRepeated(4, () =>
        outbox.publishTo(event(p1), webhook.id, key),
      )
      const { id } = (yield* theClaim).event
      expect(answers).toEqual([id, id, id])
    })

    test("respects the event types of a webhook, except in publishTo", function* () {
      const { outbox } = yield* prepared(0)
      const some = [EventType("payment.completed"), EventType("test.happened")]
      const added = yield* Effect.forEach(
        [undefined, some, [EventType("test")], []],
        (eventTypes) => addWebhook(p1, { eventTypes }),
      )
      const ids = added.map(({ id }) => id)
      yield* publishMany(1)
      expect(webhookIdsOf(yield* claims()).toSorted()).toEqual(ids.slice(0, 2).toSorted())
      const one = WebhookId(ids[3] ?? "")
      yield* outbox.publishTo(event(p1), one)
      expect(webhookIdsOf(yield* claims())).toEqual([one])
      yield* expectFailure(
        "WebhookNotFound",
        outbox.publishTo(event(p2), one),
        outbox.publishTo(event(p1), WebhookId(crypto.randomUUID())),
      )
    })
  })
}

export const changesTests = ({ describe, test }: StoreTests): void => {
  describe("changes", () => {
    test("waits for a publication", function* () {
      const { outbox } = yield* prepared(1)
      const waiting = yield* Effect.forkChild(outbox.nextChange, { startImmediately: true })
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* outbox.publish(event(p1))
      yield* Fiber.join(waiting)
    })

    test("returns when a change of a membership is published", function* () {
      const { outbox } = yield* prepared(1)
      const waiting = yield* Effect.forkChild(outbox.nextChange, { startImmediately: true })
      const memberships = yield* MembershipStore
      yield* memberships.grant({ ...change(p1), userId: u1, endDate: in2027 })
      yield* Fiber.join(waiting)
    })

    test("returns immediately after an earlier publication, and when a claim is released", function* () {
      const { outbox } = yield* prepared(1)
      yield* outbox.publish(event(p1))
      yield* outbox.nextChange
      yield* settle(yield* theClaim, released)
      yield* outbox.nextChange
    })
  })
}

export const transactionTests = ({ transactional }: StoreTests): void => {
  transactional("publishes nothing in a transaction of the host that fails", function* () {
    const { outbox, webhook } = yield* preparedWebhook
    const { run } = yield* HostTransaction
    yield* undone(outbox.publish(event(p1)))
    yield* undone(outbox.publishTo(event(p1), webhook.id))
    const published = event(p1)
    yield* run(outbox.publish(published))
    expect(yield* claimedIds).toEqual([published.id])
    expect(yield* deliveriesOf(webhook)).toHaveLength(1)
  })
}
