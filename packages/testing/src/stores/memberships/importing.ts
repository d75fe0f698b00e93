/** Imports. */

import { expect } from "@effect/vitest"
import { ApiKeyId, type DatedMembership, UserId } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { change, in2028, in2029, p1, u1, u3 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { deliveriesOf } from "../outbox/steps.ts"
import { addWebhook } from "../steps.ts"
import { everything } from "./every-change.ts"
import { prepared } from "./model.ts"

/** Many new members, in no order. */
const crowd: ReadonlyArray<DatedMembership> = Array.from({ length: 150 }, (_, index) => ({
  userId: UserId(String(5000 + ((index * 7) % 150))),
  endDate: in2028,
}))

/** Declares the tests. */
export const importingTests = (on: StoreTests): void => {
  const { test } = on.testsAfter(prepared)

  on.describe("import", () => {
    test("audits each membership, with its origin and both dates", function* (store) {
      yield* store.extendAll({ ...change(p1), bulk: { endDate: in2028, mode: "set" } })
      const before = yield* store.history(p1, everything)
      const origin = { requestId: crypto.randomUUID(), keyId: ApiKeyId(crypto.randomUUID()) }
      const memberships = [
        { userId: u3, endDate: in2028 },
        { userId: u1, endDate: in2029 },
      ]
      yield* store.import({ ...change(p1), memberships, origin, at: 5 })
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
      expect(yield* store.history(p1, everything)).toEqual([ofU1, ofU3, ...before])
    })

    test("has one event, and an audit row for each in its order, however many memberships there are", function* (store) {
      const webhook = yield* addWebhook()
      const events = []
      // New members and existing ones, whatever their ids are.
      for (const memberships of [crowd.slice(50), crowd, []]) {
        const imported = { ...change(p1), memberships }
        events.unshift(imported.event.id)
        yield* store.import(imported)
        const rows = yield* store.history(p1, everything)
        const audited = rows.slice(0, memberships.length).toReversed()
        expect(audited.map(({ userId }) => userId)).toEqual(memberships.map(({ userId }) => userId))
      }
      const deliveries = yield* deliveriesOf(webhook)
      expect(deliveries.map(({ eventId }) => eventId)).toEqual(events)
    })

    test("is seen as a whole", function* (store) {
      const list = store.list(p1, { after: undefined, limit: 1000 })
      const importing = store.import({ ...change(p1), memberships: crowd })
      const fiber = yield* Effect.forkChild(importing)
      const seen = yield* Effect.replicateEffect(list, 20)
      yield* Fiber.join(fiber)
      expect([2, 152]).toEqual(expect.arrayContaining(seen.map((members) => members.length)))
      expect(yield* list).toHaveLength(152)
    })
  })
}
