/** Takes by many clients at the same time: the statements that they share, and what several processes admit. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import {
  ApiKeyId,
  type LimitedClient,
  Millis,
  RateLimitStore,
  bucketPolicy,
  remainingTokens,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import fc from "fast-check"
import { beforeAll } from "vitest"
import { postgresLayer } from "../src/index.ts"
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
import { textsParam } from "../src/sql/values.ts"
import {
  type Steps,
  clientLayer,
  dropped,
  during,
  duringSteps,
  executorOf,
  shared,
  sql,
  waitingOn,
} from "./harness.ts"

const schema = "rate_limits"
const name = `"${schema}"`
const buckets = `${name}.rate_limit_buckets`

beforeAll(() => Effect.runPromise(dropped(schema)))

const startProcess = () => shared(Layer.provideMerge(postgresLayer({ schema }), clientLayer()))
const single = startProcess()
const processes = [single, startProcess(), startProcess()]

const test = (title: string, steps: Steps<RateLimitStore | PgClient.PgClient | Scope.Scope>) =>
  it.live(title, () => Effect.provide(Effect.gen(steps), single))

const perHour = (limit: number) => bucketPolicy({ limit, window: Millis(3_600_000) })
const range = (count: number) => Array.from({ length: count }, (_, index) => index)
const together = { concurrency: "unbounded" } as const

describe("a statement for several clients", () => {
  type Demand = Parameters<typeof takeManyParams>[0][number]

  /** A client's takes from an address, and from a key's two buckets, each with its name and capacity. */
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

  const take = (...demands: ReadonlyArray<Demand>) =>
    sql<TakeManyRow>(takeMany(name), takeManyParams(demands))

  /** Takes if every bucket has enough. Returns whether it did. */
  const takePlenty = (...demands: ReadonlyArray<Demand>) =>
    Effect.map(
      sql<PlentyRow>(takeIfPlenty(name), takeIfPlentyParams(chargesOf(demands))),
      ([row]) => row?.is_plenty === true,
    )

  describe("that meets a lock", () => {
    const insert = (key: string) => sql(`INSERT INTO ${buckets} VALUES ('${key}', 0, 0)`)
    const lock = (key: string) => sql(`SELECT 1 FROM ${buckets} WHERE id = '${key}' FOR UPDATE`)

    /** Has rows for these keys, and no others. */
    const keep = (keys: ReadonlyArray<string>) =>
      Effect.andThen(sql(`DELETE FROM ${buckets}`), Effect.forEach(keys, insert))

    /** Whether a statement meets a lock. It is undone. */
    const isLocked = (statement: Effect.Effect<unknown, unknown, PgClient.PgClient>) =>
      PgClient.PgClient.use((client) =>
        client.withTransaction(
          Effect.all([sql("SET LOCAL lock_timeout = '20ms'"), statement]).pipe(
            Effect.andThen(Effect.fail("undone")),
          ),
        ),
      ).pipe(
        Effect.flip,
        Effect.map((error) => error !== "undone"),
      )

    const empty = (key: string) =>
      sql(`UPDATE ${buckets} SET full_at = 9e15, burst_full_at = 9e15 WHERE id = '${key}'`)
    const taken = (...demands: ReadonlyArray<Demand>) =>
      Effect.map(take(...demands), (rows) => rows.map((row) => row.taken))

    for (const [what, kept, step, takes, result] of [
      ["inserts", [], insert, taken, undefined],
      ["locks", ["a", "m", "z"], empty, taken, [0, 1]],
      ["inserts, if there is plenty,", [], insert, takePlenty, undefined],
      ["locks, if there is plenty,", ["a", "m", "z"], empty, takePlenty, false],
    ] as const)
      test(`${what} buckets in the order of their keys, so that none meets in a circle`, function* () {
        yield* keep(kept)
        const taking = takes(demand(1, ["z", 9], ["m", 9, 9]), demand(1, ["a", 9]))
        const blocked = yield* duringSteps(step("m"), function* () {
          const fiber = yield* Effect.forkDetach(
            Effect.exit<unknown, unknown, PgClient.PgClient>(taking),
          )
          yield* waitingOn(schema)
          expect(yield* isLocked(step("a"))).toBe(true)
          expect(yield* isLocked(step("z"))).toBe(false)
          return fiber
        })
        // What the other transaction has left counts.
        const exit = yield* Fiber.join(blocked)
        expect(Exit.isSuccess(exit) ? exit.value : undefined).toEqual(result)
      })

    test("finds it before it takes for the others", function* () {
      yield* keep(["a", "m"])
      const found = sql(findLocked(name), findLockedParams(["z", "m", "a"]))
      expect(yield* during(lock("m"), found)).toEqual([{ id: "m" }])
      expect(yield* found).toEqual([])
    })
  })

  const three = demand(1, ["shared", 3])
  const fromKey = (short: string, ofKey: number, ofBursts: number) =>
    ["1", "2", "3"].map((address) =>
      demand(1, [`${short} ${address}`, 9], [`${short} key`, ofKey, ofBursts]),
    )
  type Case = readonly [
    what: string,
    demands: ReadonlyArray<Demand>,
    outcomes: ReadonlyArray<string>,
    before?: ReadonlyArray<Demand>,
  ]

  for (const [what, demands, outcomes, before = []] of [
    [
      "each client what those before it can leave",
      [three, three, demand(2, ["shared", 3]), three],
      ["1 of 1", "1 of 1", "1 of 2", "0 of 1"],
    ],
    [
      "what is left of a key, whatever the address",
      fromKey("key", 2, 9),
      ["1 of 1", "1 of 1", "0 of 1"],
    ],
    [
      "what is left of a burst, whatever the address",
      fromKey("burst", 9, 2),
      ["1 of 1", "1 of 1", "0 of 1"],
    ],
    [
      "nothing to a client with an empty bucket, and its tokens to those behind",
      [
        demand(1, ["empty address", 3]),
        demand(5, ["one", 5], ["empty", 1, 9]),
        demand(5, ["one", 5], ["empty of bursts", 9, 1]),
        demand(5, ["one", 5], ["full", 9, 9]),
      ],
      ["0 of 0", "0 of 0", "0 of 0", "5 of 5"],
      [
        demand(3, ["empty address", 3]),
        demand(1, ["before", 9], ["empty", 1, 9]),
        demand(1, ["before", 9], ["empty of bursts", 9, 1]),
      ],
    ],
    [
      "a client the tokens that others with another limit leave",
      // A first token is worth two second ones.
      [demand(2, ["both", 4]), demand(9, ["both", 8])],
      ["2 of 2", "4 of 8"],
    ],
  ] satisfies ReadonlyArray<Case>)
    test(`gives ${what}`, function* () {
      for (const one of before) yield* take(one)
      const rows = yield* take(...demands)
      expect(rows.map(({ most, taken }) => `${taken} of ${most}`)).toEqual(outcomes)
    })

  describe("that takes if there is plenty", () => {
    /** Has rows for these ids, whose buckets are full in a minute. */
    const fill = (ids: ReadonlyArray<string>) =>
      Effect.andThen(
        sql(`DELETE FROM ${buckets}`),
        sql(
          `INSERT INTO ${buckets} SELECT id, soon, CASE WHEN id LIKE 'key %' THEN soon END
           FROM unnest($1::text[]) AS id, CAST((extract(epoch FROM clock_timestamp()) + 60) * 1000000 AS bigint) AS soon`,
          [textsParam(ids)],
        ),
      )

    const stored = sql<{
      readonly id: string
      readonly full_at: bigint
      readonly burst_full_at: bigint | null
    }>(`SELECT * FROM ${buckets} ORDER BY id`)

    /** What a statement has added to each row's buckets. */
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

    const clients = fc.array(
      fc.tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom("a", "b", "c"), fc.nat({ max: 3 })),
      { minLength: 2, maxLength: 8 },
    )

    for (const [ofAddress, ofKey, ofBursts] of [
      [10, 10, 10],
      [30, 10, 20],
      [30, 20, 10],
    ] as const)
      test(`takes exactly what the one that shares takes, or nothing if one is short of ${ofAddress}, ${ofKey} or ${ofBursts}`, function* () {
        const run = Effect.runPromiseWith(yield* Effect.context<PgClient.PgClient>())
        let [plenty, short] = [0, 0]
        const property = fc.asyncProperty(clients, async (some) => {
          // A token returns after two minutes at the earliest, and all buckets lack one.
          const demands = some.map(([count, address, key]) =>
            demand(count, [address, ofAddress], [`key ${key}`, ofKey, ofBursts]),
          )
          const ids = [...chargesOf(demands).keys()]
          await run(fill(ids))
          const tried = await run(added(takePlenty(...demands)))
          await run(fill(ids))
          const shares = await run(added(take(...demands)))
          const isPlenty = shares.outcome.every(({ taken }, index) => taken === some[index]?.[0])
          const nothing = Object.fromEntries(ids.map((id) => [id, [0, 0]]))
          expect(tried).toEqual({
            outcome: isPlenty,
            charged: isPlenty ? shares.charged : nothing,
          })
          if (isPlenty) plenty++
          else short++
        })
        yield* Effect.promise(() => fc.assert(property, { numRuns: 40, seed: 7 }))
        expect(Math.min(plenty, short)).toBeGreaterThan(5)
      })

    for (const [what, column] of [
      ["bucket", "full_at"],
      ["bucket of bursts", "burst_full_at"],
    ] as const)
      test(`leaves a ${what} from before the clock was set back to the one that shares`, function* () {
        const hour = 3_600_000_000
        yield* fill(["key late", "key soon"])
        yield* sql(
          `UPDATE ${buckets} SET ${column} = ${column} + 100 * ${hour}::bigint WHERE id = 'key late'`,
        )
        const soon = demand(1, ["soon", 9], ["key soon", 9, 9])
        const demands = [demand(1, ["late", 9], ["key late", 9, 9]), soon]
        expect(yield* added(takePlenty(...demands))).toEqual({
          outcome: false,
          charged: { "key late": [0, 0], "key soon": [0, 0] },
        })
        yield* take(...demands)
        expect(yield* takePlenty(soon, soon)).toBe(true)
        const { charged } = yield* added(take(...demands))
        expect(Math.max(...charged["key late"])).toBeLessThan(hour)
      })

    test("is tried in vain once in 17 statements, however many clients are short", function* () {
      const executor = yield* executorOf(schema)
      const counts = { tried: 0, shared: 0 }
      const store = yield* makePostgresRateLimitStore({
        ...executor,
        executeApart: (text, params, manner) => {
          if (text === takeIfPlenty(name)) counts.tried++
          if (text === takeMany(name)) counts.shared++
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
          together,
        )
        expect(outcomes.map(({ admitted }) => admitted)).toEqual([round === 0, true])
      }
      expect(counts).toEqual({ tried: 3, shared: 33 })
    })
  })
})

