/** `Database.run`: statements and transactions of the host. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import { MembershipStore, Outbox } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { isSqlError } from "effect/sql/SqlError"
import { afterAll, beforeAll } from "vitest"
import { Database } from "../src/connection/executor.ts"
import { postgresLayer } from "../src/index.ts"
import { clientLayer, execute } from "./harness.ts"

const schema = "host_database"
const { in2027, in2028, p1, u1, u2 } = Fixture

/** Runs a test on a table of the host with two unpaid orders. */
const inHost = <A, E>(
  name: string,
  test: Effect.Effect<A, E, Database | MembershipStore | Outbox | PgClient.PgClient>,
) =>
  it.live(name, () =>
    Effect.gen(function* () {
      yield* execute(
        `DROP SCHEMA IF EXISTS ${schema} CASCADE`,
        `CREATE SCHEMA ${schema}`,
        `CREATE TABLE ${schema}.orders (id integer PRIMARY KEY, paid boolean DEFAULT false)`,
        `INSERT INTO ${schema}.orders VALUES (1), (2)`,
      )
      yield* Effect.provide(test, Layer.provideMerge(postgresLayer({ schema }), clientLayer()))
    }),
  )

const pay = Effect.fnUntraced(function* (order: number) {
  const sql = yield* PgClient.PgClient
  yield* sql.unsafe(`UPDATE ${schema}.orders SET paid = true WHERE id = ${order}`)
})

const paid = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql.unsafe<{ readonly id: number }>(
    `SELECT id FROM ${schema}.orders WHERE paid ORDER BY id`,
  )
  return rows.map(({ id }) => id)
})

describe("work of the host", () => {
  inHost(
    "returns its result, or fails with its error and is rolled back",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const database = yield* Database
      const outbox = yield* Outbox
      const refused = Effect.andThen(pay(1), outbox.publish(Fixture.event(p1)))
      const error = yield* Effect.flip(database.run(sql.withTransaction(refused)))
      expect(error._tag).toBe("ProjectNotFound")
      expect(yield* database.run(paid)).toEqual([])
      yield* database.run(pay(2))
      expect(yield* database.run(paid)).toEqual([2])
    }),
  )

  inHost(
    "joins a transaction that is open",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const database = yield* Database
      const work = Effect.gen(function* () {
        yield* database.run(sql.withTransaction(pay(1)))
        expect(yield* database.run(paid)).toEqual([1])
        return yield* Effect.fail("the host's error")
      })
      yield* Effect.flip(sql.withTransaction(work))
      expect(yield* database.run(paid)).toEqual([])
    }),
  )

  inHost(
    "ends in a defect if a statement is invalid or violates a constraint",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const database = yield* Database
      for (const fault of ["nonsense", `INSERT INTO ${schema}.orders VALUES (1)`]) {
        const ended = yield* database
          .run(sql.withTransaction(sql.unsafe(fault)))
          .pipe(Effect.catchDefect((defect) => Effect.succeed(defect)))
        expect(isSqlError(ended)).toBe(true)
      }
    }),
  )

  inHost(
    "runs again if it loses a deadlock",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const database = yield* Database
      const runs = { first: 0, second: 0 }
      const locked = { first: yield* Deferred.make<void>(), second: yield* Deferred.make<void>() }
      const ended = { first: yield* Deferred.make<void>(), second: yield* Deferred.make<void>() }
      const both = (mine: keyof typeof runs, other: keyof typeof runs, orders: [number, number]) =>
        database
          .run(
            sql.withTransaction(
              Effect.gen(function* () {
                // On a busy machine, it could otherwise be in the way of the other once more.
                if (++runs[mine] > 1) yield* Deferred.await(ended[other])
                yield* pay(orders[0])
                yield* Deferred.succeed(locked[mine], undefined)
                yield* Deferred.await(locked[other])
                yield* pay(orders[1])
              }),
            ),
          )
          .pipe(Effect.andThen(Deferred.succeed(ended[mine], undefined)))
      yield* Effect.all([both("first", "second", [1, 2]), both("second", "first", [2, 1])], {
        concurrency: "unbounded",
      })
      expect(yield* database.run(paid)).toEqual([1, 2])
      expect(runs.first + runs.second).toBe(3)
    }),
  )

  inHost(
    "runs again if a store loses a deadlock in it",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const database = yield* Database
      const store = yield* MembershipStore
      yield* store.createProject(p1, Fixture.occasion)
      const granted = store.grant({ ...Fixture.change(p1), userId: u1, endDate: in2027 })
      yield* granted
      const hasLocked = yield* Deferred.make<void>()
      const mayGrant = yield* Deferred.make<void>()
      const hasCommitted = yield* Deferred.make<void>()
      let runs = 0
      const extending = Effect.gen(function* () {
        // On a busy machine, it could otherwise be in the way of the other once more.
        if (++runs > 1) yield* Deferred.await(hasCommitted)
        yield* store.extend({ ...Fixture.change(p1), userId: u1, endDate: in2028 })
        yield* Deferred.succeed(hasLocked, undefined)
        yield* Deferred.await(mayGrant)
        // Waits for the project, whose lock waits for the membership.
        yield* store.grant({ ...Fixture.change(p1), userId: u2, endDate: in2028 })
      })
      const locking = Effect.gen(function* () {
        yield* Deferred.await(hasLocked)
        yield* sql.unsafe(`SET LOCAL deadlock_timeout = '10s'`)
        yield* sql.unsafe(`SELECT FROM ${schema}.projects FOR NO KEY UPDATE`)
        yield* Deferred.succeed(mayGrant, undefined)
        yield* sql.unsafe(`SELECT FROM ${schema}.memberships FOR NO KEY UPDATE`)
      })
      const committing = Effect.tap(database.atomically(locking), () =>
        Deferred.succeed(hasCommitted, undefined),
      )
      yield* Effect.all([database.atomically(extending), committing], { concurrency: "unbounded" })
      expect(runs).toBe(2)
      expect(yield* store.list(p1, { after: undefined, limit: 10 })).toMatchObject([
        { userId: u1, endDate: in2028 },
        { userId: u2, endDate: in2028 },
      ])
    }),
  )

  inHost(
    "fails with StoreUnavailable if its connection breaks, although the rollback dies",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const database = yield* Database
      const killed = sql`SELECT pg_terminate_backend(pg_backend_pid())`
      const error = yield* Effect.flip(database.run(sql.withTransaction(killed)))
      expect(error._tag).toBe("StoreUnavailable")
      expect(yield* database.run(Effect.retry(paid, { times: 3 }))).toEqual([])
    }),
  )
})

describe("while the database is shut down", () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  it.live("work of the host fails with StoreUnavailable, and succeeds again afterwards", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const database = yield* Database
      const work = database.run(sql.withTransaction(sql`SELECT 1 AS one`))
      expect(yield* work).toEqual([{ one: 1 }])
      yield* Effect.promise(server.halt)
      for (let count = 0; count < 2; count++)
        expect((yield* Effect.flip(work))._tag).toBe("StoreUnavailable")
      yield* Effect.promise(server.resume)
      expect(yield* Effect.eventually(work)).toEqual([{ one: 1 }])
    }).pipe(
      Effect.provide(
        Layer.provideMerge(
          postgresLayer(),
          Layer.suspend(() => PgClient.layer({ url: Redacted.make(server.url) })),
        ),
      ),
    ),
  )
})
