/** Imports. */

import { expect } from "@effect/vitest"
import { ApiKeyId, type DatedMembership, Outbox, UserId, WebhookStore } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import {
  change,
  draft,
  in2027,
  in2028,
  in2029,
  occasion,
  p1,
  u1,
  u2,
  u3,
  makeWebhook as newWebhook,
} from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { endDateOf, prepared } from "./model.ts"

const everything = { userId: undefined, limit: 1000 } as const

/** Many new members, in no order. */
const crowd: ReadonlyArray<DatedMembership> = Array.from({ length: 150 }, (_, index) => ({
  userId: UserId(String(5000 + ((index * 7) % 150))),
  endDate: in2028,
}))

/** Imports an existing member and a new one. */
const mixed = () => ({
  ...change(p1),
  memberships: [
    { userId: u3, endDate: in2028 },
    { userId: u1, endDate: in2029 },
  ],
})

/** Declares the tests. */
export const importingTests = (on: StoreTests): void => {
  const { test } = on

  on.describe("import", () => {
    test("audits each membership, with its origin and both dates", function* () {
      const store = yield* prepared
      yield* store.extendAll({ ...change(p1), bulk: { endDate: in2028, mode: "set" } })
      const before = yield* store.history(p1, everything)
      const origin = { requestId: crypto.randomUUID(), keyId: ApiKeyId(crypto.randomUUID()) }
      yield* store.import({ ...mixed(), origin, at: 5 })
      const common = {
        cursor: expect.any(String),
        projectId: p1,
        action: "imported",
        origin,
        reason: undefined,
        changes: [],
        at: 5,
      }
      const ofU1 = { ...common, userId: u1, from: in2028, to: in2029 }
      const ofU3 = { ...common, userId: u3, from: undefined, to: in2028 }
      expect((yield* store.history(p1, { userId: u1, limit: 1 }))[0]).toEqual(ofU1)
      expect(yield* store.history(p1, { userId: u3, limit: 10 })).toEqual([ofU3])
      const rows = yield* store.history(p1, everything)
      expect(rows.slice(2)).toEqual(before)
      expect(rows.slice(0, 2)).toEqual(expect.arrayContaining([ofU1, ofU3]))
    })

    test("is audited in its order, with new members and existing ones, whatever their ids are", function* () {
      const store = yield* prepared
      for (const memberships of [crowd.slice(50), crowd]) {
        yield* store.import({ ...change(p1), memberships })
        const rows = yield* store.history(p1, { userId: undefined, limit: memberships.length })
        expect(rows.toReversed().map(({ userId }) => userId)).toEqual(
          memberships.map(({ userId }) => userId),
        )
      }
    })

    test("has one event, however many memberships there are", function* () {
      const store = yield* prepared
      const webhook = newWebhook(p1)
      yield* (yield* WebhookStore).add(webhook, 50, occasion)
      const events = []
      for (const memberships of [crowd, crowd, []]) {
        const imported = { ...change(p1), memberships }
        events.unshift(imported.event.id)
        yield* store.import(imported)
      }
      const of = { projectId: p1, webhookId: webhook.id }
      const deliveries = yield* (yield* Outbox).deliveries(of, { limit: 10 })
      expect(deliveries.map(({ eventId }) => eventId).toSorted()).toEqual(events.toSorted())
    })

    test("writes all or nothing if its event cannot be stored", function* () {
      const store = yield* prepared
      const published = draft(p1)
      yield* store.grant({ ...change(p1), event: published, userId: u2, endDate: in2029 })
      const before = yield* store.history(p1, everything)
      // Most stores refuse a second event with the same id.
      const exit = yield* Effect.exit(store.import({ ...mixed(), event: published }))
      const isWritten = exit._tag === "Success"
      const after = yield* store.history(p1, everything)
      expect(after).toHaveLength(before.length + (isWritten ? 2 : 0))
      expect(yield* endDateOf(u1)).toBe(isWritten ? in2029 : in2027)
      const extended = yield* store.extendAll({
        ...change(p1),
        bulk: { endDate: in2028, mode: "set" },
      })
      expect(extended).toMatchObject({ total: isWritten ? 3 : 2 })
    })

    test("is seen as a whole", function* () {
      const store = yield* prepared
      const list = store.list(p1, { after: undefined, limit: 1000 })
      const importing = store.import({ ...change(p1), memberships: crowd })
      const fiber = yield* Effect.forkChild(importing)
      const seen = yield* Effect.forEach(Array.from({ length: 20 }), () => list)
      yield* Fiber.join(fiber)
      expect([2, 152]).toEqual(expect.arrayContaining(seen.map((members) => members.length)))
      expect(yield* list).toHaveLength(152)
    })
  })
}
