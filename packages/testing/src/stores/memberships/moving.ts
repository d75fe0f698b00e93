/** Moving memberships to other user ids, and erasing persons. */

import { expect } from "@effect/vitest"
import {
  type EventDraft,
  draftEvent,
  eventData,
  isReplayedResponse,
  makeEvent,
} from "@tenure/core/internal"
import {
  ApiKeyId,
  type Event,
  type EventId,
  FeedStore,
  type Membership,
  MembershipStore,
  type Metadata,
  Millis,
  Outbox,
  Reason,
  UserId,
  joinMemberships,
  noMetadata,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fixture from "../../support/fixtures.ts"
import { announcedOn } from "../announcing.ts"
import type { StoreTests } from "../declare.ts"
import { answered, claims, delivered, deliveriesOf, retry, settle } from "../outbox/steps.ts"
import {
  addWebhook,
  at,
  dayMillis,
  eventOfGrant,
  expectFailure,
  idsOf,
  outcomeOf,
  together,
} from "../steps.ts"
import { endDateOf, nowhere, prepared } from "./every-change.ts"
import { everything } from "./every-change.ts"

const { asInstant, change, draft, event, idempotency, sequenceOf } = Fixture
const { in2027, in2028, in2029, longAgo, p1, p2, u1, u2, u3 } = Fixture

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
  ({ projectId: p1, userId, endDate, ...asInstant, metadata }) as const

/** What all operations return about both users and their project. */
const wholeProject = Effect.gen(function* () {
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
    for (const one of events) {
      expect(one.body).toContain(`"metadata":${JSON.stringify(gold)},"sequence":`)
      const { body, type } = yield* (yield* Outbox).find(p1, one.id)
      expect({ body, type }).toEqual({ body: one.body, type: one.type })
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
    // Also if that is the moving user's date.
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
    const before = yield* wholeProject
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
    expect(yield* wholeProject).toEqual(before)
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
        sequenceOf(Object(eventOfGrant(made))),
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
    const events = eventsOf(moved)
    const [ended, granted] = [at(events, 0).id, at(events, 1).id]
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

const announcedTests = (on: StoreTests): void => {
  const { advance } = on
  const test = announcedOn(on)
  const days = (count: number) => advance(count * dayMillis)

  test("is not announced again for the same date, and is for the rest", function* (world) {
    const { grant, store, sweep } = world
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
  })

  test("is announced no more than either was, if both end at the same time", function* (world) {
    const { grant, store, sweep } = world
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
  })
}

export const movedTests = (on: StoreTests): void =>
  on.describe("a moved membership", () => {
    movingTests(on)
    if (on.announcesEnds) announcedTests(on)
  })

const allOf = { events: 100, bytes: 1_000_000 }

/** Returns fields for an event naming a user, including text that only looks like the id. */
const fieldsAbout = (userId: string, type: string, reason?: string) => ({
  ...event(p1, type),
  data: {
    project_id: p1,
    user_id: userId,
    nested: [{ user_id: userId }, { user_id: Number(userId) }],
    quoted: `"user_id":"${userId}"`,
    longer: { user_id: `${userId}0` },
    reason,
  },
})

const about = (...of: Parameters<typeof fieldsAbout>): Event => makeEvent(fieldsAbout(...of))

const draftAbout = (...of: Parameters<typeof fieldsAbout>): EventDraft =>
  draftEvent(fieldsAbout(...of))

/** A store with changes to two users' memberships, one ended, and a webhook. */
const told = Effect.gen(function* () {
  const store = yield* prepared
  const receiver = yield* addWebhook()
  const reason = Reason("1001 has paid")
  const extension = { ...change(p1), event: draftAbout(u1, "membership.extended", reason), reason }
  yield* store.extend({ ...extension, userId: u1, endDate: in2028 })
  yield* store.extendAll({ ...change(p1), bulk: { endDate: in2028, mode: "set" } })
  yield* store.extend({ ...change(p1), event: draftAbout(u2, "a.b"), userId: u2, endDate: in2028 })
  const erased = {
    ...change(p1),
    origin: { requestId: "r1", keyId: ApiKeyId("k1") },
    at: Date.now(),
    userId: u1,
  }
  return { store, receiver, erased, extension }
})

const dataOf = Effect.fnUntraced(function* (eventId: EventId) {
  return eventData(yield* (yield* Outbox).find(p1, eventId))
})

export const erasingTests = (on: StoreTests): void => {
  const { test } = on.testsAfter(told)

  on.describe("a person", () => {
    test("has no history, and nobody else loses any", function* ({ erased, store }) {
      const [before, ofOther] = [
        yield* store.history(p1, everything),
        yield* store.history(p1, { ...everything, userId: u2 }),
      ]
      expect(yield* store.erase(erased)).toMatchObject({ id: erased.event.id })
      yield* expectFailure("MembershipNotFound", store.find(p1, u1))
      expect(yield* store.history(p1, { ...everything, userId: u1 })).toEqual([])
      expect(yield* store.history(p1, { ...everything, userId: u2 })).toEqual(ofOther)
      const [row, ...rest] = yield* store.history(p1, everything)
      expect(row).toMatchObject({
        action: "person_erased",
        userId: undefined,
        subject: undefined,
        origin: erased.origin,
        at: erased.at,
      })
      expect(rest).toEqual(
        before.map((one) =>
          one.userId === u1 ? { ...one, userId: undefined, reason: undefined } : one,
        ),
      )
      expect(yield* store.findProject(p1)).toMatchObject({ memberships: 1 })
    })

    test("is removed from events, also those to be delivered, and nothing else is", function* (world) {
      const { erased, extension, receiver, store } = world
      const outbox = yield* Outbox
      const [own, foreign] = [about(u1, "payment.completed", "kept"), about(u2, "a.b")]
      yield* outbox.publish(own)
      yield* outbox.publish(foreign)
      yield* store.erase(erased)
      const gone = {
        project_id: p1,
        user_id: null,
        nested: [{ user_id: null }, { user_id: null }],
        quoted: '"user_id":"1001"',
        longer: { user_id: "10010" },
      }
      expect(yield* dataOf(extension.event.id)).toEqual({
        ...gone,
        reason: null,
        sequence: expect.any(Number),
      })
      expect(yield* dataOf(own.id)).toEqual({ ...gone, reason: "kept" })
      expect(yield* dataOf(foreign.id)).toEqual(eventData(foreign))
      const claimed = yield* claims()
      const bodies = new Map(claimed.map((one) => [one.event.id, one.event.body]))
      expect(bodies.get(own.id)).not.toContain('"user_id":"1001"}')
      expect(bodies.get(foreign.id)).toBe(foreign.body)
      expect([...bodies.keys()]).toContain(erased.event.id)
      expect(claimed.every((one) => one.webhook.webhookId === receiver.id)).toBe(true)
    })

    test("is removed from events by the whole user id, whatever its characters mean elsewhere", function* (world) {
      const { store } = world
      const outbox = yield* Outbox
      const users = [
        "a.b+c",
        "axb+c",
        "a.bbc",
        "1.5",
        "a.b+",
        'a"b',
        "a\\b",
        "$&",
        "(a|b)*",
        "[^a]",
        "^a{1}$",
        "auth0|1",
        "a?/b",
      ].map(UserId)
      const published = users.map((userId) => ({ userId, event: about(userId, "a.b") }))
      for (const { event: one, userId } of published) {
        const changed = { ...change(p1), event: draftAbout(userId, "a.c") }
        yield* store.grant({ ...changed, userId, endDate: in2028 })
        yield* outbox.publish(one)
      }
      for (const erased of users) {
        yield* store.erase({ ...change(p1), userId: erased })
        const left = new Set(users.slice(users.indexOf(erased) + 1))
        for (const { event: one, userId } of published) {
          const data = Object(yield* dataOf(one.id))
          expect(data.user_id).toBe(left.has(userId) ? userId : null)
        }
      }
    })

    test("is removed with what receivers have responded, before and after the end of a delivery", function* (world) {
      const { erased, receiver, store } = world
      const outbox = yield* Outbox
      const [ended, failing] = [about(u1, "a.b"), about(u1, "payment.failed")]
      const foreign = about(u2, "a.b")
      for (const one of [ended, failing, foreign]) yield* outbox.publish(one)
      for (const one of yield* claims()) {
        yield* settle(one, one.event.id === failing.id ? retry(60_000) : delivered)
      }
      yield* store.erase(erased)
      const all = yield* deliveriesOf(receiver)
      const responsesTo = ({ id }: Event) =>
        all.filter(({ eventId }) => eventId === id).flatMap(({ attempts }) => attempts)
      const silent = { result: { _tag: "Answered", body: "" } }
      expect(responsesTo(ended)).toMatchObject([silent])
      expect(responsesTo(failing)).toMatchObject([silent])
      expect(responsesTo(foreign)).toEqual([answered(200)])
    })

    test("is removed from the feed, which keeps its events in their order", function* (world) {
      const { erased, extension, store } = world
      yield* store.end({ ...change(p1), userId: u1 })
      const foreign = about(u2, "membership.extended", "1002 has paid")
      yield* (yield* Outbox).publish(foreign)
      const feed = yield* FeedStore
      const before = yield* feed.read([p1], "start", allOf)
      yield* store.erase(erased)
      const after = yield* feed.read([p1], "start", allOf)
      expect(idsOf(after.events)).toEqual(idsOf(before.events))
      const extended = after.events.find(({ id }) => id === extension.event.id)
      expect(extended?.body).toContain('"user_id":null')
      expect(after.events.find(({ id }) => id === foreign.id)?.body).toBe(foreign.body)
      const next = about(u2, "a.b")
      yield* (yield* Outbox).publish(next)
      const later = yield* feed.read([p1], before.cursor, allOf)
      expect(idsOf(later.events)).toEqual([next.id])
    })

    test("is erased after the membership has ended, and if nothing is known", function* (world) {
      const { erased, store } = world
      yield* store.end({ ...change(p1), userId: u1 })
      for (const _ of ["known", "unknown"]) {
        expect(yield* store.erase({ ...erased, event: draft(p1) })).toBeUndefined()
        expect(yield* store.history(p1, { ...everything, userId: u1 })).toEqual([])
      }
    })

    test("keeps what other projects know, and a history of what follows", function* (world) {
      const { erased, store } = world
      yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
      yield* store.erase(erased)
      expect(yield* store.history(p2, { ...everything, userId: u1 })).toHaveLength(1)
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
      expect(yield* store.history(p1, { ...everything, userId: u1 })).toMatchObject([
        { action: "granted", from: undefined },
      ])
    })

    test("is erased once with an idempotency key, whatever was written since", function* (world) {
      const { erased, store } = world
      const keyed = { ...erased, idempotency: idempotency() }
      expect(yield* store.erase(keyed)).toMatchObject({ id: erased.event.id })
      const later = { ...change(p1), at: erased.at + 1, userId: u1, endDate: in2027 }
      yield* store.grant(later)
      const replayed = yield* store.erase({ ...keyed, at: erased.at + 2, event: draft(p1) })
      expect(isReplayedResponse(replayed)).toBe(true)
      expect((yield* store.find(p1, u1)).endDate).toBe(in2027)
      expect(yield* store.history(p1, { ...everything, userId: u1 })).toHaveLength(1)
      const rows = yield* store.history(p1, everything)
      expect(rows.filter(({ action }) => action === "person_erased")).toHaveLength(1)
    })
  })
}
