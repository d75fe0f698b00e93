/** Ending lists. */

import { expect } from "@effect/vitest"
import { currentUnixMillis, makeDecideAnnouncement, reminderLeads } from "@tenure/core/internal"
import type { UserId } from "@tenure/core/store"
import {
  type BulkChange,
  type BulkMode,
  EndDate,
  EndingCursor,
  type EndingPage,
  type EventId,
  MembershipStore,
  Millis,
  type ProjectId,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import fc from "fast-check"
import { change, longAgo, occasion, p1, p2, u1, u2, u3 } from "../../support/fixtures.ts"
import { dayMillis, inDays } from "../announcing.ts"
import type { StoreTests } from "../declare.ts"

type Store = MembershipStore["Service"]

// More than any list in these tests needs: each page but the last advances.
const mostPages = 1000

/** Asks for all pages, and does something after each. Returns them. */
export const endingPagesOf = Effect.fnUntraced(function* (
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
  } while (after !== undefined && pages.length < mostPages)
  expect(after).toBeUndefined()
  return pages.flatMap(({ memberships }) => memberships)
})

const users = [u1, u2, u3]
const user = fc.constantFrom(...users)

/** A date in days since the beginning, at noon: between two dates, whole days pass. */
const date = fc.integer({ min: -3, max: 12 }).map((day) => day + 0.5)

const changing = {
  grant: fc.record({ _tag: fc.constant("Grant" as const), user, date }),
  extend: fc.record({ _tag: fc.constant("Extend" as const), user, date }),
  extendAll: fc.record({
    _tag: fc.constant("ExtendAll" as const),
    mode: fc.constantFrom("set" as const, "neverShorten" as const),
    date,
  }),
  extendBy: fc.record({
    _tag: fc.constant("ExtendBy" as const),
    days: fc.integer({ min: 1, max: 5 }),
  }),
  undo: fc.record({ _tag: fc.constant("Undo" as const), which: fc.nat() }),
}

const step = fc.oneof(
  changing.grant,
  changing.extend,
  changing.extendAll,
  changing.extendBy,
  changing.undo,
  fc.record({ _tag: fc.constant("Import" as const), users: fc.subarray(users), date }),
  fc.record({ _tag: fc.constant("End" as const), user }),
  fc.record({ _tag: fc.constant("Days" as const), days: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ _tag: fc.constant("Sweep" as const), limit: fc.integer({ min: 1, max: 4 }) }),
  fc.record({
    _tag: fc.constant("List" as const),
    date,
    limit: fc.integer({ min: 1, max: 4 }),
    // Changes after each page.
    meanwhile: fc.array(
      fc.oneof(changing.extend, changing.extendAll, changing.extendBy, changing.undo),
      { maxLength: 3 },
    ),
  }),
)

type Step = typeof step extends fc.Arbitrary<infer A> ? A : never

/** A step that changes all members. */
type BulkSteps = Extract<Step, { readonly _tag: "ExtendAll" | "ExtendBy" | "Undo" }>

/** A bulk extension, in days. */
interface BulkStep {
  readonly id: EventId
  readonly apply: (day: number) => number
  isUndone: boolean
}

/** The store's list, in days. */
type Listed = readonly [userId: UserId, day: number]

const byDate = ([one, on]: Listed, [other, at]: Listed): number =>
  on - at || Number(one > other) - Number(one < other)

