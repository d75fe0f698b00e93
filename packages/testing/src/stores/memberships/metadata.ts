/** Metadata of memberships. */

import { expect } from "@effect/vitest"
import { draftEvent, eventData } from "@tenure/core/internal"
import {
  type Event,
  MembershipStore,
  type Metadata,
  Millis,
  Outbox,
  type UserId,
  noMetadata,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import {
  change,
  draft,
  in2027,
  in2028,
  in2029,
  p1,
  sequenceOf,
  u1,
  u2,
  u3,
} from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { dayMillis, expectFailure } from "../steps.ts"
import { gold, observe } from "./every-change.ts"
import { endDateOf, prepared } from "./model.ts"

const silver: Metadata = { plan: "silver" }

const metadataOf = Effect.fnUntraced(function* (userId = u1) {
  return (yield* MembershipStore.use((store) => store.find(p1, userId))).metadata
})

/** Returns the metadata in an event, as it was returned and as it is stored. */
const notedIn = Effect.fnUntraced(function* (result: object | undefined) {
  const { body, id } = Object(result)
  const stored: Event = yield* (yield* Outbox).find(p1, id)
  expect(stored.body).toBe(body)
  return Object(eventData(stored)).metadata
})

/** Declares the tests. */
export const metadataTests = ({ testsAfter, describe }: StoreTests): void => {
  const { test } = testsAfter(prepared)
  describe("metadata", () => {
    test("is empty at first, and is set by grants and imports, which otherwise leave it", function* (store) {
      expect(yield* metadataOf()).toEqual(noMetadata)
      const granted = { ...change(p1), userId: u1, endDate: in2028 }
      yield* store.grant({ ...granted, metadata: gold })
      expect(yield* metadataOf()).toEqual(gold)
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2029 })
      expect(yield* metadataOf()).toEqual(gold)
      const memberships = [
        { userId: u1, endDate: in2027 },
        { userId: u2, endDate: in2027, metadata: silver },
        { userId: u3, endDate: in2027 },
      ]
      yield* store.import({ ...change(p1), memberships })
      expect(yield* Effect.forEach([u1, u2, u3], metadataOf)).toEqual([gold, silver, noMetadata])
      yield* store.grant({ ...change(p1), userId: u2, endDate: in2027, metadata: noMetadata })
      expect(yield* metadataOf(u2)).toEqual(noMetadata)
    })

    test("is in every list", function* (store) {
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2028, metadata: gold })
      const page = { after: undefined, limit: 10 }
      const all = yield* store.list(p1, page)
      const asked = yield* store.list(p1, { ...page, userIds: [u1] })
      const ending = yield* store.listEnding(p1, { ...page, before: in2029 })
      for (const found of [all, asked, ending.memberships]) {
        expect(found.find(({ userId }) => userId === u1)?.metadata).toEqual(gold)
      }
      expect(all.find(({ userId }) => userId === u2)?.metadata).toEqual(noMetadata)
    })

    test("is in each event of the membership if there is some, and in no other", function* (store) {
      const member = { userId: u1, endDate: in2028 }
      const bare = yield* store.extend({ ...change(p1), ...member })
      expect(yield* notedIn(bare)).toBeUndefined()
      const granted = yield* store.grant({ ...change(p1), ...member, metadata: gold })
      expect(yield* notedIn(granted)).toEqual(gold)
      const changes = [
        store.extend({ ...change(p1), ...member }),
        store.extend({ ...change(p1), ...member, expectedEndDate: in2028 }),
        store.grant({ ...change(p1), ...member }),
        store.end({ ...change(p1), userId: u1 }),
      ]
      for (const made of changes) expect(yield* notedIn(yield* made)).toEqual(gold)
      const memberships = [{ ...member, metadata: gold }]
      expect(yield* notedIn(yield* store.import({ ...change(p1), memberships }))).toBeUndefined()
      const bulk = { mode: "extendBy", by: Millis(dayMillis) } as const
      const { event } = Object(yield* store.extendAll({ ...change(p1), bulk }))
      expect(yield* notedIn(event)).toBeUndefined()
      expect(yield* notedIn(yield* store.erase({ ...change(p1), userId: u1 }))).toBeUndefined()
    })

    test("is changed if it is what was expected, with a row in the trail and an event", function* (store) {
      const written = yield* observe()
      const set = (expected: Metadata, metadata: Metadata) =>
        store.setMetadata({ ...change(p1), userId: u1, expected, metadata })
      const first = yield* set(noMetadata, gold)
      expect(yield* metadataOf()).toEqual(gold)
      expect(yield* notedIn(first)).toEqual(gold)
      const stranger = { ...change(p1), userId: u3, expected: noMetadata, metadata: gold }
      yield* expectFailure(
        "MetadataConflict",
        set(noMetadata, silver),
        set(silver, silver),
        store.setMetadata(stranger),
      )
      expect(yield* metadataOf()).toEqual(gold)
      const second = yield* set(gold, noMetadata)
      expect(yield* metadataOf()).toEqual(noMetadata)
      expect(yield* notedIn(second)).toBeUndefined()
      const row = { action: "updated", from: in2027, to: in2027, userId: u1 }
      const { deliveries, rows } = yield* written
      expect(rows).toMatchObject([row, row])
      expect(deliveries).toHaveLength(2)
    })

    test("leaves the end date to bulk extensions, and follows the sequence of the membership", function* (store) {
      yield* store.extend({ ...change(p1), userId: u1, endDate: in2028 })
      yield* store.extendAll({ ...change(p1), bulk: { endDate: in2029, mode: "set" } })
      const before = yield* store.extend({ ...change(p1), userId: u2, endDate: in2027 })
      const set = (userId: UserId) =>
        store.setMetadata({ ...change(p1), userId, expected: noMetadata, metadata: gold })
      const updated = yield* set(u2)
      const other = yield* set(u1)
      expect([yield* endDateOf(u1), yield* endDateOf(u2)]).toEqual([in2029, in2027])
      const after = yield* store.extend({ ...change(p1), userId: u2, endDate: in2028 })
      const sequences = [before, updated, after].map(Object).map(sequenceOf)
      expect(sequences).toEqual(sequences.toSorted((a, b) => a - b))
      expect(new Set(sequences).size).toBe(3)
      expect(sequenceOf(Object(other))).toBeGreaterThan(0)
      const rows = yield* store.history(p1, { userId: u1, limit: 10 })
      expect(rows.map(({ action }) => action)).toEqual([
        "updated",
        "bulk_extended",
        "extended",
        "granted",
      ])
    })

    test("ends with the membership, and is erased from events", function* (store) {
      const data = { project_id: p1, user_id: u1 }
      const event = draftEvent({ ...draft(p1, "membership.granted"), data })
      const member = { userId: u1, endDate: in2028, metadata: gold }
      yield* store.grant({ ...change(p1), ...member, event })
      yield* store.end({ ...change(p1), userId: u1 })
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2028 })
      expect(yield* metadataOf()).toEqual(noMetadata)
      yield* store.erase({ ...change(p1), userId: u1, at: Date.now() })
      const { body } = yield* (yield* Outbox).find(p1, event.id)
      expect(body).not.toMatch(/gold|quoted/)
    })
  })
}