describe("takes", () => {
  /** Policies for buckets with so many tokens, which do not return during a test. */
  const policiesOf = (address: number, key: number) => ({
    address: perHour(address),
    key: perHour(key),
    burst: perHour(10_000),
  })
  const plenty = policiesOf(10_000, 10_000)

  let tests = 0

  /** Returns what makes clients that no other test has. */
  const newClients = () => {
    const prefix = tests++
    return (address: number | string, key?: number | string): LimitedClient => ({
      address: `${prefix}-${address}`,
      keyId: key === undefined ? undefined : ApiKeyId(`${prefix}-${key}`),
    })
  }

  const take = (client: LimitedClient, policies = plenty) =>
    RateLimitStore.use((store) => store.take(client, policies))

  /** Takes for all clients at the same time. Returns how each take ends. */
  const exitsOf = (clients: ReadonlyArray<LimitedClient>) =>
    Effect.all(
      clients.map((client) => Effect.exit(take(client))),
      together,
    )

  /**
   * Takes for all clients at the same time. Returns whether each was admitted. A take that waits too long
   * for another process has taken nothing, and is repeated.
   */
  const takeAll = (clients: ReadonlyArray<LimitedClient>, policies = plenty) =>
    Effect.map(
      Effect.all(
        clients.map((client) => Effect.retry(take(client, policies), { times: 50 })),
        together,
      ),
      (takes) => takes.map(({ admitted }) => admitted),
    )

  /** Takes for all clients at the same time in all processes. Returns whether each was admitted. */
  const takeEverywhere = (clients: ReadonlyArray<LimitedClient>, policies = plenty) =>
    Effect.map(
      Effect.forEach(processes, (one) => Effect.provide(takeAll(clients, policies), one), together),
      (all) => all.flat(),
    )

  test("in three processes are admitted exactly as keys and addresses have tokens", function* () {
    const client = newClients()
    const keys = range(40).map((key) => client(key, key))
    const ofKeys = yield* takeEverywhere(
      range(4).flatMap(() => keys),
      policiesOf(1000, 7),
    )
    for (const key of keys.keys())
      expect(ofKeys.filter((isAdmitted, n) => isAdmitted && n % 40 === key)).toHaveLength(7)

    const atAddress = range(120).map((key) => client("shared", `of ${key}`))
    for (const tokens of [250, 0]) {
      const admitted = yield* takeEverywhere(atAddress, policiesOf(250, 10))
      expect(admitted.filter((isAdmitted) => isAdmitted)).toHaveLength(tokens)
    }
  })

  describe("of clients that share addresses and keys leave no token that a refused one could have had", () => {
    /** Whether no bucket has lost too many tokens, and each refused client has an empty bucket. */
    const check = (
      clients: ReadonlyArray<LimitedClient>,
      areAdmitted: ReadonlyArray<boolean>,
    ): void => {
      const admitted = clients.filter((_, index) => areAdmitted[index])
      for (const [index, client] of clients.entries()) {
        const ofAddress = admitted.filter(({ address }) => address === client.address).length
        const ofKey = admitted.filter(({ keyId }) => keyId === client.keyId).length
        expect(ofAddress).toBeLessThanOrEqual(2)
        expect(ofKey).toBeLessThanOrEqual(1)
        expect(areAdmitted[index] === true || ofAddress === 2 || ofKey === 1).toBe(true)
      }
    }
    const policies = policiesOf(2, 1)

    test("in one process", function* () {
      const run = Effect.runPromiseWith(yield* Effect.context<RateLimitStore>())
      const number = fc.nat({ max: 12 })
      const pairs = fc.array(fc.tuple(number, number), { minLength: 2, maxLength: 60 })
      const property = fc.asyncProperty(pairs, async (some) => {
        const client = newClients()
        const clients = some.map(([address, key]) => client(address, key))
        check(clients, await run(takeAll(clients, policies)))
      })
      yield* Effect.promise(() => fc.assert(property, { numRuns: 30 }))
    })

    test("in three, also in a long chain", function* () {
      const client = newClients()
      // Each shares its key with the one before, and its address with the next.
      const clients = range(40).map((n) => client(Math.ceil(n / 2), Math.floor(n / 2)))
      check([...clients, ...clients, ...clients], yield* takeEverywhere(clients, policies))
    })
  })

  test("that PostgreSQL cannot understand fail alone", function* () {
    const exits = yield* exitsOf(["a", "b\0", "c", "d"].map((address) => newClients()(address)))
    expect(exits.map(({ _tag }) => _tag)).toEqual(["Success", "Failure", "Success", "Success"])
  })

  test("that meet a lock fail alone, with StoreUnavailable", function* () {
    const client = newClients()
    const clients = range(20).map((n) => client(n, n))
    yield* takeAll(clients)
    const [refused, ...exits] = yield* during(
      sql(`SELECT 1 FROM ${buckets} WHERE id = 'address:${client(0).address}' FOR UPDATE`),
      exitsOf(clients),
    )
    expect(refused).toMatchObject({
      _tag: "Failure",
      cause: { reasons: [{ error: { _tag: "StoreUnavailable" } }] },
    })
    expect(exits.map(({ _tag }) => _tag)).toEqual(exits.map(() => "Success"))
  })

  test("that are cancelled while they wait take nothing, and the others do", function* () {
    const client = newClients()
    const [one, other] = [client("one"), client("other")]
    const start = <A, E>(work: Effect.Effect<A, E, RateLimitStore>) =>
      Effect.forkChild(work, { startImmediately: true })
    // Two statements are under way: the rest waits for them.
    const first = yield* start(takeAll([one, other]))
    const cancelled = yield* Effect.forEach([one, other, one], (each) => start(take(each)))
    const last = yield* start(take(one))
    yield* Fiber.interruptAll(cancelled)
    yield* Fiber.join(first)
    for (const { address, now } of [yield* Fiber.join(last), yield* take(other)])
      expect(remainingTokens(address, now, plenty.address)).toBe(9998)
  })
})
