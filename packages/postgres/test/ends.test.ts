/** Counts of ends: how many run at a time, and what is known of the audit trail. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect } from "@effect/vitest"
import { adjust } from "@tenure/core/internal"
import {
  type BulkChange,
  type DayRange,
  EndDate,
  MembershipStore,
  Millis,
  UserId,
  adjustmentOf,
  dayOf,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { sql } from "./harness.ts"
import { blocked, holding, testsOn } from "./locking.ts"

const schema = "counting_ends"
const onStores = testsOn(schema)
const { change, in2027, p1, p2, u1 } = Fixture

const day = (text: string): number => dayOf(Date.parse(text))

const count = (days?: DayRange, projectId = p1) =>
  Effect.flatMap(MembershipStore, (store) =>
    store.countEnds(projectId, { days, change: undefined }),
  )

const onDay = (first: number): DayRange => ({ first, last: first })

/** What a count of each project ends with, while a count of the first one stands still. */
const whileOneStands = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  holding(
    `LOCK TABLE ${schema}.memberships IN ACCESS EXCLUSIVE MODE`,
    Effect.gen(function* () {
      const first = yield* Effect.forkDetach(count())
      yield* blocked
      return { first, others: yield* work }
    }),
  )

describe("a count of ends", () => {
  onStores(
    "runs for one at a time: those who ask for the same share it, and too many are refused",
    Effect.gen(function* () {
      const { first, others } = yield* whileOneStands(
        Effect.gen(function* () {
          const same = yield* Effect.forEach(Array.from({ length: 50 }), () =>
            Effect.forkDetach(count(onDay(1))),
          )
          const second = yield* Effect.forkDetach(count(onDay(2)))
          yield* Effect.yieldNow
          const refused = yield* Effect.flip(count(onDay(3)))
          expect(refused._tag).toBe("StoreUnavailable")
          // Others have turns of their own.
          const other = yield* Effect.forkDetach(count(onDay(3), p2))
          yield* Effect.yieldNow
          // Who gives up makes room.
          yield* Fiber.interrupt(second)
          return [...same, other, yield* Effect.forkDetach(count(onDay(3)))]
        }),
      )
      const counts = yield* Effect.forEach([first, ...others], Fiber.join)
      expect(counts.map(({ total }) => total)).toEqual(counts.map(() => 2))
      // All of the same count are the same object.
      expect(new Set(counts).size).toBe(4)
    }),
  )

  onStores(
    "has what its caller has done before, although others have waited for it",
    Effect.gen(function* () {
      const store = yield* MembershipStore
      const { others } = yield* whileOneStands(
        Effect.forEach([0, 1], () => Effect.forkDetach(count(onDay(1)))),
      )
      yield* store.end({ ...change(p1), userId: u1 })
      expect((yield* count(onDay(1))).total).toBe(1)
      yield* Effect.forEach(others, Fiber.join)
    }),
  )

  onStores(
    "does not tell of days whose audit rows are not all kept, or too many to read",
    Effect.gen(function* () {
      const around = { first: day("2019-12-31"), last: day("2020-01-02") }
      const extended = Effect.map(count(around), ({ days }) => days.map((one) => one.extended))
      yield* sql(`SELECT ${schema}.create_audit_part('2020-01-01')`)
      expect(yield* extended).toEqual([undefined, undefined, 0])
      // As after the time that rows are kept.
      yield* sql(`DELETE FROM ${schema}.audit`)
      expect(yield* extended).toEqual([undefined, undefined, 0])
      yield* sql(
        `INSERT INTO ${schema}.audit (id, project_number, seq, user_id, action, at)
         SELECT ${schema}.first_audit_id('2020-01-01') + n, p.number, 0, n::text, 'extended',
                timestamptz '2020-01-02 00:00Z' + n * interval '1 second'
         FROM ${schema}.projects p, generate_series(1, 200000) n WHERE p.id = 'p1'`,
      )
      const later = { first: day("2020-01-02"), last: day("2020-01-04") }
      const { days } = yield* count(later)
      expect(days.map((one) => one.extended)).toEqual([undefined, undefined, 27_201])
    }),
  )

  onStores(
    "is that of the list, however many bulk extensions there are, and while they are settled",
    Effect.gen(function* () {
      const store = yield* MembershipStore
      const bulkAt = (index: number): BulkChange => {
        const endDate = EndDate(in2027 + index * 3_600_000)
        if (index % 3 === 0) return { mode: "extendBy", by: Millis(7_200_000) }
        return { mode: index % 7 === 0 ? "set" : "neverShorten", endDate }
      }
      for (let index = 0; index < 150; index++) {
        if (index % 3 === 0) {
          const endDate = EndDate(in2027 + (index % 5) * 86_400_000)
          yield* store.grant({ ...change(p1), userId: UserId(`user-${index}`), endDate })
        }
        yield* store.extendAll({ ...change(p1), bulk: bulkAt(index) })
      }
      const agrees = Effect.gen(function* () {
        const days = { first: dayOf(in2027) - 1, last: dayOf(in2027) + 60 }
        for (const further of [undefined, bulkAt(3), bulkAt(7), bulkAt(8)]) {
          const counts = yield* store.countEnds(p1, { days, change: further })
          const listed = yield* store.list(p1, { after: undefined, limit: 100 })
          expect(counts.total).toBe(listed.length)
          const adjusted = listed.map(({ endDate }) =>
            further === undefined ? endDate : adjust(endDate, adjustmentOf(further)),
          )
          const onDays = counts.days.map(({ day: of }) =>
            adjusted.filter((endDate) => new Date(endDate).toISOString().startsWith(of)),
          )
          expect(counts.days.map(({ ends }) => ends)).toEqual(onDays.map(({ length }) => length))
          expect(onDays.flat()).toHaveLength(listed.length)
        }
      })
      yield* agrees
      let isMore = true
      while (isMore) {
        const rows = yield* sql(`SELECT * FROM ${schema}.settle_bulk_extensions(13)`)
        isMore = rows.length > 0
        yield* agrees
      }
    }),
  )

  onStores(
    "runs in a transaction of the host, and has what that has done",
    Effect.gen(function* () {
      const store = yield* MembershipStore
      const client = yield* PgClient.PgClient
      const within = Effect.andThen(store.end({ ...change(p1), userId: u1 }), count())
      expect((yield* client.withTransaction(within)).total).toBe(1)
    }),
  )
})
