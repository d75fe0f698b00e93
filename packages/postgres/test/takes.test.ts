/** Takes of many clients at the same time, by three processes that share the database. */

import { PgClient } from "@effect/sql-pg"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import {
  ApiKeyId,
  type LimitedClient,
  Millis,
  RateLimitStore,
  bucketPolicy,
  remainingTokens,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import fc from "fast-check"
import { postgresLayer } from "../src/index.ts"
import { clientLayer, execute } from "./harness.ts"

const schema = "takes"

const startProcess = () =>
  ManagedRuntime.make(Layer.provideMerge(postgresLayer({ schema }), clientLayer()))
const processes = [startProcess(), startProcess(), startProcess()] as const
const [single] = processes

beforeAll(() => Effect.runPromise(execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)))
afterAll(() => Promise.all(processes.map((one) => one.dispose())))

const perHour = (limit: number) => bucketPolicy({ limit, window: Millis(3_600_000) })

/** Policies for buckets with so many tokens, which do not return during a test. */
const policiesOf = (address: number, key: number) => ({
  address: perHour(address),
  key: perHour(key),
  burst: perHour(10_000),
})

const plenty = policiesOf(10_000, 10_000)

let tests = 0

/** Makes clients that no other test has. */
const newClients = () => {
  const test = tests++
  return (address: number | string, key?: number): LimitedClient => ({
    address: `${test}-${address}`,
    keyId: key === undefined ? undefined : ApiKeyId(`${test}-${key}`),
  })
}

const range = (count: number) => Array.from({ length: count }, (_, index) => index)

const take = (client: LimitedClient, policies = plenty) =>
  RateLimitStore.use((store) => store.take(client, policies))

/**
 * Takes for all clients at the same time. Returns whether each was admitted. A take that waits too long
 * for another process has taken nothing, and is repeated.
 */
const takeAll = (clients: ReadonlyArray<LimitedClient>, policies = plenty) =>
  Effect.map(
    Effect.all(
      clients.map((client) => Effect.retry(take(client, policies), { times: 50 })),
      { concurrency: "unbounded" },
    ),
    (takes) => takes.map(({ admitted }) => admitted),
  )

/** Takes for all clients at the same time in all processes. Returns the clients that were admitted. */
const takeEverywhere = async (
  clients: ReadonlyArray<LimitedClient>,
  policies = plenty,
): Promise<ReadonlyArray<LimitedClient>> => {
  const admitted = await Promise.all(
    processes.map((one) => one.runPromise(takeAll(clients, policies))),
  )
  return admitted.flatMap((some) => clients.filter((_, index) => some[index]))
}

describe("takes in three processes", () => {
  it("admit for each key exactly what its bucket holds", async () => {
    const client = newClients()
    const clients = range(40).map((key) => client(key, key))
    const admitted = await takeEverywhere(
      [...clients, ...clients, ...clients, ...clients],
      policiesOf(1000, 7),
    )
    for (const one of clients) {
      expect(admitted.filter(({ keyId }) => keyId === one.keyId)).toHaveLength(7)
    }
  })

  it("admit for an address with many keys exactly what its bucket holds", async () => {
    const client = newClients()
    const clients = range(120).map((key) => client("shared", key))
    expect(await takeEverywhere(clients, policiesOf(250, 10))).toHaveLength(250)
    expect(await takeEverywhere(clients, policiesOf(250, 10))).toHaveLength(0)
  })
})

/** Keys and addresses of clients: each pair is one. */
const pairs = fc.array(fc.tuple(fc.nat({ max: 12 }), fc.nat({ max: 12 })), {
  minLength: 2,
  maxLength: 60,
})

/** A chain in which each client shares its key with the one before, and its address with the next. */
const chain = range(40).map((n): [number, number] => [Math.ceil(n / 2), Math.floor(n / 2)])

