/** The statement that takes for several clients, and the locks of others. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import { ApiKeyId, Millis, bucketPolicy } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import fc from "fast-check"
import { makeExecutor, makeServer } from "../src/connection/executor.ts"
import { migrate } from "../src/index.ts"
import {
  type PlentyRow,
  type TakeManyRow,
  chargesOf,
  findLocked,
  findLockedParams,
  makePostgresRateLimitStore,
  takeIfPlenty,
  takeIfPlentyParams,
  takeMany,
  takeManyParams,
} from "../src/rate-limits.ts"
import { floatsParam, textsParam } from "../src/sql/values.ts"
import { clientLayer, execute } from "./harness.ts"

const schema = "take_many"

const migrated = Layer.effectDiscard(
  Effect.andThen(
    execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`),
    Effect.provide(migrate({ schema }), clientLayer()),
  ),
)

const perHour = (limit: number) => bucketPolicy({ limit, window: Millis(3_600_000) })

type Demand = Parameters<typeof takeManyParams>[0][number]

/** Takes of a client from an address, and from the two buckets of a key, each with its name and capacity. */
const demand = (
  count: number,
  [address, limit]: readonly [string, number],
  [key, ofKey, ofBursts]: readonly [string | undefined, number, number] = [undefined, 0, 0],
): Demand => {
  const ofAddress = { id: address, policy: perHour(limit), burst: undefined }
  if (key === undefined) return { count, rows: [ofAddress] }
  return {
    count,
    rows: [ofAddress, { id: key, policy: perHour(ofKey), burst: perHour(ofBursts) }],
  }
}

const take = Effect.fnUntraced(function* (...demands: ReadonlyArray<Demand>) {
  const sql = yield* PgClient.PgClient
  return yield* sql.unsafe<TakeManyRow>(takeMany(`"${schema}"`), takeManyParams(demands))
})

