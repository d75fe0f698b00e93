/** Counts by end day: how many run at a time, and what is known from the audit trail. */

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
import { duringSteps, sql, testsOn, waitingOn } from "./harness.ts"

const schema = "ends"
const test = testsOn(schema)
const { change, in2027, p1, p2, u1 } = Fixture

const day = (text: string): number => dayOf(Date.parse(text))

const count = (days?: DayRange, projectId = p1) =>
  MembershipStore.use((store) => store.countEnds(projectId, { days, change: undefined }))

/** Starts to count a day. */
const start = (first: number, projectId = p1) =>
  Effect.forkDetach(count({ first, last: first }, projectId))

/** What work starts while a count for the first project stands still. */
const whileOneStands = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  duringSteps(sql(`LOCK TABLE ${schema}.memberships IN ACCESS EXCLUSIVE MODE`), function* () {
    const first = yield* Effect.forkDetach(count())
    yield* waitingOn(schema)
    return { first, others: yield* work }
  })

describe("a count of ends", () => {
  test("runs one at a time, is shared, and refused to too many", function* () {
    const { first, others } = yield* whileOneStands(
      Effect.gen(function* () {
        const same = yield* Effect.replicateEffect(start(1), 50)
        const second = yield* start(2)
        yield* Effect.yieldNow
        expect(yield* Effect.flip(count({ first: 3, last: 3 }))).toMatchObject({
          _tag: "StoreUnavailable",
        })
        // Others have their own turns.
        const other = yield* start(3, p2)
        yield* Effect.yieldNow
        // Who gives up makes room.
        yield* Fiber.interrupt(second)
        return [...same, other, yield* start(3)]
      }),
    )
    const counts = yield* Effect.forEach([first, ...others], Fiber.join)
    expect(counts.map(({ total }) => total)).toEqual(counts.map(() => 2))
    // All that asked for the same count share one object.
    expect(new Set(counts).size).toBe(4)
  })

  test("has what its caller has done before, although others have waited for it", function* (store) {
    const { others } = yield* whileOneStands(Effect.replicateEffect(start(1), 2))
    yield* store.end({ ...change(p1), userId: u1 })
    expect((yield* count({ first: 1, last: 1 })).total).toBe(1)
    yield* Effect.forEach(others, Fiber.join)
  })

  test("runs in a transaction of the host, and has what that has done", function* (store) {
    const client = yield* PgClient.PgClient
    const within = Effect.andThen(store.end({ ...change(p1), userId: u1 }), count())
    expect((yield* client.withTransaction(within)).total).toBe(1)
  })

  test("does not tell of days whose audit rows are not kept, or too many", function* () {
    const extendedFrom = (first: string, last: string) =>
      Effect.map(count({ first: day(first), last: day(last) }), ({ days }) =>
        days.map((one) => one.extended),
      )
    yield* sql(`SELECT ${schema}.create_audit_part('2020-01-01')`)
    expect(yield* extendedFrom("2019-12-31", "2020-01-02")).toEqual([undefined, undefined, 0])
    // As after the time that rows are kept.
    yield* sql(`DELETE FROM ${schema}.audit`)
    expect(yield* extendedFrom("2019-12-31", "2020-01-02")).toEqual([undefined, undefined, 0])
    // For the first day, not all are among the newest hundred thousand.
    yield* sql(
      `INSERT INTO ${schema}.audit (id, project_number, seq, user_id, action, at)
       SELECT ${schema}.first_audit_id('2020-01-01') + n, p.number, 0, n::text, 'extended',
              timestamptz '2020-01-02 00:00Z' + n * interval '800 milliseconds'
       FROM ${schema}.projects p, generate_series(1, 110000) n WHERE p.id = 'p1'`,
    )
    expect(yield* extendedFrom("2020-01-01", "2020-01-03")).toEqual([undefined, undefined, 2001])
  })

  test("is that of the list while many bulk extensions are settled", function* (store) {
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
      const listed = yield* store.list(p1, { after: undefined, limit: 100 })
      for (const further of [undefined, bulkAt(3), bulkAt(7), bulkAt(8)]) {
        const counts = yield* store.countEnds(p1, { days, change: further })
        const dates = listed.map(({ endDate }) =>
          further === undefined ? endDate : adjust(endDate, adjustmentOf(further)),
        )
        const onDays = counts.days.map(({ day: of }) => ({
          day: of,
          ends: dates.filter((date) => new Date(date).toISOString().startsWith(of)).length,
        }))
        expect(counts).toMatchObject({ total: listed.length, days: onDays })
        expect(onDays.reduce((sum, { ends }) => sum + ends, 0)).toBe(listed.length)
      }
    })
    yield* agrees
    const settle = sql(`SELECT * FROM ${schema}.settle_bulk_extensions(13)`)
    yield* Effect.repeat(Effect.tap(settle, agrees), { while: (rows) => rows.length > 0 })
  })
})

test("counts and previews read where nothing can be written, unless a pause is over", function* (store) {
  yield* store.pause({
    ...change(p1),
    at: Date.now(),
    userId: u1,
    until: Date.now() + 86_400_000,
    expected: { endDate: in2027 },
  })
  const client = yield* PgClient.PgClient
  const [counts, ended, { total }] = yield* client.withTransaction(
    Effect.all([
      Effect.andThen(
        sql("SET TRANSACTION READ ONLY"),
        store.countEnds(p1, { days: undefined, change: undefined }),
      ),
      store.countEndedBetween(p1, { from: Millis(0), to: Millis(1000) }),
      store.previewBulkExtension(p1, { mode: "extendBy", by: Millis(1000) }),
    ]),
  )
  expect(counts).toMatchObject({ total: 2, paused: 1 })
  expect(ended).toBe(0)
  expect(total).toBe(2)
})
