/** Ending lists. */

import { expect } from "@effect/vitest"
import { makeDecideAnnouncement, reminderLeads } from "@tenure/core/internal"
import {
  EndDate,
  EndingCursor,
  type EndingPage,
  MembershipStore,
  Millis,
  type ProjectId,
  type UserId,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { change, occasion, p1, p2, u1, u2, u3 } from "../../support/fixtures.ts"
import { inDays } from "../announcing.ts"
import { countDays, dayChanges } from "../days.ts"
import type { StoreTests } from "../declare.ts"
import { createProjects, dayMillis } from "../steps.ts"

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
  yield* store.createProject(p1, occasion)
  const { dates, fromStored, make, pass, today, toStored } = yield* countDays(on)

  const list = Effect.fnUntraced(function* ({
    date,
    limit,
    meanwhile,
  }: Extract<Step, { readonly _tag: "List" }>) {
    const before = dates()
    const changed = new Set<UserId>()
    const listed = yield* endingPagesOf(
      store,
      { before: yield* toStored(date), limit },
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
      ([userId, day]) => day > today() && day < date && !changed.has(userId),
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

/** Declares the tests. */
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
      fc.array(step, { maxLength: 20, size: "+1" }),
      (steps) => follow(steps, on),
    )
  })
}
