/** Lists by ends of projects with many members, also while others have locked some. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect } from "@effect/vitest"
import { EndDate } from "@tenure/core/EndDate"
import type { EndingCursor, EndingPage } from "@tenure/core/EndingPage"
import { UserId } from "@tenure/core/Membership"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { Fixture } from "@tenure/testing"
import * as Effect from "effect/Effect"
import { sql } from "./harness.ts"
import { holding, testsOn } from "./locking.ts"

const schema = "ending"
const { change, p1 } = Fixture
const onStores = testsOn(schema)

// More than a request gives places to, and than one walks through.
const members = 12_000
const daysFromNow = (days: number): EndDate => EndDate(Date.now() + days * 86_400_000)

/** A project with many members, who end one after the other. */
const filled = Effect.gen(function* () {
  yield* sql(`DELETE FROM ${schema}.memberships`)
  yield* sql(
    `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq)
     SELECT number, n::text, date_trunc('second', now()) + n * interval '1 minute', 1
     FROM ${schema}.projects, generate_series(1, ${members}) n WHERE id = 'p1'`,
  )
  return yield* MembershipStore
})

/** Returns all pages of a list. */
const pagesOf = Effect.fnUntraced(function* (before: EndDate, limit: number) {
  const store = yield* MembershipStore
  const pages: Array<EndingPage> = []
  let after: EndingCursor | undefined
  do {
    const page = yield* store.listEnding(p1, { before, after, limit })
    pages.push(page)
    after = page.next
  } while (after !== undefined && pages.length < 100)
  expect(after).toBeUndefined()
  return pages
})

/** Returns all user ids of a list, which must have each once and in order. */
const usersBefore = Effect.fnUntraced(function* (before: EndDate, limit = 1000) {
  const listed = (yield* pagesOf(before, limit)).flatMap(({ memberships }) => memberships)
  const dates = listed.map(({ endDate }) => endDate)
  expect(dates).toEqual(dates.toSorted((one, other) => one - other))
  const users = new Set(listed.map(({ userId }) => userId))
  expect(users.size).toBe(listed.length)
  return users
})

describe("a list by ends", () => {
  onStores(
    "gives places to all members first, and has each once",
    Effect.gen(function* () {
      yield* filled
      const pages = yield* pagesOf(daysFromNow(30), 1000)
      expect(pages[0]?.memberships).toEqual([])
      expect(pages.flatMap(({ memberships }) => memberships)).toHaveLength(members)
      expect((yield* pagesOf(daysFromNow(30), 1000))[0]?.memberships).toHaveLength(1000)
    }),
  )

  onStores(
    "finds members where they end now, after many were extended and after bulk extensions",
    Effect.gen(function* () {
      const store = yield* filled
      yield* usersBefore(daysFromNow(1))
      // As extensions do: the bounds stay where they are.
      yield* sql(
        `UPDATE ${schema}.memberships SET end_date = end_date + interval '1 year', seq = seq + 1
         WHERE user_id::int % 4 > 0`,
      )
      expect((yield* usersBefore(daysFromNow(30))).size).toBe(members / 4)
      expect((yield* usersBefore(daysFromNow(400))).size).toBe(members)
      const floor = daysFromNow(100)
      yield* store.extendAll({ ...change(p1), endDate: floor, mode: "neverShorten" })
      expect((yield* usersBefore(floor)).size).toBe(0)
      expect((yield* usersBefore(EndDate(floor + 1))).size).toBe(members / 4)
      expect((yield* usersBefore(daysFromNow(400))).size).toBe(members)
      const date = daysFromNow(200)
      yield* store.extendAll({ ...change(p1), endDate: date, mode: "set" })
      expect((yield* usersBefore(date)).size).toBe(0)
      expect((yield* usersBefore(EndDate(date + 1))).size).toBe(members)
      // An extension that expects another date leaves the member where it is.
      const refused = { userId: UserId("7"), endDate: daysFromNow(300), expectedEndDate: floor }
      yield* Effect.exit(store.extend({ ...change(p1), ...refused }))
      expect((yield* usersBefore(EndDate(date + 1))).size).toBe(members)
    }),
  )

  onStores(
    "waits for no member that others have locked, and loses none",
    Effect.gen(function* () {
      const store = yield* filled
      yield* usersBefore(daysFromNow(1))
      const userId = UserId("2000")
      yield* store.extend({ ...change(p1), userId, endDate: daysFromNow(50) })
      const locked = `SELECT 1 FROM ${schema}.memberships WHERE user_id = '2000' FOR UPDATE`
      const page = { before: daysFromNow(60), after: undefined, limit: 3000 }
      const during = yield* holding(locked, store.listEnding(p1, page))
      // Those before it: it may belong anywhere after them.
      expect(during.memberships).toHaveLength(1999)
      const rest = yield* store.listEnding(p1, { ...page, after: during.next, limit: 10_000 })
      const last = yield* store.listEnding(p1, { ...page, after: rest.next, limit: 10_000 })
      expect([...rest.memberships, ...last.memberships].at(-1)?.userId).toBe(userId)
    }),
  )

  onStores(
    "leaves extensions that write to no index",
    Effect.gen(function* () {
      const store = yield* filled
      yield* usersBefore(daysFromNow(1))
      const placeOf = Effect.flatMap(PgClient.PgClient, (client) =>
        client.unsafe<{ readonly ends_seq: string; readonly ends_from: Date }>(
          `SELECT ends_seq, ends_from FROM ${schema}.memberships WHERE user_id = '7'`,
        ),
      )
      const before = yield* placeOf
      yield* store.extend({ ...change(p1), userId: UserId("7"), endDate: daysFromNow(99) })
      expect(yield* placeOf).toEqual(before)
    }),
  )
})
