/** Pauses: the end date stands, and is later afterwards by the time paused. */

import { expect } from "@effect/vitest"
import { isReplayedResponse, lastEndDate, stateAt } from "@tenure/core/internal"
import {
  type BulkChange,
  EndDate,
  type Membership,
  MembershipStore,
  Millis,
  type Pause,
  type UserId,
  endAfterPause,
  formatGrantAnswer,
  instantForm,
  noMetadata,
  userOf,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fixture from "../../support/fixtures.ts"
import { announcedOn, inDays } from "../announcing.ts"
import type { StoreTests } from "../declare.ts"
import { deliveriesOf } from "../outbox/steps.ts"
import { addWebhook, createProjects, dayMillis, expectFailure, idsOf } from "../steps.ts"

const { change, draft, idempotency, longAgo, p1, sequenceOf, u1, u2, u3 } = Fixture

const page = { after: undefined, limit: 10 }

/** A store with two members, who end in 10 and 20 days. */
const prepared = Effect.gen(function* () {
  yield* createProjects
  const store = yield* MembershipStore
  yield* store.grant({ ...change(p1), userId: u1, endDate: yield* inDays(10) })
  yield* store.grant({ ...change(p1), userId: u2, endDate: yield* inDays(20) })
  return store
})

type Store = MembershipStore["Service"]

/** Pauses a member for so many days, or until they are resumed. */
const pause = Effect.fnUntraced(function* (store: Store, userId: UserId, days?: number) {
  const { endDate } = yield* store.find(p1, userId)
  const at = yield* inDays(0)
  // The clock may go on in between.
  const until = days === undefined ? undefined : at + days * dayMillis
  const paused = { ...change(p1), at, userId, until, expected: { endDate } }
  return yield* store.pause(paused)
})

const pauseOf = ({ pause: found }: Membership): Pause =>
  found ?? expect.fail("the member is not paused")

/** Resumes a member. */
const resume = Effect.fnUntraced(function* (store: Store, userId: UserId) {
  const before = yield* store.find(p1, userId)
  const at = yield* inDays(0)
  const expected = { endDate: before.endDate, pause: pauseOf(before) }
  const endDate = endAfterPause(before.endDate, expected.pause, at)
  const resumed = { ...change(p1), at, userId, endDate, expected }
  return { endDate, result: yield* store.resume(resumed) }
})

const bulk = (store: Store, bulkChange: BulkChange) => {
  const extension = { ...change(p1), bulk: bulkChange }
  return Effect.as(store.extendAll(extension), extension.event.id)
}

const byDays = (days: number): BulkChange => ({ mode: "extendBy", by: Millis(days * dayMillis) })

/** Returns the days from one member's date to another date. */
const daysBetween = (from: EndDate, to: EndDate): number => (to - from) / dayMillis

const idsIn = Effect.fnUntraced(function* (store: Store, state: "active" | "paused" | "expired") {
  const only = { state, at: yield* inDays(0) }
  return (yield* store.list(p1, { ...page, only })).map(({ userId }) => userId)
})

const endingIds = Effect.fnUntraced(function* (store: Store) {
  const before = yield* inDays(500)
  const ending = yield* store.listEnding(p1, { ...page, before })
  return ending.memberships.map(({ userId }) => userId)
})

const everyone = { days: undefined, change: undefined }

const changingTests = (on: StoreTests): void => {
  const { test } = on.testsAfter(prepared)

  test("begins and ends on request, with an event and a row each", function* (store) {
    const webhook = yield* addWebhook()
    const { endDate } = yield* store.find(p1, u1)
    const paused = yield* pause(store, u1)
    const found = yield* store.find(p1, u1)
    expect(found).toMatchObject({ endDate, pause: { until: undefined } })
    expect(stateAt(found, Infinity)).toBe("paused")
    const resumed = yield* resume(store, u1)
    expect(yield* store.find(p1, u1)).toMatchObject({
      endDate: resumed.endDate,
      pause: undefined,
    })
    const rows = yield* store.history(p1, { userId: u1, limit: 2 })
    expect(rows).toMatchObject([
      { action: "resumed", from: endDate, to: resumed.endDate },
      { action: "paused", from: endDate, to: endDate },
    ])
    const events = [paused, resumed.result].flatMap((one) => (isReplayedResponse(one) ? [] : one))
    const delivered = (yield* deliveriesOf(webhook)).map(({ eventId }) => eventId)
    expect(new Set(delivered)).toEqual(new Set(idsOf(events)))
    const [first = 0, second = 0] = events.map(sequenceOf)
    expect(second).toBeGreaterThan(first)
  })

  test("is refused unless the membership is as expected, and changes nothing then", function* (store) {
    const { endDate } = yield* store.find(p1, u1)
    const at = yield* inDays(0)
    const one = { ...change(p1), at, userId: u1, until: undefined, expected: { endDate } }
    const ended = { since: at, until: undefined }
    yield* expectFailure(
      "PauseConflict",
      store.pause({ ...one, expected: { endDate: EndDate(endDate + 1) } }),
      store.pause({ ...one, userId: u3 }),
      store.pause({ ...one, ...change(Fixture.p2) }),
      store.resume({ ...one, endDate, expected: { endDate, pause: ended } }),
    )
    expect(yield* store.find(p1, u1)).toMatchObject({ endDate, pause: undefined })
    yield* pause(store, u1, 5)
    const { pause: begun } = yield* store.find(p1, u1)
    const since = begun?.since ?? NaN
    yield* expectFailure(
      "PauseConflict",
      store.pause(one),
      store.resume({ ...one, endDate, expected: { endDate, pause: { since, until: undefined } } }),
      store.resume({
        ...one,
        endDate,
        expected: { endDate, pause: { since: since - 1, until: begun?.until } },
      }),
      store.resume({
        ...one,
        endDate,
        expected: {
          endDate: EndDate(endDate + 1),
          pause: { since, until: begun?.until },
        },
      }),
    )
    expect(yield* store.find(p1, u1)).toMatchObject({ endDate, pause: begun })
    expect(yield* store.history(p1, { userId: u1, limit: 10 })).toHaveLength(2)
  })

  test("is in every list and count", function* (store) {
    yield* store.grant({ ...change(p1), userId: u3, endDate: yield* inDays(-1) })
    yield* pause(store, u1)
    expect(yield* idsIn(store, "paused")).toEqual([u1])
    expect(yield* idsIn(store, "active")).toEqual([u2])
    expect(yield* idsIn(store, "expired")).toEqual([u3])
    expect(yield* endingIds(store)).toEqual([u2])
    const listed = yield* store.list(p1, { ...page, userIds: [u1, u2] })
    expect(listed.map((one) => one.pause !== undefined)).toEqual([true, false])
    const counts = { total: 3, active: 1, paused: 1, expired: 1 }
    expect(yield* store.countEnds(p1, everyone)).toMatchObject(counts)
    const later = { days: undefined, change: byDays(3) }
    const after = { total: 3, active: 2, paused: 1, expired: 0 }
    expect(yield* store.countEnds(p1, later)).toMatchObject(after)
    // The date that stands is over, and the member has not expired.
    yield* store.grant({ ...change(p1), userId: u1, endDate: yield* inDays(-1) })
    expect(yield* store.countEnds(p1, everyone)).toMatchObject(counts)
    expect(yield* store.previewBulkExtension(p1, byDays(3))).toMatchObject({ reactivated: 1 })
    const ended = { from: Millis(0), to: Millis(9 * dayMillis) }
    expect(yield* store.countEndedBetween(p1, ended)).toBe(1)
    expect(yield* idsIn(store, "expired")).toEqual([u3])
    expect(yield* idsIn(store, "paused")).toEqual([u1])
  })

  test("stays when the date that stands is changed, and is told by a grant", function* (store) {
    yield* pause(store, u1, 5)
    const { pause: begun } = yield* store.find(p1, u1)
    const endDate = yield* inDays(30)
    const once = { ...change(p1), userId: u1, endDate, idempotency: idempotency() }
    expect(yield* store.grant(once)).toMatchObject({ pause: begun })
    const answer = { ...once, pause: begun, isLeft: false, metadata: "{}" }
    expect(yield* store.grant(once)).toMatchObject({ answer: formatGrantAnswer(answer) })
    const absent = yield* store.grantIfAbsent({
      ...change(p1),
      userId: u1,
      endDate,
      isFinal: false,
    })
    expect(absent).toMatchObject({ membership: { endDate, pause: begun } })
    const dates = [40, 50, 60, 70, 80].map((days) => EndDate(endDate + days * dayMillis))
    const [first = endDate, second = endDate, third = endDate, fourth = endDate] = dates
    const expectDate = Effect.fnUntraced(function* (date: EndDate) {
      expect(yield* store.find(p1, u1)).toMatchObject({ endDate: date, pause: begun })
    })
    yield* store.import({ ...change(p1), memberships: [{ userId: u1, endDate: first }] })
    yield* expectDate(first)
    yield* store.extend({ ...change(p1), userId: u1, endDate: second })
    yield* expectDate(second)
    yield* Effect.all(
      [second, third].map((to) => store.extend({ ...change(p1), userId: u1, endDate: to })),
      { concurrency: "unbounded" },
    )
    const current = (yield* store.find(p1, u1)).endDate
    const expecting = { userId: u1, endDate: fourth, expectedEndDate: current }
    yield* store.extend({ ...change(p1), ...expecting })
    yield* expectDate(fourth)
    const metadata = { plan: "gold" }
    yield* store.setMetadata({ ...change(p1), userId: u1, expected: noMetadata, metadata })
    const id = yield* bulk(store, byDays(3))
    yield* expectDate(EndDate(fourth + 3 * dayMillis))
    if (on.settlesAtOnce) return
    yield* store.undoBulkExtension({ ...change(p1), bulkExtensionId: id, madeAfter: longAgo })
    yield* expectDate(fourth)
  })

  test("ends with the membership, and cannot be moved", function* (store) {
    yield* pause(store, u1, 5)
    const from = yield* store.find(p1, u1)
    const { endDate } = from
    const moved = { endDate, metadata: noMetadata }
    const move = { ...change(p1), ...moved, granted: draft(p1) }
    yield* expectFailure(
      "MoveConflict",
      store.move({ ...move, userId: u1, to: u3, expected: { from: moved, to: undefined } }),
      store.move({
        ...move,
        userId: u2,
        to: u1,
        expected: { from: yield* store.find(p1, u2), to: moved },
      }),
    )
    yield* store.end({ ...change(p1), userId: u1 })
    expect(yield* idsIn(store, "paused")).toEqual([])
    expect(yield* store.countEnds(p1, everyone)).toMatchObject({ total: 1, paused: 0 })
    yield* store.grant({ ...change(p1), userId: u1, endDate })
    expect(yield* store.find(p1, u1)).toMatchObject({ endDate, pause: undefined })
  })

  test("is imported as it was exported", function* (store) {
    const since = yield* inDays(-3)
    const until = yield* inDays(4)
    const endDate = yield* inDays(7)
    yield* pause(store, u2)
    yield* store.import({
      ...change(p1),
      memberships: [
        { userId: u1, endDate, pause: { since, until } },
        { userId: u2, endDate, pause: { since, until: undefined } },
        { userId: u3, endDate, pause: { since, until } },
      ],
    })
    expect(yield* store.list(p1, page)).toMatchObject([
      { userId: u1, endDate, pause: { since, until } },
      { userId: u2, endDate, pause: { since, until: undefined } },
      { userId: u3, endDate, pause: { since, until } },
    ])
  })
}

const endingTests = (on: StoreTests): void => {
  const { advance } = on
  const { test } = on.testsAfter(prepared)
  const days = (count: number) => advance(count * dayMillis)

  /** Pauses a member for two days, of which three pass. Returns how many days later the member then ends. */
  const pauseAndPass = Effect.fnUntraced(function* (store: Store, before: EndDate) {
    yield* pause(store, u1, 2)
    const stood = yield* store.find(p1, u1)
    const paused = (stood.pause?.until ?? NaN) - (stood.pause?.since ?? NaN)
    // The other member tells by how much a harness has moved dates into the past.
    const other = (yield* store.find(p1, u2)).endDate
    yield* days(3)
    const moved = other - (yield* store.find(p1, u2)).endDate
    return { paused, stood: EndDate(before - moved) }
  })

  test("ends by itself, whatever runs, and the end date is later by the time paused", function* (store) {
    const webhook = yield* addWebhook()
    const { paused, stood } = yield* pauseAndPass(store, (yield* store.find(p1, u1)).endDate)
    const end = EndDate(stood + paused)
    expect(paused).toBe(2 * dayMillis)
    expect(yield* store.find(p1, u1)).toMatchObject({ endDate: end, pause: undefined })
    expect(yield* idsIn(store, "paused")).toEqual([])
    expect(yield* idsIn(store, "active")).toEqual([u1, u2])
    expect(yield* store.list(p1, { ...page, userIds: [u1] })).toMatchObject([{ endDate: end }])
    expect(yield* endingIds(store)).toEqual([u1, u2])
    expect(yield* store.countEnds(p1, everyone)).toMatchObject({ total: 2, active: 2, paused: 0 })
    expect(yield* store.find(p1, u1)).toMatchObject({ endDate: end, pause: undefined })
    expect(yield* deliveriesOf(webhook)).toHaveLength(1)
  })

  test("lasts until the member is resumed, and the end date is later by the time paused", function* (store) {
    yield* pause(store, u1)
    yield* days(400)
    const { endDate: stood, pause: begun } = yield* store.find(p1, u1)
    expect(begun).toMatchObject({ until: undefined })
    const { endDate } = yield* resume(store, u1)
    const resumed = yield* store.find(p1, u1)
    expect(resumed).toMatchObject({ endDate, pause: undefined })
    expect(Math.floor(daysBetween(stood, resumed.endDate))).toBe(400)
    const rows = yield* store.history(p1, { userId: u1, limit: 1 })
    expect(rows).toMatchObject([{ action: "resumed", from: stood, to: endDate }])
  })

  test("is recorded in the order in which several end", function* (store) {
    yield* pause(store, u2, 1)
    yield* pause(store, u1, 2)
    yield* days(3)
    yield* bulk(store, byDays(1))
    const rows = yield* store.history(p1, { userId: undefined, limit: 3 })
    expect(rows).toMatchObject([
      { action: "bulk_extended_by" },
      { action: "resumed", userId: u1 },
      { action: "resumed", userId: u2 },
    ])
  })

  test("drops a kept day when it ends, and keeps a day a day", function* (store) {
    const { endDate } = yield* store.find(p1, u1)
    const inDayForm = { inDays: true, keptDay: 30 }
    yield* store.extend({ ...change(p1), userId: u1, endDate, ...inDayForm })
    const { paused, stood } = yield* pauseAndPass(store, endDate)
    const end = { endDate: EndDate(stood + paused), inDays: true, keptDay: undefined }
    expect(yield* store.find(p1, u1)).toMatchObject(end)
    expect(yield* store.list(p1, { ...page, userIds: [u1] })).toMatchObject([end])
  })

  test("leaves a membership for life as it is", function* (store) {
    yield* store.grant({ ...change(p1), userId: u1, endDate: lastEndDate })
    yield* pause(store, u1, 2)
    const { endDate: stood } = yield* store.find(p1, u1)
    yield* days(3)
    const later = (yield* store.find(p1, u1)).endDate
    // A harness may have moved it into the past.
    expect(daysBetween(stood, later)).toBeLessThanOrEqual(0)
    expect(later).toBeLessThanOrEqual(lastEndDate)
  })

  test("is a change of one membership at its end, which later changes of all come after", function* (store) {
    const early = yield* bulk(store, byDays(1))
    const { endDate: before } = yield* store.find(p1, u1)
    yield* pause(store, u2)
    const during = pauseAndPass(store, before)
    const { paused, stood } = yield* during
    const end = EndDate(stood + paused)
    const set = { mode: "set", endDate: yield* inDays(100) } as const
    expect((yield* store.previewBulkExtension(p1, set)).examples).toMatchObject([
      { userId: u1, endDate: end },
      { userId: u2 },
    ])
    const late = yield* bulk(store, set)
    const all = yield* store.list(p1, page)
    expect(all.map(({ endDate }) => endDate)).toEqual([set.endDate, set.endDate])
    expect(all.map((one) => one.pause === undefined)).toEqual([true, false])
    const rows = yield* store.history(p1, { userId: u1, limit: 2 })
    expect(rows).toMatchObject([{ action: "bulk_extended" }, { action: "resumed", to: end }])
    if (on.settlesAtOnce) return
    const undo = (bulkExtensionId: typeof late) =>
      store.undoBulkExtension({ ...change(p1), bulkExtensionId, madeAfter: longAgo })
    yield* undo(late)
    expect(yield* store.find(p1, u1)).toMatchObject({ endDate: end, pause: undefined })
    const { endDate: other } = yield* store.find(p1, u2)
    // It was made before the first pause ended by itself, and during the second.
    yield* undo(early)
    expect(yield* store.find(p1, u1)).toMatchObject({ endDate: end, pause: undefined })
    expect(daysBetween(other, (yield* store.find(p1, u2)).endDate)).toBe(-1)
  })

  test("adds nothing to a date that is set after it, and can begin again", function* (store) {
    yield* pauseAndPass(store, (yield* store.find(p1, u1)).endDate)
    const endDate = yield* inDays(50)
    const { endDate: from } = yield* store.find(p1, u1)
    yield* store.extend({ ...change(p1), userId: u1, endDate })
    expect(yield* store.find(p1, u1)).toMatchObject({ endDate, pause: undefined })
    const [row] = yield* store.history(p1, { userId: u1, limit: 1 })
    expect(row).toMatchObject({ action: "extended", from, to: endDate })
    yield* pause(store, u1)
    expect(yield* store.find(p1, u1)).toMatchObject({ endDate, ...instantForm })
    expect(yield* idsIn(store, "paused")).toEqual([u1])
    const resumed = yield* resume(store, u1)
    expect(yield* store.find(p1, u1)).toMatchObject({ endDate: resumed.endDate })
  })

  test("keeps the time paused when another one begins", function* (store) {
    const { paused, stood } = yield* pauseAndPass(store, (yield* store.find(p1, u1)).endDate)
    yield* pause(store, u1)
    const end = EndDate(stood + paused)
    expect(yield* store.find(p1, u1)).toMatchObject({ endDate: end, pause: { until: undefined } })
    expect(yield* endingIds(store)).toEqual([u2])
    yield* bulk(store, byDays(1))
    expect((yield* store.find(p1, u1)).endDate).toBe(end + dayMillis)
    const rows = yield* store.history(p1, { userId: u1, limit: 10 })
    const actions = ["bulk_extended_by", "paused", "resumed", "paused", "granted"]
    expect(rows.map(({ action }) => action)).toEqual(actions)
  })

  test("leaves others what they may change after its end", function* (store) {
    const endDates = Effect.fnUntraced(function* (userId: UserId) {
      const { endDate } = yield* store.find(p1, userId)
      return endDate
    })
    yield* pauseAndPass(store, yield* endDates(u1))
    const end = yield* endDates(u1)
    const stale = { ...change(p1), userId: u1, endDate: yield* inDays(60) }
    yield* expectFailure(
      "EndDateConflict",
      store.extend({ ...stale, expectedEndDate: EndDate(end - 2 * dayMillis) }),
    )
    yield* store.extend({ ...stale, expectedEndDate: end })
    expect(yield* endDates(u1)).toBe(stale.endDate)
    yield* pauseAndPass(store, yield* endDates(u1))
    const from = yield* store.find(p1, u1)
    yield* store.move({
      ...change(p1),
      userId: u1,
      to: u3,
      granted: draft(p1),
      endDate: from.endDate,
      metadata: noMetadata,
      expected: { from, to: undefined },
    })
    expect(yield* store.find(p1, u3)).toMatchObject({ endDate: from.endDate, pause: undefined })
  })
}

const announcingTests = (tests: StoreTests): void => {
  const { advance } = tests
  const test = announcedOn(tests)
  const days = (count: number) => advance(count * dayMillis)

  test("announces nothing but its end, which is published once", function* ({
    drain,
    grant,
    store,
    sweep,
  }) {
    yield* grant(u1, 8.5)
    yield* sweep
    yield* pause(store, u1, 30)
    for (const passed of [1, 6, 10]) {
      yield* days(passed)
      expect(yield* sweep).toEqual([])
    }
    yield* days(14)
    const [event, ...others] = yield* drain()
    expect(others).toEqual([])
    const { endDate } = yield* store.find(p1, u1)
    const { data, type } = JSON.parse(event?.body ?? "{}")
    expect(type).toBe("membership.resumed")
    expect(data).toMatchObject({ user_id: u1, request_id: null })
    expect(Date.parse(data.end_date)).toBe(endDate)
    const [row] = yield* store.history(p1, { userId: u1, limit: 1 })
    expect(row).toMatchObject({ action: "resumed", to: endDate })
    expect(daysBetween(row?.from ?? endDate, endDate)).toBe(30)
    // The reminder was a day and a half away.
    expect(yield* sweep).toEqual([])
    yield* days(1)
    expect(yield* sweep).toEqual([["membership.expiring", u1, 7]])
    yield* days(7)
    expect(yield* sweep).toEqual([["membership.expired", u1]])
    yield* days(30)
    expect(yield* sweep).toEqual([])
  })

  test("skips reminders whose time had come when it ended, and tells the expiry", function* ({
    grant,
    store,
    sweep,
  }) {
    yield* grant(u1, 0.5)
    yield* sweep
    yield* pause(store, u1, 3)
    yield* days(3.25)
    expect(yield* sweep).toEqual([["membership.resumed", u1]])
    expect(yield* sweep).toEqual([])
    yield* days(0.125)
    expect(yield* sweep).toEqual([])
    yield* days(0.375)
    expect(yield* sweep).toEqual([["membership.expired", u1]])
  })

  test("announces nothing when the date that stands is changed", function* ({
    grant,
    store,
    sweep,
  }) {
    yield* grant(u1, 40)
    yield* sweep
    yield* pause(store, u1, 30)
    for (const left of [6, 0.5, -1]) {
      yield* store.extend({ ...change(p1), userId: u1, endDate: yield* inDays(left) })
      expect(yield* sweep).toEqual([])
      yield* days(1)
      expect(yield* sweep).toEqual([])
    }
    yield* bulk(store, byDays(1))
    expect(yield* sweep).toEqual([])
    yield* store.grant({ ...change(p1), userId: u1, endDate: yield* inDays(0.5) })
    yield* days(27)
    expect(yield* sweep).toEqual([["membership.resumed", u1]])
    yield* days(28)
    expect(yield* sweep).toEqual([["membership.expired", u1]])
  })

  test("is announced with a date to which later bulk extensions apply, by their numbers", function* ({
    drain,
    grant,
    store,
    sweep,
  }) {
    for (const userId of [u1, u2]) yield* grant(userId, 40)
    yield* sweep
    for (const userId of [u1, u2]) yield* pause(store, userId, 2)
    yield* days(3)
    const extended = yield* store.extend({
      ...change(p1),
      userId: u1,
      endDate: yield* inDays(60),
    })
    const extension = { ...change(p1), bulk: byDays(5) }
    const made = yield* store.extendAll(extension)
    const events = yield* drain()
    const all = yield* store.list(p1, page)
    expect(all).toHaveLength(2)
    for (const { endDate, userId } of all) {
      const about = events.filter((event) => userOf(event.body) === userId)
      expect(about.map(({ type }) => type)).toEqual(["membership.resumed"])
      const { data } = JSON.parse(about[0]?.body ?? "{}")
      expect(data.sequence).toBeLessThan(sequenceOf(Object(made).event))
      expect(daysBetween(EndDate(Date.parse(data.end_date)), endDate)).toBe(5)
      if (userId === u1) {
        expect(data.sequence).toBeGreaterThanOrEqual(sequenceOf(Object(extended)))
      }
      const rows = yield* store.history(p1, { userId, limit: 10 })
      expect(rows.filter(({ action }) => action === "resumed")).toHaveLength(1)
    }
    expect(yield* sweep).toEqual([])
    if (tests.settlesAtOnce) return
    // The announcement leaves the date to bulk extensions.
    const undo = { bulkExtensionId: extension.event.id, madeAfter: longAgo }
    yield* store.undoBulkExtension({ ...change(p1), ...undo })
    const later = yield* store.list(p1, page)
    expect(
      later.map(({ endDate }, index) => daysBetween(endDate, all[index]?.endDate ?? endDate)),
    ).toEqual([5, 5])
  })

  test(
    "is announced if it began before ends were watched",
    function* ({ store, sweep }) {
      expect(yield* sweep).toEqual([])
      yield* days(3)
      expect(yield* sweep).toEqual([["membership.resumed", u1]])
      expect((yield* store.find(p1, u1)).pause).toBeUndefined()
    },
    ({ grant, store }) => Effect.andThen(grant(u1, 20), pause(store, u1, 2)),
  )

  test("is told once if a process whose clock is ahead resumes the member", function* ({
    grant,
    store,
    sweep,
  }) {
    yield* grant(u1, 40)
    yield* sweep
    yield* pause(store, u1, 2)
    const { endDate, pause: begun } = yield* store.find(p1, u1)
    const at = yield* inDays(3)
    const expected = { endDate, pause: begun ?? { since: at, until: undefined } }
    const later = endAfterPause(endDate, expected.pause, at)
    yield* store.resume({ ...change(p1), at, userId: u1, endDate: later, expected })
    expect(yield* sweep).toEqual([])
    yield* days(4)
    expect(yield* sweep).toEqual([])
  })

  test("that has no end is resumed, and the end is announced then", function* ({
    grant,
    store,
    sweep,
  }) {
    yield* grant(u1, 0.5)
    yield* sweep
    yield* pause(store, u1)
    yield* days(400)
    expect(yield* sweep).toEqual([])
    yield* resume(store, u1)
    expect(yield* sweep).toEqual([])
    yield* days(0.625)
    expect(yield* sweep).toEqual([["membership.expired", u1]])
  })
}

export const pausingTests = (on: StoreTests): void => {
  on.describe("a pause", () => {
    changingTests(on)
    endingTests(on)
    if (on.announcesEnds) announcingTests(on)
  })
}