/** Performs steps, and compares each list with the one expected after the changes so far. */
const follow = Effect.fnUntraced(function* (
  steps: ReadonlyArray<Step>,
  advance: StoreTests["advance"],
) {
  const store = yield* MembershipStore
  yield* store.createProject(p1, occasion)
  const origin = yield* currentUnixMillis
  const dates = new Map<UserId, number>()
  /** The date set for each member alone, and how many bulk extensions came before. */
  const own = new Map<UserId, readonly [day: number, after: number]>()
  const bulk: Array<BulkStep> = []
  let today = 0

  /** The days by which stored data was moved into the past, instead of moving the clock. */
  const moved = Effect.map(currentUnixMillis, (now) =>
    now - origin < (today * dayMillis) / 2 ? today : 0,
  )
  const toStored = (day: number) =>
    Effect.map(moved, (days) => EndDate(origin + (day - days) * dayMillis))

  const set = Effect.fnUntraced(function* (userId: UserId, day: number, isGrant: boolean) {
    const changed = { ...change(p1), userId, endDate: yield* toStored(day) }
    if (isGrant) yield* store.grant(changed)
    else if (dates.has(userId)) yield* store.extend(changed)
    else return
    own.set(userId, [day, bulk.length])
    dates.set(userId, day)
  })

  const applyBulk = (): void => {
    for (const [userId, [day, after]] of own) {
      const later = bulk.slice(after).filter(({ isUndone }) => !isUndone)
      dates.set(
        userId,
        later.reduce((on, { apply }) => apply(on), day),
      )
    }
  }

  const extendAll = Effect.fnUntraced(function* (one: BulkChange, apply: BulkStep["apply"]) {
    const extension = { ...change(p1), bulk: one }
    yield* store.extendAll(extension)
    bulk.push({ id: extension.event.id, apply, isUndone: false })
    applyBulk()
  })

  const changeAll = Effect.fnUntraced(function* (one: BulkSteps) {
    switch (one._tag) {
      case "ExtendAll":
        return yield* extendAll({ endDate: yield* toStored(one.date), mode: one.mode }, (on) =>
          one.mode === "set" || on < one.date ? one.date : on,
        )
      case "ExtendBy":
        return yield* extendAll(
          { mode: "extendBy", by: Millis(one.days * dayMillis) },
          (on) => on + one.days,
        )
      case "Undo": {
        const open = bulk.filter(({ isUndone }) => !isUndone)
        const undone = open[one.which % Math.max(1, open.length)]
        if (undone === undefined) return undefined
        const target = { bulkExtensionId: undone.id, madeAfter: longAgo }
        const outcome = yield* Effect.exit(store.undoBulkExtension({ ...change(p1), ...target }))
        undone.isUndone = Exit.isSuccess(outcome)
        return applyBulk()
      }
    }
  })

  const list = Effect.fnUntraced(function* ({
    date: day,
    limit,
    meanwhile,
  }: Step & { _tag: "List" }) {
    const before = new Map(dates)
    const changed = new Set<UserId>()
    const listed = yield* endingPagesOf(
      store,
      { before: yield* toStored(day), limit },
      Effect.fnUntraced(function* (page) {
        const next = meanwhile[page - 1]
        if (next === undefined) return
        if (next._tag === "Extend") yield* set(next.user, next.date, false)
        else yield* changeAll(next)
        for (const [userId, on] of dates) if (on !== before.get(userId)) changed.add(userId)
      }),
    )
    const days = yield* moved
    const found = listed
      .map(({ endDate, userId }): Listed => [userId, (endDate - origin) / dayMillis + days])
      .filter(([userId]) => !changed.has(userId))
    const expected = [...before].filter(
      ([userId, on]) => on > today && on < day && !changed.has(userId),
    )
    expect(found.map(([, on]) => on)).toEqual(found.map(([, on]) => on).toSorted((a, b) => a - b))
    expect(found.toSorted(byDate)).toEqual(expected.toSorted(byDate))
  })

  for (const one of steps) {
    switch (one._tag) {
      case "Grant":
      case "Extend":
        yield* set(one.user, one.date, one._tag === "Grant")
        break
      case "Import": {
        const endDate = yield* toStored(one.date)
        const memberships = one.users.map((userId) => ({ userId, endDate }))
        yield* store.import({ ...change(p1), memberships })
        for (const userId of one.users) {
          own.set(userId, [one.date, bulk.length])
          dates.set(userId, one.date)
        }
        break
      }
      case "ExtendAll":
      case "ExtendBy":
      case "Undo":
        yield* changeAll(one)
        break
      case "End":
        own.delete(one.user)
        if (dates.delete(one.user)) yield* store.end({ ...change(p1), userId: one.user })
        break
      case "Days":
        yield* advance(one.days * dayMillis)
        today += one.days
        break
      case "Sweep": {
        const { expiry } = store
        if (expiry === undefined) break
        const since = yield* expiry.watch([Millis(dayMillis)])
        const leads = reminderLeads([Millis(dayMillis)])
        yield* expiry.sweep(one.limit, makeDecideAnnouncement({ leads, since }))
        break
      }
      case "List":
        yield* list(one)
    }
  }
  yield* list({ _tag: "List", date: 20, limit: 2, meanwhile: [] })
})

