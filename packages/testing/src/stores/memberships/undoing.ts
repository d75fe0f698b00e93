/** Bulk extensions by a duration, their list, and undoing them. */

import { expect } from "@effect/vitest"
import { isReplayedResponse } from "@tenure/core/internal"
import {
  ApiKeyId,
  type BulkChange,
  EndDate,
  EventId,
  type IdempotencyKey,
  MembershipStore,
  Millis,
  Reason,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import {
  change,
  in2027,
  in2028,
  in2029,
  longAgo,
  once,
  p1,
  p2,
  sequenceOf,
  u1,
  u2,
  u3,
} from "../../support/fixtures.ts"
import { dayMillis, inDays } from "../announcing.ts"
import type { StoreTests } from "../declare.ts"
import { endDateOf, nowhere, prepared } from "./model.ts"

const later = (endDate: EndDate, days: number): EndDate => EndDate(endDate + days * dayMillis)

const byDays = (days: number): BulkChange => ({ mode: "extendBy", by: Millis(days * dayMillis) })

const setTo = (endDate: EndDate): BulkChange => ({ mode: "set", endDate })

const atLeast = (endDate: EndDate): BulkChange => ({ mode: "neverShorten", endDate })

/** Makes a bulk extension. Returns its id. */
const extendAll = (bulk: BulkChange, projectId = p1) =>
  Effect.gen(function* () {
    const store = yield* MembershipStore
    const extension = { ...change(projectId), bulk }
    yield* store.extendAll(extension)
    return extension.event.id
  })

/** Undoes a bulk extension. */
const undo = (bulkExtensionId: EventId, projectId = p1, key?: IdempotencyKey) =>
  Effect.flatMap(MembershipStore, (store) =>
    store.undoBulkExtension({
      ...change(projectId),
      once: key,
      bulkExtensionId,
      madeAfter: longAgo,
    }),
  )

const failureOf = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), ({ _tag }) => _tag)

