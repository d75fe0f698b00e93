/** What is read: member lists, the audit trail, ending lists, counts by day, and previews. */

import { expect } from "@effect/vitest"
import { type MembershipState, makeDecideAnnouncement, reminderLeads } from "@tenure/core/internal"
import {
  ApiKeyId,
  AuditCursor,
  type AuditRow,
  type DayRange,
  type EndCounts,
  EndDate,
  EndingCursor,
  type EndingPage,
  EventType,
  MembershipStore,
  Millis,
  Outbox,
  type PreviewedChange,
  type ProjectId,
  Reason,
  TimeZone,
  UserId,
  UserIdPrefix,
  WebhookId,
  dayOf,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import * as Fixture from "../../support/fixtures.ts"
import { inDays } from "../announcing.ts"
import { countDays, dayChanges } from "../days.ts"
import type { StoreTests } from "../declare.ts"
import { disable } from "../outbox/steps.ts"
import { addWebhook, createProjects, dayMillis, expectFailure, times } from "../steps.ts"
import { changeSettings, nowhere, prepared } from "./every-change.ts"

const { change, date, sequenceOf } = Fixture
const { in2027, in2028, in2029, manyKindsOfUser, context, p1, p2, u1, u2, u3 } = Fixture

/** Reads the whole history in pages. */
const historyInPages = Effect.fnUntraced(function* (userId: UserId | undefined, limit: number) {
  const store = yield* MembershipStore
  const rows: Array<AuditRow> = []
  for (;;) {
    const page = yield* store.history(p1, { userId, after: rows.at(-1)?.cursor, limit })
    if (page.length === 0) return rows
    expect(page.length).toBeLessThanOrEqual(limit)
    rows.push(...page)
  }
})

const historyTests = ({ testsAfter, describe }: StoreTests): void => {
  const { test } = testsAfter(prepared)
  describe("history", () => {
    test("returns who changed what, the request, and both dates, newest first", function* (store) {
      const by = (index: number) => ({
        origin: { requestId: `request ${index}`, keyId: ApiKeyId(`key ${index}`) },
        at: index,
      })
      const one = () => ({ ...change(p1), userId: u1 })
      yield* store.extend({ ...one(), endDate: in2028, ...by(5) })
      yield* store.extendAll({ ...one(), bulk: { endDate: in2029, mode: "set" }, ...by(6) })
      yield* store.grant({ ...one(), endDate: in2027, ...by(7) })
      yield* store.end({ ...one(), ...by(8) })
      const row = {
        projectId: p1,
        userId: u1,
        changes: [],
        cursor: expect.any(String),
        reason: undefined,
      }
      expect(yield* store.history(p1, { userId: undefined, limit: 5 })).toEqual([
        { ...row, action: "ended", from: in2027, to: undefined, ...by(8) },
        { ...row, action: "granted", from: in2029, to: in2027, ...by(7) },
        {
          ...row,
          action: "bulk_extended",
          userId: undefined,
          subject: expect.any(String),
          from: undefined,
          to: in2029,
          ...by(6),
        },
        { ...row, action: "extended", from: in2027, to: in2028, ...by(5) },
        { ...row, action: "granted", userId: u2, from: undefined, to: in2029, ...context },
      ])
    })

    test("returns the reason of every change", function* (store) {
      const reasons = ["one", "two", "three", "four", "five", "Grüße 🎉\n".repeat(55)].map(Reason)
      const [byGrant, byExtension, byBulk, byRaise, byImport, byEnding] = reasons
      const one = (reason: Reason | undefined) => ({ ...change(p1), userId: u3, reason })
      yield* store.grant({ ...one(byGrant), endDate: in2027 })
      yield* store.extend({ ...one(byExtension), endDate: in2028 })
      yield* store.extendAll({ ...one(byBulk), bulk: { endDate: in2027, mode: "set" } })
      yield* store.extendAll({ ...one(byRaise), bulk: { endDate: in2028, mode: "neverShorten" } })
      const memberships = [{ userId: u3, endDate: in2029 }]
      yield* store.import({ ...one(byImport), memberships })
      yield* store.end(one(byEnding))
      const rows = yield* store.history(p1, { userId: undefined, limit: 6 })
      expect(rows.map(({ reason }) => reason)).toEqual(reasons.toReversed())
      const ofUser = yield* store.history(p1, { userId: u3, limit: 1 })
      expect(ofUser).toMatchObject([{ reason: byEnding }])
    })

    test("has of one user the bulk extensions that applied, page by page", function* (store) {
      const one = () => ({ ...change(p1), userId: u3 })
      const bulk = (endDate: EndDate, mode: "set" | "neverShorten") =>
        store.extendAll({ ...change(p1), bulk: { endDate, mode } })
      yield* bulk(in2029, "set")
      yield* store.grant({ ...one(), endDate: in2027 })
      yield* store.extend({ ...one(), userId: u1, endDate: in2028 })
      yield* bulk(in2028, "neverShorten")
      yield* bulk(in2027, "neverShorten")
      yield* bulk(in2029, "set")
      yield* bulk(in2028, "neverShorten")
      yield* bulk(in2027, "set")
      yield* store.end(one())
      yield* bulk(in2028, "set")
      yield* store.grant({ ...one(), endDate: in2028 })
      yield* bulk(in2028, "neverShorten")
      yield* bulk(in2029, "neverShorten")
      const expected = [
        ["bulk_lengthened", in2029],
        ["granted", in2028],
        ["ended", undefined],
        ["bulk_extended", in2027],
        ["bulk_extended", in2029],
        ["bulk_lengthened", in2028],
        ["granted", in2027],
      ]
      for (const limit of [1, 2, 3, 100]) {
        const rows = yield* historyInPages(u3, limit)
        expect(rows.map(({ action, to }) => [action, to])).toEqual(expected)
      }
      const all = yield* store.history(p1, { userId: undefined, limit: 100 })
      expect(yield* historyInPages(undefined, 3)).toEqual(all)
    })

    test("has nothing after a cursor that no row has", function* (store) {
      const [newest] = yield* store.history(p1, { userId: undefined, limit: 1 })
      const unknown = ["1.1", "0.0", "1.999999999999999999", "999999999999999999.1"]
      for (const text of [...unknown, `${newest?.cursor}9`]) {
        const page = { after: AuditCursor(text), limit: 10 }
        expect(yield* store.history(p1, { ...page, userId: undefined })).toEqual([])
        expect(yield* store.history(p1, { ...page, userId: u3 })).toEqual([])
        expect(yield* store.history(undefined, { ...page, userId: undefined })).toEqual([])
      }
    })

    test("has nothing after a cursor of another project, or from before it was deleted", function* (store) {
      const [one] = yield* store.history(p1, { userId: undefined, limit: 1 })
      const [other] = yield* store.history(undefined, { userId: undefined, limit: 1 })
      const after = (cursor: AuditCursor | undefined, projectId: typeof p1 | undefined) =>
        store.history(projectId, { userId: undefined, after: cursor, limit: 10 })
      yield* store.grant({ ...change(p2), userId: u3, endDate: in2027 })
      expect(yield* after(one?.cursor, p2)).toEqual([])
      expect(yield* after(one?.cursor, undefined)).toEqual([])
      expect(yield* after(other?.cursor, p1)).toEqual([])
      yield* store.deleteProject(p1, context)
      yield* store.createProject(p1, context)
      yield* store.grant({ ...change(p1), userId: u3, endDate: in2027 })
      expect(yield* after(one?.cursor, p1)).toEqual([])
    })
  })
}

type Page = Partial<Parameters<MembershipStore["Service"]["list"]>[1]>

const listedIds = (page: Page) =>
  MembershipStore.use((store) =>
    Effect.map(store.list(p1, { after: undefined, limit: 100, ...page }), (found) =>
      found.map(({ userId }) => userId),
    ),
  )

export const readingTests = (on: StoreTests): void => {
  const { describe } = on
  const { test } = on.testsAfter(prepared)

  describe("list", () => {
    test("has user ids of any kind in the order of their code units, as the list by end dates", function* (store) {
      const users = [...manyKindsOfUser, u1, u2]
      const memberships = users.map((userId) => ({ userId, endDate: in2027 }))
      yield* store.import({ ...change(p1), memberships })
      const sorted = users.toSorted((one, other) => (one < other ? -1 : 1))
      for (const [index, after] of [undefined, ...sorted].entries()) {
        expect(yield* listedIds({ after, limit: 2 })).toEqual(sorted.slice(index, index + 2))
      }
      const ending = yield* endingPagesOf(store, { before: in2028, limit: 3 })
      expect(ending.map(({ userId }) => userId)).toEqual(sorted)
    })

    test("returns only memberships in one state, to the limit, by the date that holds", function* (store) {
      yield* store.grant({ ...change(p1), userId: UserId("9"), endDate: in2027 })
      const users = (state: MembershipState, at: number, limit = 10) =>
        listedIds({ limit, only: { state, at } })
      expect(yield* users("active", in2027 - 1)).toEqual([u1, u2, "9"])
      expect(yield* users("active", in2027)).toEqual([u2])
      expect(yield* users("expired", in2027)).toEqual([u1, "9"])
      expect(yield* users("active", in2027, 1)).toEqual([u2])
      yield* store.extendAll({ ...change(p1), bulk: { endDate: in2028, mode: "set" } })
      expect(yield* users("expired", in2027)).toEqual([])
      expect(yield* users("expired", in2028)).toEqual([u1, u2, "9"])
    })

    test("returns only memberships of the users asked for, in the same way", function* (store) {
      yield* store.grant({ ...change(p1), userId: UserId("9"), endDate: in2027 })
      yield* store.grant({ ...change(p2), userId: u3, endDate: in2027 })
      const list = (userIds: ReadonlyArray<UserId>, page: Page = {}) =>
        listedIds({ userIds, ...page })
      expect(yield* list([UserId("9"), u1, u3, u1])).toEqual([u1, "9"])
      expect(yield* list([UserId("9"), u1, u2], { after: u1, limit: 1 })).toEqual([u2])
      const only = { state: "active", at: in2027 } as const
      expect(yield* list([UserId("9"), u1, u2], { only })).toEqual([u2])
      expect(yield* list([UserId("9")], { limit: 1 })).toEqual(["9"])
      expect(yield* list([u3])).toEqual([])
      expect(yield* list([])).toEqual([])
    })

    test("returns only users whose ids start with a prefix", function* (store) {
      const ids = `7 07 0 A Ab a aB ab ab_ abc ab@ b _ + z ~ ~~ a~ a|b a%b a\\b a"b`.split(" ")
      const memberships = ids.map((id, index) => ({
        userId: UserId(id),
        endDate: index % 2 === 0 ? in2027 : in2029,
      }))
      yield* store.import({ ...change(p1), memberships })
      for (const text of "0 7 a ab abc abcd A _ + . .. z - ~ a| a% a\\".split(" ")) {
        const prefix = UserIdPrefix(text)
        const expected = ids.filter((id) => id.startsWith(text)).toSorted()
        expect(yield* listedIds({ prefix })).toEqual(expected)
        // A cursor may come from another list.
        for (const after of [...expected, "z".repeat(128), "+"].map(UserId)) {
          const rest = expected.filter((id) => id > after)
          expect(yield* listedIds({ prefix, after, limit: 2 })).toEqual(rest.slice(0, 2))
        }
        const only = { state: "active", at: in2027 } as const
        const active = expected.filter((id) => ids.indexOf(id) % 2 === 1)
        expect(yield* listedIds({ prefix, only })).toEqual(active)
      }
    })
  })

  historyTests(on)
}

type Store = MembershipStore["Service"]

// More than any list in these tests needs: each page but the last advances.
const maxPages = 1000

/** Asks for all pages, and does something after each. Returns them. */
const endingPagesOf = Effect.fnUntraced(function* (
  store: Store,
  { before, limit }: { readonly before: EndDate; readonly limit: number },
  afterEach: (page: number) => Effect.Effect<unknown, unknown> = () => Effect.void,
) {
  const pages: Array<EndingPage> = []
  let after: EndingCursor | undefined
  do {
    const page = yield* store.listEnding(p1, { before, after, limit })
    expect(page.memberships.length).toBeLessThanOrEqual(limit)
    pages.push(page)
    after = page.next
    yield* afterEach(pages.length)
  } while (after !== undefined && pages.length < maxPages)
  expect(after).toBeUndefined()
  return pages.flatMap(({ memberships }) => memberships)
})

const changes = dayChanges(12)

const step = fc.oneof(
  { weight: 7, arbitrary: changes.any },
  { weight: 2, arbitrary: changes.days },
  fc.record({ _tag: fc.constant("Sweep" as const), limit: fc.integer({ min: 1, max: 4 }) }),
  {
    weight: 2,
    arbitrary: fc.record({
      _tag: fc.constant("List" as const),
      date: changes.date,
      limit: fc.integer({ min: 1, max: 4 }),
      // Changes after each page.
      meanwhile: fc.array(changes.meanwhile, { maxLength: 3 }),
    }),
  },
)

type Step = typeof step extends fc.Arbitrary<infer A> ? A : never

/** The store's list, in days. */
type Listed = readonly [userId: UserId, day: number]

const byDate = ([one, on]: Listed, [other, at]: Listed): number =>
  on - at || Number(one > other) - Number(one < other)

const leads = reminderLeads([Millis(dayMillis)])

/** Performs steps, and compares each list with the one expected after the changes so far. */
const follow = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>, on: StoreTests) {
  const store = yield* MembershipStore
  yield* store.createProject(p1, context)
  const { dates, fromStored, make, pass, today, toStored } = yield* countDays(on)

  const list = Effect.fnUntraced(function* ({
    date: until,
    limit,
    meanwhile,
  }: Extract<Step, { readonly _tag: "List" }>) {
    const before = dates()
    const changed = new Set<UserId>()
    const listed = yield* endingPagesOf(
      store,
      { before: yield* toStored(until), limit },
      Effect.fnUntraced(function* (page) {
        const next = meanwhile[page - 1]
        if (next !== undefined) yield* make(next)
        for (const [userId, day] of dates()) if (day !== before.get(userId)) changed.add(userId)
      }),
    )
    const found: Array<Listed> = []
    for (const { endDate, userId } of listed) {
      if (!changed.has(userId)) found.push([userId, yield* fromStored(endDate)])
    }
    const expected = [...before].filter(
      ([userId, day]) => day > today() && day < until && !changed.has(userId),
    )
    expect(found.map(([, day]) => day)).toEqual(
      found.map(([, day]) => day).toSorted((a, b) => a - b),
    )
    expect(found.toSorted(byDate)).toEqual(expected.toSorted(byDate))
  })

  for (const one of steps) {
    if (one._tag === "Days") yield* pass(one.days)
    else if (one._tag === "List") yield* list(one)
    else if (one._tag !== "Sweep") yield* make(one)
    else if (store.expiry !== undefined) {
      const since = yield* store.expiry.watch([Millis(dayMillis)])
      yield* store.expiry.sweep(one.limit, makeDecideAnnouncement({ leads, since }))
    }
  }
  yield* list({ _tag: "List", date: 20, limit: 2, meanwhile: [] })
})