describe("takes of clients that share addresses and keys", () => {
  /** Whether no bucket has lost too many tokens, and each refused client has an empty bucket. */
  const check = (
    clients: ReadonlyArray<LimitedClient>,
    areAdmitted: ReadonlyArray<boolean>,
  ): void => {
    const admitted = clients.filter((_, index) => areAdmitted[index])
    const ofAddress = ({ address }: LimitedClient) =>
      admitted.filter((one) => one.address === address).length
    const ofKey = ({ keyId }: LimitedClient) => admitted.filter((one) => one.keyId === keyId).length
    for (const [index, client] of clients.entries()) {
      expect(ofAddress(client)).toBeLessThanOrEqual(2)
      expect(ofKey(client)).toBeLessThanOrEqual(1)
      const isEmpty = ofAddress(client) === 2 || ofKey(client) === 1
      expect(areAdmitted[index] === true || isEmpty).toBe(true)
    }
  }
  const policies = policiesOf(2, 1)

  it("leave no token that a refused one could have had", async () => {
    await fc.assert(
      fc.asyncProperty(pairs, async (some) => {
        const client = newClients()
        const clients = some.map(([address, key]) => client(address, key))
        check(clients, await single.runPromise(takeAll(clients, policies)))
      }),
      { numRuns: 30 },
    )
  })

  it("leave no such token in a long chain, in all processes", async () => {
    const client = newClients()
    const clients = chain.map(([address, key]) => client(address, key))
    const outcomes = await Promise.all(
      processes.map((one) => one.runPromise(takeAll(clients, policies))),
    )
    check([...clients, ...clients, ...clients], outcomes.flat())
  })

  it("each have the outcome of their own client", async () => {
    const client = newClients()
    const clients = range(30).map((n) => client(n, n))
    const before = clients.flatMap((one, index) => range(index).map(() => one))
    await single.runPromise(takeAll(before))
    const takes = await single.runPromise(
      Effect.all(
        clients.map((one) => take(one)),
        { concurrency: "unbounded" },
      ),
    )
    const remaining = takes.map(({ key, now }) => remainingTokens(key, now, plenty.key))
    expect(remaining).toEqual(clients.map((_, index) => 10_000 - index - 1))
  })
})

describe("a take", () => {
  it("that PostgreSQL cannot understand fails alone", async () => {
    const client = newClients()
    const clients = [client("a"), client("b\0"), client("c"), client("d")]
    const exits = await single.runPromise(
      Effect.all(
        clients.map((one) => Effect.exit(take(one))),
        { concurrency: "unbounded" },
      ),
    )
    expect(exits.map(({ _tag }) => _tag)).toEqual(["Success", "Failure", "Success", "Success"])
  })

  it("that meets a lock fails alone, with StoreUnavailable", async () => {
    const client = newClients()
    const [locked, ...others] = range(20).map((n) => client(n, n))
    const meets = locked ?? expect.fail()
    await single.runPromise(takeAll([meets, ...others]))
    const work = Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      return yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql.unsafe(
            `SELECT 1 FROM ${schema}.rate_limit_buckets WHERE id = 'address:${meets.address}' FOR UPDATE`,
          )
          // A new runtime has no part in the transaction.
          return yield* Effect.promise(() =>
            single.runPromise(
              Effect.all(
                [meets, ...others].map((one) => Effect.exit(take(one))),
                { concurrency: "unbounded" },
              ),
            ),
          )
        }),
      )
    }).pipe(Effect.provide(clientLayer({ maxConnections: 1 })))
    const [refused, ...exits] = await Effect.runPromise(work)
    expect(refused).toMatchObject({
      _tag: "Failure",
      cause: { reasons: [{ error: { _tag: "StoreUnavailable" } }] },
    })
    expect(exits.map(({ _tag }) => _tag)).toEqual(others.map(() => "Success"))
  })

  it("that is cancelled while it waits takes nothing, and the others do", async () => {
    const client = newClients()
    const [one, other] = [client("one"), client("other")]
    const takes = Effect.gen(function* () {
      // Two statements are under way: the rest waits for them.
      const first = yield* Effect.forkChild(takeAll([one, other]), { startImmediately: true })
      const cancelled = yield* Effect.forEach([one, other, one], (each) =>
        Effect.forkChild(take(each), { startImmediately: true }),
      )
      const last = yield* Effect.forkChild(take(one), { startImmediately: true })
      yield* Fiber.interruptAll(cancelled)
      yield* Fiber.join(first)
      return yield* Fiber.join(last)
    })
    const { address, now } = await single.runPromise(takes)
    expect(remainingTokens(address, now, plenty.address)).toBe(9998)
    const again = await single.runPromise(take(other))
    expect(remainingTokens(again.address, again.now, plenty.address)).toBe(9998)
  })
})