const undoTests = ({ describe, test }: StoreTests): void => {
  describe("undoBulkExtension", () => {
    test("undoes any, and leaves those after it", function* () {
      yield* prepared
      yield* extendAll(byDays(1))
      const mistake = yield* extendAll(setTo(in2028))
      yield* extendAll(byDays(2))
      expect(yield* endDateOf(u1)).toBe(later(in2028, 2))
      yield* undo(mistake)
      expect(yield* endDateOf(u1)).toBe(later(in2027, 3))
      expect(yield* endDateOf(u2)).toBe(later(in2029, 3))
    })

    test("restores a date that later requests left as it was", function* () {
      const store = yield* prepared
      const id = yield* extendAll(setTo(in2029))
      const extension = { ...change(p1), userId: u1, endDate: in2028 }
      const stale = store.extend({ ...extension, expectedEndDate: in2027 })
      expect(yield* failureOf(stale)).toBe("EndDateConflict")
      yield* store.extend({ ...extension, ...change(p1), mode: "neverShorten" })
      expect(yield* endDateOf(u1)).toBe(in2029)
      yield* undo(id)
      expect(yield* endDateOf(u1)).toBe(in2027)
    })

    test("can be seen before it is made", function* () {
      const store = yield* prepared
      const id = yield* extendAll(setTo(in2028))
      const target = { bulkExtensionId: id, madeAfter: longAgo }
      expect(yield* store.previewUndo(p1, target)).toEqual({
        total: 2,
        shortened: 1,
        reactivated: 0,
        capped: 0,
        examples: [
          { userId: u1, endDate: in2028, wouldEnd: in2027 },
          { userId: u2, endDate: in2028, wouldEnd: in2029 },
        ],
      })
      expect(yield* endDateOf(u1)).toBe(in2028)
    })

    test("says why it cannot be made, and so does its preview", function* () {
      const store = yield* prepared
      const id = yield* extendAll(byDays(3))
      const failures = Effect.fnUntraced(function* (
        bulkExtensionId: EventId,
        projectId = p1,
        madeAfter = longAgo,
      ) {
        const target = { bulkExtensionId, madeAfter }
        const made = store.undoBulkExtension({ ...change(projectId), ...target })
        return [yield* failureOf(store.previewUndo(projectId, target)), yield* failureOf(made)]
      })
      const twice = (tag: string) => [tag, tag]
      expect(yield* failures(id, nowhere)).toEqual(twice("ProjectNotFound"))
      expect(yield* failures(id, p2)).toEqual(twice("BulkExtensionNotFound"))
      expect(yield* failures(EventId(crypto.randomUUID()))).toEqual(twice("BulkExtensionNotFound"))
      expect(yield* failures(id, p1, 0)).toEqual(twice("BulkExtensionSettled"))
      expect(yield* endDateOf(u1)).toBe(later(in2027, 3))
      yield* undo(id)
      expect(yield* failures(id)).toEqual(twice("BulkExtensionUndone"))
      expect(yield* failures(id, p1, 0)).toEqual(twice("BulkExtensionUndone"))
      expect(yield* endDateOf(u1)).toBe(in2027)
    })

    test("is made once with an idempotency key, and if many undo at the same time", function* () {
      yield* prepared
      const key = once()
      const id = yield* extendAll(byDays(3))
      yield* undo(id, p1, key)
      expect(isReplayedResponse(yield* undo(id, p1, key))).toBe(true)
      const other = yield* extendAll(byDays(3))
      const outcomes = yield* Effect.all(
        Array.from({ length: 10 }, () => Effect.result(undo(other))),
        { concurrency: "unbounded" },
      )
      expect(outcomes.filter(({ _tag }) => _tag === "Success")).toHaveLength(1)
      expect(yield* endDateOf(u1)).toBe(in2027)
    })

    test("is listed, with who made it", function* () {
      const store = yield* prepared
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

    test("is a change with a sequence, of which the history of each member tells", function* () {
      const store = yield* prepared
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

    test("is possible for the newest 32 at least, however many there are", function* () {
      const store = yield* prepared
      const ids: Array<EventId> = []
      for (let count = 0; count < 100; count++) ids.push(yield* extendAll(byDays(1)))
      expect(yield* endDateOf(u1)).toBe(later(in2027, 100))
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

/** Declares the tests. */
export const undoingTests = (on: StoreTests): void => {
  const { describe, test } = on

  describe("extendAll by a duration", () => {
    test("ends every membership later by the same time, also those that have ended", function* () {
      const store = yield* prepared
      const ended = yield* inDays(-1)
      yield* store.grant({ ...change(p1), userId: u3, endDate: ended })
      yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
      const extended = yield* store.extendAll({ ...change(p1), bulk: byDays(3) })
      expect(extended).toMatchObject({ total: 3 })
      expect(yield* endDateOf(u1)).toBe(later(in2027, 3))
      expect(yield* endDateOf(u2)).toBe(later(in2029, 3))
      expect(yield* endDateOf(u3)).toBe(later(ended, 3))
      expect(yield* endDateOf(u1, p2)).toBe(in2027)
      const { memberships } = yield* store.listEnding(p1, {
        before: later(in2027, -1),
        after: undefined,
        limit: 10,
      })
      // A first page may have fewer.
      expect(memberships.map(({ userId }) => userId)).toEqual(memberships.length === 0 ? [] : [u3])
    })

    test("ends nobody after the year 9999", function* () {
      const store = yield* prepared
      const last = EndDate(Date.UTC(9999, 11, 31, 23, 59, 59, 999))
      yield* store.grant({ ...change(p1), userId: u3, endDate: later(last, -1) })
      const preview = yield* store.previewBulkExtension(p1, byDays(3))
      expect(preview).toMatchObject({ total: 3, capped: 1 })
      yield* extendAll(byDays(3))
      yield* extendAll(byDays(3))
      expect(yield* endDateOf(u3)).toBe(last)
      expect(yield* endDateOf(u1)).toBe(later(in2027, 6))
    })

    test("is compared with by extensions that expect a date", function* () {
      const store = yield* prepared
      yield* extendAll(byDays(3))
      const extension = { ...change(p1), userId: u1, endDate: in2028 }
      const stale = store.extend({ ...extension, expectedEndDate: in2027 })
      expect(yield* Effect.flip(stale)).toMatchObject({
        _tag: "EndDateConflict",
        currentEndDate: later(in2027, 3),
      })
      yield* store.extend({ ...extension, expectedEndDate: later(in2027, 3) })
      expect(yield* endDateOf(u1)).toBe(in2028)
    })

    test("is made once with an idempotency key", function* () {
      const store = yield* prepared
      const extension = { ...change(p1), bulk: byDays(3), once: once() }
      yield* store.extendAll(extension)
      const replayed = yield* store.extendAll({ ...extension, event: change(p1).event })
      expect(replayed).toEqual({ _tag: "Replayed", answer: "2" })
      expect(yield* endDateOf(u1)).toBe(later(in2027, 3))
    })

    test("can be seen before it is made", function* () {
      const store = yield* prepared
      const ended = yield* inDays(-1)
      yield* store.grant({ ...change(p1), userId: u3, endDate: ended })
      expect(yield* store.previewBulkExtension(p1, byDays(3))).toEqual({
        total: 3,
        shortened: 0,
        reactivated: 1,
        capped: 0,
        examples: [
          { userId: u1, endDate: in2027, wouldEnd: later(in2027, 3) },
          { userId: u2, endDate: in2029, wouldEnd: later(in2029, 3) },
          { userId: u3, endDate: ended, wouldEnd: later(ended, 3) },
        ],
      })
      expect(yield* store.previewBulkExtension(p1, setTo(in2028))).toMatchObject({
        shortened: 1,
        reactivated: 1,
      })
      expect(yield* store.previewBulkExtension(p1, atLeast(in2027))).toMatchObject({
        shortened: 0,
        examples: [{ userId: u3, endDate: ended, wouldEnd: in2027 }],
      })
      expect(yield* store.previewBulkExtension(p2, byDays(3))).toMatchObject({ total: 0 })
      expect(yield* failureOf(store.previewBulkExtension(nowhere, byDays(3)))).toBe(
        "ProjectNotFound",
      )
      expect(yield* endDateOf(u1)).toBe(in2027)
    })
  })

  describe("bulkExtensions", () => {
    test("returns who made which, newest first, page by page", function* () {
      const store = yield* prepared
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
      expect(yield* failureOf(store.bulkExtensions(nowhere, { after: undefined, limit: 1 }))).toBe(
        "ProjectNotFound",
      )
    })
  })

  if (!on.settlesAtOnce) undoTests(on)
}