/** Declares the tests. */
export const endingListTests = ({ advance, describe, property, test }: StoreTests): void => {
  describe("a list of those that end before a date", () => {
    test("has those that have not ended, soonest first, page by page", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      yield* store.createProject(p2, occasion)
      const grant = (projectId: ProjectId, userId: UserId, days: number) =>
        Effect.flatMap(inDays(days), (endDate) =>
          store.grant({ ...change(projectId), userId, endDate }),
        )
      yield* grant(p1, u1, 3)
      yield* grant(p1, u2, -1)
      yield* grant(p1, u3, 1)
      yield* grant(p2, u2, 2)
      const before = yield* inDays(4)
      const all = yield* store.listEnding(p1, { before, after: undefined, limit: 10 })
      expect(all.memberships.map(({ projectId, userId }) => [projectId, userId])).toEqual([
        [p1, u3],
        [p1, u1],
      ])
      const { endDate } = yield* store.find(p1, u1)
      expect(all.memberships[1]).toMatchObject({ projectId: p1, userId: u1, endDate })
      const usersBefore = (until: EndDate) =>
        Effect.map(endingPagesOf(store, { before: until, limit: 1 }), (listed) =>
          listed.map(({ userId }) => userId),
        )
      expect(yield* usersBefore(before)).toEqual([u3, u1])
      expect(yield* usersBefore(endDate)).toEqual([u3])
      expect(yield* usersBefore(EndDate(endDate + 1))).toEqual([u3, u1])
    })

    test("has them where they end now, whatever has changed their ends", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      const dated = Effect.fnUntraced(function* (userId: UserId, days: number) {
        return { ...change(p1), userId, endDate: yield* inDays(days) }
      })
      const bulk = Effect.fnUntraced(function* (mode: BulkMode, days: number) {
        yield* store.extendAll({ ...change(p1), bulk: { endDate: yield* inDays(days), mode } })
      })
      const usersBefore = Effect.fnUntraced(function* (days: number) {
        const listed = yield* endingPagesOf(store, { before: yield* inDays(days), limit: 1 })
        return listed.map(({ userId }) => userId)
      })
      yield* store.grant(yield* dated(u1, 1))
      yield* store.grant(yield* dated(u2, 2))
      yield* store.grant(yield* dated(u3, 3))
      yield* store.extend(yield* dated(u1, 4))
      expect(yield* usersBefore(9)).toEqual([u2, u3, u1])
      yield* store.extend(yield* dated(u1, 1))
      expect(yield* usersBefore(9)).toEqual([u1, u2, u3])
      yield* bulk("neverShorten", 2.5)
      expect(yield* usersBefore(2)).toEqual([])
      expect((yield* usersBefore(2.6)).toSorted()).toEqual([u1, u2])
      expect((yield* usersBefore(9)).at(-1)).toBe(u3)
      yield* bulk("set", 6)
      yield* store.extend(yield* dated(u2, 5))
      yield* store.extend(yield* dated(u1, 7))
      expect(yield* usersBefore(6.5)).toEqual([u2, u3])
      expect(yield* usersBefore(9)).toEqual([u2, u3, u1])
      yield* store.end({ ...change(p1), userId: u3 })
      expect(yield* usersBefore(9)).toEqual([u2, u1])
    })

    test("has each once that a bulk extension brings to the same end from another date", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      const endDate = yield* inDays(1)
      const memberships = [u1, u2, u3].map((userId) => ({ userId, endDate }))
      yield* store.import({ ...change(p1), memberships })
      yield* endingPagesOf(store, { before: endDate, limit: 1 })
      yield* store.extend({ ...change(p1), userId: u1, endDate: yield* inDays(2) })
      yield* store.extendAll({ ...change(p1), bulk: { endDate, mode: "set" } })
      const listed = yield* endingPagesOf(store, { before: yield* inDays(9), limit: 2 })
      expect(listed.map(({ userId }) => userId).toSorted()).toEqual([u1, u2, u3])
    })

    test("goes on with those that a bulk extension between pages leaves as they are", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      const before = yield* inDays(9)
      const usersWhile = Effect.fnUntraced(function* (
        ...bulks: ReadonlyArray<readonly [mode: BulkMode, days: number]>
      ) {
        const listed = yield* endingPagesOf(
          store,
          { before, limit: 1 },
          Effect.fnUntraced(function* (page) {
            const [mode, days] = bulks[page - 1] ?? []
            if (mode === undefined || days === undefined) return
            yield* store.extendAll({
              ...change(p1),
              bulk: { endDate: yield* inDays(days), mode },
            })
          }),
        )
        return listed.map(({ userId }) => userId)
      })
      for (const [days, userId] of [u1, u2, u3].entries()) {
        const endDate = yield* inDays(days + 4)
        yield* store.grant({ ...change(p1), userId, endDate })
      }
      // Earlier than the current position.
      expect(yield* usersWhile(["neverShorten", 3])).toEqual([u1, u2, u3])
      expect(yield* usersWhile(["neverShorten", 3], ["neverShorten", 2])).toEqual([u1, u2, u3])
      expect(yield* usersWhile()).toEqual([u1, u2, u3])
      // While the list is at members with the previous date: in any order.
      yield* store.extendAll({ ...change(p1), bulk: { endDate: yield* inDays(5), mode: "set" } })
      const sorted = (listed: ReadonlyArray<UserId>) => listed.toSorted()
      expect(sorted(yield* usersWhile(["neverShorten", 3]))).toEqual([u1, u2, u3])
      expect(sorted(yield* usersWhile(["neverShorten", 2], ["neverShorten", 1]))).toEqual([
        u1,
        u2,
        u3,
      ])
    })

    test("answers whatever cursor it is given", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
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
      fc.array(step, { maxLength: 20 }),
      (steps) => follow(steps, advance),
    )
  })
}
