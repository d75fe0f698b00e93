/** The statement that takes for several clients, and the locks of others. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import { Millis, bucketPolicy } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { migrate } from "../src/index.ts"
import {
  type TakeManyRow,
  findLocked,
  findLockedParams,
  takeMany,
  takeManyParams,
} from "../src/rate-limits.ts"
import { clientLayer, execute } from "./harness.ts"

const schema = "take_many"

const migrated = Layer.effectDiscard(
  Effect.andThen(
    execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`),
    Effect.provide(migrate({ schema }), clientLayer()),
  ),
)

const perHour = (limit: number) => bucketPolicy({ limit, window: Millis(3_600_000) })

/** Takes of a client from buckets of these names and capacities: its address, and two of its key. */
const demand = (count: number, buckets: Readonly<Record<string, number>>) => ({
  count,
  buckets: Object.entries(buckets).map(([key, limit]) => ({ key, policy: perHour(limit) })),
})

const take = Effect.fnUntraced(function* (...demands: Parameters<typeof takeManyParams>[0]) {
  const sql = yield* PgClient.PgClient
  return yield* sql.unsafe<TakeManyRow>(takeMany(`"${schema}"`), takeManyParams(demands))
})

/** Runs an effect while a transaction of another client has run a statement. */
const during = <A, E, R>(statement: string, work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const services = yield* Effect.context<R>()
    const others = Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const working = Effect.promise(() => Effect.runPromiseWith(services)(work))
      return yield* sql.withTransaction(Effect.andThen(sql.unsafe(statement), working))
    })
    return yield* Effect.provide(others, clientLayer({ maxConnections: 1 }))
  })

/** Starts takes that meet a lock, waits until they do, and returns how others find two buckets then. */
const whileBlocked = (work: Effect.Effect<unknown, unknown, PgClient.PgClient>) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const waits = sql.unsafe(`
      SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%"${schema}"%'
    `)
    const blocked = yield* Effect.forkDetach(Effect.exit(take(demand(1, { z: 9, m: 9, a: 9 }))))
    yield* Effect.repeat(waits, { until: (rows) => rows.length > 0 })
    yield* work
    return blocked
  })

/** Whether a statement meets a lock. It is undone. */
const isLocked = Effect.fnUntraced(function* (statement: string) {
  const sql = yield* PgClient.PgClient
  const undone = yield* sql
    .withTransaction(
      Effect.gen(function* () {
        yield* sql.unsafe("SET LOCAL lock_timeout = '20ms'")
        yield* sql.unsafe(statement)
        return yield* Effect.fail("undone")
      }),
    )
    .pipe(Effect.flip)
  return undone !== "undone"
})

it.layer(Layer.provideMerge(migrated, clientLayer({ maxConnections: 6 })), {
  excludeTestServices: true,
})("a statement for several clients", (test) => {
  describe("that meets a lock", () => {
    const insert = (key: string) =>
      `INSERT INTO "${schema}".rate_limit_buckets VALUES ('${key}', 0)`
    const lock = (key: string) =>
      `SELECT 1 FROM "${schema}".rate_limit_buckets WHERE id = '${key}' FOR UPDATE`

    test.effect.each([
      ["inserts", [], insert],
      ["locks", ["a", "m", "z"], lock],
    ] as const)(
      "%s buckets in the order of their keys, so that none meets in a circle",
      ([, kept, step]) =>
        Effect.gen(function* () {
          yield* execute(`DELETE FROM ${schema}.rate_limit_buckets`, ...kept.map(insert))
          const blocked = yield* during(
            step("m"),
            whileBlocked(
              Effect.gen(function* () {
                expect(yield* isLocked(step("a"))).toBe(true)
                expect(yield* isLocked(step("z"))).toBe(false)
              }),
            ),
          )
          expect((yield* Fiber.join(blocked))._tag).toBe(kept.length > 0 ? "Success" : "Failure")
        }),
    )

    test.effect("finds it before it takes for the others", () =>
      Effect.gen(function* () {
        yield* execute(`DELETE FROM ${schema}.rate_limit_buckets`, ...["a", "m"].map(insert))
        const sql = yield* PgClient.PgClient
        const found = sql.unsafe(findLocked(`"${schema}"`), findLockedParams(["z", "m", "a"]))
        expect(yield* during(lock("m"), found)).toEqual([{ key: "m" }])
        expect(yield* found).toEqual([])
      }),
    )
  })

  describe("gives", () => {
    const outcomes = (...demands: Parameters<typeof takeManyParams>[0]) =>
      Effect.map(take(...demands), (rows) => rows.map(({ most, taken }) => [taken, most]))

    test.effect("each client what those before it can leave", () =>
      Effect.gen(function* () {
        const three = { shared: 3 }
        expect(
          yield* outcomes(demand(1, three), demand(1, three), demand(2, three), demand(1, three)),
        ).toEqual([
          [1, 1],
          [1, 1],
          [1, 2],
          [0, 1],
        ])
        expect(yield* outcomes(demand(1, three))).toEqual([[0, 0]])
      }),
    )

    test.effect.each(["key", "burst"])("what is left of a %s, whatever the address", (short) =>
      Effect.gen(function* () {
        const sizes = {
          [`${short} key`]: 9,
          [`${short} burst`]: 9,
          [`${short} ${short}`]: 2,
        }
        const from = (address: string) => demand(1, { [`${short} ${address}`]: 9, ...sizes })
        expect(yield* outcomes(from("1"), from("2"), from("3"))).toEqual([
          [1, 1],
          [1, 1],
          [0, 1],
        ])
      }),
    )

    test.effect("nothing to a client with an empty bucket, and its tokens to those behind", () =>
      Effect.gen(function* () {
        yield* take(demand(1, { empty: 1 }))
        expect(
          yield* outcomes(
            demand(5, { one: 5, empty: 1, some: 9 }),
            demand(5, { one: 5, full: 9, more: 9 }),
          ),
        ).toEqual([
          [0, 0],
          [5, 5],
        ])
      }),
    )

    test.effect("a client the tokens that others with another limit leave", () =>
      Effect.gen(function* () {
        // A token of the first is worth two of the second.
        expect(yield* outcomes(demand(2, { both: 4 }), demand(9, { both: 8 }))).toEqual([
          [2, 2],
          [4, 8],
        ])
      }),
    )
  })
})