export const endingListTests = (on: StoreTests): void => {
  const { describe, property, test } = on
  describe("a list of those that end before a date", () => {
    test("has those that have not ended, soonest first, page by page", function* () {
      yield* createProjects
      const store = yield* MembershipStore
      const grant = (projectId: ProjectId, userId: UserId, days: number) =>
        Effect.flatMap(inDays(days), (endDate) =>
          store.grant({ ...change(projectId), userId, endDate }),
        )
      yield* grant(p1, u1, 3)
      yield* grant(p1, u2, -1)
      yield* grant(p1, u3, 1)
      yield* grant(p2, u2, 2)
      const before = yield* inDays(4)
      const { endDate } = yield* store.find(p1, u1)
      const all = yield* store.listEnding(p1, { before, after: undefined, limit: 10 })
      expect(all.memberships).toMatchObject([
        { projectId: p1, userId: u3 },
        { projectId: p1, userId: u1, endDate },
      ])
      const usersBefore = (until: EndDate) =>
        Effect.map(endingPagesOf(store, { before: until, limit: 1 }), (listed) =>
          listed.map(({ userId }) => userId),
        )
      expect(yield* usersBefore(before)).toEqual([u3, u1])
      expect(yield* usersBefore(endDate)).toEqual([u3])
      expect(yield* usersBefore(EndDate(endDate + 1))).toEqual([u3, u1])
    })

    test("answers whatever cursor it is given", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, context)
      yield* store.grant({ ...change(p1), userId: u1, endDate: yield* inDays(1) })
      yield* store.extendAll({ ...change(p1), bulk: { endDate: yield* inDays(2), mode: "set" } })
      const before = yield* inDays(3)
      yield* store.listEnding(p1, { before, after: undefined, limit: 1 })
      for (const sign of ["", "-"]) {
        const first = `${sign}${"9".repeat(14)}`
        const most = `${sign}${"9".repeat(18)}`
        for (const middle of ["", `.${most}`, `.${most}.${most}`]) {
          for (const last of [".", `.${"9".repeat(128)}`, ".a.b-c", `.${"z".repeat(128)}`]) {
            const after = EndingCursor(first + middle + last)
            const page = yield* store.listEnding(p1, { before, after, limit: 1 })
            expect(page.memberships.length).toBeLessThanOrEqual(1)
          }
        }
      }
    })

    property(
      "follows any sequence of changes, days and sweeps, and has each membership once that nobody changes meanwhile",
      fc.array(step, { maxLength: 20, size: "+1" }),
      (steps) => follow(steps, on),
    )
  })
}

