/** A change and its events are one atomic step. */

import { expect } from "@effect/vitest"
import { Outbox } from "@tenure/core/Outbox"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import {
  change,
  in2027,
  in2028,
  in2029,
  p1,
  p2,
  u1,
  u3,
  webhook,
  occasion,
} from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import { prepared } from "./steps.ts"

/** Claims all deliveries, and returns the types of their events. */
const claimedTypes = Effect.gen(function* () {
  const outbox = yield* Outbox
  const { claims } = yield* outbox.claim({
    limit: 100,
    failing: 100,
    perWebhook: { least: 100, most: 100 },
    perProject: 100,
    ahead: new Map(),
    leaseMillis: 60_000,
  })
  return claims.map(({ event }) => String(JSON.parse(event.body).type))
})

/** Declares the tests. */
export const eventTests = ({ describe, test }: StoreTests): void => {
  describe("events", () => {
    test("are delivered to every webhook of the project, and to no other", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        const webhooks = yield* WebhookStore
        for (const projectId of [p1, p1, p2]) yield* webhooks.add(webhook(projectId), 50, occasion)
        yield* store.grant({ ...change(p1, "granted"), userId: u3, endDate: in2027 })
        yield* store.extend({ ...change(p1, "extended"), userId: u3, endDate: in2028 })
        yield* store.extendAll({ ...change(p1, "bulk"), endDate: in2029, mode: "set" })
        yield* store.end({ ...change(p1, "ended"), userId: u3 })
        const twice = ["granted", "extended", "bulk", "ended"].flatMap((type) => [type, type])
        expect((yield* claimedTypes).toSorted()).toEqual(twice.toSorted())
      }))

    test("are delivered also if a change leaves all dates as they are", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        const webhooks = yield* WebhookStore
        for (const projectId of [p1, p2]) yield* webhooks.add(webhook(projectId), 50, occasion)
        yield* store.grant({ ...change(p1, "granted"), userId: u1, endDate: in2027 })
        yield* store.extend({ ...change(p1, "extended"), userId: u1, endDate: in2027 })
        yield* store.extendAll({ ...change(p2, "bulk"), endDate: in2027, mode: "set" })
        expect((yield* claimedTypes).toSorted()).toEqual(["bulk", "extended", "granted"])
        const [row] = yield* store.history(p2, { userId: undefined, limit: 1 })
        expect(row).toMatchObject({ action: "bulk_extended", to: in2027 })
      }))

    test("are not stored if the change fails, and neither is an audit row", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        yield* (yield* WebhookStore).add(webhook(p1), 50, occasion)
        const before = yield* store.history(p1, { userId: undefined, limit: 100 })
        yield* Effect.flip(store.extend({ ...change(p1), userId: u3, endDate: in2028 }))
        yield* Effect.flip(store.end({ ...change(p1), userId: u3 }))
        expect(yield* claimedTypes).toEqual([])
        expect(yield* store.history(p1, { userId: undefined, limit: 100 })).toEqual(before)
      }))
  })
}
