/** Certifies selections of changes: the members, what they were like before, and whom others have changed since. */

import { expect } from "@effect/vitest"
import { lastEndDate } from "@tenure/core/internal"
import {
  ApiKeyId,
  type BulkChange,
  type ChangeSelection,
  type ChangedMember,
  type ChangedMembers,
  EndDate,
  type EventId,
  MembershipStore,
  type Metadata,
  Millis,
  type RecordedChange,
  type RecordedState,
  UserId,
  changedMembersOf,
  endAfterPause,
  instantForm,
  noMetadata,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import fc from "fast-check"
import * as Fixture from "../../support/fixtures.ts"
import { announcedOn, drain, inDays } from "../announcing.ts"
import type { StoreTests } from "../declare.ts"
import { at, createProjects, dayMillis, expectFailure, firstOf, together } from "../steps.ts"
import { gold, nowhere } from "./every-change.ts"

const { change, draft, longAgo, manyKindsOfUser, p1, p2, u1, u2, u3 } = Fixture

type Store = MembershipStore["Service"]

const [team, leaked] = [ApiKeyId("key-1"), ApiKeyId("key-2")]

/** An empty project, and changes in it, a second apart in the last day. */
const makeSteps = Effect.gen(function* () {
  yield* createProjects
  const store = yield* MembershipStore
  const start = yield* inDays(-1)
  let changes = 0

  /** A change by a key, in the request with that many changes before it. */
  const by = (keyId: ApiKeyId | undefined, later = 1000 * changes) => ({
    ...change(p1),
    origin: { keyId, requestId: `request ${changes++}` },
    at: start + later,
  })

  /** Returns the date so many days after a day from now. */
  const day = (days: number): EndDate => EndDate(start + (days + 2) * dayMillis)

  return { store, start, by, day }
})

type Given = Effect.Success<typeof makeSteps>

/** Selects the changes with the second key. */
const select = (
  store: Store,
  selection: Partial<ChangeSelection> = {},
  after?: UserId,
  limit = 100,
) =>
  store.selectedChanges(p1, {
    selection: {
      keyId: leaked,
      requestIds: undefined,
      since: longAgo,
      until: undefined,
      ...selection,
    },
    after,
    limit,
  })

const selectedIds = (store: Store, selection: Partial<ChangeSelection>) =>
  Effect.map(select(store, selection), ({ members }) => members.map(({ userId }) => userId))

const memberIn = ({ members }: ChangedMembers, userId: UserId): ChangedMember =>
  members.find((one) => one.userId === userId) ?? expect.fail(`${userId} has no selected change`)

/** Returns a member with selected changes. */
const selected = (store: Store, userId: UserId) =>
  Effect.map(select(store), (page) => memberIn(page, userId))

/** Pauses a member at a time. */
const pause = Effect.fnUntraced(function* (
  { by, store }: Given,
  keyId: ApiKeyId,
  userId: UserId,
  until?: number,
) {
  const { endDate } = yield* store.find(p1, userId)
  const paused = { ...by(keyId), userId, until, expected: { endDate } }
  yield* store.pause(paused)
  return { since: paused.at, until }
})

/** Resumes a member. */
const resume = Effect.fnUntraced(function* ({ by, store }: Given, keyId: ApiKeyId, userId: UserId) {
  const { endDate: stood, pause: begun } = yield* store.find(p1, userId)
  if (begun === undefined) return expect.fail("the member is not paused")
  const resuming = by(keyId)
  const endDate = endAfterPause(stood, begun, resuming.at)
  yield* store.resume({
    ...resuming,
    userId,
    endDate,
    expected: { endDate: stood, pause: begun },
  })
  return endDate
})

/** Moves a membership to a user without one. */
const move = Effect.fnUntraced(function* (
  { by, store }: Given,
  keyId: ApiKeyId | undefined,
  userId: UserId,
  to: UserId,
) {
  const from = yield* store.find(p1, userId)
  const { endDate, inDays: isDay, keptDay, metadata } = from
  yield* store.move({
    ...by(keyId),
    userId,
    to,
    endDate,
    inDays: isDay,
    keptDay,
    metadata,
    granted: draft(p1),
    expected: { from, to: undefined },
  })
})

const setMetadata = ({ by, store }: Given, keyId: ApiKeyId | undefined, userId: UserId) =>
  Effect.flatMap(store.find(p1, userId), ({ metadata: expected }) => {
    const metadata: Metadata = expected === noMetadata ? gold : { plan: `not ${expected["plan"]}` }
    return store.setMetadata({ ...by(keyId), userId, expected, metadata })
  })

const bulk = ({ by, store }: Given, keyId: ApiKeyId | undefined, bulkChange: BulkChange) => {
  const extension = { ...by(keyId), bulk: bulkChange }
  return Effect.as(store.extendAll(extension), extension.event.id)
}

const oneDay: BulkChange = { mode: "extendBy", by: Millis(dayMillis) }

const dayForm = { inDays: true, keptDay: 30 }

const beforeTests = (on: StoreTests): void => {
  const { test } = on.testsAfter(makeSteps)

  test("tells the date and its form before, and whether there was a membership", function* ({
    by,
    day,
    store,
  }) {
    const endDate = day(10)
    yield* store.grant({ ...by(team), userId: u1, endDate, ...dayForm })
    yield* store.grant({ ...by(team), userId: u2, endDate: lastEndDate })
    for (const userId of [u1, u2]) yield* store.extend({ ...by(leaked), userId, endDate: day(20) })
    yield* store.grant({ ...by(leaked), userId: u3, endDate })
    const unchanged = { bulkBefore: 0, pause: undefined, other: undefined }
    const ofLife = { endDate: lastEndDate, ...instantForm, bulkBefore: 0 }
    expect(yield* select(store)).toEqual({
      members: [
        {
          ...unchanged,
          userId: u1,
          from: endDate,
          before: { endDate, ...dayForm, bulkBefore: 0 },
        },
        { ...unchanged, userId: u2, from: lastEndDate, before: ofLife },
        { ...unchanged, userId: u3, from: undefined, before: undefined },
      ],
      bulk: [],
    })
  })

  test("tells the date that any change has set before, in a pause or not", function* (given) {
    const { by, day, store } = given
    const ways: Readonly<
      Record<string, (userId: UserId, endDate: EndDate) => Effect.Effect<unknown, unknown>>
    > = {
      grant: (userId, endDate) => store.grant({ ...by(team), userId, endDate, ...dayForm }),
      import: (userId, endDate) =>
        store.import({ ...by(team), memberships: [{ userId, endDate, ...dayForm }] }),
      extend: (userId, endDate) => store.extend({ ...by(team), userId, endDate, ...dayForm }),
      "extend with a key": (userId, endDate) =>
        store.extend({
          ...by(team),
          userId,
          endDate,
          ...dayForm,
          idempotency: Fixture.idempotency(),
        }),
      lengthen: (userId, endDate) =>
        store.extend({ ...by(team), userId, endDate, ...dayForm, mode: "neverShorten" }),
      "extend an expected date": Effect.fnUntraced(function* (userId, endDate) {
        const { endDate: expectedEndDate, ...expectedForm } = yield* store.find(p1, userId)
        const { inDays: isDay, keptDay } = expectedForm
        yield* store.extend({
          ...by(team),
          userId,
          endDate,
          ...dayForm,
          expectedEndDate,
          expectedForm: { inDays: isDay, keptDay },
        })
      }),
      "extend several times": (userId, endDate) =>
        together([1, 2, 3].map(() => store.extend({ ...by(team), userId, endDate, ...dayForm }))),
    }
    for (const [index, [way, set]] of Object.entries(ways).entries()) {
      for (const isPaused of [false, true]) {
        const userId = UserId(`${way.replaceAll(" ", "-")}-${isPaused}`)
        yield* store.grant({ ...by(team), userId, endDate: day(1) })
        const begun = isPaused ? yield* pause(given, team, userId, day(100 + index)) : undefined
        yield* set(userId, day(10 + index))
        yield* store.end({ ...by(leaked), userId })
        const told = yield* selected(store, userId)
        expect([way, told.before, told.pause]).toEqual([
          way,
          { endDate: day(10 + index), ...dayForm, bulkBefore: 0 },
          begun,
        ])
      }
    }
    const absent = { userId: u1, endDate: day(9), ...dayForm, isFinal: true }
    yield* store.grantIfAbsent({ ...by(team), ...absent })
    yield* move(given, team, u1, u2)
    yield* store.end({ ...by(leaked), userId: u2 })
    const dated = { endDate: day(9), ...dayForm, bulkBefore: 0 }
    expect(yield* selected(store, u2)).toMatchObject({ from: day(9), before: dated })
    yield* store.grantIfAbsent({ ...by(team), ...absent })
    yield* store.extend({ ...by(leaked), userId: u1, endDate: day(90) })
    expect(yield* selected(store, u1)).toMatchObject({ from: day(9), before: dated })
  })

  test("tells the pause before, which other changes leave", function* (given) {
    const { by, day, start, store } = given
    const users = ["a", "b", "c", "d"].map((id) => UserId(id))
    const [a = u1, b = u1, c = u1, d = u1] = users
    for (const userId of users) yield* store.grant({ ...by(team), userId, endDate: day(10) })
    const until = day(5)
    const first = yield* pause(given, team, a, until)
    yield* setMetadata(given, team, a)
    const endless = yield* pause(given, team, b)
    const since = start - dayMillis
    const memberships = [{ userId: c, endDate: day(11), pause: { since, until } }]
    yield* store.import({ ...by(team), memberships })
    yield* store.extend({ ...by(team), userId: c, endDate: day(12) })
    yield* pause(given, team, d, until)
    const resumed = yield* resume(given, team, d)
    for (const userId of [a, b]) yield* resume(given, leaked, userId)
    yield* store.extend({ ...by(leaked), userId: c, endDate: day(90) })
    yield* pause(given, leaked, d)
    const dated = (endDate: EndDate) => ({ endDate, ...instantForm, bulkBefore: 0 })
    expect((yield* select(store)).members).toMatchObject([
      { userId: a, from: day(10), before: dated(day(10)), pause: first },
      { userId: b, before: dated(day(10)), pause: endless },
      { userId: c, before: dated(day(12)), pause: { since, until } },
      { userId: d, from: resumed, before: dated(resumed), pause: undefined },
    ])
  })

  test("tells an ended membership from one that others have granted again", function* (given) {
    const { by, day, store } = given
    const [a, b, c] = [UserId("a"), UserId("b"), UserId("c")]
    for (const userId of [a, b, c]) {
      yield* store.grant({ ...by(team), userId, endDate: day(10) })
    }
    yield* store.end({ ...by(leaked), userId: a })
    yield* store.grant({ ...by(leaked), userId: a, endDate: day(20) })
    yield* store.end({ ...by(team), userId: b })
    yield* store.grant({ ...by(leaked), userId: b, endDate: day(20) })
    yield* store.end({ ...by(leaked), userId: c })
    const granting = by(team)
    yield* store.grant({ ...granting, userId: c, endDate: day(20) })
    const told = yield* select(store)
    const before = { endDate: day(10), ...instantForm, bulkBefore: 0 }
    expect(told.members).toMatchObject([
      { userId: a, from: day(10), before, other: undefined },
      { userId: b, from: undefined, before: undefined, other: undefined },
      { userId: c, from: day(10), before, other: { keyId: team, at: granting.at } },
    ])
    yield* store.erase({ ...by(team), userId: a })
    expect(yield* selectedIds(store, {})).toEqual([b, c])
  })
}

const otherTests = (on: StoreTests): void => {
  const { test } = on.testsAfter(makeSteps)

  test("tells the first change since that is not selected", function* (given) {
    const { by, day, store } = given
    const extend = (keyId: ApiKeyId | undefined) => (userId: UserId) =>
      store.extend({ ...by(keyId), userId, endDate: day(30) })
    for (const [id, keyId, other] of [
      ["extended", team, extend(team)],
      ["extended-by-the-host", undefined, extend(undefined)],
      ["paused", team, (userId: UserId) => pause(given, team, userId)],
      ["updated", team, (userId: UserId) => setMetadata(given, team, userId)],
      ["updated-by-the-same", leaked, (userId: UserId) => setMetadata(given, leaked, userId)],
    ] as const) {
      const userId = UserId(id)
      yield* store.grant({ ...by(team), userId, endDate: day(10) })
      yield* store.extend({ ...by(leaked), userId, endDate: day(20) })
      yield* store.extend({ ...by(leaked), userId, endDate: day(21) })
      expect([id, (yield* selected(store, userId)).other]).toEqual([id, undefined])
      yield* other(userId)
      yield* store.extend({ ...by(ApiKeyId("key-3")), userId, endDate: day(31) })
      const rows = yield* store.history(p1, { userId, limit: 2 })
      const told = yield* selected(store, userId)
      expect([id, told.other]).toEqual([id, { keyId, at: at(rows, 1).at }])
    }
  })

  test("tells moves, also selected ones, and no bulk extensions", function* (given) {
    const { by, day, store } = given
    const [left, joined, stays] = [UserId("left"), UserId("joined"), UserId("stays")]
    for (const userId of [left, stays]) {
      yield* store.grant({ ...by(team), userId, endDate: day(10) })
      yield* store.extend({ ...by(leaked), userId, endDate: day(20) })
    }
    yield* move(given, leaked, left, joined)
    yield* bulk(given, team, oneDay)
    const { members } = yield* select(store)
    const [{ at: movedAt }] = yield* Effect.map(
      store.history(p1, { userId: left, limit: 1 }),
      (rows) => [firstOf(rows)] as const,
    )
    const moved = { keyId: leaked, at: movedAt }
    expect(members.map(({ other, userId }) => [userId, other])).toEqual([
      [joined, moved],
      [left, moved],
      [stays, undefined],
    ])
  })

  test("leaves pauses that end by themselves out, but for the date afterwards", function* (given) {
    const { by, day, store } = given
    const [a, b, c, d] = [UserId("a"), UserId("b"), UserId("c"), UserId("d")]
    for (const userId of [a, b, c, d]) {
      yield* store.grant({ ...by(team), userId, endDate: day(10), ...dayForm })
    }
    const until = yield* inDays(2)
    yield* pause(given, team, d, until)
    yield* pause(given, team, a, until)
    yield* pause(given, leaked, b, until)
    yield* pause(given, team, c, until)
    const since = (yield* inDays(0)) + 1
    yield* on.advance(3 * dayMillis)
    const [{ endDate: endOfA }, { endDate: endOfD }] = [
      yield* store.find(p1, a),
      yield* store.find(p1, d),
    ]
    yield* store.extend({ ...by(leaked), userId: a, endDate: yield* inDays(90) })
    yield* store.end({ ...by(leaked), at: yield* inDays(0), userId: d })
    // Ends the other pauses in the trail.
    yield* bulk(given, team, oneDay)
    const told = yield* select(store)
    const over = (from: EndDate) => ({
      from,
      before: { endDate: from, inDays: true, keptDay: undefined },
      pause: undefined,
      other: undefined,
    })
    expect(told.members).toMatchObject([
      { userId: a, ...over(endOfA) },
      { userId: b, before: { endDate: day(10), ...dayForm }, pause: undefined, other: undefined },
      { userId: d, ...over(endOfD) },
    ])
    expect(yield* selectedIds(store, { keyId: undefined, since })).toEqual([d])
    expect(yield* selectedIds(store, { keyId: undefined })).toEqual([a, b, c, d])
  })

  if (!on.announcesEnds) return
  announcedOn(on)("leaves announcements out", function* ({ expiry, grant, judge, store }) {
    yield* grant(u1, 0.5)
    yield* on.advance(dayMillis)
    yield* drain(expiry, judge)
    const rows = yield* store.history(p1, { userId: u1, limit: 1 })
    expect(rows).toMatchObject([{ action: "expired" }])
    const { members } = yield* select(store, { keyId: undefined })
    expect(members).toMatchObject([{ userId: u1, before: undefined, other: undefined }])
  })

  announcedOn(on)("leaves out pauses whose end a sweep has recorded", function* (announcing) {
    const { expiry, judge, store } = announcing
    const by = (keyId: ApiKeyId) => ({ ...change(p1), origin: { keyId, requestId: undefined } })
    const [until, endDate] = [yield* inDays(2), yield* inDays(10)]
    for (const [userId, keyId] of [
      [u1, leaked],
      [u2, team],
    ] as const) {
      yield* store.grant({ ...by(team), userId, endDate, ...dayForm })
      const paused = { ...by(keyId), at: yield* inDays(0), userId, until }
      yield* store.pause({ ...paused, expected: { endDate } })
    }
    yield* on.advance(3 * dayMillis)
    yield* drain(expiry, judge)
    yield* store.end({ ...by(leaked), at: yield* inDays(0), userId: u2 })
    const [ended, resumed] = yield* store.history(p1, { userId: u2, limit: 2 })
    expect([ended, resumed]).toMatchObject([{ action: "ended" }, { action: "resumed" }])
    expect((yield* select(store)).members).toMatchObject([
      { userId: u1, before: { endDate, ...dayForm }, pause: undefined, other: undefined },
      {
        userId: u2,
        before: { endDate: resumed?.to, inDays: true, keptDay: undefined },
        pause: undefined,
        other: undefined,
      },
    ])
  })
}

const bulkTests = (on: StoreTests): void => {
  const { test } = on.testsAfter(makeSteps)

  test("tells bulk extensions since the earliest date before, and their place among the changes", function* (given) {
    const { by, day, store } = given
    const early = yield* bulk(given, team, oneDay)
    const set: BulkChange = { mode: "set", endDate: day(40), inDays: true }
    const lengthening: BulkChange = { mode: "neverShorten", endDate: day(41) }
    yield* store.grant({ ...by(team), userId: u1, endDate: day(10) })
    const between = yield* bulk(given, team, set)
    yield* store.grant({ ...by(team), userId: u2, endDate: day(11) })
    const leaking = by(leaked)
    for (const userId of [u1, u2, u3]) {
      yield* store.grant({ ...by(leaked), userId, endDate: day(20) })
    }
    const late = yield* bulk(given, leaked, lengthening)
    if (!on.settlesAtOnce) {
      yield* store.undoBulkExtension({
        ...by(team),
        bulkExtensionId: between,
        madeAfter: longAgo,
      })
    }
    const page = yield* select(store, { since: leaking.at })
    expect(page.bulk).toMatchObject([
      { id: between, change: set, keyId: team, isUndone: !on.settlesAtOnce },
      { id: late, change: lengthening, keyId: leaked, isUndone: false },
    ])
    expect(page.members).toMatchObject([
      { userId: u1, from: day(40), bulkBefore: 1, before: { endDate: day(10), bulkBefore: 0 } },
      { userId: u2, from: day(11), bulkBefore: 1, before: { endDate: day(11), bulkBefore: 1 } },
      { userId: u3, from: undefined, bulkBefore: 1, before: undefined },
    ])
    const all = yield* select(store)
    expect(all.bulk).toMatchObject([{ id: early, change: oneDay }, { id: between }, { id: late }])
    expect(firstOf(all.members)).toMatchObject({ bulkBefore: 2, before: { bulkBefore: 1 } })
    const none = yield* select(store, { keyId: ApiKeyId("key-3"), since: leaking.at })
    expect(none).toMatchObject({ members: [], bulk: [{ id: late }] })
    const request = firstOf(yield* store.bulkExtensions(p1, { after: undefined, limit: 1 }))
    expect(at(page.bulk, 1)).toMatchObject({
      at: request.at,
      requestId: request.origin.requestId,
    })
    const last = yield* select(store, { since: leaking.at }, u2)
    expect(last).toMatchObject({ members: [{ userId: u3, bulkBefore: 0 }], bulk: [{ id: late }] })
  })
}

const selectingTests = (on: StoreTests): void => {
  const { test } = on.testsAfter(makeSteps)

  test("returns users in the order of code units, page by page", function* ({ by, day, store }) {
    const memberships = manyKindsOfUser.map((userId) => ({ userId, endDate: day(10) }))
    yield* store.import({ ...by(leaked), memberships })
    yield* store.import({ ...by(leaked), memberships })
    const found: Array<UserId> = []
    for (let pages = 0; pages < manyKindsOfUser.length; pages++) {
      const { members } = yield* select(store, {}, found.at(-1), 7)
      expect(members.length).toBeLessThanOrEqual(7)
      found.push(...members.map(({ userId }) => userId))
      if (members.length < 7) break
    }
    expect(found).toEqual(manyKindsOfUser.toSorted())
  })

  test("selects what matches all of its fields, from `since` on, and before `until`", function* ({
    by,
    day,
    start,
    store,
  }) {
    const [first, second, third] = [by(leaked, 0), by(team, 1000), by(leaked, 2000)]
    yield* store.grant({ ...first, userId: u1, endDate: day(10) })
    yield* store.grant({ ...second, userId: u2, endDate: day(10) })
    yield* store.grant({ ...third, userId: u3, endDate: day(10) })
    const ids = [first, second, third].map(({ origin }) => origin.requestId)
    const all = { keyId: undefined }
    for (const [selection, users] of [
      [all, [u1, u2, u3]],
      [{}, [u1, u3]],
      [{ requestIds: ids.slice(1) }, [u3]],
      [{ ...all, requestIds: ids.slice(1) }, [u2, u3]],
      [{ ...all, requestIds: [] }, []],
      [{ ...all, requestIds: ["request"] }, []],
      [{ ...all, since: start + 1000 }, [u2, u3]],
      [{ ...all, since: start + 1001 }, [u3]],
      [{ ...all, until: start + 1000 }, [u1]],
      [{ ...all, until: start + 1001 }, [u1, u2]],
      [{ since: start + 1000, until: start + 2000 }, []],
    ] as const) {
      expect([selection, yield* selectedIds(store, selection)]).toEqual([selection, users])
    }
  })

  test("has the first change of a member that it selects as the first", function* ({
    by,
    day,
    store,
  }) {
    yield* store.grant({ ...by(leaked), userId: u1, endDate: day(10) })
    const second = by(leaked)
    yield* store.extend({ ...second, userId: u1, endDate: day(20) })
    yield* store.extend({ ...by(leaked), userId: u1, endDate: day(30) })
    const { members } = yield* select(store, { since: second.at })
    expect(members).toMatchObject([
      { from: day(10), before: { endDate: day(10) }, other: undefined },
    ])
    const only = yield* select(store, { since: second.at, until: second.at + 1 })
    expect(only.members).toMatchObject([{ from: day(10), other: { keyId: leaked } }])
  })

  test("is empty in an empty project, and fails without one", function* ({ store }) {
    const page = {
      selection: { keyId: leaked, requestIds: undefined, since: longAgo, until: undefined },
      after: undefined,
      limit: 1,
    }
    expect(yield* store.selectedChanges(p2, page)).toEqual({ members: [], bulk: [] })
    yield* expectFailure("ProjectNotFound", store.selectedChanges(nowhere, page))
  })
}

/** A kind of change, by whom and how many milliseconds after the one before it, and a number of days. */
interface Step {
  readonly kind:
    | "bulk"
    | "end"
    | "extend"
    | "grant"
    | "import"
    | "move"
    | "pause"
    | "resume"
    | "undo"
    | "updated"
  readonly user: UserId
  readonly keyId: ApiKeyId | undefined
  /** Servers' clocks differ. */
  readonly later: number
  readonly days: number
  readonly isDay: boolean
}

const steps = fc.array(
  fc.record<Step>({
    kind: fc.constantFrom(
      ...(["bulk", "end", "extend", "extend", "grant", "grant"] as const),
      ...(["import", "move", "pause", "resume", "undo", "updated"] as const),
    ),
    user: fc.constantFrom(u1, u2, u3),
    keyId: fc.constantFrom(undefined, team, leaked),
    later: fc.constantFrom(0, 1, 1000, -1000),
    days: fc.integer({ min: 1, max: 4 }),
    isDay: fc.boolean(),
  }),
  { maxLength: 30 },
)

const selections = fc.record({
  keyId: fc.constantFrom(undefined, team, leaked),
  seconds: fc.integer({ min: -2, max: 10 }),
  duration: fc.option(fc.integer({ min: 1, max: 10 }), { nil: undefined }),
  limit: fc.integer({ min: 1, max: 4 }),
})

/** Makes changes, and returns the project's trail with the state after each. */
const record = Effect.fnUntraced(function* (given: Given, made: ReadonlyArray<Step>) {
  const { by, day, start, store } = given
  const states: Array<RecordedState | undefined> = []
  const bulkIds: Array<EventId> = []
  const stateOf = Effect.fnUntraced(function* (userId: UserId) {
    const missing = () => Effect.undefined
    const found = yield* Effect.catchTag(store.find(p1, userId), "MembershipNotFound", missing)
    return (
      found && {
        inDays: found.inDays,
        keptDay: found.keptDay,
        pause: found.pause,
        isUnasked: false,
      }
    )
  })
  let time = 0
  for (const { days, isDay, keyId, kind, later, user } of made) {
    time += later
    const changed = by(keyId, time)
    const asMade = { ...given, by: () => changed }
    const dated = {
      userId: user,
      endDate: day(days),
      inDays: isDay,
      keptDay: isDay ? 31 - days : undefined,
    }
    const to = user === u1 ? u2 : u1
    const extension: BulkChange =
      days === 1
        ? oneDay
        : { mode: isDay ? "set" : "neverShorten", endDate: day(days), inDays: isDay }
    const work: Record<Step["kind"], Effect.Effect<unknown, unknown>> = {
      bulk: Effect.tap(bulk(asMade, keyId, extension), (id) => Effect.sync(() => bulkIds.push(id))),
      end: store.end({ ...changed, userId: user }),
      extend: store.extend({ ...changed, ...dated }),
      grant: store.grant({ ...changed, ...dated }),
      import: store.import({
        ...changed,
        memberships: [{ ...dated, pause: isDay ? { since: start, until: day(days) } : undefined }],
      }),
      move: move(asMade, keyId, user, to),
      pause: pause(asMade, team, user, isDay ? day(days) : undefined),
      resume: Effect.gen(function* () {
        const { endDate, pause: begun } = yield* store.find(p1, user)
        if (begun === undefined) return yield* Effect.fail("not paused")
        const expected = { endDate, pause: begun }
        return yield* store.resume({ ...changed, userId: user, endDate: day(days), expected })
      }),
      undo: store.undoBulkExtension({
        ...changed,
        bulkExtensionId: bulkIds.at(-days) ?? changed.event.id,
        madeAfter: longAgo,
      }),
      updated: setMetadata(asMade, keyId, user),
    }
    if (Exit.isFailure(yield* Effect.exit(work[kind]))) continue
    if (kind === "bulk" || kind === "undo") {
      const givesDay = kind === "bulk" && extension.mode !== "extendBy" && isDay
      states.push(
        givesDay ? { ...instantForm, inDays: true, pause: undefined, isUnasked: false } : undefined,
      )
    } else {
      states.push(yield* stateOf(user))
      if (kind === "move") states.push(yield* stateOf(to))
    }
  }
  const rows = (yield* store.history(p1, { userId: undefined, limit: 1000 })).toReversed()
  expect(rows).toHaveLength(states.length)
  return rows.map((row, index): RecordedChange => ({ ...row, state: states[index] }))
})

export const selectingChangesTests = (on: StoreTests): void => {
  on.describe("a selection of changes", () => {
    beforeTests(on)
    otherTests(on)
    bulkTests(on)
    selectingTests(on)

    on.property(
      "finds what the rule finds in the whole trail",
      fc.record({ made: steps, asked: selections }),
      Effect.fnUntraced(function* ({ asked, made }) {
        const given = yield* makeSteps
        const trail = yield* record(given, made)
        const { duration, keyId, limit, seconds } = asked
        const since = given.start + 1000 * seconds
        const until = duration && since + 1000 * duration
        const selection = { keyId, requestIds: undefined, since, until }
        for (const after of [undefined, u1]) {
          const page = { selection, after, limit }
          expect(yield* given.store.selectedChanges(p1, page)).toEqual(
            changedMembersOf(trail, page),
          )
        }
      }),
    )
  })
}
