/** The host's work: transactions on its client, and `Database.run`. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import { Events, Memberships, type Services, Webhooks, tenureLayer } from "@tenure/core/effect"
import { MembershipStore, Outbox } from "@tenure/core/store"
import { WebhookTransport } from "@tenure/core/transport"
import { Fixture } from "@tenure/testing/conformance"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { isSqlError } from "effect/sql/SqlError"
import { afterAll, beforeAll } from "vitest"
import { Database } from "../src/connection/database.ts"
import { postgresLayer } from "../src/index.ts"
import { type Steps, during, ownSchema, sql, valuesOf } from "./harness.ts"

const schema = "host"
const { in2027, in2028, p1, u1, u2 } = Fixture

const { empty, stores } = ownSchema(schema)

/** Makes a host table with two unpaid orders. */
const orders = Effect.andThen(
  sql(
    `CREATE TABLE IF NOT EXISTS ${schema}.orders (id integer PRIMARY KEY, paid boolean DEFAULT false)`,
  ),
  sql(`INSERT INTO ${schema}.orders VALUES (1), (2)`),
)

const pay = (order: number) => sql(`UPDATE ${schema}.orders SET paid = true WHERE id = ${order}`)

const paid = valuesOf<number>(`SELECT id FROM ${schema}.orders WHERE paid ORDER BY id`)

const inTransaction = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  PgClient.PgClient.use((client) => client.withTransaction(work))