/** Counts end dates in the simplest way, and compares. */
export const expectEndCounts = (
  { at, days, ...counts }: EndCounts,
  endDates: ReadonlyArray<number>,
): void => {
  const count = (test: (endDate: number) => boolean): number => endDates.filter(test).length
  const dayTextOf = (instant: number): string => new Date(instant).toISOString().slice(0, 10)
  expect(counts).toEqual({
    total: endDates.length,
    active: count((endDate) => endDate > at),
    overdue: 0,
    paused: 0,
    expired: count((endDate) => endDate <= at),
    endsToday: count((endDate) => dayTextOf(endDate) === dayTextOf(at)),
    endsIn7Days: count((endDate) => endDate > at && endDate < at + 7 * dayMillis),
  })
  expect(days.map(({ day, ends }) => [day, ends])).toEqual(
    days.map(({ day }) => [day, count((endDate) => dayTextOf(endDate) === day)]),
  )
}

const rangeOf = (first: number, last: number): DayRange => ({
  first: dayOf(first),
  last: dayOf(last),
})

const unasked = { days: undefined, change: undefined }

export const countingEndsTests = ({ describe, test }: StoreTests): void => {
  describe("countEnds", () => {
    test("counts the days around today, the active, and those that end soon", function* () {
      yield* createProjects
      const store = yield* MembershipStore
      expectEndCounts(yield* store.countEnds(p1, unasked), [])
      yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
      const endDates: Array<EndDate> = []
      for (const [index, days] of [-400, -14, -1, -0.01, 0.01, 1, 6.99, 7.01, 45, 400].entries()) {
        const endDate = yield* inDays(days)
        endDates.push(endDate)
        yield* store.grant({ ...change(p1), userId: UserId(`user-${index}`), endDate })
      }
      const counts = yield* store.countEnds(p1, unasked)
      expect(counts).toMatchObject({ total: 10, active: 6, expired: 4, endsIn7Days: 3 })
      expect(counts.days).toHaveLength(60)
      expect(counts.days[14]?.day).toBe(new Date(counts.at).toISOString().slice(0, 10))
      expectEndCounts(counts, endDates)
    })

    test("counts by the project's day, in a zone whose days have 23 to 25 hours, too", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, context)
      yield* changeSettings(store, change(p1), { timeZone: TimeZone("Europe/Berlin") })
      // The ends of 27 and 28 March, between which the clocks are put forward, and the instants before them.
      const ends = ["2027-03-27T23:00:00.000Z", "2027-03-28T22:00:00.000Z"].map(date)
      for (const [index, end] of ends.entries()) {
        for (const [which, endDate] of [end, EndDate(end - 1)].entries()) {
          const userId = UserId(`${index}${which}`)
          yield* store.grant({ ...change(p1), userId, endDate })
        }
      }
      const days = rangeOf(date("2027-03-27T00:00:00.000Z"), date("2027-03-29T00:00:00.000Z"))
      const counted = (yield* store.countEnds(p1, { ...unasked, days })).days
      expect(counted.map(({ day, ends: count }) => [day, count])).toEqual([
        ["2027-03-27", 1],
        ["2027-03-28", 2],
        ["2027-03-29", 1],
      ])
    })

    test("counts the days that are asked for, also at both ends of time", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, context)
      const first = date("0000-01-01T00:00:00.000Z")
      const last = date("9999-12-31T23:59:59.999Z")
      const endDates = [first, last, in2027]
      for (const [index, userId] of [u1, u2, u3].entries()) {
        yield* store.grant({ ...change(p1), userId, endDate: endDates[index] ?? in2027 })
      }
      for (const days of [
        rangeOf(first, first),
        rangeOf(first, first + 399 * dayMillis),
        rangeOf(last - 399 * dayMillis, last),
        rangeOf(in2027 - dayMillis, in2027),
      ]) {
        const counts = yield* store.countEnds(p1, { ...unasked, days })
        expect(counts.days).toHaveLength(days.last - days.first + 1)
        expect(counts.days.reduce((sum, { ends }) => sum + ends, 0)).toBe(1)
        expectEndCounts(counts, endDates)
      }
    })

    test("counts what more time would lead to, which ends nobody after the last instant", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, context)
      const last = date("9999-12-31T23:59:59.999Z")
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
      yield* store.grant({ ...change(p1), userId: u2, endDate: last })
      const by = Millis(3 * dayMillis)
      const later = EndDate(in2027 + by)
      for (const around of [later, last]) {
        const days = rangeOf(around - dayMillis, around)
        const counts = yield* store.countEnds(p1, { days, change: { mode: "extendBy", by } })
        expectEndCounts(counts, [later, last])
      }
      expectEndCounts(yield* store.countEnds(p1, unasked), [in2027, last])
    })

    test("tells how many memberships were extended or granted by day", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, context)
      const { at: now } = yield* store.countEnds(p1, unasked)
      const at = (days: number) => ({ ...change(p1), at: now + days * dayMillis })
      yield* store.grant({ ...at(0), userId: u1, endDate: in2027 })
      yield* store.extend({ ...at(0), userId: u1, endDate: in2028 })
      yield* store.extend({ ...at(0), userId: u1, endDate: in2029 })
      // Not by itself, and no longer.
      yield* store.import({ ...at(0), memberships: [{ userId: u2, endDate: in2027 }] })
      yield* store.extendAll({ ...at(0), bulk: { mode: "set", endDate: in2028 } })
      yield* store.end({ ...at(0), userId: u2 })
      const { days } = yield* store.countEnds(p1, unasked)
      expect(days[14]?.extended).toBe(3)
      expect(days[15]?.extended).toBe(0)
    })

    test("counts for many at the same time, who see what they have done before", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, context)
      const grantAndCount = Effect.fnUntraced(function* (userId: UserId) {
        yield* store.grant({ ...change(p1), userId, endDate: in2027 })
        const { days, total } = yield* store.countEnds(p1, {
          ...unasked,
          days: rangeOf(in2027, in2027),
        })
        expect(days[0]?.ends).toBe(total)
        return total
      })
      const totals = yield* times(10, (index) => grantAndCount(UserId(`user-${index}`)))
      expect(Math.max(...totals)).toBe(10)
      expect(Math.min(...totals)).toBeGreaterThan(0)
    })
  })
}

