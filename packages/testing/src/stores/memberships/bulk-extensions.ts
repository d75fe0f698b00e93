/** Bulk extensions, their list, and undoing them: what the model does not tell. */

import { expect } from "@effect/vitest"
import { isReplayedResponse } from "@tenure/core/internal"
import {
  ApiKeyId,
  type BulkChange,
  EndDate,
  EventId,
  MembershipStore,
  Millis,
  Reason,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fixture from "../../support/fixtures.ts"
import { inDays } from "../announcing.ts"
import type { StoreTests } from "../declare.ts"
import { dayMillis, expectFailure, successesOf, times } from "../steps.ts"
import { endDateOf, nowhere, prepared } from "./every-change.ts"

const { change, in2027, in2028, in2029, longAgo, p1, p2, sequenceOf, u1, u2, u3 } = Fixture

const later = (endDate: EndDate, days: number): EndDate => EndDate(endDate + days * dayMillis)

const byDays = (days: number): BulkChange => ({ mode: "extendBy", by: Millis(days * dayMillis) })

const setTo = (endDate: EndDate): BulkChange => ({ mode: "set", endDate })

const atLeast = (endDate: EndDate): BulkChange => ({ mode: "neverShorten", endDate })

/** Makes a bulk extension. Returns its id. */
const extendAll = Effect.fnUntraced(function* (bulk: BulkChange, projectId = p1) {
  const extension = { ...change(projectId), bulk }
  yield* MembershipStore.use((store) => store.extendAll(extension))
  return extension.event.id
})

/** Undoes a bulk extension. */
const undo = (bulkExtensionId: EventId) =>
  MembershipStore.use((store) =>
    store.undoBulkExtension({ ...change(p1), bulkExtensionId, madeAfter: longAgo }),
  )

const undoTests = ({ testsAfter, describe }: StoreTests): void => {
  const { test } = testsAfter(prepared)
  describe("undoBulkExtension", () => {
    test("restores a date that later requests left as it was", function* (store) {
      const id = yield* extendAll(setTo(in2029))
      const extension = { ...change(p1), userId: u1, endDate: in2028 }
      const stale = store.extend({ ...extension, expectedEndDate: in2027 })
      yield* expectFailure("EndDateConflict", stale)
      yield* store.extend({ ...extension, ...change(p1), mode: "neverShorten" })
      expect(yield* endDateOf(u1)).toBe(in2029)
      const target = { bulkExtensionId: id, madeAfter: longAgo }
      const { moved: _, ...preview } = yield* store.previewUndo(p1, target)
      expect(preview).toEqual({
        total: 2,
        shortened: 1,
        reactivated: 0,
        capped: 0,
        lifetimesEnded: 0,
        examples: [{ userId: u1, endDate: in2029, wouldEnd: in2027 }],
      })
      yield* undo(id)
      expect(yield* endDateOf(u1)).toBe(in2027)
    })

    test("says why it cannot be made, and so does its preview", function* (store) {
      const id = yield* extendAll(byDays(3))
      const fail = (tag: string, bulkExtensionId: EventId, projectId = p1, madeAfter = longAgo) => {
        const target = { bulkExtensionId, madeAfter }
        return expectFailure(
          tag,
          store.previewUndo(projectId, target),
          store.undoBulkExtension({ ...change(projectId), ...target }),
        )
      }
      yield* fail("ProjectNotFound", id, nowhere)
      yield* fail("BulkExtensionNotFound", id, p2)
      yield* fail("BulkExtensionNotFound", EventId(crypto.randomUUID()))
      yield* fail("BulkExtensionSettled", id, p1, 0)
      expect(yield* endDateOf(u1)).toBe(later(in2027, 3))
      yield* undo(id)
      yield* fail("BulkExtensionUndone", id)
      yield* fail("BulkExtensionUndone", id, p1, 0)
      expect(yield* endDateOf(u1)).toBe(in2027)
    })

    test("is made once, if many undo at the same time", function* () {
      const id = yield* extendAll(byDays(3))
      expect(yield* successesOf(10, () => undo(id))).toBe(1)
      expect(yield* endDateOf(u1)).toBe(in2027)
    })

    test("is listed, with who made it", function* (store) {
      const id = yield* extendAll(setTo(in2028))
      yield* extendAll(byDays(3))
      expect((yield* store.findProject(p1)).lastBulkEndDate).toBe(in2028)
      const origin = { requestId: "r-2", keyId: ApiKeyId("key-2") }
      const target = { bulkExtensionId: id, madeAfter: longAgo }
      yield* store.undoBulkExtension({ ...change(p1), ...target, origin, at: 7 })
      const listed = yield* store.bulkExtensions(p1, { after: undefined, limit: 10 })
      expect(listed.map(({ undone }) => undone)).toEqual([undefined, { at: 7, by: origin }])
      expect((yield* store.findProject(p1)).lastBulkEndDate).toBeUndefined()
    })

    test("is a change with a sequence, of which the history of each member tells", function* (store) {
      const id = yield* extendAll(byDays(3))
      const second = yield* extendAll(atLeast(in2028))
      yield* store.extend({ ...change(p1), userId: u2, endDate: in2029 })
      const undone = yield* undo(id)
      const after = yield* store.extend({ ...change(p1), userId: u1, endDate: in2029 })
      if (isReplayedResponse(undone) || !("body" in after)) return expect.fail()
      expect(sequenceOf(after)).toBeGreaterThan(sequenceOf(undone.event))
      const rows = yield* store.history(p1, { userId: u1, limit: 10 })
      expect(rows.map(({ action, by, subject, to }) => [action, subject, by, to])).toEqual([
        ["extended", undefined, undefined, in2029],
        ["bulk_undone", id, undefined, undefined],
        ["bulk_lengthened", second, undefined, in2028],
        ["bulk_extended_by", id, 3 * dayMillis, undefined],
        ["granted", undefined, undefined, in2027],
      ])
      // The second one ended later anyway, and the last was no member's own any more.
      const others = yield* store.history(p1, { userId: u2, limit: 10 })
      expect(others.map(({ action }) => action)).toEqual([
        "extended",
        "bulk_extended_by",
        "granted",
      ])
    })

    test("is possible for the newest 32 at least, however many there are", function* (store) {
      const ids: Array<EventId> = []
      for (let count = 0; count < 100; count++) ids.push(yield* extendAll(byDays(1)))
      expect(yield* store.previewBulkExtension(p1, byDays(1))).toMatchObject({
        examples: [
          { userId: u1, endDate: later(in2027, 100), wouldEnd: later(in2027, 101) },
          { userId: u2, endDate: later(in2029, 100), wouldEnd: later(in2029, 101) },
        ],
      })
      for (const id of ids.slice(-32)) yield* undo(id)
      expect(yield* endDateOf(u1)).toBe(later(in2027, 68))
      yield* store.extend({ ...change(p1), userId: u2, endDate: in2028 })
      yield* extendAll(byDays(1))
      expect(yield* endDateOf(u1)).toBe(later(in2027, 69))
      expect(yield* endDateOf(u2)).toBe(later(in2028, 1))
      const listed = yield* store.bulkExtensions(p1, { after: undefined, limit: 1000 })
      expect(listed).toHaveLength(101)
    })
  })
}

export const bulkExtensionTests = (on: StoreTests): void => {
  const { describe } = on
  const { test } = on.testsAfter(prepared)

  describe("extendAll", () => {
    test("by a duration, ends also memberships later that have ended, which a preview tells", function* (store) {
      const ended = yield* inDays(-1)
      yield* store.grant({ ...change(p1), userId: u3, endDate: ended })
      yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
      const { moved: _, ...preview } = yield* store.previewBulkExtension(p1, byDays(3))
      expect(preview).toEqual({
        total: 3,
        shortened: 0,
        reactivated: 1,
        capped: 0,
        lifetimesEnded: 0,
        examples: [
          { userId: u1, endDate: in2027, wouldEnd: later(in2027, 3) },
          { userId: u2, endDate: in2029, wouldEnd: later(in2029, 3) },
          { userId: u3, endDate: ended, wouldEnd: later(ended, 3) },
        ],
      })
      const set = yield* store.previewBulkExtension(p1, setTo(in2028))
      expect(set).toMatchObject({ shortened: 1, reactivated: 1 })
      expect(yield* endDateOf(u3)).toBe(ended)
      yield* extendAll(byDays(3))
      expect(yield* endDateOf(u3)).toBe(later(ended, 3))
      expect(yield* endDateOf(u1, p2)).toBe(in2027)
      const before = later(in2027, -1)
      const page = yield* store.listEnding(p1, { before, after: undefined, limit: 10 })
      // A first page may have fewer.
      const users = page.memberships.map(({ userId }) => userId)
      expect(users).toEqual(users.length === 0 ? [] : [u3])
    })

    test("with neverShorten, applies each of many dates that fall", function* (store) {
      const dayAfter = (number: number) => later(in2029, number)
      for (let left = 100; left > 0; left--) {
        const bulk = { ...change(p1), bulk: atLeast(dayAfter(left)) }
        expect(yield* store.extendAll(bulk)).toMatchObject({ total: 2 })
        expect(yield* endDateOf(u1)).toBe(dayAfter(left))
        yield* store.extend({ ...change(p1), userId: u1, endDate: dayAfter(0) })
      }
      expect(yield* endDateOf(u1)).toBe(dayAfter(0))
      expect(yield* endDateOf(u2)).toBe(dayAfter(100))
    })

    test("overrides the extensions that ended before it, including concurrent ones", function* (store) {
      yield* times(50, (index) =>
        store.extend({ ...change(p1), userId: index % 2 === 0 ? u1 : u2, endDate: in2027 }),
      )
      yield* extendAll(setTo(in2029))
      expect([yield* endDateOf(u1), yield* endDateOf(u2)]).toEqual([in2029, in2029])
    })
  })

  describe("bulkExtensions", () => {
    test("returns who made which, newest first, page by page", function* (store) {
      const origin = { requestId: "r-1", keyId: ApiKeyId("key-1") }
      const reason = Reason("outage")
      const changes = [setTo(in2028), atLeast(in2029), byDays(3)]
      const ids: Array<EventId> = []
      for (const [index, bulk] of changes.entries()) {
        const extension = { ...change(p1), bulk, origin, reason, at: index }
        yield* store.extendAll(extension)
        ids.unshift(extension.event.id)
      }
      yield* extendAll(byDays(1), p2)
      const page = (after: EventId | undefined, limit = 2) =>
        store.bulkExtensions(p1, { after, limit })
      const [newest] = yield* page(undefined)
      expect(newest).toEqual({
        id: ids[0],
        change: byDays(3),
        at: 2,
        reason,
        origin,
        total: 2,
        undone: undefined,
      })
      expect((yield* page(undefined)).map(({ id }) => id)).toEqual(ids.slice(0, 2))
      const rest = yield* page(ids[1])
      expect(rest.map(({ change: one }) => one)).toEqual([setTo(in2028)])
      expect(yield* page(ids[2])).toEqual([])
      expect(yield* page(EventId(crypto.randomUUID()))).toEqual([])
    })
  })

  if (!on.settlesAtOnce) undoTests(on)
}