describe("work of the host", () => {
  const run = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Database.use((database) => database.run(work))

  const onOrders = (name: string, steps: Steps) =>
    it.live(name, () => Effect.all([empty, orders, Effect.gen(steps)]).pipe(Effect.provide(stores)))

  onOrders("returns its result, or fails with its error and is rolled back", function* () {
    const { publish } = yield* Outbox
    const refused = Effect.andThen(pay(1), publish(Fixture.event(p1)))
    expect(yield* Effect.flip(run(inTransaction(refused)))).toMatchObject({
      _tag: "ProjectNotFound",
    })
    expect(yield* run(paid)).toEqual([])
    yield* run(pay(2))
    expect(yield* run(paid)).toEqual([2])
  })

  onOrders("joins a transaction that is open", function* () {
    const work = Effect.gen(function* () {
      yield* run(inTransaction(pay(1)))
      expect(yield* run(paid)).toEqual([1])
      return yield* Effect.fail("the host's error")
    })
    yield* Effect.flip(inTransaction(work))
    expect(yield* run(paid)).toEqual([])
  })

  onOrders("ends in a defect if a statement is invalid or violates a constraint", function* () {
    for (const fault of ["nonsense", `INSERT INTO ${schema}.orders VALUES (1)`]) {
      const ended = run(inTransaction(sql(fault))).pipe(
        Effect.catchDefect((defect) => Effect.succeed(defect)),
      )
      expect(isSqlError(yield* ended)).toBe(true)
    }
  })

  const lockProject = sql(`SELECT FROM ${schema}.projects FOR NO KEY UPDATE`)
  const grantOther = MembershipStore.use((store) =>
    store.grant({ ...Fixture.change(p1), userId: u2, endDate: in2028 }),
  )

  for (const [what, last, dates] of [
    ["a statement of the host", lockProject, [in2028]],
    ["a store", grantOther, [in2028, in2028]],
  ] as const)
    onOrders(`runs again if ${what} loses a deadlock in it`, function* () {
      const database = yield* Database
      const store = yield* MembershipStore
      yield* store.createProject(p1, Fixture.context)
      yield* store.grant({ ...Fixture.change(p1), userId: u1, endDate: in2027 })
      const hasLocked = yield* Deferred.make<void>()
      const mayContinue = yield* Deferred.make<void>()
      const hasCommitted = yield* Deferred.make<void>()
      let runs = 0
      const extending = Effect.gen(function* () {
        // On a busy machine, it could otherwise be in the way of the other once more.
        if (++runs > 1) yield* Deferred.await(hasCommitted)
        yield* pay(runs)
        yield* store.extend({ ...Fixture.change(p1), userId: u1, endDate: in2028 })
        yield* Deferred.succeed(hasLocked, undefined)
        yield* Deferred.await(mayContinue)
        // Waits for the project, whose lock waits for the membership.
        yield* last
      })
      const locking = Effect.gen(function* () {
        yield* Deferred.await(hasLocked)
        yield* sql(`SET LOCAL deadlock_timeout = '10s'`)
        yield* lockProject
        yield* Deferred.succeed(mayContinue, undefined)
        yield* sql(`SELECT FROM ${schema}.memberships FOR NO KEY UPDATE`)
      })
      const committing = Effect.tap(database.atomically(locking), () =>
        Deferred.succeed(hasCommitted, undefined),
      )
      yield* Effect.all([database.atomically(extending), committing], { concurrency: "unbounded" })
      expect(runs).toBe(2)
      // The first run has left nothing.
      expect(yield* paid).toEqual([2])
      const members = yield* store.list(p1, { after: undefined, limit: 10 })
      expect(members.map(({ endDate }) => endDate)).toEqual(dates)
    })

  onOrders("fails with StoreUnavailable if its connection breaks", function* () {
    const killed = sql("SELECT pg_terminate_backend(pg_backend_pid())")
    expect(yield* Effect.flip(run(inTransaction(killed)))).toMatchObject({
      _tag: "StoreUnavailable",
    })
    expect(yield* run(Effect.retry(paid, { times: 3 }))).toEqual([])
  })

  describe("while the database is shut down", () => {
    let server: PostgresServer
    beforeAll(async () => {
      server = await startPostgres()
    })
    afterAll(() => server.stop())

    it.live("fails with StoreUnavailable, and succeeds again afterwards", () =>
      Effect.gen(function* () {
        const work = run(inTransaction(sql("SELECT 1 AS one")))
        expect(yield* work).toEqual([{ one: 1 }])
        yield* Effect.promise(server.halt)
        for (let count = 0; count < 2; count++)
          expect(yield* Effect.flip(work)).toMatchObject({ _tag: "StoreUnavailable" })
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
})

describe("a transaction of the host", () => {
  const projectId = "p1"
  const member = { projectId, userId: "1001" }
  const early = Date.parse("2027-01-01T00:00:00.000Z")
  const late = "2099-01-01T00:00:00.000Z"

  const told: Array<unknown> = []

  // Attempts never end, so that claimed deliveries stay claimed.
  const silent = Layer.succeed(WebhookTransport, {
    sendsHttpToNames: true,
    send: () => Effect.never,
  })

  const host = tenureLayer({ transport: silent, onEvent: ({ id }) => void told.push(id) }).pipe(
    Layer.provideMerge(stores),
  )

  /** Runs a test with a project and a member. */
  const inHost = (name: string, steps: Steps<Services | PgClient.PgClient>) =>
    it.live(name, () =>
      Effect.gen(function* () {
        yield* empty
        const memberships = yield* Memberships
        yield* memberships.createProject(projectId)
        yield* memberships.grant({ ...member, endDate: "2027-01-01T00:00:00.000Z" })
        yield* Effect.gen(steps)
      }).pipe(Effect.provide(host)),
    )

  const extend = Memberships.use((memberships) => memberships.extend({ ...member, endDate: late }))

  const extendOnce = Memberships.use((memberships) =>
    memberships.extend({ ...member, endDate: late, idempotencyKey: "key-1" }),
  )

  const endDate = Memberships.use(({ find }) => Effect.map(find(member), (found) => found.endDate))

  const actions = Memberships.use(({ history }) =>
    Effect.map(history({ projectId }), (rows) => rows.map(({ action }) => action)),
  )

  inHost("stores and tells nothing if it fails, and everything if it commits", function* () {
    const { create, deliveries } = yield* Webhooks
    const { publish } = yield* Events
    const { id: webhookId } = yield* create({ projectId, url: "https://receiver.example/" })
    yield* orders
    const { extend: set } = yield* Memberships
    const work = Effect.gen(function* () {
      yield* pay(1)
      // It can go on after this.
      const missing = Effect.flip(set({ projectId, userId: "404", endDate: late }))
      expect(yield* missing).toMatchObject({ _tag: "MembershipNotFound" })
      yield* extend
      expect(yield* endDate).toBe(Date.parse(late))
      const id = yield* publish({ projectId, type: "payment.completed", data: {} })
      expect(told).not.toContain(id)
      return id
    })
    const outcome = Effect.all([paid, endDate, deliveries({ projectId, webhookId })])

    expect(told).not.toContain(yield* Effect.flip(inTransaction(Effect.flatMap(work, Effect.fail))))
    expect(yield* outcome).toEqual([[], early, []])
    expect(yield* actions).toEqual(["webhook_created", "granted"])

    expect(told).toContain(yield* inTransaction(work))
    expect(yield* outcome).toEqual([[1], Date.parse(late), [expect.anything(), expect.anything()]])
  })

  inHost("is invisible to others until it commits, and does not hold them up", function* () {
    const { grant } = yield* Memberships
    const others = Effect.andThen(grant({ projectId, userId: "1002", endDate: late }), endDate)
    expect(yield* during(extend, others)).toBe(early)
    expect(yield* endDate).toBe(Date.parse(late))
  })

  inHost("goes on once another with its idempotency key is committed", function* () {
    const isKept = yield* Deferred.make<void>()
    const isAwaited = sql(
      "SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::text::xid",
    )
    const first = Effect.gen(function* () {
      yield* extendOnce
      yield* Deferred.succeed(isKept, undefined)
      yield* Effect.repeat(isAwaited, { until: (rows) => rows.length > 0 })
    })
    const second = Effect.andThen(extendOnce, endDate)
    const both = [
      inTransaction(first),
      Effect.andThen(Deferred.await(isKept), inTransaction(second)),
    ] as const
    expect(yield* Effect.all(both, { concurrency: 2 })).toEqual([undefined, Date.parse(late)])
    expect(yield* actions).toEqual(["extended", "granted"])
  })

  inHost("that holds a lock keeps a request with a key in progress", function* () {
    const refused = yield* during(
      sql(`SELECT FROM ${schema}.memberships FOR UPDATE`),
      Effect.flip(extendOnce),
    )
    expect(refused).toMatchObject({ _tag: "IdempotencyInProgress" })
    yield* extendOnce
    expect(yield* actions).toEqual(["extended", "granted"])
  })
})