const types = ["membership.extended", "memberships.extended", "memberships.imported", "other"]

/** Makes a change, whose event has a type. Returns what is to be previewed, and how to make it. */
const changesByKind = {
  extend: (type: string) => {
    const extension = { ...change(p1, type), userId: u1, endDate: in2028 }
    return {
      change: extension,
      previewed: { _tag: "One", userId: u1 } satisfies PreviewedChange,
      make: MembershipStore.use((store) => store.extend(extension)),
    }
  },
  extendAll: (type: string) => {
    const extension = {
      ...change(p1, type),
      bulk: { mode: "extendBy", by: Millis(dayMillis) } as const,
    }
    return {
      change: extension,
      previewed: { _tag: "All" } satisfies PreviewedChange,
      make: MembershipStore.use((store) => store.extendAll(extension)),
    }
  },
  import: (type: string) => {
    const imported = {
      ...change(p1, type),
      memberships: [u1, u3].map((userId) => ({ userId, endDate: in2029 })),
    }
    return {
      change: imported,
      previewed: { _tag: "Import", size: 2 } satisfies PreviewedChange,
      make: MembershipStore.use((store) => store.import(imported)),
    }
  },
}

const kinds = ["extend", "extendAll", "import"] as const

const receivers = fc.array(
  fc.record({
    eventTypes: fc.option(fc.subarray(types, { minLength: 1 }), { nil: undefined }),
    isDisabled: fc.boolean(),
  }),
  { maxLength: 14 },
)

