/** Moving memberships to other user ids. */

import { expect } from "@effect/vitest"
import { draftEvent } from "@tenure/core/internal"
import {
  type Event,
  FeedStore,
  type Membership,
  MembershipStore,
  type Metadata,
  Millis,
  Outbox,
  Reason,
  type UserId,
  joinMemberships,
  noMetadata,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import {
  change,
  draft,
  in2027,
  in2028,
  in2029,
  longAgo,
  p1,
  sequenceOf,
  u1,
  u2,
  u3,
} from "../../support/fixtures.ts"
import { announcedOn } from "../announcing.ts"
import type { StoreTests } from "../declare.ts"
import { deliveriesOf } from "../outbox/steps.ts"
import { addWebhook, dayMillis, expectFailure, outcomeOf, together } from "../steps.ts"
import { endDateOf, nowhere, prepared } from "./model.ts"

const gold: Metadata = { plan: "gold", seat: "12A" }

const silver: Metadata = { card: "1", plan: "silver" }

const history = { limit: 10 }

/** Returns a user's membership, if there is one. */
const found = (userId: UserId) =>
  MembershipStore.use((store) =>
    Effect.catchTag(store.find(p1, userId), "MembershipNotFound", () => Effect.undefined),
  )

/** Returns the move of what there is now, as the service makes it. */
const moveOf = Effect.fnUntraced(function* (userId: UserId, to: UserId) {
  const store = yield* MembershipStore
  const expected = { from: yield* store.find(p1, userId), to: yield* found(to) }
  const joined = joinMemberships(expected.from, expected.to) ?? expected.from
  const about = (type: string, of: UserId, field: string, other: UserId) =>
    draftEvent({ ...draft(p1, type), data: { project_id: p1, user_id: of, [field]: other } })
  return {
    ...change(p1),
    event: about("membership.ended", userId, "moved_to", to),
    granted: about("membership.granted", to, "moved_from", userId),
    userId,
    to,
    endDate: joined.endDate,
    metadata: joined.metadata,
    expected,
  }
})

const move = (userId: UserId, to: UserId) =>
  Effect.flatMap(moveOf(userId, to), (moving) => MembershipStore.use((store) => store.move(moving)))

/** Returns the events of a move that was made. */
const eventsOf = (made: object): ReadonlyArray<Event> =>
  Array.isArray(made) ? made : expect.fail("replayed")

const membership = (userId: UserId, endDate: number, metadata: Metadata) =>
  ({ projectId: p1, userId, endDate, metadata }) as const

/** What all operations return of both users and their project. */
const everything = Effect.gen(function* () {
  const store = yield* MembershipStore
  const feed = yield* (yield* FeedStore).read([p1], "start", { events: 100, bytes: 1_000_000 })
  return {
    memberships: yield* store.list(p1, { after: undefined, limit: 10 }),
    project: yield* store.findProject(p1),
    history: yield* store.history(p1, { userId: undefined, limit: 100 }),
    events: feed.events.map(({ id }) => id),
  }
})

const movingTests = ({ testsAfter }: StoreTests): void => {
  const { test } = testsAfter(prepared)
  test("goes to a new user, with a row and an event of both, in one step", function* (store) {
    const receiver = yield* addWebhook()
    yield* store.grant({ ...change(p1), userId: u1, endDate: in2028, metadata: gold })
    const moving = { ...(yield* moveOf(u1, u3)), reason: Reason("signed up"), at: 1234 }
    const events = eventsOf(yield* store.move(moving))
    expect(yield* found(u1)).toBeUndefined()
    expect(yield* found(u3)).toEqual(membership(u3, in2028, gold))
    expect(yield* store.findProject(p1)).toMatchObject({ memberships: 2 })
    const both = { action: "moved", reason: "signed up", at: 1234, origin: moving.origin }
    expect(yield* store.history(p1, { ...history, userId: u1 })).toMatchObject([
      { ...both, userId: u1, subject: u3, from: in2028, to: undefined },
      { action: "granted", from: in2027, to: in2028 },
      { action: "granted" },
    ])
    expect(yield* store.history(p1, { ...history, userId: u3 })).toMatchObject([
      { ...both, userId: u3, subject: u1, from: undefined, to: in2028 },
    ])
    expect(events.map(({ id }) => id)).toEqual([moving.event.id, moving.granted.id])
    expect(yield* deliveriesOf(receiver)).toHaveLength(3)
    for (const event of events) {
      expect(event.body).toContain(`"metadata":${JSON.stringify(gold)},"sequence":`)
      const { body, type } = yield* (yield* Outbox).find(p1, event.id)
      expect({ body, type }).toEqual({ body: event.body, type: event.type })
    }
  })

  test("leaves the later end, and the metadata of the other user for equal names", function* (store) {
    yield* store.grant({ ...change(p1), userId: u1, endDate: in2027, metadata: gold })
    yield* store.grant({ ...change(p1), userId: u2, endDate: in2028, metadata: silver })
    const [, granted] = eventsOf(yield* move(u1, u2))
    const joined = { card: "1", plan: "silver", seat: "12A" }
    expect(granted?.body).toContain(JSON.stringify(joined))
    expect(yield* found(u2)).toEqual(membership(u2, in2028, joined))
    expect(yield* store.findProject(p1)).toMatchObject({ memberships: 1 })
    // Also if that is the date of the user who moves.
    yield* store.grant({ ...change(p1), userId: u3, endDate: in2027 })
    yield* move(u2, u3)
    expect(yield* found(u3)).toEqual(membership(u3, in2028, joined))
    expect(yield* store.history(p1, { ...history, userId: u3 })).toMatchObject([
      { action: "moved", from: in2027, to: in2028 },
      { action: "granted" },
    ])
  })

  test("stays as it is if either user's is not as expected", function* (store) {
    const moving = yield* moveOf(u1, u2)
    const fresh = yield* moveOf(u1, u3)
    const { from } = moving.expected
    const to = yield* store.find(p1, u2)
    const before = yield* everything
    const other = (one: Membership) => [
      { ...one, endDate: in2028 },
      { ...one, metadata: silver },
    ]
    const wrong = [
      ...other(from).map((one) => ({ ...moving, expected: { from: one, to } })),
      ...other(to).map((one) => ({ ...moving, expected: { from, to: one } })),
      { ...moving, expected: { from, to: undefined } },
      { ...fresh, expected: { from, to } },
      { ...fresh, userId: u3, to: u1, expected: { from, to: from } },
      { ...moving, ...change(nowhere) },
    ]
    yield* expectFailure("MoveConflict", ...wrong.map((one) => store.move(one)))
    expect(yield* everything).toEqual(before)
  })

  test("has the date of bulk extensions before, and those after apply", function* (store) {
    const extension = { ...change(p1), bulk: { mode: "set", endDate: in2029 } as const }
    yield* store.extendAll(extension)
    yield* store.grant({ ...change(p1), userId: u2, endDate: in2027 })
    yield* move(u1, u2)
    yield* move(u2, u3)
    expect(yield* endDateOf(u3)).toBe(in2029)
    const target = { bulkExtensionId: extension.event.id, madeAfter: longAgo }
    yield* Effect.ignore(store.undoBulkExtension({ ...change(p1), ...target }))
    expect(yield* endDateOf(u3)).toBe(in2029)
    const by = Millis(dayMillis)
    yield* store.extendAll({ ...change(p1), bulk: { mode: "extendBy", by } })
    expect(yield* endDateOf(u3)).toBe(in2029 + by)
    expect(yield* store.history(p1, { ...history, userId: u3 })).toMatchObject([
      { action: "bulk_extended_by" },
      { action: "moved" },
    ])
  })

  test("follows the sequences of both users", function* (store) {
    const granted = (userId: UserId) =>
      Effect.map(store.grant({ ...change(p1), userId, endDate: in2028 }), (made) =>
        sequenceOf(Object(made)),
      )
    const before = [yield* granted(u1), yield* granted(u2), yield* granted(u2)]
    const moves = [yield* move(u1, u2), yield* move(u2, u1), yield* move(u1, u3)]
    const sequences = moves.flatMap(eventsOf).map(sequenceOf)
    const after = [yield* granted(u1), yield* granted(u2), yield* granted(u3)]
    expect(Math.max(...before)).toBeLessThan(Math.min(...sequences))
    expect(sequences).toEqual([...new Set(sequences)].toSorted((one, other) => one - other))
    expect(Math.min(...after)).toBeGreaterThan(Math.max(...sequences))
  })

  test("moves once, if many move at the same time", function* (store) {
    const moves = [yield* moveOf(u1, u2), yield* moveOf(u1, u3), yield* moveOf(u2, u1)]
    const all = [...moves, ...moves].map((one) => ({
      ...one,
      event: { ...one.event, id: change(p1).event.id },
      granted: { ...one.granted, id: change(p1).event.id },
    }))
    const outcomes = yield* together(all.map((one) => outcomeOf(store.move(one))))
    const conflicts = Array.from({ length: 5 }, () => "MoveConflict")
    expect(outcomes.toSorted()).toEqual([...conflicts, "done"])
    const { memberships } = yield* store.findProject(p1)
    expect(yield* store.list(p1, { after: undefined, limit: 10 })).toHaveLength(memberships)
  })

  test("loses no extension that is made at the same time", function* (store) {
    for (let round = 0; round < 10; round++) {
      const [userId, to] = round % 2 === 0 ? [u1, u2] : [u2, u1]
      const endDate = in2029
      yield* store.grant({ ...change(p1), userId, endDate: in2027 })
      yield* store.grant({ ...change(p1), userId: to, endDate: in2028 })
      const moving = yield* moveOf(userId, to)
      const [moved, extended] = yield* together([
        outcomeOf(store.move(moving)),
        outcomeOf(store.extend({ ...change(p1), userId: round < 5 ? userId : to, endDate })),
      ])
      if (extended === "done") {
        const left = yield* store.list(p1, { after: undefined, limit: 10 })
        expect(Math.max(...left.map((one) => one.endDate))).toBe(endDate)
      } else {
        expect(moved).toBe("done")
      }
    }
  })

  test("is erased from what it has left to the other user", function* (store) {
    const reason = Reason("1001 is ada")
    const moved = yield* store.move({ ...(yield* moveOf(u1, u3)), reason })
    const [ended, granted] = eventsOf(moved)
    const dataOf = (event: Event | undefined) =>
      Effect.map(
        Outbox.use((outbox) => outbox.find(p1, Object(event).id)),
        ({ body }) => Object(JSON.parse(body)).data,
      )
    yield* store.erase({ ...change(p1), userId: u1, at: Date.now() })
    expect(yield* store.history(p1, { ...history, userId: u3 })).toMatchObject([
      { action: "moved", subject: undefined, reason: undefined, userId: u3 },
    ])
    expect(yield* store.history(p1, { ...history, userId: u1 })).toEqual([])
    expect(yield* dataOf(ended)).toMatchObject({ user_id: null, moved_to: u3 })
    expect(yield* dataOf(granted)).toMatchObject({ user_id: u3, moved_from: null })
    yield* store.erase({ ...change(p1), userId: u3, at: Date.now() })
    expect(yield* dataOf(ended)).toMatchObject({ user_id: null, moved_to: null })
    const trail = yield* store.history(p1, { userId: undefined, limit: 100 })
    // Cursors and times have digits, too.
    const told = trail.map(({ at: _at, cursor: _cursor, ...row }) => row)
    expect(JSON.stringify(told)).not.toMatch(/100[13]/)
    expect((yield* found(u2))?.metadata).toEqual(noMetadata)
  })
}

/** Announcements of what was moved. */
const announcedTests = (on: StoreTests): void => {
  const { advance } = on
  const announced = announcedOn(on)
  const days = (count: number) => advance(count * dayMillis)

  announced(
    "is not announced again for the same date, and is for the rest",
    function* ({ grant, store, sweep }) {
      yield* grant(u1, 8)
      yield* days(1)
      expect(yield* sweep).toEqual([["membership.expiring", u1, 7]])
      yield* move(u1, u2)
      expect(yield* sweep).toEqual([])
      yield* grant(u3, 3)
      expect(yield* sweep).toEqual([])
      yield* move(u2, u3)
      expect(yield* sweep).toEqual([])
      yield* days(6)
      expect(yield* sweep).toEqual([["membership.expiring", u3, 1]])
      yield* days(1)
      expect(yield* sweep).toEqual([["membership.expired", u3]])
      yield* move(u3, u1)
      expect(yield* sweep).toEqual([])
      yield* grant(u2, 30)
      yield* move(u1, u2)
      yield* days(23)
      expect(yield* sweep).toEqual([["membership.expiring", u2, 7]])
      expect(yield* store.findProject(p1)).toMatchObject({ memberships: 1 })
    },
  )

  announced(
    "is announced no more than either was, if both end at the same time",
    function* ({ grant, store, sweep }) {
      yield* grant(u1, 8)
      yield* days(1)
      expect(yield* sweep).toEqual([["membership.expiring", u1, 7]])
      const { endDate } = yield* store.find(p1, u1)
      // Not announced yet.
      yield* store.grant({ ...change(p1), userId: u2, endDate })
      yield* move(u1, u2)
      expect(yield* sweep).toEqual([])
      yield* days(7)
      expect(yield* sweep).toEqual([["membership.expired", u2]])
    },
  )
}

/** Declares the tests. */
export const movedTests = (on: StoreTests): void =>
  on.describe("a moved membership", () => {
    movingTests(on)
    if (on.announcesEnds) announcedTests(on)
  })
