/** Projects that exist or not, and changes to memberships: conditions, metadata, imports, and dates far away. */

import { expect } from "@effect/vitest"
import {
  draftEvent,
  eventData,
  isEndsLater,
  isReplayedResponse,
  lastEndDate,
  maxExamples,
} from "@tenure/core/internal"
import {
  ApiKeyId,
  type DatedMembership,
  EndDate,
  type Event,
  type Extension,
  MembershipStore,
  type Metadata,
  Millis,
  Outbox,
  ProjectId,
  UserId,
  noMetadata,
  replayedResponse,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import fc from "fast-check"
import * as Fixture from "../../support/fixtures.ts"
import { inDays } from "../announcing.ts"
import { HostTransaction, type StoreTests } from "../declare.ts"
import { deliveriesOf } from "../outbox/steps.ts"
import { addWebhook, dayMillis, eventOfGrant, expectFailure, together } from "../steps.ts"
import { endDateOf, nowhere, prepared } from "./every-change.ts"
import { everything, gold, observe } from "./every-change.ts"

const { change, date, draft, idempotency, sequenceOf } = Fixture
const { in2027, in2028, in2029, manyKindsOfUser, context, p1, p2, u1, u2, u3 } = Fixture

export const changingTests = (on: StoreTests): void => {
  const { describe } = on
  const { test } = on.testsAfter(prepared)

  describe("projects", () => {
    test("keep their members and their history when they are created again", function* (store) {
      yield* store.createProject(p1, context)
      expect(yield* endDateOf(u1)).toBe(in2027)
      expect(yield* store.history(p1, { userId: u1, limit: 10 })).toHaveLength(1)
    })

    test("that are missing are told from empty ones, whatever is asked of them", function* (store) {
      const all = { after: undefined, limit: 1 }
      const ofU1 = { ...change(nowhere), userId: u1, endDate: in2028 }
      const bulk = { mode: "set", endDate: in2028 } as const
      yield* expectFailure(
        "ProjectNotFound",
        store.findProject(nowhere),
        store.grant(ofU1),
        store.extendAll({ ...ofU1, bulk }),
        store.previewBulkExtension(nowhere, bulk),
        store.import({ ...ofU1, memberships: [ofU1] }),
        store.import({ ...ofU1, memberships: [] }),
        store.erase(ofU1),
        store.list(nowhere, all),
        store.list(nowhere, { ...all, userIds: [u1] }),
        store.list(nowhere, { ...all, userIds: [] }),
        store.listEnding(nowhere, { ...all, before: yield* inDays(1) }),
        store.bulkExtensions(nowhere, all),
        store.countEnds(nowhere, { days: undefined, change: undefined }),
        store.history(nowhere, { userId: undefined, limit: 1 }),
      )
      yield* expectFailure(
        "MembershipNotFound",
        store.extend(ofU1),
        store.extend({ ...ofU1, ...change(p2) }),
      )
    })

    test("can have any valid id as their name, and names that look alike", function* (store) {
      const alike = ["acme", "ACME", "caf\u00e9", "cafe\u0301", "cafe"]
      for (const id of ["__proto__", "a/b?c#d", "日本", "'; --", "%00", ...alike]) {
        const projectId = ProjectId(id)
        yield* expectFailure("MembershipNotFound", store.find(projectId, u1))
        yield* store.createProject(projectId, context)
        yield* store.grant({ ...change(projectId), userId: u1, endDate: in2027 })
        expect(yield* endDateOf(u1, projectId)).toBe(in2027)
      }
    })
  })

  describe("grant", () => {
    test("stores end dates from year 0000 to 9999 with millisecond precision, which can be expected", function* (store) {
      for (const text of ["0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]) {
        const endDate = date(text)
        yield* store.grant({ ...change(p1), userId: u1, endDate })
        expect(yield* endDateOf(u1)).toBe(endDate)
        expect(yield* extendIf(u1, endDate)).toBe("done")
      }
    })

    test("accepts user ids of any kind, and distinguishes 7 from 07", function* (store) {
      for (const [index, userId] of manyKindsOfUser.entries()) {
        yield* store.grant({ ...change(p1), userId, endDate: EndDate(in2027 + index) })
      }
      for (const [index, userId] of manyKindsOfUser.entries()) {
        const endDate = EndDate(in2028 + index)
        yield* store.extend({ ...change(p1), event: draft(p1), userId, endDate })
        expect(yield* endDateOf(userId)).toBe(endDate)
        const [newest] = yield* store.history(p1, { userId, limit: 2 })
        expect(newest).toMatchObject({ action: "extended", userId, to: endDate })
      }
    })
  })
}

/** Extends a membership, and tells what has come from it. */
const extend = (userId: UserId, endDate: EndDate, more: Partial<Extension>) =>
  MembershipStore.use((store) =>
    Effect.match(store.extend({ ...change(p1), userId, endDate, ...more }), {
      onSuccess: (result) => {
        if (isReplayedResponse(result)) return result
        return isEndsLater(result) ? { later: result.endDate } : "done"
      },
      onFailure: (error) =>
        error._tag === "EndDateConflict" ? { current: error.currentEndDate } : error._tag,
    }),
  )

/** Extends a membership if it has the expected date. */
const extendIf = (userId: UserId, expectedEndDate: EndDate, endDate = in2028) =>
  extend(userId, endDate, { expectedEndDate })

/** Extends a membership unless it ends later. */
const lengthen = (userId: UserId, endDate: EndDate, more: Partial<Extension> = {}) =>
  extend(userId, endDate, { mode: "neverShorten", ...more })

export const expectingTests = (on: StoreTests): void => {
  const { property } = on
  const { test, transactional } = on.testsAfter(prepared)

  on.describe("an extension that expects an end date", () => {
    test("fails with the current one if that is another, by a millisecond or more", function* (store) {
      for (const expectedEndDate of [in2029, EndDate(in2027 - 1), EndDate(in2027 + 1)]) {
        const extension = { ...change(p1), userId: u1, endDate: in2028, expectedEndDate }
        expect(yield* Effect.flip(store.extend(extension))).toMatchObject({
          _tag: "EndDateConflict",
          projectId: p1,
          userId: u1,
          currentEndDate: in2027,
        })
      }
      expect(yield* endDateOf(u1)).toBe(in2027)
      expect(yield* extendIf(u3, in2027)).toBe("MembershipNotFound")
    })

    transactional("can go on with a transaction of the host in which it failed", function* () {
      const { run } = yield* HostTransaction
      yield* run(Effect.andThen(extendIf(u1, in2029), extendIf(u2, in2029)))
      expect(yield* endDateOf(u1)).toBe(in2027)
      expect(yield* endDateOf(u2)).toBe(in2028)
    })

    property(
      "succeeds once, if many expect the same date at the same time",
      fc.uniqueArray(fc.integer({ min: 1, max: 1000 }), { minLength: 2, maxLength: 12 }),
      Effect.fnUntraced(function* (offsets: ReadonlyArray<number>) {
        yield* prepared
        const wanted = offsets.map((offset) => EndDate(in2027 + offset))
        const results = yield* together(wanted.map((to) => extendIf(u1, in2027, to)))
        const current = yield* endDateOf(u1)
        expect(wanted).toContain(current)
        // The losers learn the winner's date.
        expect(results).toEqual(wanted.map((to) => (to === current ? "done" : { current })))
      }),
    )
  })

  on.describe("an extension that never shortens", () => {
    test("is audited with both dates, and expects an end date first", function* (store) {
      expect(yield* lengthen(u1, in2028, { expectedEndDate: in2029 })).toEqual({ current: in2027 })
      expect(yield* lengthen(u1, in2029, { expectedEndDate: in2027 })).toBe("done")
      const [row] = yield* store.history(p1, { userId: u1, limit: 1 })
      expect(row).toMatchObject({ action: "extended", from: in2027, to: in2029 })
      expect(yield* lengthen(u1, in2028, { expectedEndDate: in2028 })).toEqual({ current: in2029 })
      expect(yield* lengthen(u1, in2028, { expectedEndDate: in2029 })).toEqual({ later: in2029 })
      expect(yield* endDateOf(u1)).toBe(in2029)
    })

    test("keeps its idempotency key with the date that it left", function* (store) {
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2029 })
      const key = idempotency()
      expect(yield* lengthen(u1, in2028, { idempotency: key })).toEqual({ later: in2029 })
      yield* store.extend({ ...change(p1), userId: u1, endDate: in2027 })
      expect(yield* lengthen(u1, in2028, { idempotency: key })).toEqual(
        replayedResponse(String(in2029)),
      )
      expect(yield* endDateOf(u1)).toBe(in2027)
      const other = idempotency()
      expect(yield* lengthen(u1, in2028, { idempotency: other })).toBe("done")
      expect(yield* lengthen(u1, in2028, { idempotency: other })).toEqual(replayedResponse())
    })

    test("ends with the latest date, if many arrive at the same time", function* () {
      const dates = [in2028, in2029, in2027, in2028]
      const results = yield* together(dates.map((endDate) => lengthen(u1, endDate)))
      expect(yield* endDateOf(u1)).toBe(in2029)
      expect(results[1]).toBe("done")
    })
  })

  test("extensions with conditions are decided alone, if several arrive at the same time", function* (store) {
    const users = [u1, u2, u3, UserId("1004"), UserId("1005")] as const
    const memberships = users.map((userId) => ({ userId, endDate: in2028 }))
    yield* store.import({ ...change(p1), memberships })
    const results = yield* together([
      extendIf(users[0], in2029),
      extend(users[1], in2027, {}),
      extendIf(users[2], in2028, in2029),
      lengthen(users[3], in2027),
      lengthen(users[4], in2029),
    ])
    expect(results).toEqual([{ current: in2028 }, "done", "done", { later: in2028 }, "done"])
    const members = yield* store.list(p1, { after: undefined, limit: 10 })
    expect(members.map(({ endDate }) => endDate)).toEqual([in2028, in2027, in2029, in2028, in2029])
  })
}

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
      const granted = store.grant({ ...change(p1), ...member, metadata: gold })
      expect(yield* notedIn(eventOfGrant(yield* granted))).toEqual(gold)
      const changes = [
        store.extend({ ...change(p1), ...member }),
        store.extend({ ...change(p1), ...member, expectedEndDate: in2028 }),
        Effect.map(store.grant({ ...change(p1), ...member }), eventOfGrant),
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

/** Many new members, in no order. */
const crowd: ReadonlyArray<DatedMembership> = Array.from({ length: 150 }, (_, index) => ({
  userId: UserId(String(5000 + ((index * 7) % 150))),
  endDate: in2028,
}))

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

const threeDays = Millis(3 * dayMillis)

// Beyond the year 4253, a double has no room for the microseconds of each millisecond.
const farDates = fc
  .integer({ min: date("4000-01-01T00:00:00.000Z"), max: lastEndDate })
  .map((millis) => EndDate(millis))

/** Members with many milliseconds, and those that end in the last instants. */
const members = fc.array(farDates, { minLength: 30, maxLength: 30 }).map((dates) =>
  [lastEndDate, EndDate(lastEndDate - 1), ...dates].map((endDate, index): DatedMembership => ({
    userId: UserId(String(1000 + index)),
    endDate,
  })),
)

const listed = MembershipStore.use((store) =>
  Effect.map(store.list(p1, { after: undefined, limit: 100 }), (page) =>
    page.map(({ endDate, userId }) => ({ userId, endDate })),
  ),
)

/** Extends each member with the expected date. */
const extendEach = (expected: ReadonlyArray<DatedMembership>, by: (endDate: EndDate) => EndDate) =>
  MembershipStore.use((store) =>
    together(
      expected.map(({ endDate, userId }) =>
        store.extend({ ...change(p1), userId, endDate: by(endDate), expectedEndDate: endDate }),
      ),
    ),
  )

export const farDatesTests = ({ describe, property, test, transactional }: StoreTests): void => {
  describe("far dates", () => {
    property(
      "keep each millisecond, wherever they are written, read and compared",
      members,
      Effect.fnUntraced(function* (memberships) {
        const store = yield* MembershipStore
        yield* store.createProject(p1, context)
        yield* store.import({ ...change(p1), memberships })
        expect(yield* listed).toEqual(memberships)
        const sooner = (endDate: EndDate) => EndDate(endDate - 1)
        yield* extendEach(memberships, sooner)
        const changed = memberships.map(({ endDate, userId }) => ({
          userId,
          endDate: sooner(endDate),
        }))
        expect(yield* listed).toEqual(changed)
        const [first] = changed
        if (first === undefined) return
        const { endDate, userId } = first
        expect(yield* store.history(p1, { userId, limit: 1 })).toMatchObject([{ to: endDate }])
        const set = { mode: "set", endDate } as const
        expect(yield* store.previewBulkExtension(p1, set)).toMatchObject({
          examples: changed
            .filter((one) => one.endDate !== endDate)
            .slice(0, maxExamples)
            .map((one) => ({ ...one, wouldEnd: endDate })),
        })
        yield* store.extendAll({ ...change(p1), bulk: set })
        yield* extendEach([{ userId, endDate }], (before) => before)
      }),
    )

    test("can be expected after everybody has more time, and are capped at the last instant", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, context)
      const users = ["1001", "1002", "1003"].map(UserId)
      const endingAt = (dates: ReadonlyArray<EndDate>) =>
        users.map((userId, index) => ({ userId, endDate: EndDate(dates[index] ?? NaN) }))
      const memberships = endingAt([lastEndDate, date("9999-12-30T12:34:56.789Z"), in2027])
      yield* store.import({ ...change(p1), memberships })
      const bulk = { mode: "extendBy", by: threeDays } as const
      const toLast = { mode: "set", endDate: lastEndDate } as const
      expect(yield* store.previewBulkExtension(p1, bulk)).toMatchObject({ capped: 1 })
      expect(yield* store.previewBulkExtension(p1, toLast)).toMatchObject({
        capped: 2,
        lifetimesEnded: 0,
      })
      const ending = { mode: "set", endDate: in2027 } as const
      expect(yield* store.previewBulkExtension(p1, ending)).toMatchObject({
        capped: 0,
        lifetimesEnded: 1,
      })
      yield* store.extendAll({ ...change(p1), bulk })
      const extended = endingAt([lastEndDate, lastEndDate, EndDate(in2027 + threeDays)])
      expect(yield* listed).toEqual(extended)
      yield* extendEach(extended, () => lastEndDate)
      expect(yield* store.previewBulkExtension(p1, toLast)).toMatchObject({ capped: 0 })
    })

    transactional("are the same in a transaction of the host", function* () {
      const store = yield* MembershipStore
      const { run } = yield* HostTransaction
      yield* store.createProject(p1, context)
      const endingAt = (dateOf: (index: number) => EndDate) =>
        Array.from({ length: 20 }, (_, index) => ({
          userId: UserId(String(1000 + index)),
          endDate: dateOf(index),
        }))
      const granted = endingAt((index) => EndDate(lastEndDate - index))
      const grantEach = MembershipStore.use((joined) =>
        Effect.forEach(granted, (one) => joined.grant({ ...change(p1), ...one })),
      )
      yield* run(grantEach)
      yield* extendEach(granted, (endDate) => endDate)
      yield* run(extendEach(granted, () => in2027))
      expect(yield* listed).toEqual(endingAt(() => in2027))
    })
  })
}