export const previewingTests = ({ describe, property, test }: StoreTests): void => {
  describe("previewPublication", () => {
    property(
      "tells the sequence, the metadata and the webhooks of what is then published",
      fc.record({
        receivers,
        steps: fc.array(fc.tuple(fc.constantFrom(...kinds), fc.constantFrom(...types)), {
          minLength: 1,
          maxLength: 4,
        }),
        metadata: fc.constantFrom({}, { plan: "gold" }),
      }),
      Effect.fnUntraced(function* ({ metadata, receivers: asked, steps }) {
        const store = yield* prepared
        const outbox = yield* Outbox
        for (const { eventTypes, isDisabled } of asked) {
          const webhook = yield* addWebhook(p1, { eventTypes: eventTypes?.map(EventType) })
          if (isDisabled) yield* disable([webhook])
        }
        yield* store.grant({ ...change(p1, "unheard"), userId: u1, endDate: in2027, metadata })
        for (const [kind, type] of steps) {
          const { change: made, make, previewed } = changesByKind[kind](type)
          const preview = yield* store.previewPublication(p1, EventType(type), previewed)
          yield* make
          const published = yield* outbox.find(p1, made.event.id)
          expect(preview.sequence).toBe(sequenceOf(published))
          expect(preview.total).toBe(published.deliveries.length)
          expect(preview.first.map(({ webhookId }) => WebhookId(webhookId))).toEqual(
            published.deliveries.slice(0, 10).map(({ webhookId }) => webhookId),
          )
          expect(preview.first.map(({ url }) => url)).toEqual(
            preview.first.map(({ webhookId }) => `https://receiver.example/${webhookId}`),
          )
          expect(JSON.parse(preview.metadata ?? "{}")).toEqual(kind === "extend" ? metadata : {})
        }
      }),
    )

    test("changes nothing, and fails without the project", function* () {
      const store = yield* prepared
      const type = EventType("other")
      const preview = (previewed: PreviewedChange, projectId = p1) =>
        store.previewPublication(projectId, type, previewed)
      const all: ReadonlyArray<PreviewedChange> = [
        { _tag: "One", userId: u2 },
        { _tag: "All" },
        { _tag: "Import", size: 3 },
      ]
      for (const previewed of all) {
        expect(yield* preview(previewed)).toEqual(yield* preview(previewed))
        yield* expectFailure("ProjectNotFound", preview(previewed, nowhere))
      }
      expect(yield* store.history(p1, { userId: u2, limit: 10 })).toHaveLength(1)
    })
  })
}