/** Takes if every bucket has enough. Returns whether it did. */
const takePlenty = Effect.fnUntraced(function* (...demands: ReadonlyArray<Demand>) {
  const sql = yield* PgClient.PgClient
  const params = takeIfPlentyParams(chargesOf(demands))
  const [row] = yield* sql.unsafe<PlentyRow>(takeIfPlenty(`"${schema}"`), params)
  return row?.is_plenty === true
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
const whileBlocked = (
  work: Effect.Effect<unknown, unknown, PgClient.PgClient>,
  takes: (
    ...demands: ReadonlyArray<Demand>
  ) => Effect.Effect<unknown, unknown, PgClient.PgClient> = take,
) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const waits = sql.unsafe(`
      SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%"${schema}"%'
    `)
    const blocked = yield* Effect.forkDetach(
      Effect.exit(takes(demand(1, ["z", 9], ["m", 9, 9]), demand(1, ["a", 9]))),
    )
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
      `INSERT INTO "${schema}".rate_limit_buckets VALUES ('${key}', 0, 0)`
    const lock = (key: string) =>
      `SELECT 1 FROM "${schema}".rate_limit_buckets WHERE id = '${key}' FOR UPDATE`

    test.effect.each([
      ["inserts", [], insert, take],
      ["locks", ["a", "m", "z"], lock, take],
      ["inserts, if there is plenty,", [], insert, takePlenty],
      ["locks, if there is plenty,", ["a", "m", "z"], lock, takePlenty],
    ] as const)(
      "%s buckets in the order of their keys, so that none meets in a circle",
      ([, kept, step, takes]) =>
        Effect.gen(function* () {
          yield* execute(`DELETE FROM ${schema}.rate_limit_buckets`, ...kept.map(insert))
          const blocked = yield* during(
            step("m"),
            whileBlocked(
              Effect.gen(function* () {
                expect(yield* isLocked(step("a"))).toBe(true)
                expect(yield* isLocked(step("z"))).toBe(false)
              }),
              takes,
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
        expect(yield* during(lock("m"), found)).toEqual([{ id: "m" }])
        expect(yield* found).toEqual([])
      }),
    )
  })

  describe("gives", () => {
    const outcomes = (...demands: ReadonlyArray<Demand>) =>
      Effect.map(take(...demands), (rows) => rows.map(({ most, taken }) => [taken, most]))

    test.effect("each client what those before it can leave", () =>
      Effect.gen(function* () {
        const three = ["shared", 3] as const
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

    test.effect.each([
      ["key", 2, 9],
      ["burst", 9, 2],
    ] as const)("what is left of a %s, whatever the address", ([short, ofKey, ofBursts]) =>
      Effect.gen(function* () {
        const from = (address: string) =>
          demand(1, [`${short} ${address}`, 9], [`${short} key`, ofKey, ofBursts])
        expect(yield* outcomes(from("1"), from("2"), from("3"))).toEqual([
          [1, 1],
          [1, 1],
          [0, 1],
        ])
      }),
    )

    test.effect("nothing to a client with an empty bucket, and its tokens to those behind", () =>
      Effect.gen(function* () {
        yield* take(demand(1, ["before", 9], ["empty", 1, 9]))
        yield* take(demand(1, ["before", 9], ["empty of bursts", 9, 1]))
        expect(
          yield* outcomes(
            demand(5, ["one", 5], ["empty", 1, 9]),
            demand(5, ["one", 5], ["empty of bursts", 9, 1]),
            demand(5, ["one", 5], ["full", 9, 9]),
          ),
        ).toEqual([
          [0, 0],
          [0, 0],
          [5, 5],
        ])
      }),
    )

    test.effect("a client the tokens that others with another limit leave", () =>
      Effect.gen(function* () {
        // A token of the first is worth two of the second.
        expect(yield* outcomes(demand(2, ["both", 4]), demand(9, ["both", 8]))).toEqual([
          [2, 2],
          [4, 8],
        ])
      }),
    )
  })

  describe("that takes if there is plenty", () => {
    const minute = 60_000_000

    /** For how long each bucket of a row is not full yet, in microseconds. */
    type Waits = readonly [wait: number, ofBursts?: number]

    /** Stores rows. */
    const fill = Effect.fnUntraced(function* (rows: Readonly<Record<string, Waits>>) {
      const sql = yield* PgClient.PgClient
      const waits = Object.values(rows)
      yield* sql.unsafe(`DELETE FROM "${schema}".rate_limit_buckets`)
      yield* sql.unsafe(
        `INSERT INTO "${schema}".rate_limit_buckets
         SELECT id, (now + wait)::bigint, (now + of_bursts)::bigint
         FROM unnest($1::text[], $2::float8[], $3::float8[]) AS b (id, wait, of_bursts),
              CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS float8) AS now`,
        [
          textsParam(Object.keys(rows)),
          floatsParam(waits.map(([wait]) => wait)),
          floatsParam(waits.map(([, ofBursts]) => ofBursts)),
        ],
      )
    })

    interface StoredRow {
      readonly id: string
      readonly full_at: bigint
      readonly burst_full_at: bigint | null
    }

    const stored = PgClient.PgClient.use((sql) =>
      sql.unsafe<StoredRow>(`SELECT * FROM "${schema}".rate_limit_buckets ORDER BY id`),
    )

    /** What a statement has added to the buckets of each row. */
    const added = <A, E>(work: Effect.Effect<A, E, PgClient.PgClient>) =>
      Effect.gen(function* () {
        const before = new Map((yield* stored).map((row) => [row.id, row]))
        const outcome = yield* work
        const each = (yield* stored).map(({ burst_full_at, full_at, id }) => [
          id,
          [
            Number(full_at) - Number(before.get(id)?.full_at),
            Number(burst_full_at) - Number(before.get(id)?.burst_full_at),
          ],
        ])
        return { outcome, charged: Object.fromEntries(each) }
      })

    const names = ["a", "b", "c"]
    const clients = fc.array(
      fc.tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom(...names), fc.nat({ max: 3 })),
      { minLength: 2, maxLength: 8 },
    )

    test.effect.each([
      [10, 10, 10],
      [30, 10, 20],
      [30, 20, 10],
    ] as const)(
      "takes exactly what the one that shares takes, or nothing if one is short, %s",
      ([ofAddress, ofKey, ofBursts]) =>
        Effect.gen(function* () {
          const services = yield* Effect.context<PgClient.PgClient>()
          const run = Effect.runPromiseWith(services)
          let [plenty, short] = [0, 0]
          const property = fc.asyncProperty(clients, async (some) => {
            // A token returns after two minutes at the earliest, and all buckets lack one.
            const demands = some.map(([count, name, key]) =>
              demand(count, [name, ofAddress], [`key ${key}`, ofKey, ofBursts]),
            )
            const rows = Object.fromEntries(
              [...chargesOf(demands)].map(([id, { burst }]) => [
                id,
                burst === undefined ? ([minute] as const) : ([minute, minute] as const),
              ]),
            )
            await run(fill(rows))
            const tried = await run(added(takePlenty(...demands)))
            await run(fill(rows))
            const shared = await run(added(take(...demands)))
            const isPlenty = shared.outcome.every(({ taken }, index) => taken === some[index]?.[0])
            expect(tried.outcome).toBe(isPlenty)
            const nothing = Object.fromEntries(Object.keys(rows).map((id) => [id, [0, 0]]))
            expect(tried.charged).toEqual(isPlenty ? shared.charged : nothing)
            if (isPlenty) plenty++
            else short++
          })
          yield* Effect.promise(() => fc.assert(property, { numRuns: 40, seed: 7 }))
          expect(Math.min(plenty, short)).toBeGreaterThan(5)
        }),
    )

    test.effect.each([
      ["late", { late: [100 * 60 * minute, 0], soon: [0, 0] }],
      ["late for bursts", { late: [0, 100 * 60 * minute], soon: [0, 0] }],
    ] as const)(
      "leaves a bucket from before the clock was set back to the one that shares: %s",
      ([, rows]) =>
        Effect.gen(function* () {
          yield* fill(rows)
          const soon = demand(1, ["soon address", 9], ["soon", 9, 9])
          const demands = [demand(1, ["late address", 9], ["late", 9, 9]), soon]
          const tried = yield* added(takePlenty(...demands))
          expect(tried).toEqual({ outcome: false, charged: { late: [0, 0], soon: [0, 0] } })
          yield* take(...demands)
          expect(yield* takePlenty(soon, soon)).toBe(true)
          const { charged } = yield* added(take(...demands))
          expect(Math.max(...charged["late"])).toBeLessThan(60 * minute)
        }),
    )

    test.effect("is tried in vain once in 17 statements, however many clients are short", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const client = yield* PgClient.PgClient
          const executor = makeExecutor(yield* makeServer(client, 2, undefined), `"${schema}"`)
          const tried = takeIfPlenty(`"${schema}"`)
          const shared = takeMany(`"${schema}"`)
          const counts = { tried: 0, shared: 0 }
          const store = yield* makePostgresRateLimitStore({
            ...executor,
            executeApart: (text, params, manner) => {
              if (text === tried) counts.tried++
              if (text === shared) counts.shared++
              return executor.executeApart(text, params, manner)
            },
          })
          const one = perHour(1)
          const policies = { address: perHour(1000), key: one, burst: one }
          // Each round has a client with a token and one without.
          for (let round = 0; round < 34; round++) {
            const outcomes = yield* Effect.all(
              ["without", `with ${round}`].map((keyId) =>
                store.take({ address: `of ${keyId}`, keyId: ApiKeyId(keyId) }, policies),
              ),
              { concurrency: "unbounded" },
            )
            expect(outcomes.map(({ admitted }) => admitted)).toEqual([round === 0, true])
          }
          expect(counts).toEqual({ tried: 3, shared: 33 })
        }),
      ),
    )
  })
})
